// Passes over the samples that every round of boosting makes.
//
// Sums are taken over fixed blocks of samples and added in the order of the blocks, whatever the threads of a pool, which
// may be null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common.h"
#include "pool.h"

namespace scb {

// Sums of weighted losses and of weights.
struct LossSums {
  double loss = 0, weight = 0;

  void add(const LossSums& o) { loss += o.loss, weight += o.weight; }
};

// Negative gradient r, Hessian and loss of a 0/1 target, or probability, y at log-odds F. `weight` may be null.
LossSums logistic(const float* y, const float* F, const double* weight, std::size_t n, float* r, float* hessian,
                  Pool* pool);
// The same for class indices y at K scores, of shape (K, n); the Hessian is 2 p (1 - p).
LossSums softmax(const float* y, const float* F, const double* weight, std::size_t n, std::size_t K, float* r,
                 float* hessian, Pool* pool);
LossSums squared(const float* y, const float* F, const double* weight, std::size_t n, float* r, float* hessian,
                 Pool* pool);

// Weighted losses of the samples listed in `index`, at scores of shape (K, n); y and `weight` are those of these samples.
LossSums logistic_loss(const float* y, const float* F, const std::int64_t* index, const double* weight, std::size_t m);
LossSums softmax_loss(const float* y, const float* F, const std::int64_t* index, const double* weight, std::size_t m,
                      std::size_t n, std::size_t K);
LossSums squared_loss(const float* y, const float* F, const std::int64_t* index, const double* weight, std::size_t m);

constexpr std::size_t kMaxMemory = 16;  // vectors that `project` takes

// The projection of a residual on the leading principal directions of t vectors.
struct Projection {
  int k = 0;           // number of directions; -1 if the smallest of them is too small for a Gram matrix: nothing is set
  double kept = 0;     // share of the vectors' energy in them
  double history = 0;  // energy of the residual in their span
  double total = 0;    // energy of the residual
};
// Sets out = r - gamma * hessian * P(r / hessian), where P projects on the fewest directions with a share alpha of the
// energy. Directions with less than the share `floor` of the largest one's energy have lost too many digits.
Projection project(const float* H, std::size_t t, const float* r, const float* hessian, const double* weight,
                   std::size_t n, double alpha, double gamma, double floor, float* out, Pool* pool);

// Exploration noise: size * sqrt(Hessian) * table[12 bits of the hash of key and stream] * scale. No noise without keys.
struct Noise {
  const std::uint32_t* keys = nullptr;
  const float* scale = nullptr;  // may be null
  const float* table = nullptr;  // of 4096 numbers
  std::uint32_t stream = 0;
  float size = 0;
};

// Sum of the squares of v = q + noise, times the weights, and of the weighted Hessians; range of q.
struct TargetSums {
  double energy = 0, hessian = 0;
  float low = std::numeric_limits<float>::infinity(), high = -std::numeric_limits<float>::infinity();

  void add(const TargetSums& o) {
    energy += o.energy, hessian += o.hessian;
    low = o.low < low ? o.low : low;
    high = o.high > high ? o.high : high;
  }
};

// Sets target = weight * v and weighted = weight * Hessian; without weights only the target.
template <class T>
TargetSums set_target(const float* q, const float* hessian, const double* weight, const Noise& noise, std::size_t n,
                      T* target, T* weighted, Pool* pool);

// Sum of squares.
double energy(const float* a, std::size_t n);

// Whether all leaves of samples are among the first ones.
template <class Leaf>
bool all_below(const Leaf* leaf, std::size_t n, std::size_t n_leaves);
// Sums of weighted a and b over the samples of each leaf, of shape (2, n_leaves).
template <class Leaf>
void leaf_sums(const Leaf* leaf, std::size_t n_leaves, const float* a, const float* b, const double* weight,
               std::size_t n, double* out);
// Newton steps sum(r) / (sum(hessian) + l2) of the leaves, the first sum soft-thresholded by l1; 0 without Hessians.
template <class Leaf>
void newton_values(const Leaf* leaf, std::size_t n_leaves, const float* r, const float* hessian, const double* weight,
                   std::size_t n, double l2, double l1, float* values);
// h = values[leaf] unless h is null, and F += eta * values[leaf].
template <class Leaf>
void add_predictions(const Leaf* leaf, const float* values, float eta, std::size_t n, float* h, float* F, Pool* pool);

}  // namespace scb
