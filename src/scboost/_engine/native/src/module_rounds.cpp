// Python bindings of the passes that every round makes; see rounds.h.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <vector>

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
                const OutRows<float>& r, const OutRows<float>& hessian, scb::Pool* pool) {
  const std::size_t n = y.shape(0);
  require(F.shape(0) == 1 && F.shape(1) == n && r.size() == n && hessian.size() == n);
  const double* w = data(weight, n);
  nb::gil_scoped_release release;
  const scb::LossSums sums = function(y.data(), F.data(), w, n, r.data(), hessian.data(), pool);
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
        require(scb::all_below(leaf.data(), n, n_leaves));
        scb::leaf_sums(leaf.data(), n_leaves, a.data(), b.data(), w, n, out.data());
      },
      "leaf"_a.noconvert(), "a"_a.noconvert(), "b"_a.noconvert(), "weight"_a.none(), "out"_a.noconvert());
  m.def(
      "newton_values",
      [](const In<Leaf>& leaf, const In<float>& r, const In<float>& hessian, const Weight& weight, double l2, double l1,
         const Out<float>& values) {
        const std::size_t n = leaf.shape(0), n_leaves = values.shape(0);
        require(r.shape(0) == n && hessian.shape(0) == n);
        const double* w = data(weight, n);
        nb::gil_scoped_release release;
        require(scb::all_below(leaf.data(), n, n_leaves));
        scb::newton_values(leaf.data(), n_leaves, r.data(), hessian.data(), w, n, l2, l1, values.data());
      },
      "leaf"_a.noconvert(), "r"_a.noconvert(), "hessian"_a.noconvert(), "weight"_a.none(), "l2"_a, "l1"_a,
      "values"_a.noconvert());
  m.def(
      "add_predictions",
      [](const In<Leaf>& leaf, const In<float>& values, float eta, const std::optional<Out<float>>& h,
         const Out<float>& F, scb::Pool* pool) {
        const std::size_t n = leaf.shape(0), n_leaves = values.shape(0);
        require(F.shape(0) == n && (!h || h->shape(0) == n));
        float* to = h ? h->data() : nullptr;
        nb::gil_scoped_release release;
        require(scb::all_below(leaf.data(), n, n_leaves));
        scb::add_predictions(leaf.data(), values.data(), eta, n, to, F.data(), pool);
      },
      "leaf"_a.noconvert(), "values"_a.noconvert(), "eta"_a, "h"_a.none(), "F"_a.noconvert(),
      "pool"_a.none() = nb::none());
}

template <class T>
void bind_target(nb::module_& m) {
  m.def(
      "set_target",
      [](const InRows<float>& q, const InRows<float>& hessian, const Weight& weight,
         const std::optional<In<std::uint32_t>>& keys, const std::optional<In<float>>& scale,
         const std::optional<In<float>>& table, const std::vector<std::uint32_t>& streams, float size,
         const OutRows<T>& target, const OutRows<T>& weighted, const Out<double>& energies, const Out<double>& spans,
         scb::Pool* pool) {
        const std::size_t K = q.shape(0), n = q.shape(1);
        require(hessian.size() == K * n && target.size() == K * n && weighted.size() == K * n);
        require(energies.shape(0) == K && spans.shape(0) == K);
        require(!keys || (keys->shape(0) == n && table && table->shape(0) == 4096 && streams.size() == K));
        require(!scale || scale->shape(0) == n);
        const double* w = data(weight, n);
        nb::gil_scoped_release release;
        double mass = 0;
        for (std::size_t k = 0; k < K; ++k) {
          scb::Noise noise;
          if (keys) noise = {keys->data(), scale ? scale->data() : nullptr, table->data(), streams[k], size};
          const auto sums = scb::set_target(q.data() + k * n, hessian.data() + k * n, w, noise, n,
                                            target.data() + k * n, weighted.data() + k * n, pool);
          energies.data()[k] = sums.energy;
          spans.data()[k] = n > 0 ? static_cast<double>(sums.high) - static_cast<double>(sums.low) : 0.0;
          mass += sums.hessian;
        }
        return mass;
      },
      "q"_a.noconvert(), "hessian"_a.noconvert(), "weight"_a.none(), "keys"_a.none(), "scale"_a.none(),
      "table"_a.none(), "streams"_a, "size"_a, "target"_a.noconvert(), "weighted"_a.noconvert(),
      "energies"_a.noconvert(), "spans"_a.noconvert(), "pool"_a.none() = nb::none());
}

// Index of held-out samples, with their targets and weights.
typedef In<std::int64_t> Index;

