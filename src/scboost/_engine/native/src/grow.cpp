#include "grow.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "histogram.h"

namespace scb {
namespace {

constexpr std::size_t kChunk = 1 << 16;   // samples whose sums are added up by one task
constexpr std::uint32_t kBlock = 1 << 14;  // samples whose sum is added to that of the others at once
constexpr std::size_t kLoaded = 128;      // samples whose derivatives are read at once
constexpr std::size_t kAhead = 16;        // samples that are prefetched ahead
constexpr double kRounding = 1e-14;       // share of all Hessians that may be rounding of a difference of sums
constexpr std::uint32_t kFewest = 48;     // largest node for which a histogram never pays
constexpr int kCommon = 20;               // exponents of gradients and Hessians that need no unit of their own
// Work, in sums to be updated, from which other threads are woken up.
constexpr double kThreaded = 2e5;

inline std::uint32_t lowest_bit(std::uint64_t bits) {
#if defined(__GNUC__) || defined(__clang__)
  return static_cast<std::uint32_t>(__builtin_ctzll(bits));
#else
  std::uint32_t i = 0;
  while (!(bits >> i & 1)) ++i;
  return i;
#endif
}

// What is beyond the range of float32 becomes its largest number: files hold no infinity.
inline float to_float(double x) {
  constexpr double most = std::numeric_limits<float>::max();
  return static_cast<float>(x > most ? most : x < -most ? -most : x);
}

template <std::size_t C>
struct Node {
  std::int32_t left = -1, right = -1, parent = std::numeric_limits<std::int32_t>::max();
  std::uint32_t depth = 0;
  std::uint32_t begin = 0, end = 0;  // its samples
  Sum<C> sum;
  double gain = 0;    // without a split
  double weight = 0;  // value
  double lower = -kInfinity, upper = kInfinity;
  double loss_change = 0;
  int histogram = -1;
  bool placed = false;  // the leaf of its samples is written
  Split<C> split;
  std::vector<std::uint32_t> path;               // features above, under interaction constraints
  std::shared_ptr<std::vector<std::uint8_t>> may;  // features that it may use, all if null

  std::uint32_t size() const { return end - begin; }
};

// Sums of absolute gradients and of Hessians.
struct Sizes {
  double g = 0, h = 0;
};

// The channel to which each output is added, with a random sign. Channels have equally many outputs, up to one: one each,
// if outputs are no more than channels. Inner products of gradients are kept in expectation, and for so few exactly.
template <std::size_t C>
class Channels {
 public:
  Channels(std::size_t n_outputs, std::uint64_t seed) : channel_(n_outputs), negative_(n_outputs) {
    std::uint64_t state = seed;
    for (std::size_t k = 0; k < n_outputs; ++k) channel_[k] = k;
    for (std::size_t k = 0; k < n_outputs; ++k) {
      state = mix(state);
      std::swap(channel_[k], channel_[k + state % (n_outputs - k)]);
      negative_[k] = state >> 63;
    }
    for (std::size_t& channel : channel_) channel %= C;
  }

  // Gradients and Hessians of m samples from the first on. The Hessian is the mean over outputs, weighted by itself.
  template <class T>
  void load(const Derivatives<T>& from, std::size_t n, std::size_t first, std::size_t m, T (*g)[kLoaded], T* h) const {
    if constexpr (C == 1) {
      std::copy_n(from.gradient + first, m, g[0]);
      std::copy_n(from.hessian + first, m, h);
    } else {
      T squares[kLoaded] = {};
      std::fill_n(h, m, T{0});
      for (std::size_t c = 0; c < C; ++c) std::fill_n(g[c], m, T{0});
      for (std::size_t k = 0; k < channel_.size(); ++k) {
        const T sign = negative_[k] ? T{-1} : T{1};
        const T *own_g = from.gradient + k * n + first, *own_h = from.hessian + k * n + first;
        T* sum = g[channel_[k]];
        for (std::size_t i = 0; i < m; ++i) {
          sum[i] += sign * own_g[i];
          h[i] += own_h[i];
          squares[i] += own_h[i] * own_h[i];
        }
      }
      for (std::size_t i = 0; i < m; ++i) h[i] = h[i] > 0 ? squares[i] / h[i] : T{0};
    }
  }

 private:
  std::vector<std::size_t> channel_;
  std::vector<bool> negative_;
};

// New nodes to be evaluated: the smaller child, whose histogram is built, and the larger one, which gets the
// difference. Only the first for the root, and for nodes whose histogram is there already.
struct Job {
  std::int32_t small = -1, large = -1;
  bool built = false;
  std::size_t chunk = 0, n_chunks = 0;  // partial histograms of many samples
};

// Memory of a task.
template <std::size_t C>
struct Scratch {
  std::vector<std::uint64_t> words;
  std::vector<Sum<C>> pairs, sums, histogram;
  std::vector<std::uint32_t> codes, order;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sorted;
  std::vector<double> scores;

  Scratch() : histogram(256) {}
};

template <std::size_t C>
Scratch<C>& scratch() {
  static thread_local Scratch<C> memory;
  return memory;
}

}  // namespace

template <std::size_t C>
class Workspace {
 public:
  Buffer<std::uint32_t> rows, other_rows;
  Buffer<Pair<C>> pairs, other_pairs;
  std::vector<Buffer<Sum<C>>> histograms;
  std::vector<int> free;
  Buffer<Sum<C>> partial;
};

namespace {

template <std::size_t C>
class Growth {
  typedef scb::Pair<C> Pair;
  typedef scb::Sum<C> Sum;
  typedef scb::Split<C> Split;
  typedef scb::Entries<C> Entries;
  typedef scb::Node<C> Node;
  typedef scb::Scratch<C> Scratch;
  typedef scb::Workspace<C> Workspace;

 public:
  Growth(const Bins& bins, const Parameters& parameters, scb::Workspace<C>& work, std::uint64_t seed, Pool* pool,
         std::int32_t* leaf)
      : bins_(bins),
        p_(parameters),
        penalties_(parameters.penalties),
        work_(work),
        seed_(mix(seed)),
        pool_(pool),
        leaf_(leaf) {}

  template <class T>
  Tree grow(const Derivatives<T>& derivatives, const std::vector<std::uint32_t>* features) {
    choose_features(features);
    start(derivatives);
    share_ = 1 / static_cast<double>(derivatives.n_outputs);
    if (p_.policy == Policy::symmetric) {
      grow_symmetric();
    } else if (p_.policy == Policy::leaf_wise) {
      grow_leaf_wise();
    } else {
      grow_depth_wise();
    }
    for (const Node& node : nodes_)
      if (node.histogram >= 0) work_.free.push_back(node.histogram);
    return finish();
  }

 private:
  // --- features ---------------------------------------------------------------------------------------------------

  static std::uint32_t share_of(double share, std::size_t count) {
    const double wanted = std::nearbyint(share * static_cast<double>(count));
    return static_cast<std::uint32_t>(std::min(std::max(wanted, 1.0), static_cast<double>(count)));
  }

