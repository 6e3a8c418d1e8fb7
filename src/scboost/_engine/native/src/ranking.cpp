#include "ranking.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "common.h"

namespace scb {
namespace {

constexpr double kMinHessian = 1e-16;  // as in XGBoost
constexpr std::size_t kLanes = 4;      // partial sums, so that several pairs are added at a time

typedef std::vector<double> Vector;

// exp(x) to the last digits, for x <= 0: a power of 2 times Taylor's series, without branches, so that compilers
// vectorise it; NaN and infinity become NaN. The exponential of the C library differs by processor.
SCB_INLINE double exp_negative(double x) {
  const double invalid = x - x;  // 0, or NaN
  x = x > -708.0 ? x : -708.0;
  const double shifted = x * 1.4426950408889634 + 6755399441055744.0;  // rounds to the nearest integer, in the low bits
  const double k = shifted - 6755399441055744.0;
  const double y = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  const double y2 = y * y, y4 = y2 * y2;  // terms in groups, which do not wait for each other
  const double low = (1.0 + y) + y2 * (0.5 + y * (1.0 / 6.0));
  const double middle = (1.0 / 24.0 + y * (1.0 / 120.0)) + y2 * (1.0 / 720.0 + y * (1.0 / 5040.0));
  const double high = (1.0 / 40320.0 + y * (1.0 / 362880.0)) + y2 * (1.0 / 3628800.0 + y * (1.0 / 39916800.0));
  const double last = 1.0 / 479001600.0 + y * (1.0 / 6227020800.0);
  const double p = low + y4 * (middle + y4 * (high + y4 * last));
  std::uint64_t power;
  std::memcpy(&power, &shifted, sizeof power);
  power = (power + 1023) << 52;
  double scale;
  std::memcpy(&scale, &power, sizeof scale);
  return p * scale + invalid;
}

// log(1 + e) for e from 0 to 1, by the series of the area hyperbolic tangent on one side of log(2) / 2 or the other.
SCB_INLINE double log_one_plus(double e) {
  const bool high = e > 0.41421356237309503;
  const double s = (high ? e - 1.0 : e) / (e + (high ? 3.0 : 2.0)), q = s * s;
  double p = 1.0 / 23;
  p = p * q + 1.0 / 21;
  p = p * q + 1.0 / 19;
  p = p * q + 1.0 / 17;
  p = p * q + 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  return 2.0 * s * (p * q + 1.0) + (high ? 0.6931471805599453 : 0.0);
}

double add_up(const double* a, std::size_t count) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k];
  for (; i < count; ++i) lanes[0] += a[i];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

double add_up(const double* a, const double* weight, std::size_t count) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * weight[i + k];
  for (; i < count; ++i) lanes[0] += a[i] * weight[i];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// 1 / log2(2 + i) of positions i, as far as they were needed.
class Discounts {
 public:
  const double* of(std::size_t n) {
    for (std::size_t i = values_.size(); i < n; ++i) values_.push_back(1.0 / std::log2(static_cast<double>(i) + 2.0));
    return values_.data();
  }

 private:
  Vector values_;
};

// Samples in the order of their queries.
class Queries {
 public:
  explicit Queries(const Documents& documents) : y_(documents.y), order_(documents.n) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (!std::is_sorted(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) { return of(a) < of(b); }))
      std::sort(order_.begin(), order_.end(),
                [this](std::size_t a, std::size_t b) { return of(a) < of(b) || (of(a) == of(b) && a < b); });
  }

  // Calls visit(indices, count) for the documents of each query.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (std::size_t first = 0, last; first < order_.size(); first = last) {
      for (last = first + 1; last < order_.size() && of(order_[first]) == of(order_[last]); ++last) {
      }
      visit(order_.data() + first, last - first);
    }
  }

 private:
  double of(std::size_t i) const { return y_[2 * i + 1]; }

  const double* y_;
  std::vector<std::size_t> order_;
};

// The documents of a query by descending score: all, and then those with weight, which have mean weight 1.
class Query {
 public:
  std::vector<std::size_t> place;
  Vector score, relevance, gain, weight;

  std::size_t size() const { return place.size(); }

