// How good a split is, and the search for the best one of a feature.
//
// The formulas are those of XGBoost, with one difference: there is no absolute threshold of the gain, so that trees do
// not depend on the unit of the target.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common.h"

namespace scb {

// Gains this close to that of no split, or to that of another split, relative to their size, are rounding.
constexpr double kNoGain = 1e-11, kTie = 1e-12;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Penalties {
  double reg_lambda = 1, reg_alpha = 0, min_child_weight = 1, max_delta_step = 0, min_split_loss = 0;
  bool monotone = false;  // some feature is constrained

  bool plain() const { return max_delta_step == 0 && !monotone; }
};

inline double soft_threshold(double g, double alpha) { return g > alpha ? g - alpha : g < -alpha ? g + alpha : 0.0; }

// Square of a gradient, soft-thresholded by its length; of several channels, of their norm.
template <bool kL1, std::size_t C>
SCB_INLINE double square(const Sum<C>& s, double alpha) {
  if constexpr (C == 1) {
    const double t = kL1 ? soft_threshold(s.g[0], alpha) : s.g[0];
    return t * t;
  } else {
    double sum = 0;
    for (std::size_t c = 0; c < C; ++c) sum += s.g[c] * s.g[c];
    if (!kL1) return sum;
    const double t = soft_threshold(std::sqrt(sum), alpha);
    return t * t;
  }
}

// What applies to one node.
struct Rule {
  const Penalties* penalties;
  double floor;                             // least Hessian of a child
  double lower = -kInfinity, upper = kInfinity;  // bounds of its values under monotone constraints

  // Value; of several channels, that of the first.
  template <std::size_t C>
  double weight(const Sum<C>& s) const {
    const Penalties& p = *penalties;
    if (s.h < p.min_child_weight || s.h <= 0) return std::min(std::max(0.0, lower), upper);
    double w = -soft_threshold(s.g[0], p.reg_alpha) / (s.h + p.reg_lambda);
    if (p.max_delta_step != 0 && std::abs(w) > p.max_delta_step) w = std::copysign(p.max_delta_step, w);
    return (w < lower ? lower : w > upper ? upper : w) + 0.0;  // not -0
  }
  template <std::size_t C>
  double gain(const Sum<C>& s) const {
    const Penalties& p = *penalties;
    if (s.h <= 0) return 0;
    if (p.plain()) return square<true>(s, p.reg_alpha) / (s.h + p.reg_lambda);
    const double w = weight(s);
    return -(2 * s.g[0] * w + (s.h + p.reg_lambda) * w * w);
  }
};

// Gain of two children, compared without a division: most candidates do not beat the best so far.
template <bool kL1>
struct PlainScore {
  double lambda, alpha, floor;

  PlainScore(const Rule& rule, int)
      : lambda(rule.penalties->reg_lambda), alpha(rule.penalties->reg_alpha), floor(rule.floor) {}
  template <std::size_t C>
  SCB_INLINE bool valid(const Sum<C>& l, const Sum<C>& r) const {
    return (l.h >= floor) & (r.h >= floor);
  }
  template <std::size_t C>
  SCB_INLINE bool beats(const Sum<C>& l, const Sum<C>& r, double bar) const {
    const double a = l.h + lambda, b = r.h + lambda;
    return (square<kL1>(l, alpha) * b + square<kL1>(r, alpha) * a > bar * (a * b)) & valid(l, r);
  }
  template <std::size_t C>
  SCB_INLINE double operator()(const Sum<C>& l, const Sum<C>& r) const {
    return square<kL1>(l, alpha) / (l.h + lambda) + square<kL1>(r, alpha) / (r.h + lambda);
  }
  // The same up to rounding, with one division.
  template <std::size_t C>
  SCB_INLINE double sum(const Sum<C>& l, const Sum<C>& r) const {
    const double a = l.h + lambda, b = r.h + lambda;
    return (square<kL1>(l, alpha) * b + square<kL1>(r, alpha) * a) / (a * b);
  }
};

// The same under monotone constraints or a largest step.
struct BoundedScore {
  const Rule& rule;
  int sign;

  BoundedScore(const Rule& r, int s) : rule(r), sign(s) {}
  template <std::size_t C>
  bool valid(const Sum<C>& l, const Sum<C>& r) const {
    if (!(l.h >= rule.floor && r.h >= rule.floor)) return false;
    if (sign == 0) return true;
    const double difference = rule.weight(r) - rule.weight(l);
    return sign > 0 ? difference >= 0 : difference <= 0;
  }
  template <std::size_t C>
  bool beats(const Sum<C>& l, const Sum<C>& r, double bar) const {
    return valid(l, r) && (*this)(l, r) > bar;
  }
  template <std::size_t C>
  double operator()(const Sum<C>& l, const Sum<C>& r) const {
    return rule.gain(l) + rule.gain(r);
  }
  template <std::size_t C>
  double sum(const Sum<C>& l, const Sum<C>& r) const {
    return (*this)(l, r);
  }
};

enum class Kind : std::uint8_t { none, numeric, one_vs_rest, subset };

// The best split so far.
template <std::size_t C>
struct Split {
  Kind kind = Kind::none;
  bool default_left = false;
  std::uint32_t feature = 0, code = 0;  // numeric: codes below it go left; one-vs-rest: the code that goes right
  double score = 0;                     // gain of both children
  double bar = 0;                       // which a better one exceeds
  Sum<C> left, right;
  std::vector<std::uint64_t> set;  // subset: codes that go right