  // Draws a share of the features that are set, by a stream of its own.
  void draw(std::vector<std::uint8_t>& mask, double share, std::uint64_t stream) const {
    if (share >= 1) return;
    std::vector<std::uint32_t> from;
    for (std::uint32_t j = 0; j < mask.size(); ++j)
      if (mask[j]) from.push_back(j);
    if (from.empty()) return;
    const std::uint32_t count = share_of(share, from.size());
    std::uint64_t state = mix(seed_ ^ mix(stream));
    for (std::uint32_t i = 0; i < count; ++i) {
      state = mix(state);
      std::swap(from[i], from[i + state % (from.size() - i)]);
    }
    std::fill(mask.begin(), mask.end(), std::uint8_t{0});
    for (std::uint32_t i = 0; i < count; ++i) mask[from[i]] = 1;
  }

  void choose_features(const std::vector<std::uint32_t>* features) {
    tree_mask_.assign(bins_.d, features == nullptr ? 1 : 0);
    if (features != nullptr)
      for (const std::uint32_t j : *features) tree_mask_[j] = 1;
    draw(tree_mask_, p_.by_tree, 1);
    slots_.clear();
    for (std::uint32_t g = 0; g < bins_.groups.size(); ++g) {
      const Group& group = bins_.groups[g];
      Slots slots;
      slots.bits = group.bits;
      for (std::uint32_t k = 0; k < group.count; ++k) {
        const std::uint32_t j = bins_.members[group.first + k];
        if (!tree_mask_[j] || bins_.features[j].n_codes < 2) continue;
        slots.shift[slots.count] = bins_.features[j].shift;
        slots.offset[slots.count] = k * group.stride;
        slots.feature[slots.count++] = j;
      }
      slots.full = slots.count == 8 && group.stride == 256;
      if (slots.count > 0) {
        slots_.push_back(slots);
        groups_.push_back(g);
        n_slots_ += slots.count;
        for (std::uint32_t k = 0; k < slots.count; ++k) n_codes_ += bins_.features[slots.feature[k]].n_codes;
      }
    }
    // A histogram costs about as much as half its entries are samples.
    few_ = n_slots_ > 0 ? std::max<std::uint32_t>(kFewest, static_cast<std::uint32_t>(n_codes_ / n_slots_ / 2)) : kFewest;
    samples_inside_ = p_.by_level < 1 || p_.by_node < 1;
  }

  // Sets what features a node may use.
  void restrict(Node& node, std::int32_t number) {
    if (p_.interactions.empty() && !samples_inside_) return;
    auto may = std::make_shared<std::vector<std::uint8_t>>(tree_mask_);
    if (samples_inside_) {
      draw(*may, p_.by_level, 2 + 2 * static_cast<std::uint64_t>(node.depth));
      draw(*may, p_.by_node, 3 + 2 * static_cast<std::uint64_t>(number));
    }
    if (!node.path.empty()) {
      std::vector<std::uint8_t> allowed(bins_.d, 0);
      for (const std::uint32_t j : node.path) allowed[j] = 1;
      for (const auto& group : p_.interactions) {
        const bool holds = std::all_of(node.path.begin(), node.path.end(), [&](std::uint32_t j) {
          return std::find(group.begin(), group.end(), j) != group.end();
        });
        if (holds)
          for (const std::uint32_t j : group) allowed[j] = 1;
      }
      for (std::size_t j = 0; j < bins_.d; ++j) (*may)[j] &= allowed[j];
    }
    node.may = std::move(may);
  }

  // --- samples ----------------------------------------------------------------------------------------------------

  // Reads gradients and Hessians, in units in which float32 holds them, their sums and their gains.
  template <class T>
  void start(const Derivatives<T>& derivatives) {
    const Sizes sizes = read(derivatives, 1.0, 1.0);
    const double n = static_cast<double>(std::max<std::size_t>(bins_.n, 1));
    unit_ = unit_of(sizes.g / n);
    hessian_unit_ = unit_of(sizes.h / n);
    if (unit_ != 1 || hessian_unit_ != 1) {
      read(derivatives, 1 / unit_, 1 / hessian_unit_);
      penalties_.reg_lambda /= hessian_unit_;
      penalties_.min_child_weight /= hessian_unit_;
      penalties_.reg_alpha /= unit_;
      penalties_.min_split_loss *= hessian_unit_ / unit_ / unit_;
      penalties_.max_delta_step *= hessian_unit_ / unit_;
    }
    Node& root = nodes_[0];
    floor_ = std::max({penalties_.min_child_weight, kRounding * root.sum.h, std::numeric_limits<double>::min()});
    const Rule rule = rule_of(root);
    root.gain = rule.gain(root.sum);
    root.weight = rule.weight(root.sum);
    restrict(root, 0);
  }

  // Makes the root of the samples that count; returns the sums of absolute gradients and of Hessians.
  template <class T>
  Sizes read(const Derivatives<T>& derivatives, double factor, double hessian_factor) {
    const T f = static_cast<T>(derivatives.factor * factor), fh = static_cast<T>(hessian_factor);
    const Channels<C> channels(derivatives.n_outputs, seed_);
    const std::size_t n = bins_.n;
    std::uint32_t* rows = work_.rows.reserve(n);
    Pair* pairs = work_.pairs.reserve(n);
    work_.other_rows.reserve(n);
    work_.other_pairs.reserve(n);
    const std::size_t n_blocks = (n + kBlock - 1) / kBlock;
    std::vector<Sizes> sizes_of(n_blocks);
    std::vector<std::uint32_t> counts(n_blocks);
    Pool* const pool = n > kThreaded / 8 ? pool_ : nullptr;
    run(pool, n_blocks, [&](std::size_t b) {
      const std::size_t first = b * kBlock, last = std::min<std::size_t>(n, first + kBlock);
      std::size_t at = first;
      Sizes sizes;
      for (std::size_t i = first; i < last; i += kLoaded) {
        const std::size_t m = std::min(kLoaded, last - i);
        T g[C][kLoaded], h[kLoaded];
        channels.load(derivatives, n, i, m, g, h);
        for (std::size_t k = 0; k < m; ++k) {
          Pair p;
          for (std::size_t c = 0; c < C; ++c) {
            p.g[c] = static_cast<float>(f * g[c][k]);
            sizes.g += std::abs(static_cast<double>(f * g[c][k]));
          }
          p.h = static_cast<float>(fh * h[k]);
          sizes.h += static_cast<double>(fh * h[k]);
          rows[at] = static_cast<std::uint32_t>(i + k);
          pairs[at] = p;
          const bool is_active = p.counts();
          at += is_active;
          leaf_[i + k] = is_active ? 0 : -1;
        }
      }
      sizes_of[b] = sizes;
      counts[b] = static_cast<std::uint32_t>(at - first);
    });
    Sizes sizes;
    Sum total;
    std::uint32_t count = 0;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      sizes.g += sizes_of[b].g;
      sizes.h += sizes_of[b].h;
      if (count != b * kBlock) {  // close the gap of samples that do not count
        std::memmove(rows + count, rows + b * kBlock, counts[b] * sizeof *rows);
        std::memmove(pairs + count, pairs + b * kBlock, counts[b] * sizeof *pairs);
      }
      count += counts[b];
    }
    const std::size_t n_sums = (count + kBlock - 1) / kBlock;
    std::vector<Sum> sums(n_sums);
    run(pool, n_sums, [&](std::size_t b) {
      const std::uint32_t first = static_cast<std::uint32_t>(b) * kBlock, last = std::min(count, first + kBlock);
      Sum sum;
      for (std::uint32_t i = first; i < last; ++i) sum.add(pairs[i]);
      sums[b] = sum;
    });
    for (std::size_t b = 0; b < n_sums; ++b) total = total + sums[b];
    all_active_ = count == n;
    nodes_.clear();
    nodes_.emplace_back();
    Node& root = nodes_[0];
    root.end = count;
    root.sum = total;
    return sizes;
  }

