#include "rounds.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace scb {
namespace {

constexpr std::size_t kBlock = 1 << 10;  // samples whose sums are in float or in order; a few vectors fit into cache
constexpr std::size_t kLanes = 8;        // partial sums, so that several samples are added at a time
constexpr std::size_t kTask = 16 * kBlock;   // samples of a task of a pool
constexpr std::size_t kThreaded = 2 * kTask;  // samples from which other threads are woken up
constexpr float kMinHessian = 1e-16f;    // as in XGBoost

// exp(x) to 2 units in the last place, for x <= 0; without branches, so that compilers vectorise it. NaN is taken for a
// small number.
SCB_INLINE float exp_negative(float x) {
  x = x > -87.0f ? x : -87.0f;
  const float shifted = x * 1.44269504f + 12582912.0f;  // rounds to the nearest integer, in the low bits
  const float k = shifted - 12582912.0f;
  const float y = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * y + 1.3981999507e-3f;
  p = p * y + 8.3334519073e-3f;
  p = p * y + 4.1665795894e-2f;
  p = p * y + 1.6666665459e-1f;
  p = p * y + 5.0000001201e-1f;
  p = p * y * y + y + 1.0f;
  const std::uint32_t power = static_cast<std::uint32_t>(static_cast<std::int32_t>(k) + 127) << 23;
  float scale;
  std::memcpy(&scale, &power, sizeof scale);
  return p * scale;
}

// log(1 + e) for e from 0 to 1, by the series of the area hyperbolic tangent.
SCB_INLINE float log_one_plus(float e) {
  const float s = e / (2.0f + e), q = s * s;
  float p = 1.0f / 15;
  p = p * q + 1.0f / 13;
  p = p * q + 1.0f / 11;
  p = p * q + 1.0f / 9;
  p = p * q + 1.0f / 7;
  p = p * q + 1.0f / 5;
  p = p * q + 1.0f / 3;
  return 2.0f * s * (p * q + 1.0f);
}

// Calls visit(first, count) for the blocks of n samples.
template <class Visit>
void for_blocks(std::size_t n, const Visit& visit) {
  for (std::size_t first = 0; first < n; first += kBlock) visit(first, std::min(kBlock, n - first));
}

// The same on a pool, if samples are many; returns the sum of the results, added in the order of the blocks.
template <class Sums, class Visit>
Sums sum_blocks(Pool* pool, std::size_t n, const Visit& visit) {
  Sums total;
  if (pool == nullptr || n < kThreaded) {
    for_blocks(n, [&](std::size_t first, std::size_t count) { total.add(visit(first, count)); });
    return total;
  }
  std::vector<Sums> sums((n + kBlock - 1) / kBlock);
  run(pool, (n + kTask - 1) / kTask, [&](std::size_t task) {
    const std::size_t begin = task * kTask;
    for_blocks(std::min(kTask, n - begin), [&](std::size_t first, std::size_t count) {
      sums[(begin + first) / kBlock] = visit(begin + first, count);
    });
  });
  for (const Sums& block : sums) total.add(block);
  return total;
}

double add_up(const float* a, std::size_t count) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(a[i + k]);
  for (; i < count; ++i) lanes[0] += static_cast<double>(a[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double add_up(const float* a, const double* weight, std::size_t count) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(a[i + k]) * weight[i + k];
  for (; i < count; ++i) lanes[0] += static_cast<double>(a[i]) * weight[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Inner product of a block, in float.
float dot(const float* a, const float* b, std::size_t count) {
  float lanes[2 * kLanes] = {};
  std::size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes)
    for (std::size_t k = 0; k < 2 * kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  for (; i < count; ++i) lanes[0] += a[i] * b[i];
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

LossSums add_losses(const float* losses, const double* weight, std::size_t first, std::size_t count) {
  if (weight == nullptr) return {add_up(losses, count), static_cast<double>(count)};
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) total += weight[first + i];
  return {add_up(losses, weight + first, count), total};
}

}  // namespace

LossSums logistic(const float* y, const float* F, const double* weight, std::size_t n, float* r, float* hessian,
                  Pool* pool) {
  return sum_blocks<LossSums>(pool, n, [&](std::size_t first, std::size_t count) {
    float losses[kBlock];
    const float *yb = y + first, *Fb = F + first;
    float *rb = r + first, *hb = hessian + first;
    for (std::size_t i = 0; i < count; ++i) {
      const float x = Fb[i], size = x < 0 ? -x : x;
      const float e = exp_negative(-size), share = 1.0f / (1.0f + e), rest = e * share;  // the larger and smaller p
      const float h = rest * share, invalid = x - x;  // 0, or NaN
      rb[i] = (x >= 0 ? (yb[i] - 1.0f) + rest : yb[i] - rest) + invalid;
      hb[i] = (h < kMinHessian ? kMinHessian : h) + invalid;
      losses[i] = ((x > 0 ? x : 0.0f) - yb[i] * x) + log_one_plus(e);
    }
    return add_losses(losses, weight, first, count);
  });
}

LossSums softmax(const float* y, const float* F, const double* weight, std::size_t n, std::size_t K, float* r,
                 float* hessian, Pool* pool) {
  return sum_blocks<LossSums>(pool, n, [&](std::size_t first, std::size_t count) {
    float losses[kBlock], most[kBlock], total[kBlock];
    std::copy(F + first, F + first + count, most);
    for (std::size_t k = 1; k < K; ++k)
      for (std::size_t i = 0; i < count; ++i) most[i] = F[k * n + first + i] > most[i] ? F[k * n + first + i] : most[i];
    std::fill(total, total + count, 0.0f);
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t i = 0; i < count; ++i) {
        const float d = F[k * n + first + i] - most[i], e = exp_negative(d) + (d - d);
        r[k * n + first + i] = e;
        total[i] += e;
      }
    for (std::size_t i = 0; i < count; ++i) {
      const float label = y[first + i];
      const bool known = label >= 0.0f && label < static_cast<float>(K);
      const float own = known ? F[static_cast<std::size_t>(label) * n + first + i] : most[i];
      losses[i] = std::log(total[i]) + (most[i] - own);
      total[i] = 1.0f / total[i];
    }
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t i = 0; i < count; ++i) {
        const float p = r[k * n + first + i] * total[i], h = 2.0f * p * (1.0f - p);
        hessian[k * n + first + i] = h < kMinHessian ? kMinHessian : h;
        r[k * n + first + i] = (y[first + i] == static_cast<float>(k) ? 1.0f : 0.0f) - p;
      }
    return add_losses(losses, weight, first, count);
  });
}

LossSums squared(const float* y, const float* F, const double* weight, std::size_t n, float* r, float* hessian,
                 Pool* pool) {
  return sum_blocks<LossSums>(pool, n, [&](std::size_t first, std::size_t count) {
    float losses[kBlock];
    for (std::size_t i = 0; i < count; ++i) {
      const float d = y[first + i] - F[first + i];
      r[first + i] = d;
      hessian[first + i] = 1.0f;
      losses[i] = d * d / 2;
    }
    return add_losses(losses, weight, first, count);
  });
}

LossSums logistic_loss(const float* y, const float* F, const std::int64_t* index, const double* weight, std::size_t m) {
  return sum_blocks<LossSums>(nullptr, m, [&](std::size_t first, std::size_t count) {
    float losses[kBlock];
    for (std::size_t i = 0; i < count; ++i) losses[i] = F[index[first + i]];
    for (std::size_t i = 0; i < count; ++i) {
      const float x = losses[i], size = x < 0 ? -x : x;
      losses[i] = ((x > 0 ? x : 0.0f) - y[first + i] * x) + log_one_plus(exp_negative(-size)) + (x - x);
    }
    return add_losses(losses, weight, first, count);
  });
}

LossSums softmax_loss(const float* y, const float* F, const std::int64_t* index, const double* weight, std::size_t m,
                      std::size_t n, std::size_t K) {
  return sum_blocks<LossSums>(nullptr, m, [&](std::size_t first, std::size_t count) {
    float losses[kBlock];
    for (std::size_t i = 0; i < count; ++i) {
      const float* own = F + index[first + i];
      float most = own[0], total = 0;
      for (std::size_t k = 1; k < K; ++k) most = own[k * n] > most ? own[k * n] : most;
      for (std::size_t k = 0; k < K; ++k) {
        const float d = own[k * n] - most;
        total += exp_negative(d) + (d - d);
      }
      const float label = y[first + i];
      const bool known = label >= 0.0f && label < static_cast<float>(K);
      losses[i] = std::log(total) + (most - (known ? own[static_cast<std::size_t>(label) * n] : most));
    }
    return add_losses(losses, weight, first, count);
  });
}

LossSums squared_loss(const float* y, const float* F, const std::int64_t* index, const double* weight, std::size_t m) {
  return sum_blocks<LossSums>(nullptr, m, [&](std::size_t first, std::size_t count) {
    float losses[kBlock];
    for (std::size_t i = 0; i < count; ++i) {
      const float d = y[first + i] - F[index[first + i]];
      losses[i] = d * d / 2;
    }
    return add_losses(losses, weight, first, count);
  });
}

namespace {

// Products of t vectors in the metric of weighted Hessians, with the residual, and of the residual with itself in the
// inverse metric: a matrix of t + 1 rows, of which the lower triangle and the last column are set. All Hessians are 1 if
// null.
struct Products {
  double of[(kMaxMemory + 1) * (kMaxMemory + 1)] = {};

