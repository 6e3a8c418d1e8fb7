// Python bindings of the passes that every round makes; see rounds.h.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <stdexcept>

#include "rounds.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InRows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutRows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Weight = std::optional<In<double>>;
using Sums = std::pair<double, double>;

void require(bool condition) {
  if (!condition) throw std::invalid_argument("the arrays of a kernel differ in length");
}

const double* data(const Weight& weight, std::size_t n) {
  if (!weight) return nullptr;
  require(weight->shape(0) == n);
  return weight->data();
}

template <class Function>
Sums one_output(const Function& function, const In<float>& y, const InRows<float>& F, const Weight& weight,
                const OutRows<float>& r, const OutRows<float>& hessian) {
  const std::size_t n = y.shape(0);
  require(F.shape(0) == 1 && F.shape(1) == n && r.size() == n && hessian.size() == n);
  const double* w = data(weight, n);
  nb::gil_scoped_release release;
  const scb::LossSums sums = function(y.data(), F.data(), w, n, r.data(), hessian.data());
  return {sums.loss, sums.weight};
}

template <class Leaf>
void bind_leaves(nb::module_& m) {
  m.def(
      "leaf_sums",
      [](const In<Leaf>& leaf, const In<float>& a, const In<float>& b, const Weight& weight,
         const OutRows<double>& out) {
        const std::size_t n = leaf.shape(0), n_leaves = out.shape(1);
        require(a.shape(0) == n && b.shape(0) == n && out.shape(0) == 2);
        const double* w = data(weight, n);
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < n; ++i) require(static_cast<std::size_t>(leaf.data()[i]) < n_leaves);
        scb::leaf_sums(leaf.data(), n_leaves, a.data(), b.data(), w, n, out.data());
      },
      "leaf"_a.noconvert(), "a"_a.noconvert(), "b"_a.noconvert(), "weight"_a.none(), "out"_a.noconvert());
  m.def(
      "add_predictions",
      [](const In<Leaf>& leaf, const In<float>& values, float eta, const std::optional<Out<float>>& h,
         const Out<float>& F) {
        const std::size_t n = leaf.shape(0), n_leaves = values.shape(0);
        require(F.shape(0) == n && (!h || h->shape(0) == n));
        float* to = h ? h->data() : nullptr;
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < n; ++i) require(static_cast<std::size_t>(leaf.data()[i]) < n_leaves);
        scb::add_predictions(leaf.data(), values.data(), eta, n, to, F.data());
      },
      "leaf"_a.noconvert(), "values"_a.noconvert(), "eta"_a, "h"_a.none(), "F"_a.noconvert());
}

template <class T>
void bind_target(nb::module_& m) {
  m.def(
      "set_target",
      [](const In<float>& q, const In<float>& hessian, const Weight& weight,
         const std::optional<In<std::uint32_t>>& keys, const std::optional<In<float>>& scale,
         const std::optional<In<float>>& table, std::uint32_t stream, float size, const Out<T>& target,
         const Out<T>& weighted) -> Sums {
        const std::size_t n = q.shape(0);
        require(hessian.shape(0) == n && target.shape(0) == n && weighted.shape(0) == n);
        require(!keys || (keys->shape(0) == n && table && table->shape(0) == 4096));
        require(!scale || scale->shape(0) == n);
        scb::Noise noise;
        if (keys) noise = {keys->data(), scale ? scale->data() : nullptr, table->data(), stream, size};
        const double* w = data(weight, n);
        nb::gil_scoped_release release;
        const auto sums = scb::set_target(q.data(), hessian.data(), w, noise, n, target.data(), weighted.data());
        return {sums.energy, sums.hessian};
      },
      "q"_a.noconvert(), "hessian"_a.noconvert(), "weight"_a.none(), "keys"_a.none(), "scale"_a.none(),
      "table"_a.none(), "stream"_a, "size"_a, "target"_a.noconvert(), "weighted"_a.noconvert());
}

}  // namespace

void bind_rounds(nb::module_& m) {
  m.def(
      "logistic",
      [](const In<float>& y, const InRows<float>& F, const Weight& weight, const OutRows<float>& r,
         const OutRows<float>& hessian) { return one_output(scb::logistic, y, F, weight, r, hessian); },
      "y"_a.noconvert(), "F"_a.noconvert(), "weight"_a.none(), "r"_a.noconvert(), "hessian"_a.noconvert());
  m.def(
      "squared",
      [](const In<float>& y, const InRows<float>& F, const Weight& weight, const OutRows<float>& r,
         const OutRows<float>& hessian) { return one_output(scb::squared, y, F, weight, r, hessian); },
      "y"_a.noconvert(), "F"_a.noconvert(), "weight"_a.none(), "r"_a.noconvert(), "hessian"_a.noconvert());
  m.def(
      "softmax",
      [](const In<float>& y, const InRows<float>& F, const Weight& weight, const OutRows<float>& r,
         const OutRows<float>& hessian) -> Sums {
        const std::size_t n = y.shape(0), K = F.shape(0);
        require(F.shape(1) == n && r.size() == n * K && hessian.size() == n * K);
        const double* w = data(weight, n);
        nb::gil_scoped_release release;
        const scb::LossSums sums = scb::softmax(y.data(), F.data(), w, n, K, r.data(), hessian.data());
        return {sums.loss, sums.weight};
      },
      "y"_a.noconvert(), "F"_a.noconvert(), "weight"_a.none(), "r"_a.noconvert(), "hessian"_a.noconvert());
  m.def(
      "metric_products",
      [](const InRows<float>& H, const In<float>& r, const In<float>& hessian, const Weight& weight,
         const OutRows<double>& out) {
        const std::size_t t = H.shape(0), n = r.shape(0);
        require(H.shape(1) == n && hessian.shape(0) == n && out.shape(0) == t + 1 && out.shape(1) == t + 1);
        const double* w = data(weight, n);
        nb::gil_scoped_release release;
        scb::metric_products(H.data(), t, n, r.data(), hessian.data(), w, n, out.data());
      },
      "H"_a.noconvert(), "r"_a.noconvert(), "hessian"_a.noconvert(), "weight"_a.none(), "out"_a.noconvert());
  m.def(
      "subtract_combination",
      [](const In<float>& r, const In<float>& c, const InRows<float>& H, const std::optional<In<float>>& hessian,
         const Out<float>& out) {
        const std::size_t t = H.shape(0), n = r.shape(0);
        require(H.shape(1) == n && c.shape(0) == t && out.shape(0) == n && (!hessian || hessian->shape(0) == n));
        const float* metric = hessian ? hessian->data() : nullptr;
        nb::gil_scoped_release release;
        scb::subtract_combination(r.data(), c.data(), H.data(), t, n, metric, n, out.data());
      },
      "r"_a.noconvert(), "c"_a.noconvert(), "H"_a.noconvert(), "hessian"_a.none(), "out"_a.noconvert());
  bind_leaves<std::uint8_t>(m);
  bind_leaves<std::uint16_t>(m);
  bind_leaves<std::int32_t>(m);
  bind_target<float>(m);
  bind_target<double>(m);
}
