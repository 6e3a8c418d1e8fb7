// Products with the matrix of leaf indicators of a tree, in double precision: for the joint fit of all leaves.
#pragma once

#include <cstddef>
#include <vector>

namespace scb {

// out[i] += values[leaf[i]].
template <class Leaf>
void add_leaf_values(const Leaf* leaf, const double* values, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] += values[leaf[i]];
}

// out[l] = sum of u over the samples of leaf l. Neighbouring samples are often in one leaf: two tables of sums, so that
// an addition does not wait for the one before.
template <class Leaf>
void sum_by_leaf(const Leaf* leaf, const double* u, std::size_t n, std::size_t n_leaves, double* out) {
  std::vector<double> even(n_leaves, 0.0);
  for (std::size_t l = 0; l < n_leaves; ++l) out[l] = 0;
  std::size_t i = 0;
  for (; i + 1 < n; i += 2) {
    even[leaf[i]] += u[i];
    out[leaf[i + 1]] += u[i + 1];
  }
  if (i < n) even[leaf[i]] += u[i];
  for (std::size_t l = 0; l < n_leaves; ++l) out[l] += even[l];
}

// out[a, b] = sum of the weights of the samples in leaf a of one tree and in leaf b of another one; `n_other` columns.
template <class Leaf, class Other>
void sum_by_pair(const Leaf* leaf, const Other* other, const double* weight, std::size_t n, std::size_t n_leaves,
                 std::size_t n_other, double* out) {
  for (std::size_t j = 0; j < n_leaves * n_other; ++j) out[j] = 0;
  for (std::size_t i = 0; i < n; ++i) out[leaf[i] * n_other + other[i]] += weight[i];
}

}  // namespace scb