  // A power of two that brings a size near 1; 1 if it is not far from it, or none.
  static double unit_of(double size) {
    if (!(size > 0) || !std::isfinite(size)) return 1;
    int exponent;
    std::frexp(size, &exponent);
    return std::abs(exponent) <= kCommon ? 1.0 : std::ldexp(1.0, exponent);
  }

  Rule rule_of(const Node& node) const { return {&penalties_, floor_, node.lower, node.upper}; }

  // Which codes of the split feature go left.
  std::vector<std::uint8_t> table_of(const Split& split) const {
    const Feature& f = bins_.features[split.feature];
    std::vector<std::uint8_t> left(std::max<std::uint32_t>(f.n_codes, bins_.groups[f.group].bits == 8 ? 256 : 0));
    for (std::uint32_t c = 0; c < f.n_codes; ++c) left[c] = split.goes_left(c, f.n_bins);
    return left;
  }

  template <class Visit>
  void for_sides(const Node& node, const Visit& visit) const {
    const Feature& f = bins_.features[node.split.feature];
    const std::vector<std::uint8_t> left = table_of(node.split);
    const std::uint64_t* words = bins_.words(f.group);
    const std::uint32_t shift = f.shift;
    const std::uint64_t mask = bins_.groups[f.group].bits == 8 ? 255 : 65535;
    const std::uint32_t* rows = work_.rows.data();
    const std::uint8_t* table = left.data();
    for (std::uint32_t i = node.begin; i < node.end; ++i) {
      SCB_PREFETCH(words + rows[std::min<std::uint32_t>(i + kAhead, node.end - 1)]);
      visit(i, rows[i], table[words[rows[i]] >> shift & mask]);
    }
  }

  // Puts the samples of the left child before those of the right one, both in their order.
  void partition(Node& node) {
    Node &left = nodes_[static_cast<std::size_t>(node.left)], &right = nodes_[static_cast<std::size_t>(node.right)];
    std::uint32_t* rows = work_.rows.data();
    Pair* pairs = work_.pairs.data();
    std::uint32_t* other_rows = work_.other_rows.data() + node.begin;
    Pair* other_pairs = work_.other_pairs.data() + node.begin;
    std::uint32_t l = node.begin, r = 0;
    for_sides(node, [&](std::uint32_t i, std::uint32_t row, std::uint8_t goes_left) {
      const Pair p = pairs[i];
      rows[l] = row;
      pairs[l] = p;
      other_rows[r] = row;
      other_pairs[r] = p;
      l += goes_left;
      r += 1u - goes_left;
    });
    std::memcpy(rows + l, other_rows, r * sizeof *rows);
    std::memcpy(pairs + l, other_pairs, r * sizeof *pairs);
    left.begin = node.begin;
    left.end = right.begin = l;
    right.end = node.end;
  }

  // Writes the leaves of the samples of two children that will not be split.
  void place(Node& node) {
    const std::int32_t left = node.left, difference = node.right - node.left;
    for_sides(node, [&](std::uint32_t, std::uint32_t row, std::uint8_t goes_left) {
      leaf_[row] = left + difference * (1 - goes_left);
    });
    nodes_[static_cast<std::size_t>(node.left)].placed = nodes_[static_cast<std::size_t>(node.right)].placed = true;
  }

  // --- nodes ------------------------------------------------------------------------------------------------------

  bool splits(const Node& node) const {
    return node.split.kind != Kind::none && !(node.loss_change < penalties_.min_split_loss) &&
           (p_.max_depth == 0 || node.depth < p_.max_depth);
  }

  // Makes the children of a node, with the sums of its split.
  void expand(std::int32_t number) {
    const std::int32_t first = static_cast<std::int32_t>(nodes_.size());
    nodes_.emplace_back();
    nodes_.emplace_back();
    Node& node = nodes_[static_cast<std::size_t>(number)];
    node.left = first;
    node.right = first + 1;
    const Rule rule = rule_of(node);
    node.weight = rule.weight(node.split.left + node.split.right);
    node.sum = node.split.left + node.split.right;
    Node* children[2] = {&nodes_[static_cast<std::size_t>(first)], &nodes_[static_cast<std::size_t>(first) + 1]};
    for (int side = 0; side < 2; ++side) {
      Node& child = *children[side];
      child.parent = number;
      child.depth = node.depth + 1;
      child.sum = side == 0 ? node.split.left : node.split.right;
      child.weight = rule.weight(child.sum);
      child.gain = rule.gain(child.sum);
      child.lower = node.lower;
      child.upper = node.upper;
      if (!p_.interactions.empty()) {
        child.path = node.path;
        if (std::find(child.path.begin(), child.path.end(), node.split.feature) == child.path.end())
          child.path.push_back(node.split.feature);
      }
      restrict(child, first + side);
    }
    const int sign = p_.monotone.empty() ? 0 : p_.monotone[node.split.feature];
    if (sign != 0) {
      const double middle = (children[0]->weight + children[1]->weight) / 2;
      (sign > 0 ? children[0]->upper : children[0]->lower) = middle;
      (sign > 0 ? children[1]->lower : children[1]->upper) = middle;
    }
  }

  // Splits nodes; if their children are to be evaluated, returns them as jobs.
  std::vector<Job> split(const std::vector<std::int32_t>& numbers, bool evaluates_children) {
    std::vector<Job> jobs;
    std::size_t work = 0;
    for (const std::int32_t number : numbers) {
      expand(number);
      work += nodes_[static_cast<std::size_t>(number)].size();
    }
    run(work > kThreaded / 8 ? pool_ : nullptr, numbers.size(), [&](std::size_t i) {
      Node& node = nodes_[static_cast<std::size_t>(numbers[i])];
      evaluates_children ? partition(node) : place(node);
    });
    for (const std::int32_t number : numbers) {
      Node& node = nodes_[static_cast<std::size_t>(number)];
      if (evaluates_children) {
        const bool left_is_small =
            nodes_[static_cast<std::size_t>(node.left)].size() <= nodes_[static_cast<std::size_t>(node.right)].size();
        Job job;
        job.small = left_is_small ? node.left : node.right;
        job.large = left_is_small ? node.right : node.left;
        jobs.push_back(job);
      }
      hand_over(node, evaluates_children);
    }
    return jobs;
  }