  void sort(const Documents& documents, const std::size_t* index, std::size_t count) {
    order_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const double s = documents.score[index[i]];
      order_.push_back({s == s ? s : -std::numeric_limits<double>::infinity(), index[i]});
    }
    std::sort(order_.begin(), order_.end(),
              [](const Entry& a, const Entry& b) { return a.score > b.score || (a.score == b.score && a.at < b.at); });
    place.clear(), score.clear(), relevance.clear(), gain.clear();
    for (const Entry& entry : order_) {
      place.push_back(entry.at);
      score.push_back(documents.score[entry.at]);
      relevance.push_back(documents.y[2 * entry.at]);
      gain.push_back(std::exp2(relevance.back()) - 1.0);
    }
  }

  // Drops documents without weight; returns whether there were any.
  bool keep_weighted(const Documents& documents) {
    weight.assign(size(), 1.0);
    if (documents.weight == nullptr) return false;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!(documents.weight[place[i]] > 0)) continue;
      weight[kept] = documents.weight[place[i]];
      place[kept] = place[i], score[kept] = score[i], relevance[kept] = relevance[i], gain[kept] = gain[i];
      ++kept;
    }
    const bool dropped = kept < size();
    place.resize(kept), score.resize(kept), relevance.resize(kept), gain.resize(kept), weight.resize(kept);
    if (kept > 0) {
      const double mean = add_up(weight.data(), kept) / static_cast<double>(kept);
      for (double& w : weight) w /= mean;
    }
    return dropped;
  }

  // Discounted gains of the best order.
  double ideal(const double* discount, std::size_t k) {
    sorted_ = gain;
    std::sort(sorted_.begin(), sorted_.end(), [](double a, double b) { return a > b; });
    return add_up(sorted_.data(), discount, std::min(k, size()));
  }

  // Discounted gains of the order by score, where documents of equal score share their discounts.
  double found(const double* discount, std::size_t k) const {
    double total = 0;
    for (std::size_t first = 0, last; first < size(); first = last) {
      double share = 0, gains = 0;
      for (last = first; last < size() && (last == first || score[last] == score[first]); ++last) {
        share += last < k ? discount[last] : 0.0;
        gains += gain[last];
      }
      total += gains * (share / static_cast<double>(last - first));
    }
    return total;
  }

  bool all_equal() const {
    return std::all_of(relevance.begin(), relevance.end(), [this](double r) { return r == relevance[0]; });
  }

 private:
  struct Entry {
    double score;
    std::size_t at;
  };
  std::vector<Entry> order_;
  Vector sorted_;
};

// Sums over the pairs of each document of a query, and the pairs of one document.
struct Pairs {
  Vector loss, gradient, hessian, costs, slopes, seconds;

  void start(std::size_t size) {
    for (Vector* sums : {&loss, &gradient, &hessian}) sums->assign(size, 0.0);
    for (Vector* own : {&costs, &slopes, &seconds}) own->resize(size);
  }
};

// Adds the derivatives of the pairs of document i and all behind it, each times factor(j), and the losses if requested,
// half of each to both documents.
template <bool kLosses, bool kDerivatives, class Factor>
void add_pairs(const Query& query, std::size_t i, const Factor& factor, Pairs& pairs) {
  const std::size_t count = query.size() - i - 1;
  const double s = query.score[i], relevance = query.relevance[i], w = query.weight[i];
  const double *score = query.score.data() + i + 1, *other = query.relevance.data() + i + 1;
  const double* weight = query.weight.data() + i + 1;
  double *cost = pairs.costs.data(), *slope = pairs.slopes.data(), *second = pairs.seconds.data();
  for (std::size_t j = 0; j < count; ++j) {
    // The pair is the wrong way round with probability `first` if document i is the more relevant one, else `last`.
    const double margin = s - score[j], e = exp_negative(-margin), f = factor(i + 1 + j);
    const double above = relevance > other[j] ? f : 0.0, below = relevance < other[j] ? f : 0.0;
    if (kDerivatives) {
      const double last = 1.0 / (1.0 + e), first = e * last;
      slope[j] = below * last - above * first;
      second[j] = (above + below) * (first * last);
    }
    if (kLosses) cost[j] = 0.5 * ((above + below) * log_one_plus(e) + below * margin);
  }
  if (kLosses) {
    double* loss = pairs.loss.data() + i + 1;
    for (std::size_t j = 0; j < count; ++j) loss[j] += cost[j] * w;
    pairs.loss[i] += add_up(cost, weight, count);
  }
  if (kDerivatives) {
    double *g = pairs.gradient.data() + i + 1, *h = pairs.hessian.data() + i + 1;
    for (std::size_t j = 0; j < count; ++j) {
      g[j] -= slope[j] * w;
      h[j] += second[j] * w;
    }
    pairs.gradient[i] += add_up(slope, weight, count);
    pairs.hessian[i] += add_up(second, weight, count);
  }
}

void write(const Query& query, const Vector& values, double* out) {
  for (std::size_t i = 0; i < query.size(); ++i) out[query.place[i]] = values[i];
}

double floored(double hessian) { return hessian < kMinHessian ? kMinHessian : hessian; }

// Sets what documents without weight have.
void clear(const Documents& documents, const LossAndDerivatives& out) {
  std::fill(out.loss, out.loss + documents.n, 0.0);
  if (out.gradient == nullptr) return;
  std::fill(out.gradient, out.gradient + documents.n, 0.0);
  std::fill(out.hessian, out.hessian + documents.n, kMinHessian);
}