  explicit Split(double gain = 0) : score(gain), bar(gain + kNoGain * std::abs(gain)) {}
  void take(Kind k, std::uint32_t f, std::uint32_t c, bool missing_left, const Sum<C>& l, const Sum<C>& r, double s) {
    kind = k, feature = f, code = c, default_left = missing_left, left = l, right = r, score = s;
    bar = s + kTie * std::abs(s);
  }
  bool goes_left(std::uint32_t c, std::uint32_t n_bins) const {
    if (c == n_bins) return default_left;
    if (kind == Kind::numeric) return c < code;
    if (kind == Kind::one_vs_rest) return c != code;
    return (set[c >> 6] >> (c & 63) & 1) == 0;
  }
};

// Sums of the samples of a node by code of one feature, in ascending order of the codes that occur: all codes, if
// `codes` is null.
template <std::size_t C>
struct Entries {
  const Sum<C>* sums;
  const std::uint32_t* codes;
  std::uint32_t count;  // without that of missing values
  Sum<C> missing;
  bool any_missing;

  std::uint32_t code(std::uint32_t i) const { return codes == nullptr ? i : codes[i]; }
};

// XGBoost's order: first missing values right, from the lowest cut on; then left, from the highest on.
template <class Score, std::size_t C>
inline void search_numeric(const Score& score, const Entries<C>& e, const Sum<C>& total, std::uint32_t feature, Split<C>& best) {
  Sum<C> left;
  const std::uint32_t last = e.any_missing ? e.count : (e.count > 0 ? e.count - 1 : 0);
  for (std::uint32_t i = 0; i < last; ++i) {
    left = left + e.sums[i];
    const Sum<C> right = total - left;
    if (score.beats(left, right, best.bar))
      best.take(Kind::numeric, feature, e.code(i) + 1, false, left, right, score(left, right));
  }
  if (!e.any_missing) return;
  Sum<C> right;
  for (std::uint32_t i = e.count; i-- > 0;) {
    right = right + e.sums[i];
    const Sum<C> l = total - right;
    if (score.beats(l, right, best.bar))  // the lowest: all values but missing ones go right
      best.take(Kind::numeric, feature, i == 0 ? 0 : e.code(i), true, l, right, score(l, right));
  }
}

// A category that does not occur in the node stands for none: missing values alone go right.
template <class Score, std::size_t C>
inline void search_one_vs_rest(const Score& score, const Entries<C>& e, const Sum<C>& total, std::uint32_t feature,
                               std::uint32_t n_bins, Split<C>& best) {
  if (e.codes != nullptr && e.any_missing && e.count < n_bins) {
    std::uint32_t absent = 0;
    while (absent < e.count && e.codes[absent] == absent) ++absent;
    const Sum<C> left = total - e.missing;
    if (score.beats(left, e.missing, best.bar))
      best.take(Kind::one_vs_rest, feature, absent, false, left, e.missing, score(left, e.missing));
  }
  for (std::uint32_t i = 0; i < e.count; ++i) {
    Sum<C> right = e.sums[i], left = total - right;
    if (score.beats(left, right, best.bar))
      best.take(Kind::one_vs_rest, feature, e.code(i), true, left, right, score(left, right));
    if (!e.any_missing) continue;
    right = right + e.missing;
    left = total - right;
    if (score.beats(left, right, best.bar))
      best.take(Kind::one_vs_rest, feature, e.code(i), false, left, right, score(left, right));
  }
}

// Categories in ascending order of the value that a leaf of theirs would have.
template <std::size_t C>
inline void order_categories(const Rule& rule, const Sum<C>* sums, std::uint32_t n_bins, std::vector<std::uint32_t>& order) {
  const Rule unbounded{rule.penalties, rule.floor};
  std::vector<float> weights(n_bins);
  order.resize(n_bins);
  for (std::uint32_t c = 0; c < n_bins; ++c) {
    order[c] = c;
    weights[c] = static_cast<float>(unbounded.weight(sums[c]));
    if (std::isnan(weights[c])) weights[c] = 0;  // an order must be one
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return weights[a] < weights[b]; });
}

template <std::size_t C>
inline void set_categories(const std::vector<std::uint32_t>& order, std::uint32_t count, Split<C>& best) {
  best.set.assign((order.size() + 63) / 64, 0);
  for (std::uint32_t i = 0; i < count; ++i) best.set[order[i] >> 6] |= 1ull << (order[i] & 63);
}

// The first categories in this order go right: with missing values left, and with missing values right.
template <class Score, std::size_t C>
inline void search_subset(const Score& score, const std::vector<std::uint32_t>& order, const Sum<C>* sums, const Sum<C>& total,
                          std::uint32_t feature, std::uint32_t most, Split<C>& best) {
  const std::uint32_t n_bins = static_cast<std::uint32_t>(order.size()), tried = std::min(most, n_bins);
  std::uint32_t count = 0;
  Sum<C> right;
  for (std::uint32_t i = 0; i + 1 < tried; ++i) {
    right = right + sums[order[i]];
    const Sum<C> left = total - right;
    if (score.beats(left, right, best.bar)) {
      best.take(Kind::subset, feature, 0, true, left, right, score(left, right));
      count = i + 1;
    }
  }
  Sum<C> left;
  for (std::uint32_t i = 0; i + 1 < tried; ++i) {
    const std::uint32_t j = n_bins - 1 - i;
    left = left + sums[order[j]];
    const Sum<C> r = total - left;
    if (score.beats(left, r, best.bar)) {
      best.take(Kind::subset, feature, 0, false, left, r, score(left, r));
      count = j;
    }
  }
  if (count > 0) set_categories(order, count, best);
}

}  // namespace scb