  // Gives the histogram of a node to its larger child, if that is large enough to need one.
  void hand_over(Node& node, bool evaluates_children) {
    if (node.histogram < 0) return;
    Node &a = nodes_[static_cast<std::size_t>(node.left)], &b = nodes_[static_cast<std::size_t>(node.right)];
    Node& large = a.size() <= b.size() ? b : a;
    if (evaluates_children && large.size() > few_) {
      large.histogram = node.histogram;
    } else {
      work_.free.push_back(node.histogram);
    }
    node.histogram = -1;
  }

  int new_histogram() {
    if (work_.free.empty()) {
      work_.histograms.emplace_back(bins_.n_entries);
      return static_cast<int>(work_.histograms.size()) - 1;
    }
    const int number = work_.free.back();
    work_.free.pop_back();
    return number;
  }

  // --- evaluation -------------------------------------------------------------------------------------------------

  Sum* histogram(const Node& node, std::size_t g) const {
    return work_.histograms[static_cast<std::size_t>(node.histogram)].data() + bins_.groups[groups_[g]].offset;
  }

  // The part of a node's histogram that belongs to a feature of the tree.
  const Sum* sums_of(const Node& node, std::uint32_t feature) const {
    for (std::size_t g = 0; g < slots_.size(); ++g)
      for (std::uint32_t k = 0; k < slots_[g].count; ++k)
        if (slots_[g].feature[k] == feature) return histogram(node, g) + slots_[g].offset[k];
    return nullptr;
  }

  // Finds the best split of each node.
  void evaluate(std::vector<Job>& jobs) {
    const double work = prepare(jobs);
    const std::size_t G = slots_.size();
    std::vector<Split> found(jobs.size() * 2 * G);
    run(work > kThreaded ? pool_ : nullptr, jobs.size() * G, [&](std::size_t i) {
      const Job& job = jobs[i / G];
      const std::size_t g = i % G;
      Split* out = &found[i / G * 2 * G + g];
      visit(job, g, [&](const Node& node, const Entries& e, std::uint32_t feature, bool first) {
        search(node, e, feature, out[first ? 0 : G]);
      }, [&](const Node& node, bool first) { out[first ? 0 : G] = Split(node.gain); });
    });
    for (std::size_t j = 0; j < jobs.size(); ++j)
      for (std::size_t side = 0; side < 2; ++side) {
        const std::int32_t number = side == 0 ? jobs[j].small : jobs[j].large;
        if (number < 0) continue;
        Node& node = nodes_[static_cast<std::size_t>(number)];
        node.split = Split(node.gain);
        for (std::size_t g = 0; g < G; ++g) {
          Split& split = found[(2 * j + side) * G + g];
          if (split.kind == Kind::none) continue;
          const bool first = node.split.kind == Kind::none || split.score > node.split.score ||
                             (split.score == node.split.score && split.feature < node.split.feature);
          if (first) node.split = std::move(split);
        }
        node.loss_change = node.split.score - node.gain;
      }
  }

  // Allocates histograms, and builds the parts of those of many samples. Returns the work that is left.
  double prepare(std::vector<Job>& jobs) {
    double work = 0;
    std::size_t n_chunks = 0;
    for (Job& job : jobs) {
      Node& node = nodes_[static_cast<std::size_t>(job.small)];
      const bool stored = node.size() > few_;
      if (stored && !job.built) node.histogram = new_histogram();
      work += static_cast<double>(n_slots_) * (node.size() + (stored ? 256 : 0));
      if (stored && !job.built && node.size() > kChunk) {
        job.chunk = n_chunks;
        job.n_chunks = (node.size() + kChunk - 1) / kChunk;
        n_chunks += job.n_chunks;
      }
    }
    if (n_chunks == 0) return work;
    const std::size_t G = slots_.size();
    work_.partial.reserve(n_chunks * bins_.n_entries);
    std::vector<std::pair<const Job*, std::size_t>> chunks;
    for (const Job& job : jobs)
      for (std::size_t c = 0; c < job.n_chunks; ++c) chunks.emplace_back(&job, c);
    run(pool_, chunks.size() * G, [&](std::size_t i) {
      const Job& job = *chunks[i / G].first;
      const std::size_t c = chunks[i / G].second;
      const Node& node = nodes_[static_cast<std::size_t>(job.small)];
      const std::size_t first = node.begin + c * kChunk, last = std::min<std::size_t>(first + kChunk, node.end);
      Sum* out = part(job, c, i % G);
      clear(i % G, out);
      add_samples(bins_.words(groups_[i % G]), work_.rows.data() + first, work_.pairs.data() + first, last - first,
                  slots_[i % G], out);
    });
    return work;
  }

  Sum* part(const Job& job, std::size_t c, std::size_t g) const {
    return work_.partial.data() + (job.chunk + c) * bins_.n_entries + bins_.groups[groups_[g]].offset;
  }

  template <class Visit>
  void for_codes(std::size_t g, const Visit& visit) const {
    const Slots& slots = slots_[g];
    for (std::uint32_t k = 0; k < slots.count; ++k) {
      const std::uint32_t first = slots.offset[k], count = bins_.features[slots.feature[k]].n_codes;
      for (std::uint32_t i = first; i < first + count; ++i) visit(i);
    }
  }

  void clear(std::size_t g, Sum* out) const {
    for_codes(g, [&](std::uint32_t i) { out[i] = Sum{}; });
  }

  // Whether the Hessian of a node is too small for two children.
  bool is_final(const Node& node) const { return !(node.sum.h >= 2 * floor_); }

  // Visits the sums by code of the nodes of a job for the features of a group: begin(node, first), then
  // see(node, entries, feature, first) for each feature.
  template <class See, class Begin>
  void visit(const Job& job, std::size_t g, const See& see, const Begin& begin) const {
    const Node& small = nodes_[static_cast<std::size_t>(job.small)];
    const Node* large = job.large < 0 ? nullptr : &nodes_[static_cast<std::size_t>(job.large)];
    const Slots& slots = slots_[g];
    begin(small, true);
    if (small.histogram >= 0) {
      Sum* sums = histogram(small, g);
      if (!job.built) build(job, small, g, sums);
      if (large != nullptr) {
        Sum* rest = histogram(*large, g);
        for_codes(g, [&](std::uint32_t i) { rest[i] = rest[i] - sums[i]; });
      }
      if (!is_final(small)) see_histogram(small, slots, sums, true, see);
    } else if (!is_final(small) || (large != nullptr && large->histogram >= 0)) {
      see_samples(small, g, large != nullptr && large->histogram >= 0 ? histogram(*large, g) : nullptr, true, see);
    }
    if (large == nullptr) return;
    begin(*large, false);
    if (is_final(*large)) return;
    if (large->histogram >= 0) {
      see_histogram(*large, slots, histogram(*large, g), false, see);
    } else {
      see_samples(*large, g, nullptr, false, see);
    }
  }

