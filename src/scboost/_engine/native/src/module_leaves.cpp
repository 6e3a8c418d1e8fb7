// Python bindings of products with leaf indicators; see leaves.h.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "leaves.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition) {
  if (!condition) throw std::invalid_argument("the arrays of a kernel differ in length");
}

template <class Leaf>
void require_leaves(const In<Leaf>& leaf, std::size_t n_leaves) {
  const Leaf* values = leaf.data();  // in a variable, without which the loop is not vectorized
  const std::size_t n = leaf.shape(0);
  Leaf largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, values[i]);
  require(n == 0 || static_cast<std::size_t>(largest) < n_leaves);
}

template <class Leaf, class Other>
void bind_pair(nb::module_& m) {
  m.def(
      "sum_by_pair",
      [](const In<Leaf>& leaf, const In<Other>& other, const In<double>& weight, const OutRows& out) {
        const std::size_t n = leaf.shape(0), n_leaves = out.shape(0), n_other = out.shape(1);
        require(other.shape(0) == n && weight.shape(0) == n);
        nb::gil_scoped_release release;
        require_leaves(leaf, n_leaves);
        require_leaves(other, n_other);
        scb::sum_by_pair(leaf.data(), other.data(), weight.data(), n, n_leaves, n_other, out.data());
      },
      "leaf"_a.noconvert(), "other"_a.noconvert(), "weight"_a.noconvert(), "out"_a.noconvert());
  m.def(
      "move_and_sum",
      [](const In<Leaf>& leaf, const In<double>& change, const In<double>& residual, const In<double>& hessian,
         const In<Other>& other, const Out& moved, const Out& out) {
        const std::size_t n = leaf.shape(0);
        require(residual.shape(0) == n && hessian.shape(0) == n && other.shape(0) == n && moved.shape(0) == n);
        nb::gil_scoped_release release;
        require_leaves(leaf, change.shape(0));
        require_leaves(other, out.shape(0));
        scb::move_and_sum(leaf.data(), change.data(), residual.data(), hessian.data(), other.data(), n, out.shape(0),
                          moved.data(), out.data());
      },
      "leaf"_a.noconvert(), "change"_a.noconvert(), "residual"_a.noconvert(), "hessian"_a.noconvert(),
      "other"_a.noconvert(), "moved"_a.noconvert(), "out"_a.noconvert());
}

template <class Leaf>
void bind_leaf(nb::module_& m) {
  m.def(
      "add_leaf_values",
      [](const In<Leaf>& leaf, const In<double>& values, const Out& out) {
        require(out.shape(0) == leaf.shape(0));
        nb::gil_scoped_release release;
        require_leaves(leaf, values.shape(0));
        scb::add_leaf_values(leaf.data(), values.data(), leaf.shape(0), out.data());
      },
      "leaf"_a.noconvert(), "values"_a.noconvert(), "out"_a.noconvert());
  m.def(
      "sum_by_leaf",
      [](const In<Leaf>& leaf, const In<double>& u, const Out& out) {
        require(u.shape(0) == leaf.shape(0));
        nb::gil_scoped_release release;
        require_leaves(leaf, out.shape(0));
        scb::sum_by_leaf(leaf.data(), u.data(), leaf.shape(0), out.shape(0), out.data());
      },
      "leaf"_a.noconvert(), "u"_a.noconvert(), "out"_a.noconvert());
  bind_pair<Leaf, std::uint8_t>(m);
  bind_pair<Leaf, std::uint16_t>(m);
  bind_pair<Leaf, std::uint32_t>(m);
}

}  // namespace

void bind_joint_leaves(nb::module_& m) {
  bind_leaf<std::uint8_t>(m);
  bind_leaf<std::uint16_t>(m);
  bind_leaf<std::uint32_t>(m);
}