  void add(const Products& o) {
    for (std::size_t i = 0; i < sizeof of / sizeof *of; ++i) of[i] += o.of[i];
  }
};

void metric_products(const float* H, std::size_t t, const float* r, const float* hessian, const double* weight,
                     std::size_t n, double* out, Pool* pool) {
  const std::size_t width = t + 1;
  const auto add_block = [&](std::size_t first, std::size_t count, double* sums) {
    float scaled[kBlock], metric[kBlock], residual[kBlock];
    for (std::size_t i = 0; i < count; ++i) {
      const float w = weight == nullptr ? 1.0f : static_cast<float>(weight[first + i]);
      metric[i] = (hessian == nullptr ? 1.0f : hessian[first + i]) * w;
      residual[i] = r[first + i] * w;
      scaled[i] = hessian == nullptr ? r[first + i] : r[first + i] / hessian[first + i];
    }
    sums[width * width - 1] += static_cast<double>(dot(residual, scaled, count));
    for (std::size_t a = 0; a < t; ++a) {
      const float* h = H + a * n + first;
      for (std::size_t i = 0; i < count; ++i) scaled[i] = h[i] * metric[i];
      for (std::size_t b = 0; b <= a; ++b)
        sums[a * width + b] += static_cast<double>(dot(scaled, H + b * n + first, count));
      sums[a * width + t] += static_cast<double>(dot(h, residual, count));
    }
  };
  std::fill(out, out + width * width, 0.0);
  if (pool == nullptr || n < kThreaded) {
    for_blocks(n, [&](std::size_t first, std::size_t count) { add_block(first, count, out); });
  } else {
    const Products total = sum_blocks<Products>(pool, n, [&](std::size_t first, std::size_t count) {
      Products sums;
      add_block(first, count, sums.of);
      return sums;
    });
    std::copy(total.of, total.of + width * width, out);
  }
  for (std::size_t a = 0; a < t; ++a)
    for (std::size_t b = 0; b < a; ++b) out[b * width + a] = out[a * width + b];
}

// out = r - hessian * (c' H); all Hessians are 1 if null.
void subtract_combination(const float* r, const float* c, const float* H, std::size_t t,
                          const float* hessian, std::size_t n, float* out, Pool* pool) {
  run(n < kThreaded ? nullptr : pool, (n + kTask - 1) / kTask, [&](std::size_t task) {
    const std::size_t begin = task * kTask;
    for_blocks(std::min(kTask, n - begin), [&](std::size_t offset, std::size_t count) {
      const std::size_t first = begin + offset;
      float p[kBlock] = {};
      for (std::size_t a = 0; a < t; ++a) {
        const float* h = H + a * n + first;
        for (std::size_t i = 0; i < count; ++i) p[i] += c[a] * h[i];
      }
      if (hessian != nullptr)
        for (std::size_t i = 0; i < count; ++i) p[i] *= hessian[first + i];
      for (std::size_t i = 0; i < count; ++i) out[first + i] = r[first + i] - p[i];
    });
  });
}

// Eigenvalues of a symmetric matrix, largest first, and the eigenvectors as columns: cyclic Jacobi rotations, which are
// as accurate as any method and fast for a few rows.
void eigenpairs(double* A, std::size_t t, double* values, double* V) {
  for (std::size_t i = 0; i < t; ++i)
    for (std::size_t j = 0; j < t; ++j) V[i * t + j] = i == j ? 1.0 : 0.0;
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0, diagonal = 0;
    for (std::size_t i = 0; i < t; ++i) {
      diagonal += A[i * t + i] * A[i * t + i];
      for (std::size_t j = i + 1; j < t; ++j) off += A[i * t + j] * A[i * t + j];
    }
    if (!(off > 1e-32 * diagonal)) break;
    for (std::size_t p = 0; p + 1 < t; ++p)
      for (std::size_t q = p + 1; q < t; ++q) {
        const double a = A[p * t + q];
        if (a == 0) continue;
        const double theta = (A[q * t + q] - A[p * t + p]) / (2 * a);
        const double tangent = (theta >= 0 ? 1.0 : -1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(tangent * tangent + 1), s = tangent * c;
        for (std::size_t k = 0; k < t; ++k) {
          const double x = A[k * t + p], y = A[k * t + q];
          A[k * t + p] = c * x - s * y;
          A[k * t + q] = s * x + c * y;
        }
        for (std::size_t k = 0; k < t; ++k) {
          const double x = A[p * t + k], y = A[q * t + k];
          A[p * t + k] = c * x - s * y;
          A[q * t + k] = s * x + c * y;
        }
        for (std::size_t k = 0; k < t; ++k) {
          const double x = V[k * t + p], y = V[k * t + q];
          V[k * t + p] = c * x - s * y;
          V[k * t + q] = s * x + c * y;
        }
      }
  }
  for (std::size_t i = 0; i < t; ++i) values[i] = std::max(A[i * t + i], 0.0);
  for (std::size_t i = 0; i + 1 < t; ++i) {
    const std::size_t most = static_cast<std::size_t>(std::max_element(values + i, values + t) - values);
    if (most == i) continue;
    std::swap(values[i], values[most]);
    for (std::size_t k = 0; k < t; ++k) std::swap(V[k * t + i], V[k * t + most]);
  }
}

}  // namespace

Projection project(const float* H, std::size_t t, const float* r, const float* hessian, const double* weight,
                   std::size_t n, double alpha, double gamma, double floor, float* out, Pool* pool) {
  constexpr double kRank = 1e-24;  // share of the largest energy below which a direction is rounding
  double products[(kMaxMemory + 1) * (kMaxMemory + 1)], G[kMaxMemory * kMaxMemory], V[kMaxMemory * kMaxMemory];
  double values[kMaxMemory], solution[kMaxMemory] = {};
  float c[kMaxMemory] = {};
  metric_products(H, t, r, hessian, weight, n, products, pool);
  Projection done;
  done.total = products[(t + 1) * (t + 1) - 1];
  double trace = 0;
  bool finite = true;
  for (std::size_t a = 0; a < t; ++a) {
    for (std::size_t b = 0; b < t; ++b) {
      G[a * t + b] = products[a * (t + 1) + b];
      finite = finite && std::isfinite(G[a * t + b]);
    }
    trace += G[a * t + a];
  }
  if (finite && trace > 0) {  // else the history is empty, or the fit diverges, which its loss will show
    eigenpairs(G, t, values, V);
    std::size_t k = 0;
    double held = 0;
    while (k < t && values[k] > kRank * values[0] && held < alpha * trace) held += values[k++];
    if (k > 0 && values[k - 1] < floor * values[0]) {
      done.k = -1;
      return done;
    }
    for (std::size_t j = 0; j < k; ++j) {
      double coordinate = 0;
      for (std::size_t a = 0; a < t; ++a) coordinate += V[a * t + j] * products[a * (t + 1) + t];
      done.history += coordinate * coordinate / values[j];
      for (std::size_t a = 0; a < t; ++a) solution[a] += V[a * t + j] * (coordinate / values[j]);
    }
    done.k = static_cast<int>(k);
    done.kept = k > 0 ? std::min(held / trace, 1.0) : 0.0;
    done.history = std::min(done.history, done.total);
  }
  for (std::size_t a = 0; a < t; ++a) c[a] = static_cast<float>(gamma * solution[a]);
  subtract_combination(r, c, H, t, hessian, n, out, pool);
  return done;
}

template <class T>
TargetSums set_target(const float* q, const float* hessian, const double* weight, const Noise& noise, std::size_t n,
                      T* target, T* weighted, Pool* pool) {
  return sum_blocks<TargetSums>(pool, n, [&](std::size_t first, std::size_t count) {
    TargetSums sums;
    float v[kBlock], z[kBlock];
    std::uint32_t place[kBlock];
    std::copy(q + first, q + first + count, v);
    if (noise.keys != nullptr) {
      for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t x = noise.keys[first + i] ^ noise.stream;
        x = (x ^ (x >> 16)) * 0x7FEB352Du;
        x = (x ^ (x >> 15)) * 0x846CA68Bu;
        place[i] = (x ^ (x >> 16)) >> 20;
      }
      for (std::size_t i = 0; i < count; ++i) z[i] = noise.table[place[i]];
      if (noise.scale != nullptr)
        for (std::size_t i = 0; i < count; ++i) z[i] *= noise.scale[first + i];
      for (std::size_t i = 0; i < count; ++i) v[i] += std::sqrt(hessian[first + i]) * z[i] * noise.size;
    }
    double energy[kLanes] = {}, total[kLanes] = {};
    for (std::size_t i = 0; i < count; ++i) {
      const double w = weight == nullptr ? 1.0 : weight[first + i], x = static_cast<double>(v[i]);
      const double h = static_cast<double>(hessian[first + i]) * w;
      target[first + i] = static_cast<T>(x * w);
      if (weight != nullptr) weighted[first + i] = static_cast<T>(h);
      energy[i % kLanes] += x * x * w;
      total[i % kLanes] += h;
    }
    for (std::size_t i = 0; i < count; ++i) {
      sums.low = q[first + i] < sums.low ? q[first + i] : sums.low;
      sums.high = q[first + i] > sums.high ? q[first + i] : sums.high;
    }
    for (std::size_t k = 0; k < kLanes; ++k) sums.energy += energy[k], sums.hessian += total[k];
    return sums;
  });
}