  void build(const Job& job, const Node& node, std::size_t g, Sum* sums) const {
    clear(g, sums);
    if (job.n_chunks == 0) {
      add_samples(bins_.words(groups_[g]), work_.rows.data() + node.begin, work_.pairs.data() + node.begin,
                  node.size(), slots_[g], sums);
      return;
    }
    for (std::size_t c = 0; c < job.n_chunks; ++c) {
      const Sum* chunk = part(job, c, g);
      for_codes(g, [&](std::uint32_t i) { sums[i] = sums[i] + chunk[i]; });
    }
  }

  template <class See>
  void see_histogram(const Node& node, const Slots& slots, const Sum* sums, bool first, const See& see) const {
    for (std::uint32_t k = 0; k < slots.count; ++k) {
      if (node.may && !(*node.may)[slots.feature[k]]) continue;
      const Feature& f = bins_.features[slots.feature[k]];
      const Sum* own = sums + slots.offset[k];
      Entries e{own, nullptr, f.n_bins, {}, false};
      if (f.missing) {
        e.missing = own[f.n_bins];
        e.any_missing = e.missing.counts();
      }
      see(node, e, slots.feature[k], first);
    }
  }

  // A small node has no histogram: its codes are sorted by counting, with a bit for each code that occurs.
  template <class See>
  void see_samples(const Node& node, std::size_t g, Sum* subtract_from, bool first, const See& see) const {
    Scratch& s = scratch<C>();
    const Slots& slots = slots_[g];
    const std::uint32_t m = node.size();
    if (s.words.size() < m) {
      s.words.resize(2 * m);
      s.pairs.resize(2 * m);
      s.sums.resize(2 * m);
      s.codes.resize(2 * m);
    }
    const std::uint64_t* words = bins_.words(groups_[g]);
    const std::uint32_t* rows = work_.rows.data() + node.begin;
    const Pair* pairs = work_.pairs.data() + node.begin;
    for (std::uint32_t i = 0; i < m; ++i) {
      s.words[i] = words[rows[i]];
      s.pairs[i] = Sum{};
      s.pairs[i].add(pairs[i]);
    }
    if (subtract_from != nullptr) subtract_samples(s.words.data(), pairs, m, slots, subtract_from);
    if (is_final(node)) return;
    for (std::uint32_t k = 0; k < slots.count; ++k) {
      if (node.may && !(*node.may)[slots.feature[k]]) continue;
      const Feature& f = bins_.features[slots.feature[k]];
      if (f.categorical && f.n_bins >= p_.max_cat_to_onehot) {  // needs the sums of all categories
        std::vector<Sum> all(f.n_codes);
        const std::uint64_t mask = (1ull << slots.bits) - 1;
        for (std::uint32_t i = 0; i < m; ++i) {
          Sum& sum = all[s.words[i] >> slots.shift[k] & mask];
          sum = sum + s.pairs[i];
        }
        Entries e{all.data(), nullptr, f.n_bins, {}, false};
        if (f.missing) {
          e.missing = all[f.n_bins];
          e.any_missing = e.missing.counts();
        }
        see(node, e, slots.feature[k], first);
        continue;
      }
      std::uint32_t count = slots.bits == 8 ? count_bytes(s, m, slots.shift[k]) : sort_codes(s, m, slots.shift[k]);
      Entries e{s.sums.data(), s.codes.data(), count, {}, false};
      if (count > 0 && s.codes[count - 1] == f.n_bins) {
        e.any_missing = true;
        e.missing = s.sums[count - 1];
        e.count = count - 1;
      }
      if (count > 1) see(node, e, slots.feature[k], first);
    }
  }

  static std::uint32_t count_bytes(Scratch& s, std::uint32_t m, std::uint32_t shift) {
    std::uint64_t bits[4] = {};
    Sum* sums = s.histogram.data();
    const std::uint64_t* words = s.words.data();
    const Sum* pairs = s.pairs.data();
    for (std::uint32_t i = 0; i < m; ++i) {
      const std::uint32_t c = static_cast<std::uint32_t>(words[i] >> shift & 255);
      bits[c >> 6] |= 1ull << (c & 63);
      sums[c] = sums[c] + pairs[i];
    }
    std::uint32_t count = 0;
    for (std::uint32_t b = 0; b < 4; ++b)
      for (std::uint64_t rest = bits[b]; rest != 0; rest &= rest - 1) {
        const std::uint32_t c = 64 * b + lowest_bit(rest);
        s.sums[count] = sums[c];
        s.codes[count++] = c;
        sums[c] = Sum{};
      }
    return count;
  }

  static std::uint32_t sort_codes(Scratch& s, std::uint32_t m, std::uint32_t shift) {
    s.sorted.clear();
    for (std::uint32_t i = 0; i < m; ++i)
      s.sorted.emplace_back(static_cast<std::uint32_t>(s.words[i] >> shift & 65535), i);
    std::sort(s.sorted.begin(), s.sorted.end());
    std::uint32_t count = 0;
    for (const auto& [code, i] : s.sorted) {
      if (count == 0 || s.codes[count - 1] != code) {
        s.codes[count] = code;
        s.sums[count++] = Sum{};
      }
      s.sums[count - 1] = s.sums[count - 1] + s.pairs[i];
    }
    return count;
  }

  void search(const Node& node, const Entries& e, std::uint32_t feature, Split& best) const {
    const Rule rule = rule_of(node);
    if (!penalties_.plain()) {
      search_with(BoundedScore(rule, p_.monotone.empty() ? 0 : p_.monotone[feature]), rule, node, e, feature, best);
    } else if (penalties_.reg_alpha != 0) {
      search_with(PlainScore<true>(rule, 0), rule, node, e, feature, best);
    } else {
      search_with(PlainScore<false>(rule, 0), rule, node, e, feature, best);
    }
  }

  template <class Score>
  void search_with(const Score& score, const Rule& rule, const Node& node, const Entries& e, std::uint32_t feature,
                   Split& best) const {
    const Feature& f = bins_.features[feature];
    if (!f.categorical) {
      search_numeric(score, e, node.sum, feature, best);
    } else if (f.n_bins < p_.max_cat_to_onehot) {
      search_one_vs_rest(score, e, node.sum, feature, f.n_bins, best);
    } else {
      std::vector<std::uint32_t>& order = scratch<C>().order;
      order_categories(rule, e.sums, f.n_bins, order);
      search_subset(score, order, e.sums, node.sum, feature, p_.max_cat_threshold, best);
    }
  }

  // --- policies ---------------------------------------------------------------------------------------------------