// Divides the derivatives of each query by one plus the sum of their sizes, and multiplies them by the mean number of
// documents of a query.
void normalize(const Documents& documents, const Queries& queries, const LossAndDerivatives& out) {
  std::size_t n_used = 0, n_queries = 0;
  Vector sizes;
  queries.visit([&](const std::size_t* index, std::size_t count) {
    double size = 0;
    std::size_t used = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (documents.weight != nullptr && !(documents.weight[index[i]] > 0)) continue;
      size += std::fabs(out.gradient[index[i]]);
      ++used;
    }
    n_used += used, n_queries += used > 0;
    sizes.push_back(size);
  });
  const double mean = static_cast<double>(n_used) / static_cast<double>(std::max<std::size_t>(n_queries, 1));
  std::size_t q = 0;
  queries.visit([&](const std::size_t* index, std::size_t count) {
    const double factor = mean / (1.0 + sizes[q++]);
    for (std::size_t i = 0; i < count; ++i) {
      out.gradient[index[i]] *= factor;
      out.hessian[index[i]] = floored(out.hessian[index[i]] * factor);
    }
  });
}

}  // namespace

void lambdarank(const Documents& documents, std::size_t truncation, bool normalized, const LossAndDerivatives& out) {
  const Queries queries(documents);
  clear(documents, out);
  Discounts discounts;
  Query query;
  Pairs pairs;
  queries.visit([&](const std::size_t* index, std::size_t count) {
    const double* discount = discounts.of(count);
    query.sort(documents, index, count);
    double best = query.ideal(discount, truncation);
    const double loss = best > 0 ? 1.0 - query.found(discount, truncation) / best : 0.0;
    for (std::size_t i = 0; i < count; ++i) out.loss[index[i]] = loss;
    if (out.gradient == nullptr) return;
    if (query.keep_weighted(documents)) best = query.ideal(discount, truncation);
    const double scale = best > 0 ? 1.0 / best : 1.0, *gain = query.gain.data();
    pairs.start(query.size());
    for (std::size_t i = 0; i < std::min(truncation, query.size()); ++i) {
      const double own = gain[i], at = discount[i];
      const auto change = [=](std::size_t j) { return std::fabs(own - gain[j]) * (at - discount[j]) * scale; };
      add_pairs<false, true>(query, i, change, pairs);
    }
    for (double& h : pairs.hessian) h = floored(h);
    write(query, pairs.gradient, out.gradient);
    write(query, pairs.hessian, out.hessian);
  });
  if (normalized && out.gradient != nullptr) normalize(documents, queries, out);
}

void pairwise(const Documents& documents, const LossAndDerivatives& out) {
  const Queries queries(documents);
  clear(documents, out);
  Query query;
  Pairs pairs;
  queries.visit([&](const std::size_t* index, std::size_t count) {
    query.sort(documents, index, count);
    query.keep_weighted(documents);
    if (query.size() == 0) return;
    const auto scale = [share = 1.0 / static_cast<double>(query.size())](std::size_t) { return share; };
    pairs.start(query.size());
    for (std::size_t i = 0; i < query.size(); ++i)
      if (out.gradient != nullptr)
        add_pairs<true, true>(query, i, scale, pairs);
      else
        add_pairs<true, false>(query, i, scale, pairs);
    write(query, pairs.loss, out.loss);
    if (out.gradient == nullptr) return;
    for (double& h : pairs.hessian) h = floored(h);
    write(query, pairs.gradient, out.gradient);
    write(query, pairs.hessian, out.hessian);
  });
}

void xendcg(const Documents& documents, const LossAndDerivatives& out) {
  const Queries queries(documents);
  clear(documents, out);
  Query query;
  queries.visit([&](const std::size_t* index, std::size_t count) {
    query.sort(documents, index, count);
    query.keep_weighted(documents);
    const std::size_t n = query.size();
    if (n == 0 || query.all_equal()) return;
    const double most = query.score[0];
    double total = 0, wanted = 0;
    for (std::size_t i = 0; i < n; ++i) {
      total += query.weight[i] * exp_negative(query.score[i] - most);
      wanted += query.weight[i] * (query.gain[i] + 0.5);
    }
    const double scale = static_cast<double>(n), log_total = std::log(total);
    for (std::size_t i = 0; i < n; ++i) {
      const double d = query.score[i] - most, share = exp_negative(d) / total;
      const double target = (query.gain[i] + 0.5) / wanted;
      const std::size_t at = query.place[i];
      out.loss[at] = -scale * target * (d - log_total);
      if (out.gradient == nullptr) continue;
      out.gradient[at] = scale * (share - target);
      out.hessian[at] = floored(scale * share * (1.0 - query.weight[i] * share));
    }
  });
}

}  // namespace scb
