// Python binding of what follows the gradient in a round of one output, in one call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "arrays.h"
#include "grow.h"
#include "rounds.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using History = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Ranges of the innovation this many times its rounding, relative to the residual's norm, are no rounding.
constexpr double kVaries = 256.0 * std::numeric_limits<float>::epsilon();

template <class T>
void bind(nb::module_& m) {
  m.def(
      "finish_round",
      [](scb::Grower& grower, const std::optional<History>& H, const In<float>& r, const In<float>& hessian,
         bool in_metric, const std::optional<In<double>>& weight, double alpha, double gamma, double floor,
         const Out<float>& q, const std::optional<In<std::uint32_t>>& keys, const std::optional<In<float>>& scale,
         const std::optional<In<float>>& table, std::uint32_t stream, float size, const Out<T>& target,
         const std::optional<Out<T>>& weighted, double l2, double l1, float eta,
         const std::optional<Out<float>>& place, const Out<float>& F,
         const std::optional<std::vector<std::uint32_t>>& features, scb::Pool* pool) -> nb::object {
        const std::size_t n = grower.bins.n, t = H ? H->shape(0) : 0;
        const auto fits = [n](const auto& array) { return !array || array->shape(0) == n; };
        bool sound = r.shape(0) == n && hessian.shape(0) == n && q.shape(0) == n && target.shape(0) == n &&
                     F.shape(0) == n && fits(weight) && fits(keys) && fits(scale) &&
                     fits(weighted) && fits(place) && t <= scb::kMaxMemory && (!H || H->shape(1) == n) &&
                     (!keys || (table && table->shape(0) == 4096)) && weight.has_value() == weighted.has_value() && (weighted || std::is_same_v<T, float>);
        if (features)
          for (const std::uint32_t j : *features) sound = sound && j < grower.bins.d;
        if (!sound) throw std::invalid_argument("the arrays of a round do not match");
        const double* w = weight ? weight->data() : nullptr;
        const float* innovation = r.data();
        scb::Projection projection;
        scb::Tree tree;
        std::vector<std::int32_t> leaf;
        std::vector<float> values;
        bool done = false;
        {
          nb::gil_scoped_release release;
          [&] {
            if (H) {
              projection = scb::project(H->data(), t, r.data(), in_metric ? hessian.data() : nullptr, w, n, alpha,
                                        gamma, floor, q.data(), pool);
              if (projection.k < 0) return;
              innovation = q.data();
            }
            scb::Noise noise;
            if (keys) noise = {keys->data(), scale ? scale->data() : nullptr, table->data(), stream, size};
            const scb::TargetSums sums =
                scb::set_target(innovation, hessian.data(), w, noise, n, target.data(),
                                weighted ? weighted->data() : target.data(), pool);
            const double span = n > 0 ? static_cast<double>(sums.high) - static_cast<double>(sums.low) : 0.0;
            if (!(span > kVaries * std::sqrt(scb::energy(r.data(), n)))) return;
            leaf.resize(n);
            const T* masses = nullptr;
            if (weighted) {
              masses = weighted->data();
            } else if constexpr (std::is_same_v<T, float>) {
              masses = hessian.data();
            }
            tree = grower.grow(scb::Derivatives<T>{target.data(), masses, 1, -1.0}, 0, features ? &*features : nullptr, pool,
                               leaf.data());
            if (tree.leaves.size() < 2) return;
            values.resize(tree.leaves.size());
            scb::newton_values(leaf.data(), values.size(), r.data(), hessian.data(), w, n, l2, l1, values.data());
            for (const float value : values)
              if (!std::isfinite(value)) return;
            scb::add_predictions(leaf.data(), values.data(), eta, n, place ? place->data() : nullptr, F.data(), pool);
            done = true;
          }();
        }
        if (!done) return nb::none();
        nb::object leaves = scb::compact(leaf.data(), n, values.size());
        return nb::make_tuple(std::move(tree), leaves, scb::array(std::move(values)), projection.k, projection.kept,
                              projection.history, projection.total);
      },
      "grower"_a, "H"_a.none(), "r"_a.noconvert(), "hessian"_a.noconvert(), "in_metric"_a, "weight"_a.none(), "alpha"_a,
      "gamma"_a, "floor"_a, "q"_a.noconvert(), "keys"_a.none(), "scale"_a.none(), "table"_a.none(), "stream"_a, "size"_a,
      "target"_a.noconvert(), "weighted"_a.none(), "l2"_a, "l1"_a, "eta"_a, "place"_a.none(), "F"_a.noconvert(),
      "features"_a.none(), "pool"_a.none());
}

}  // namespace

void bind_finish(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
}
