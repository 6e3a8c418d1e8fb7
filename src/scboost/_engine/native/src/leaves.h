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

// moved[i] += change[leaf[i]], and out[l] = the sum of residual - hessian * moved over the samples of leaf l of another
// tree: what the next step of a sweep over the trees needs, in one pass.
template <class Leaf, class Other>
void move_and_sum(const Leaf* leaf, const double* change, const double* residual, const double* hessian,
                  const Other* other, std::size_t n, std::size_t n_other, double* moved, double* out) {
  std::vector<double> even(n_other, 0.0);
  for (std::size_t l = 0; l < n_other; ++l) out[l] = 0;
  std::size_t i = 0;
  for (; i + 1 < n; i += 2) {
    moved[i] += change[leaf[i]];
    moved[i + 1] += change[leaf[i + 1]];
    even[other[i]] += residual[i] - hessian[i] * moved[i];
    out[other[i + 1]] += residual[i + 1] - hessian[i + 1] * moved[i + 1];
  }
  if (i < n) {
    moved[i] += change[leaf[i]];
    even[other[i]] += residual[i] - hessian[i] * moved[i];
  }
  for (std::size_t l = 0; l < n_other; ++l) out[l] += even[l];
}

}  // namespace scb