template TargetSums set_target(const float*, const float*, const double*, const Noise&, std::size_t, float*, float*,
                               Pool*);
template TargetSums set_target(const float*, const float*, const double*, const Noise&, std::size_t, double*, double*,
                               Pool*);

namespace {

struct LeafSum {
  double g = 0, h = 0;
};

template <class Leaf>
std::vector<LeafSum> sums_by_leaf(const Leaf* leaf, std::size_t n_leaves, const float* a, const float* b,
                              const double* weight, std::size_t n) {
  std::vector<LeafSum> sums(n_leaves);
  for (std::size_t i = 0; i < n; ++i) {
    const double w = weight == nullptr ? 1.0 : weight[i];
    LeafSum& sum = sums[leaf[i]];
    sum.g += static_cast<double>(a[i]) * w;
    sum.h += static_cast<double>(b[i]) * w;
  }
  return sums;
}

}  // namespace

template <class Leaf>
void newton_values(const Leaf* leaf, std::size_t n_leaves, const float* r, const float* hessian, const double* weight,
                   std::size_t n, double l2, double l1, float* values) {
  const std::vector<LeafSum> sums = sums_by_leaf(leaf, n_leaves, r, hessian, weight, n);
  for (std::size_t k = 0; k < n_leaves; ++k) {
    const double g = sums[k].g - std::min(std::max(sums[k].g, -l1), l1), h = sums[k].h + l2;
    values[k] = static_cast<float>(h > 0 ? g / h : 0.0);
  }
}