  void grow_depth_wise() {
    std::vector<std::int32_t> level{0};
    std::vector<Job> jobs{Job{0}};
    std::uint32_t n_leaves = 1;
    if (p_.max_leaves == 1) return;
    evaluate(jobs);
    while (!level.empty()) {
      std::vector<std::int32_t> expanded;
      for (const std::int32_t number : level) {
        if (p_.max_leaves > 0 && n_leaves >= p_.max_leaves) break;
        if (!splits(nodes_[static_cast<std::size_t>(number)])) continue;
        expanded.push_back(number);
        ++n_leaves;
      }
      if (expanded.empty()) return;
      const std::uint32_t depth = nodes_[static_cast<std::size_t>(expanded[0])].depth + 1;
      const bool goes_on = (p_.max_depth == 0 || depth < p_.max_depth) && (p_.max_leaves == 0 || n_leaves < p_.max_leaves);
      release(level, expanded);
      jobs = split(expanded, goes_on);
      level.clear();
      if (!goes_on) return;
      for (const std::int32_t number : expanded) {
        level.push_back(nodes_[static_cast<std::size_t>(number)].left);
        level.push_back(nodes_[static_cast<std::size_t>(number)].right);
      }
      evaluate(jobs);
    }
  }

  // Frees the histograms of nodes that stay leaves.
  void release(const std::vector<std::int32_t>& level, const std::vector<std::int32_t>& expanded) {
    std::size_t at = 0;
    for (const std::int32_t number : level) {
      if (at < expanded.size() && expanded[at] == number) {
        ++at;
        continue;
      }
      Node& node = nodes_[static_cast<std::size_t>(number)];
      if (node.histogram >= 0) work_.free.push_back(node.histogram);
      node.histogram = -1;
    }
  }

  void grow_leaf_wise() {
    typedef std::pair<float, std::int32_t> Entry;  // gain, and the number with its sign changed: the oldest first
    std::priority_queue<Entry> queue;
    const auto push = [&](std::int32_t number) {
      const Node& node = nodes_[static_cast<std::size_t>(number)];
      if (splits(node)) queue.emplace(to_float(node.loss_change), -number);
    };
    std::uint32_t n_leaves = 1;
    if (p_.max_leaves == 1) return;
    std::vector<Job> jobs{Job{0}};
    evaluate(jobs);
    push(0);
    while (!queue.empty() && (p_.max_leaves == 0 || n_leaves < p_.max_leaves)) {
      const std::int32_t number = -queue.top().second;
      queue.pop();
      ++n_leaves;
      const std::uint32_t depth = nodes_[static_cast<std::size_t>(number)].depth + 1;
      const bool goes_on = (p_.max_depth == 0 || depth < p_.max_depth) && (p_.max_leaves == 0 || n_leaves < p_.max_leaves);
      jobs = split({number}, goes_on);
      if (!goes_on) continue;
      evaluate(jobs);
      push(jobs[0].small);
      push(jobs[0].large);
    }
  }

  // --- symmetric trees --------------------------------------------------------------------------------------------

  // One split a level, for all leaves in which it is allowed: the one with the largest sum of gains.
  void grow_symmetric() {
    std::vector<std::int32_t> leaves{0};
    std::vector<Job> jobs{Job{0}};
    for (std::uint32_t depth = 0; p_.max_depth == 0 || depth < p_.max_depth; ++depth) {
      const Split shared = best_shared(jobs);
      if (shared.kind == Kind::none) return;
      std::vector<std::int32_t> expanded, next;
      for (const std::int32_t number : leaves) {
        if (p_.max_leaves > 0 && leaves.size() + expanded.size() >= p_.max_leaves) break;
        if (apply(nodes_[static_cast<std::size_t>(number)], shared)) expanded.push_back(number);
      }
      if (expanded.empty()) return;
      const bool goes_on = (p_.max_depth == 0 || depth + 1 < p_.max_depth) &&
                           (p_.max_leaves == 0 || leaves.size() + expanded.size() < p_.max_leaves);
      jobs = split(expanded, goes_on);
      if (!goes_on) return;
      std::size_t at = 0;
      std::vector<Job> all;
      for (const std::int32_t number : leaves) {
        if (at < expanded.size() && expanded[at] == number) {
          const Node& node = nodes_[static_cast<std::size_t>(number)];
          next.push_back(node.left);
          next.push_back(node.right);
          all.push_back(jobs[at++]);
        } else {
          next.push_back(number);
          Job job{number};
          job.built = true;
          all.push_back(job);
        }
      }
      jobs = std::move(all);
      std::sort(next.begin(), next.end());
      leaves = std::move(next);
    }
  }

  // Gives a leaf the split of its level, if both children are allowed.
  bool apply(Node& node, const Split& shared) {
    Sum left, right;
    if (node.may && !(*node.may)[shared.feature]) return false;
    node.split = shared;
    if (node.histogram >= 0) {
      const Feature& f = bins_.features[shared.feature];
      const Sum* sums = sums_of(node, shared.feature);
      for (std::uint32_t c = 0; c < f.n_codes; ++c) {
        Sum& side = shared.goes_left(c, f.n_bins) ? left : right;
        side = side + sums[c];
      }
    } else {
      const Pair* pairs = work_.pairs.data();
      for_sides(node, [&](std::uint32_t i, std::uint32_t, std::uint8_t goes_left) {
        (goes_left ? left : right).add(pairs[i]);
      });
    }
    const Rule rule = rule_of(node);
    if (!BoundedScore(rule, p_.monotone.empty() ? 0 : p_.monotone[shared.feature]).valid(left, right)) return false;
    node.split.left = left;
    node.split.right = right;
    node.split.score = rule.gain(left) + rule.gain(right);
    node.loss_change = node.split.score - node.gain;
    return true;
  }

  struct Shared {
    Split split;
    double total = 0;
  };

  Split best_shared(std::vector<Job>& jobs) {
    const double work = prepare(jobs);
    std::vector<Shared> found(slots_.size());
    double scale = 0;
    for (const Job& job : jobs) {
      scale += std::abs(nodes_[static_cast<std::size_t>(job.small)].gain);
      if (job.large >= 0) scale += std::abs(nodes_[static_cast<std::size_t>(job.large)].gain);
    }
    run(work > kThreaded ? pool_ : nullptr, slots_.size(), [&](std::size_t g) {
      found[g].total = kNoGain * scale;
      add_up(jobs, g, found[g]);
    });
    Shared best;
    for (Shared& shared : found) {
      if (shared.split.kind == Kind::none) continue;
      const bool better = best.split.kind == Kind::none || shared.total > best.total ||
                          (shared.total == best.total && shared.split.feature < best.split.feature);
      if (better) best = std::move(shared);
    }
    return best.split;
  }

