// Passes over the samples that every round of boosting makes.
//
// Sums are taken over fixed blocks of samples and added in the order of the blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common.h"

namespace scb {

// Sums of weighted losses and of weights.
struct LossSums {
  double loss = 0, weight = 0;
};

// Negative gradient r, Hessian and loss of a 0/1 target, or probability, y at log-odds F. `weight` may be null.
LossSums logistic(const float* y, const float* F, const double* weight, std::size_t n, float* r, float* hessian);
// The same for class indices y at K scores, of shape (K, n); the Hessian is 2 p (1 - p).
LossSums softmax(const float* y, const float* F, const double* weight, std::size_t n, std::size_t K, float* r,
                 float* hessian);
LossSums squared(const float* y, const float* F, const double* weight, std::size_t n, float* r, float* hessian);

// Inner products of t vectors of length n in the metric of weighted Hessians, with the residual, and of the residual
// with itself in the inverse metric: a matrix of t + 1 rows. Vectors are `stride` apart.
void metric_products(const float* H, std::size_t t, std::size_t stride, const float* r, const float* hessian,
                     const double* weight, std::size_t n, double* out);
// out = r - hessian * (c' H); all Hessians are 1 if null.
void subtract_combination(const float* r, const float* c, const float* H, std::size_t t, std::size_t stride,
                          const float* hessian, std::size_t n, float* out);

// Exploration noise: size * sqrt(Hessian) * table[12 bits of the hash of key and stream] * scale. No noise without keys.
struct Noise {
  const std::uint32_t* keys = nullptr;
  const float* scale = nullptr;  // may be null
  const float* table = nullptr;  // of 4096 numbers
  std::uint32_t stream = 0;
  float size = 0;
};

// Sum of the squares of v = q + noise, times the weights, and of the weighted Hessians.
struct TargetSums {
  double energy = 0, hessian = 0;
};

// Sets target = weight * v and weighted = weight * Hessian; without weights only the target.
template <class T>
TargetSums set_target(const float* q, const float* hessian, const double* weight, const Noise& noise, std::size_t n,
                      T* target, T* weighted);

// Sums of weighted a and b over the samples of each leaf, of shape (2, n_leaves).
template <class Leaf>
void leaf_sums(const Leaf* leaf, std::size_t n_leaves, const float* a, const float* b, const double* weight,
               std::size_t n, double* out);
// h = values[leaf] unless h is null, and F += eta * values[leaf].
template <class Leaf>
void add_predictions(const Leaf* leaf, const float* values, float eta, std::size_t n, float* h, float* F);

}  // namespace scb