double energy(const float* a, std::size_t n) {
  double sum = 0;
  for_blocks(n, [&](std::size_t first, std::size_t count) {
    sum += static_cast<double>(dot(a + first, a + first, count));
  });
  return sum;
}

template <class Leaf>
bool all_below(const Leaf* leaf, std::size_t n, std::size_t n_leaves) {
  typedef std::make_unsigned_t<Leaf> Unsigned;
  Unsigned most = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, static_cast<Unsigned>(leaf[i]));
  return n == 0 || static_cast<std::size_t>(most) < n_leaves;
}

template <class Leaf>
void leaf_sums(const Leaf* leaf, std::size_t n_leaves, const float* a, const float* b, const double* weight,
               std::size_t n, double* out) {
  const std::vector<LeafSum> sums = sums_by_leaf(leaf, n_leaves, a, b, weight, n);
  for (std::size_t k = 0; k < n_leaves; ++k) {
    out[k] = sums[k].g;
    out[n_leaves + k] = sums[k].h;
  }
}

template <class Leaf>
void add_predictions(const Leaf* leaf, const float* values, float eta, std::size_t n, float* h, float* F, Pool* pool) {
  run(n < kThreaded ? nullptr : pool, (n + kTask - 1) / kTask, [&](std::size_t task) {
    const std::size_t begin = task * kTask, end = std::min(begin + kTask, n);
    for (std::size_t i = begin; i < end; ++i) {
      const float value = values[leaf[i]];
      if (h != nullptr) h[i] = value;
      F[i] += eta * value;
    }
  });
}

#define SCB_FOR_LEAF(Leaf)                                                                                       \
  template bool all_below(const Leaf*, std::size_t, std::size_t);                                                \
  template void leaf_sums(const Leaf*, std::size_t, const float*, const float*, const double*, std::size_t, double*); \
  template void newton_values(const Leaf*, std::size_t, const float*, const float*, const double*, std::size_t, double, \
                              double, float*);                                                                         \
  template void add_predictions(const Leaf*, const float*, float, std::size_t, float*, float*, Pool*);
SCB_FOR_LEAF(std::uint8_t)
SCB_FOR_LEAF(std::uint16_t)
SCB_FOR_LEAF(std::int32_t)
#undef SCB_FOR_LEAF

}  // namespace scb