template <class Function>
Sums held_out(const Function& function, const In<float>& y, const InRows<float>& F, const Index& index,
              const Weight& weight) {
  const std::size_t m = y.shape(0), n = F.shape(1);
  require(index.shape(0) == m);
  const double* w = data(weight, m);
  nb::gil_scoped_release release;
  for (std::size_t i = 0; i < m; ++i) require(index.data()[i] >= 0 && static_cast<std::size_t>(index.data()[i]) < n);
  const scb::LossSums sums = function(w, m, n);
  return {sums.loss, sums.weight};
}

template <class Function>
void bind_held_out(nb::module_& m, const char* name, const Function& function) {
  m.def(
      name,
      [function](const In<float>& y, const InRows<float>& F, const Index& index, const Weight& weight) {
        require(F.shape(0) == 1);
        return held_out([&](const double* w, std::size_t count, std::size_t) {
          return function(y.data(), F.data(), index.data(), w, count);
        }, y, F, index, weight);
      },
      "y"_a.noconvert(), "F"_a.noconvert(), "index"_a.noconvert(), "weight"_a.none());
}

}  // namespace

void bind_rounds(nb::module_& m) {
  m.def(
      "logistic",
      [](const In<float>& y, const InRows<float>& F, const Weight& weight, const OutRows<float>& r,
         const OutRows<float>& hessian, scb::Pool* pool) {
        return one_output(scb::logistic, y, F, weight, r, hessian, pool);
      },
      "y"_a.noconvert(), "F"_a.noconvert(), "weight"_a.none(), "r"_a.noconvert(), "hessian"_a.noconvert(),
      "pool"_a.none() = nb::none());
  m.def(
      "squared",
      [](const In<float>& y, const InRows<float>& F, const Weight& weight, const OutRows<float>& r,
         const OutRows<float>& hessian, scb::Pool* pool) {
        return one_output(scb::squared, y, F, weight, r, hessian, pool);
      },
      "y"_a.noconvert(), "F"_a.noconvert(), "weight"_a.none(), "r"_a.noconvert(), "hessian"_a.noconvert(),
      "pool"_a.none() = nb::none());
  m.def(
      "softmax",
      [](const In<float>& y, const InRows<float>& F, const Weight& weight, const OutRows<float>& r,
         const OutRows<float>& hessian, scb::Pool* pool) -> Sums {
        const std::size_t n = y.shape(0), K = F.shape(0);
        require(F.shape(1) == n && r.size() == n * K && hessian.size() == n * K);
        const double* w = data(weight, n);
        nb::gil_scoped_release release;
        const scb::LossSums sums = scb::softmax(y.data(), F.data(), w, n, K, r.data(), hessian.data(), pool);
        return {sums.loss, sums.weight};
      },
      "y"_a.noconvert(), "F"_a.noconvert(), "weight"_a.none(), "r"_a.noconvert(), "hessian"_a.noconvert(),
      "pool"_a.none() = nb::none());
  m.def(
      "project",
      [](const InRows<float>& H, const In<float>& r, const std::optional<In<float>>& hessian, const Weight& weight,
         double alpha, double gamma, double floor, const Out<float>& out, scb::Pool* pool) {
        const std::size_t t = H.shape(0), n = r.shape(0);
        require(t <= scb::kMaxMemory && H.shape(1) == n && out.shape(0) == n && (!hessian || hessian->shape(0) == n));
        const double* w = data(weight, n);
        const float* metric = hessian ? hessian->data() : nullptr;
        scb::Projection done;
        {
          nb::gil_scoped_release release;
          done = scb::project(H.data(), t, r.data(), metric, w, n, alpha, gamma, floor, out.data(), pool);
        }
        return nb::make_tuple(done.k, done.kept, done.history, done.total);
      },
      "H"_a.noconvert(), "r"_a.noconvert(), "hessian"_a.none(), "weight"_a.none(), "alpha"_a, "gamma"_a, "floor"_a,
      "out"_a.noconvert(), "pool"_a.none() = nb::none());
  bind_held_out(m, "logistic_loss", scb::logistic_loss);
  bind_held_out(m, "squared_loss", scb::squared_loss);
  m.def(
      "softmax_loss",
      [](const In<float>& y, const InRows<float>& F, const Index& index, const Weight& weight) {
        return held_out([&](const double* w, std::size_t count, std::size_t n) {
          return scb::softmax_loss(y.data(), F.data(), index.data(), w, count, n, F.shape(0));
        }, y, F, index, weight);
      },
      "y"_a.noconvert(), "F"_a.noconvert(), "index"_a.noconvert(), "weight"_a.none());
  bind_leaves<std::uint8_t>(m);
  bind_leaves<std::uint16_t>(m);
  bind_leaves<std::int32_t>(m);
  bind_target<float>(m);
  bind_target<double>(m);
}