  // Sums of the gains of all leaves for the candidates of a group of features. Of a numeric feature: with missing values
  // right, and codes up to this one left; then with missing values left, and codes below this one left. These hold the
  // differences from one code to the next, so that a leaf adds to the codes that occur in it only.
  void add_up(const std::vector<Job>& jobs, std::size_t g, Shared& best) const {
    const Slots& slots = slots_[g];
    std::vector<std::size_t> start(slots.count + 1, 0);
    for (std::uint32_t k = 0; k < slots.count; ++k) {
      const Feature& f = bins_.features[slots.feature[k]];
      start[k + 1] = start[k] + (f.missing || f.categorical ? 2 : 1) * f.n_bins;
    }
    std::vector<double>& scores = scratch<C>().scores;
    scores.assign(start[slots.count], 0.0);
    std::vector<std::vector<std::uint32_t>> orders(slots.count);
    for (std::uint32_t k = 0; k < slots.count; ++k) {
      const Feature& f = bins_.features[slots.feature[k]];
      if (f.categorical && f.n_bins >= p_.max_cat_to_onehot) orders[k] = common_order(g, k);
    }
    std::uint32_t k = 0;
    for (const Job& job : jobs)
      visit(
          job, g,
          [&](const Node& node, const Entries& e, std::uint32_t feature, bool) {
            while (slots.feature[k] != feature) ++k;
            const Feature& f = bins_.features[feature];
            double* right = &scores[start[k]];
            add_gains(node, e, feature, orders[k], right, right + f.n_bins);
          },
          [&](const Node&, bool) { k = 0; });
    for (k = 0; k < slots.count; ++k) pick(slots.feature[k], orders[k], &scores[start[k]], best);
  }

  // Order of the categories in all samples of the tree.
  std::vector<std::uint32_t> common_order(std::size_t g, std::uint32_t k) const {
    const Slots& slots = slots_[g];
    const Feature& f = bins_.features[slots.feature[k]];
    std::vector<Sum> sums(f.n_codes);
    for (std::uint32_t i = 0; i < nodes_[0].end; ++i)
      sums[bins_.code(f, work_.rows[i])].add(work_.pairs[i]);
    std::vector<std::uint32_t> order;
    order_categories(rule_of(nodes_[0]), sums.data(), f.n_bins, order);
    return order;
  }

  void add_gains(const Node& node, const Entries& e, std::uint32_t feature, const std::vector<std::uint32_t>& order,
                 double* missing_right, double* missing_left) const {
    const Rule rule = rule_of(node);
    const BoundedScore score(rule, p_.monotone.empty() ? 0 : p_.monotone[feature]);
    const auto value = [&](Sum left, Sum right) {
      return score.valid(left, right) ? score(left, right) - node.gain - penalties_.min_split_loss : 0.0;
    };
    const Feature& f = bins_.features[feature];
    if (!f.categorical) {
      if (!penalties_.plain()) {
        add_numeric_gains(score, node, e, f, missing_right, missing_left);
      } else if (penalties_.reg_alpha != 0) {
        add_numeric_gains(PlainScore<true>(rule, 0), node, e, f, missing_right, missing_left);
      } else {
        add_numeric_gains(PlainScore<false>(rule, 0), node, e, f, missing_right, missing_left);
      }
      return;
    }
    if (!order.empty()) {
      Sum right, left;
      const std::uint32_t tried = std::min(p_.max_cat_threshold, f.n_bins);
      for (std::uint32_t i = 0; i + 1 < tried; ++i) {
        right = right + e.sums[order[i]];
        missing_left[i] += value(node.sum - right, right);
        left = left + e.sums[order[f.n_bins - 1 - i]];
        missing_right[i] += value(left, node.sum - left);
      }
      return;
    }
    std::uint32_t i = 0;
    for (std::uint32_t c = 0; c < f.n_bins; ++c) {
      const bool occurs = i < e.count && e.code(i) == c;
      const Sum right = occurs ? e.sums[i++] : Sum{}, both = right + e.missing;
      missing_left[c] += value(node.sum - right, right);
      missing_right[c] += value(node.sum - both, both);
    }
  }

  // The same for a histogram without missing values, in steps that compilers vectorise.
  template <class Value>
  static void add_histogram_gains(const Value& value, const Sum& total, const Entries& e, double* differences) {
    constexpr std::uint32_t kStep = 64;
    double g[C][kStep], h[kStep], gains[kStep + 1] = {};
    Sum left;
    for (std::uint32_t first = 0; first < e.count; first += kStep) {
      const std::uint32_t count = std::min(kStep, e.count - first);
      for (std::uint32_t i = 0; i < count; ++i) {
        left = left + e.sums[first + i];
        for (std::size_t c = 0; c < C; ++c) g[c][i] = left.g[c];
        h[i] = left.h;
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        Sum sum;
        for (std::size_t c = 0; c < C; ++c) sum.g[c] = g[c][i];
        sum.h = h[i];
        gains[i + 1] = value(sum, total - sum);
      }
      for (std::uint32_t i = 0; i < count; ++i) differences[first + i] += gains[i + 1] - gains[i];
      gains[0] = gains[count];
    }
  }

  // The same for a numeric feature. `missing_left` is not used if no sample of the tree misses the feature.
  template <class Score>
  void add_numeric_gains(const Score& score, const Node& node, const Entries& e, const Feature& f,
                         double* missing_right, double* missing_left) const {
    const double none = node.gain + penalties_.min_split_loss;
    const auto value = [&](const Sum& left, const Sum& right) {
      return score.valid(left, right) ? score.sum(left, right) - none : 0.0;
    };
    Sum left;
    double before = 0, before_left = 0;
    if (e.codes == nullptr && !f.missing) {
      add_histogram_gains(value, node.sum, e, missing_right);
      return;
    }
    if (e.any_missing && e.count > 0) missing_left[0] += before_left = value(e.missing, node.sum - e.missing);
    for (std::uint32_t i = 0; i < e.count; ++i) {
      if (!e.sums[i].counts()) continue;  // nothing changes at a bin without samples
      left = left + e.sums[i];
      if (!f.missing) {
        const double now = value(left, node.sum - left);
        missing_right[e.code(i)] += now - before;
        before = now;
        continue;
      }
      const Sum all = left + e.missing;
      const double now = value(left, node.sum - left), now_left = e.any_missing ? value(all, node.sum - all) : now;
      missing_right[e.code(i)] += now - before;
      if (e.code(i) + 1 < f.n_bins) missing_left[e.code(i) + 1] += now_left - before_left;
      before = now;
      before_left = now_left;
    }
  }

  void pick(std::uint32_t feature, const std::vector<std::uint32_t>& order, const double* missing_right,
            Shared& best) const {
    const Feature& f = bins_.features[feature];
    const double* missing_left = missing_right + f.n_bins;
    const auto offer = [&](double total, Kind kind, std::uint32_t code, bool left) {
      if (!(total > best.total + kTie * std::abs(best.total))) return false;
      best.total = total;
      best.split.take(kind, feature, code, left, Sum{}, Sum{}, total);
      return true;
    };
    if (!order.empty()) {
      const std::uint32_t tried = std::min(p_.max_cat_threshold, f.n_bins);
      for (std::uint32_t i = 0; i + 1 < tried; ++i)
        if (offer(missing_left[i], Kind::subset, 0, true)) set_categories(order, i + 1, best.split);
      for (std::uint32_t i = 0; i + 1 < tried; ++i)
        if (offer(missing_right[i], Kind::subset, 0, false)) set_categories(order, f.n_bins - 1 - i, best.split);
      return;
    }
    if (f.categorical) {
      for (std::uint32_t c = 0; c < f.n_bins; ++c) {
        offer(missing_left[c], Kind::one_vs_rest, c, true);
        if (f.missing) offer(missing_right[c], Kind::one_vs_rest, c, false);
      }
      return;
    }
    double total = 0;
    for (std::uint32_t c = 0; c < f.n_bins; ++c) offer(total += missing_right[c], Kind::numeric, c + 1, false);
    total = 0;
    if (f.missing)
      for (std::uint32_t c = 0; c < f.n_bins; ++c) offer(total += missing_left[c], Kind::numeric, c, true);
  }

  // --- result -----------------------------------------------------------------------------------------------------

  Tree finish() {
    Tree tree;
    tree.n_features = bins_.d;
    const std::size_t count = nodes_.size();
    const std::uint32_t* rows = work_.rows.data();
    std::vector<std::int32_t> place(count, -1);
    for (std::size_t i = 0; i < count; ++i) {
      const Node& node = nodes_[i];
      if (node.left < 0) {
        place[i] = static_cast<std::int32_t>(tree.leaves.size());
        tree.leaves.push_back(static_cast<std::int32_t>(i));
      }
      write(node, tree);
    }
    Pool* const pool = bins_.n > kThreaded / 8 ? pool_ : nullptr;
    run(pool, tree.leaves.size(), [&](std::size_t k) {
      const Node& node = nodes_[static_cast<std::size_t>(tree.leaves[k])];
      if (node.placed) return;
      for (std::uint32_t r = node.begin; r < node.end; ++r) leaf_[rows[r]] = tree.leaves[k];
    });
    run(pool, (bins_.n + kBlock - 1) / kBlock, [&](std::size_t b) {
      const std::size_t first = b * kBlock, last = std::min<std::size_t>(bins_.n, first + kBlock);
      for (std::size_t i = first; i < last; ++i) {
        std::int32_t node = leaf_[i];
        if (node < 0) node = route(i);
        leaf_[i] = place[static_cast<std::size_t>(node)];
      }
    });
    return tree;
  }

  std::int32_t route(std::size_t row) const {
    std::int32_t number = 0;
    for (;;) {
      const Node& node = nodes_[static_cast<std::size_t>(number)];
      if (node.left < 0) return number;
      const Feature& f = bins_.features[node.split.feature];
      number = node.split.goes_left(bins_.code(f, row), f.n_bins) ? node.left : node.right;
    }
  }

  void write(const Node& node, Tree& tree) const {
    const bool inner = node.left >= 0;
    const Split& split = node.split;
    const bool categorical = inner && split.kind != Kind::numeric;
    const float weight = C == 1 ? to_float(node.weight * (unit_ / hessian_unit_)) : 0.0f;
    tree.left_children.push_back(node.left);
    tree.right_children.push_back(node.right);
    tree.parents.push_back(node.parent);
    tree.split_indices.push_back(inner ? static_cast<std::int32_t>(split.feature) : 0);
    tree.default_left.push_back(inner && split.default_left);
    tree.base_weights.push_back(weight);
    tree.loss_changes.push_back(inner ? to_float(node.loss_change * share_ * (unit_ / hessian_unit_ * unit_)) : 0.0f);
    tree.sum_hessian.push_back(to_float(node.sum.h * hessian_unit_));
    tree.split_type.push_back(categorical);
    if (!inner) {
      tree.split_conditions.push_back(weight);
      return;
    }
    if (!categorical) {
      tree.split_conditions.push_back(bins_.cut(bins_.features[split.feature], split.code));
      return;
    }
    tree.split_conditions.push_back(std::numeric_limits<float>::denorm_min());  // as XGBoost marks it
    const std::size_t first = tree.categories.size();
    if (split.kind == Kind::one_vs_rest) {
      tree.categories.push_back(static_cast<std::int32_t>(split.code));
    } else {
      const std::uint32_t n_bins = bins_.features[split.feature].n_bins;
      for (std::uint32_t c = 0; c < n_bins; ++c)
        if (!split.goes_left(c, n_bins)) tree.categories.push_back(static_cast<std::int32_t>(c));
    }
    tree.categories_nodes.push_back(static_cast<std::int32_t>(tree.left_children.size()) - 1);
    tree.categories_segments.push_back(static_cast<std::int64_t>(first));
    tree.categories_sizes.push_back(static_cast<std::int64_t>(tree.categories.size() - first));
  }

  const Bins& bins_;
  const Parameters& p_;
  Penalties penalties_;  // in the units of the tree
  Workspace& work_;
  const std::uint64_t seed_;
  Pool* const pool_;
  std::int32_t* const leaf_;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> tree_mask_;
  std::vector<Slots> slots_;           // of the groups that have features of the tree
  std::vector<std::uint32_t> groups_;  // and which groups these are
  std::size_t n_slots_ = 0, n_codes_ = 0;
  std::uint32_t few_ = kFewest;  // largest node without a histogram
  bool samples_inside_ = false, all_active_ = true;
  double floor_ = 0, unit_ = 1, hessian_unit_ = 1;
  double share_ = 1;  // of the gains in the tree of each output
};

}  // namespace

template <std::size_t C>
std::unique_ptr<Workspace<C>> Workspaces<C>::take() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) return std::make_unique<Workspace<C>>();
  std::unique_ptr<Workspace<C>> work = std::move(free_.back());
  free_.pop_back();
  return work;
}

template <std::size_t C>
void Workspaces<C>::put_back(std::unique_ptr<Workspace<C>> work) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(work));
}

template <std::size_t C>
Workspaces<C>::Workspaces() = default;
template <std::size_t C>
Workspaces<C>::~Workspaces() = default;

template class Workspaces<1>;
template class Workspaces<kChannels>;

Grower::Grower(const Bins& b, Parameters p) : bins(b), parameters(std::move(p)) {}

template <class T>
Tree Grower::grow(const Derivatives<T>& derivatives, std::uint64_t seed, const std::vector<std::uint32_t>* features,
                  Pool* pool, std::int32_t* leaf) {
  const auto grown = [&](auto& workspaces) {
    auto work = workspaces.take();
    Tree tree = Growth(bins, parameters, *work, seed, pool, leaf).grow(derivatives, features);
    workspaces.put_back(std::move(work));
    return tree;
  };
  return derivatives.n_outputs == 1 ? grown(single_) : grown(shared_);
}

template Tree Grower::grow(const Derivatives<float>&, std::uint64_t, const std::vector<std::uint32_t>*, Pool*,
                           std::int32_t*);
template Tree Grower::grow(const Derivatives<double>&, std::uint64_t, const std::vector<std::uint32_t>*, Pool*,
                           std::int32_t*);

}  // namespace scb
