#include "forest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace scb {
namespace {

constexpr std::uint32_t kDefaultLeft = 1u << 31, kCategorical = 1u << 30, kFeature = kCategorical - 1;
// Samples of a block, which stay in cache while all trees look at them. Every block reads all trees from memory, so that
// blocks of many samples are large as long as they fit; threads share few samples in smaller blocks.
constexpr std::size_t kRows = 256, kSharedRows = 64, kManyRows = 8192;
constexpr std::size_t kMostRows = 1024, kBlockValues = 1 << 16, kRowsForThreads = 1 << 17;
constexpr int kLanes = 8;          // paths that are followed at the same time
constexpr std::uint32_t kFull = 8, kFullIfDense = 10;  // depth up to which trees are stored as full ones
constexpr std::size_t kDense = 8;  // those of the larger depth if one in so many places has a leaf of its own
constexpr float kMostCategories = 16777216.0f;  // beyond, XGBoost takes a category for an unknown one

bool any_missing(const float* values, std::size_t count) {
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) any |= values[i] != values[i];
  return any;
}

}  // namespace

Forest::Forest(const std::vector<TreeView>& trees, std::size_t d, std::size_t k) : n_features(d), n_outputs(k) {
  for (const TreeView& tree : trees) {
    const std::int32_t root = static_cast<std::int32_t>(nodes_.size());
    std::vector<std::int32_t> order{0};  // nodes by level: siblings are neighbours
    std::vector<std::uint32_t> depth{0};
    std::vector<std::int64_t> set_of(tree.n_nodes, -1);
    for (std::size_t i = 0; i < tree.n_categorical; ++i) {
      const std::int32_t node = tree.categories_nodes[i];
      if (node < 0 || static_cast<std::size_t>(node) >= tree.n_nodes || tree.segments[i] < 0 || tree.sizes[i] < 0 ||
          static_cast<std::size_t>(tree.segments[i] + tree.sizes[i]) > tree.n_categories)
        throw std::invalid_argument("the categories of a tree are out of order");
      set_of[static_cast<std::size_t>(node)] = static_cast<std::int64_t>(i);
    }
    std::uint32_t deepest = 0;
    bool categorical = false, small_sets = true;  // of at most the first 32 categories
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto number = static_cast<std::size_t>(order[i]);
      const std::int32_t left = tree.left[number], right = tree.right[number];
      const std::int32_t at = root + static_cast<std::int32_t>(i);
      Node node{};
      deepest = std::max(deepest, depth[i]);
      std::uint32_t start = 0, size = 0;
      if (left < 0) {
        node.cut = std::numeric_limits<float>::quiet_NaN();
        node.left = at - 1;
        node.value = tree.condition[number];
      } else {
        const bool inside = right >= 0 && static_cast<std::size_t>(left) < tree.n_nodes &&
                            static_cast<std::size_t>(right) < tree.n_nodes && order.size() + 2 <= tree.n_nodes;
        if (!inside) throw std::invalid_argument("a tree has a child that does not exist, or a loop");
        if (tree.feature[number] < 0 || static_cast<std::size_t>(tree.feature[number]) >= d)
          throw std::invalid_argument("a tree splits on a feature that does not exist");
        node.cut = tree.condition[number];
        node.feature = static_cast<std::uint32_t>(tree.feature[number]);
        if (tree.default_left[number]) node.feature |= kDefaultLeft;
        node.left = root + static_cast<std::int32_t>(order.size());
        order.push_back(left);
        order.push_back(right);
        depth.push_back(depth[i] + 1);
        depth.push_back(depth[i] + 1);
        if (tree.split_type[number]) {
          categorical_ = categorical = true;
          node.feature |= kCategorical;
          const std::int64_t set = set_of[number];
          start = static_cast<std::uint32_t>(sets_.size());
          for (std::int64_t c = 0; set >= 0 && c < tree.sizes[set]; ++c) {
            const std::int32_t category = tree.categories[tree.segments[set] + c];
            if (category < 0 || category >= static_cast<std::int32_t>(kMostCategories))
              throw std::invalid_argument("a tree splits on a category that does not exist");
            const auto word = static_cast<std::uint32_t>(category) / 32;
            if (word >= size) sets_.resize(start + (size = word + 1), 0);
            sets_[start + word] |= 1u << (category & 31);
          }
          small_sets &= size <= 1;
        }
      }
      nodes_.push_back(node);
      original_.push_back(order[i]);
      cover_.push_back(tree.cover[number]);
      set_start_.push_back(start);
      set_size_.push_back(size);
    }
    roots_.push_back(root);
    depths_.push_back(deepest);
    deepest_ = std::max(deepest_, deepest);
    const bool dense = (std::size_t{1} << std::min(deepest, 30u)) <= kDense * (order.size() + 1) / 2;
    const bool full = small_sets && (deepest <= kFull || (deepest <= kFullIfDense && dense));
    has_categories_.push_back(categorical);
    first_step_.push_back(full ? static_cast<std::int64_t>(steps_.size()) : -1);
    first_leaf_.push_back(full ? static_cast<std::int64_t>(leaves_.size()) : -1);
    if (full) {
      const std::size_t step = steps_.size(), leaf = leaves_.size(), count = std::size_t{1} << deepest;
      steps_.resize(step + count - 1);
      leaves_.resize(leaf + count);
      fill(0, deepest, root, steps_.data() + step, leaves_.data() + leaf);
      for (std::size_t i = leaf; i < leaves_.size(); ++i)
        leaf_values_.push_back(nodes_[static_cast<std::size_t>(leaves_[i])].value);
    }
    if (tree.output >= k) throw std::invalid_argument("a tree is of an output that does not exist");
    outputs_.push_back(tree.output);
    std::vector<double> mean(order.size());
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::int32_t at = root + static_cast<std::int32_t>(i);
      const Node& node = nodes_[static_cast<std::size_t>(at)];
      if (is_leaf(at)) {
        mean[i] = node.value;
      } else {
        const auto left = static_cast<std::size_t>(node.left);
        const double a = cover_[left], b = cover_[left + 1], l = mean[left - root], r = mean[left + 1 - root];
        mean[i] = a + b > 0 ? (a * l + b * r) / (a + b) : (l + r) / 2;
      }
    }
    means_.push_back(mean[0]);
  }
}

// Calls visit(first, count, rows) for blocks of samples, of which a block is a dense matrix of float.
template <class Visit>
void Forest::for_blocks(const Samples& X, Pool* pool, const Visit& visit) const {
  const std::size_t n = X.matrix.n, d = X.matrix.d;
  const bool alone = pool == nullptr;
  std::size_t size = alone || n >= kManyRows ? kRows : kSharedRows;
  if (n >= (alone ? kManyRows : kRowsForThreads))
    size = std::clamp(kBlockValues / std::max<std::size_t>(d, 1), kRows, kMostRows);
  run(pool, (n + size - 1) / size, [&](std::size_t block) {
    const std::size_t first = block * size, count = std::min(n, first + size) - first;
    if (X.matrix.dense != nullptr) {
      visit(first, count, X.matrix.dense + first * d);
      return;
    }
    static thread_local std::vector<float> rows;
    rows.resize(std::max<std::size_t>(count * d, 1));
    if (X.wide != nullptr) {
      for (std::size_t i = 0; i < count * d; ++i) rows[i] = static_cast<float>(X.wide[first * d + i]);
    } else {
      std::fill(rows.begin(), rows.end(), std::numeric_limits<float>::quiet_NaN());
      for (std::size_t i = 0; i < count; ++i)
        for (std::int64_t at = X.matrix.indptr[first + i]; at < X.matrix.indptr[first + i + 1]; ++at)
          rows[i * d + static_cast<std::size_t>(X.matrix.indices[at])] = X.matrix.values[at];
    }
    visit(first, count, rows.data());
  });
}

template <bool kCategories>
SCB_INLINE std::int32_t Forest::next(std::int32_t at, const float* row) const {
  const Node node = nodes_[static_cast<std::size_t>(at)];
  if (kCategories && (node.feature & kCategorical)) {
    const float x = row[node.feature & kFeature];
    if (std::isnan(x)) return node.left + ((node.feature & kDefaultLeft) == 0);
    if (!(x >= 0.0f && x < kMostCategories)) return node.left;
    const auto category = static_cast<std::uint32_t>(x);
    const auto place = static_cast<std::size_t>(at);
    const bool inside = category / 32 < set_size_[place];
    return node.left + (inside && (sets_[set_start_[place] + category / 32] >> (category & 31) & 1));
  }
  const float x = row[node.feature & kFeature];
  const bool missing_left = (x != x) & (node.feature >> 31);
  return node.left + (!(x < node.cut) & !missing_left);
}

template <int kCount, bool kCategories>
SCB_INLINE void Forest::walk(std::int32_t* at, const float* const* rows, std::uint32_t depth) const {
  std::int32_t now[kCount];
  for (int i = 0; i < kCount; ++i) now[i] = at[i];
  while (depth > 0) {
    const std::uint32_t steps = std::min(depth, 8u);
    for (std::uint32_t s = 0; s < steps; ++s)
      for (int i = 0; i < kCount; ++i) now[i] = next<kCategories>(now[i], rows[i]);
    depth -= steps;
    if (depth > 0) {
      bool done = true;
      for (int i = 0; i < kCount; ++i) done &= is_leaf(now[i]);
      if (done) break;
    }
  }
  for (int i = 0; i < kCount; ++i) at[i] = now[i];
}

// Writes the subtree of a node at a place of a full tree, of which `depth` levels are left. Below a leaf, all paths
// lead to it.
void Forest::fill(std::size_t place, std::uint32_t depth, std::int32_t at, Step* steps, std::int32_t* leaves) const {
  if (depth == 0) {
    // Levels above have 2^k - 1 places in all.
    std::size_t width = 1;
    while (2 * width - 1 <= place) width *= 2;
    leaves[place - (width - 1)] = at;
    return;
  }
  const Node& node = nodes_[static_cast<std::size_t>(at)];
  const bool leaf = is_leaf(at);
  float cut = node.cut;
  if (!leaf && (node.feature & kCategorical)) {  // the set itself, as bits
    const std::uint32_t set = set_size_[static_cast<std::size_t>(at)] > 0 ? sets_[set_start_[static_cast<std::size_t>(at)]] : 0;
    std::memcpy(&cut, &set, sizeof cut);
  }
  steps[place] = leaf ? Step{0.0f, 0u} : Step{cut, node.feature};
  fill(2 * place + 1, depth - 1, leaf ? at : node.left, steps, leaves);
  fill(2 * place + 2, depth - 1, leaf ? at : node.left + 1, steps, leaves);
}

template <int kCount, bool kMissing, bool kCategories>
SCB_INLINE void Forest::walk_full(std::uint32_t* at, const Step* const* steps, const float* const* rows,
                                  std::uint32_t depth) const {
  std::uint32_t now[kCount];
  for (int i = 0; i < kCount; ++i) now[i] = 0;
  for (std::uint32_t s = 0; s < depth; ++s)
    for (int i = 0; i < kCount; ++i) {
      const Step step = steps[i][now[i]];
      if (kCategories) {
        const float x = rows[i][step.feature & kFeature];
        std::uint32_t set;
        std::memcpy(&set, &step.cut, sizeof set);
        const bool missing = x != x, left = step.feature >> 31, known = x >= 0.0f && x < 32.0f;
        const bool in_set = known & ((set >> (known ? static_cast<std::uint32_t>(x) : 0u)) & 1u);
        const bool numeric = !(x < step.cut);
        now[i] = 2 * now[i] + 1 + (missing ? !left : (step.feature & kCategorical) ? in_set : numeric);
      } else if (kMissing) {
        const float x = rows[i][step.feature & kFeature];
        const bool missing_left = (x != x) & (step.feature >> 31);
        now[i] = 2 * now[i] + 1 + (!(x < step.cut) & !missing_left);
      } else {
        now[i] = 2 * now[i] + 1 + !(rows[i][step.feature & kFeature] < step.cut);
      }
    }
  const std::uint32_t above = (1u << depth) - 1;
  for (int i = 0; i < kCount; ++i) at[i] = now[i] - above;
}

template <bool kMissing, bool kCategories, class T>
void Forest::leaves_of_full(const float* rows, std::size_t stride, std::size_t count, std::size_t tree, T* out) const {
  const std::uint32_t depth = depths_[tree];
  const Step* steps[kLanes];
  std::fill(steps, steps + kLanes, steps_.data() + first_step_[tree]);
  const T* table;
  if constexpr (std::is_floating_point_v<T>) {
    table = leaf_values_.data() + first_leaf_[tree];
  } else {
    table = leaves_.data() + first_leaf_[tree];
  }
  const float* lanes[kLanes];
  std::uint32_t at[kLanes];
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] = rows + (i + static_cast<std::size_t>(k)) * stride;
    walk_full<kLanes, kMissing, kCategories>(at, steps, lanes, depth);
    for (int k = 0; k < kLanes; ++k) out[i + static_cast<std::size_t>(k)] = table[at[k]];
  }
  for (; i < count; ++i) {
    lanes[0] = rows + i * stride;
    walk_full<1, kMissing, kCategories>(at, steps, lanes, depth);
    out[i] = table[at[0]];
  }
}

template <bool kCategories, class T>
void Forest::leaves_of_any(const float* rows, std::size_t stride, std::size_t count, std::size_t tree, T* out) const {
  const std::uint32_t depth = depths_[tree];
  const float* lanes[kLanes];
  std::int32_t at[kLanes];
  for (std::size_t i = 0; i < count; i += kLanes) {
    const int some = static_cast<int>(std::min<std::size_t>(kLanes, count - i));
    for (int k = 0; k < kLanes; ++k) {
      lanes[k] = rows + (i + static_cast<std::size_t>(std::min(k, some - 1))) * stride;
      at[k] = roots_[tree];
    }
    walk<kLanes, kCategories>(at, lanes, depth);
    for (int k = 0; k < some; ++k) {
      if constexpr (std::is_floating_point_v<T>) {
        out[i + static_cast<std::size_t>(k)] = nodes_[static_cast<std::size_t>(at[k])].value;
      } else {
        out[i + static_cast<std::size_t>(k)] = at[k];
      }
    }
  }
}

template <class T>
void Forest::leaves_of(const float* rows, std::size_t stride, std::size_t count, std::size_t tree, bool missing,
                       T* out) const {
  if (first_step_[tree] < 0) {
    has_categories_[tree] ? leaves_of_any<true>(rows, stride, count, tree, out)
                          : leaves_of_any<false>(rows, stride, count, tree, out);
  } else if (has_categories_[tree]) {
    leaves_of_full<true, true>(rows, stride, count, tree, out);
  } else {
    missing ? leaves_of_full<true, false>(rows, stride, count, tree, out)
            : leaves_of_full<false, false>(rows, stride, count, tree, out);
  }
}

// Leaves of all trees for one sample: the lanes are trees.
void Forest::leaves_of_one(const float* row, std::int32_t* leaf) const {
  const float* lanes[kLanes];
  std::fill(lanes, lanes + kLanes, row);
  std::copy(roots_.begin(), roots_.end(), leaf);
  std::size_t t = 0;
  for (; t + kLanes <= roots_.size(); t += kLanes) {
    const std::uint32_t depth = *std::max_element(&depths_[t], &depths_[t] + kLanes);
    categorical_ ? walk<kLanes, true>(leaf + t, lanes, depth) : walk<kLanes, false>(leaf + t, lanes, depth);
  }
  for (; t < roots_.size(); ++t)
    categorical_ ? walk<1, true>(leaf + t, lanes, depths_[t]) : walk<1, false>(leaf + t, lanes, depths_[t]);
}

void Forest::scores(const Samples& X, Pool* pool, double* out) const {
  const std::size_t n = X.matrix.n, T = roots_.size();
  std::fill(out, out + n * n_outputs, 0.0);
  for_blocks(X, pool, [&](std::size_t first, std::size_t count, const float* rows) {
    if (count < kLanes) {
      std::vector<std::int32_t> leaf(T);
      for (std::size_t i = 0; i < count; ++i) {
        leaves_of_one(rows + i * n_features, leaf.data());
        for (std::size_t t = 0; t < T; ++t)
          out[outputs_[t] * n + first + i] += static_cast<double>(nodes_[static_cast<std::size_t>(leaf[t])].value);
      }
      return;
    }
    float value[kMostRows];
    const bool missing = any_missing(rows, count * n_features);
    for (std::size_t t = 0; t < T; ++t) {
      leaves_of(rows, n_features, count, t, missing, value);
      double* to = out + outputs_[t] * n + first;
      for (std::size_t i = 0; i < count; ++i) to[i] += static_cast<double>(value[i]);
    }
  });
}

void Forest::values(const Samples& X, Pool* pool, float* out) const {
  const std::size_t n = X.matrix.n;
  for_blocks(X, pool, [&](std::size_t first, std::size_t count, const float* rows) {
    const bool missing = any_missing(rows, count * n_features);
    for (std::size_t t = 0; t < roots_.size(); ++t)
      leaves_of(rows, n_features, count, t, missing, out + t * n + first);
  });
}

void Forest::nodes(const Samples& X, Pool* pool, std::int32_t* out) const {
  const std::size_t T = roots_.size();
  for_blocks(X, pool, [&](std::size_t first, std::size_t count, const float* rows) {
    std::int32_t leaf[kMostRows];
    const bool missing = any_missing(rows, count * n_features);
    for (std::size_t t = 0; t < T; ++t) {
      leaves_of(rows, n_features, count, t, missing, leaf);
      for (std::size_t i = 0; i < count; ++i) out[(first + i) * T + t] = original_[static_cast<std::size_t>(leaf[i])];
    }
  });
}

// --- TreeSHAP: Lundberg, Erion and Lee, "Consistent individualized feature attribution for tree ensembles", 2018 ---

struct Forest::Element {
  std::int64_t feature;
  double zero, one, weight;  // shares of the paths that go on when the feature is unknown, and when it is known
};

namespace {

template <class Element>
void extend(Element* path, std::uint32_t depth, double zero, double one, std::int64_t feature) {
  path[depth] = {feature, zero, one, depth == 0 ? 1.0 : 0.0};
  const double length = depth + 1;
  for (std::uint32_t i = depth; i-- > 0;) {
    path[i + 1].weight += one * path[i].weight * (i + 1) / length;
    path[i].weight = zero * path[i].weight * (depth - i) / length;
  }
}

template <class Element>
void unwind(Element* path, std::uint32_t depth, std::uint32_t at) {
  const double one = path[at].one, zero = path[at].zero, length = depth + 1;
  double next = path[depth].weight;
  for (std::uint32_t i = depth; i-- > 0;) {
    if (one != 0) {
      const double before = path[i].weight;
      path[i].weight = next * length / ((i + 1) * one);
      next = before - path[i].weight * zero * (depth - i) / length;
    } else if (zero != 0) {
      path[i].weight = path[i].weight * length / (zero * (depth - i));
    }
  }
  for (std::uint32_t i = at; i < depth; ++i) {
    path[i].feature = path[i + 1].feature;
    path[i].zero = path[i + 1].zero;
    path[i].one = path[i + 1].one;
  }
}

template <class Element>
double unwound_sum(const Element* path, std::uint32_t depth, std::uint32_t at) {
  const double one = path[at].one, zero = path[at].zero, length = depth + 1;
  double next = path[depth].weight, total = 0;
  for (std::uint32_t i = depth; i-- > 0;) {
    if (one != 0) {
      const double part = next * length / ((i + 1) * one);
      total += part;
      next = path[i].weight - part * zero * ((depth - i) / length);
    } else if (zero != 0) {
      total += path[i].weight / zero / ((depth - i) / length);
    }
  }
  return total;
}

}  // namespace

void Forest::explain(const float* row, std::int32_t at, Element* parents, std::uint32_t depth, double zero, double one,
                     std::int64_t feature, double* out) const {
  Element* path = parents + depth;
  if (depth > 0) std::copy(parents, parents + depth, path);
  extend(path, depth, zero, one, feature);
  const Node& node = nodes_[static_cast<std::size_t>(at)];
  if (is_leaf(at)) {
    for (std::uint32_t i = 1; i <= depth; ++i) {
      const Element& element = path[i];
      out[element.feature] +=
          unwound_sum(path, depth, i) * (element.one - element.zero) * static_cast<double>(node.value);
    }
    return;
  }
  const std::int32_t hot = next<true>(at, row), cold = hot == node.left ? node.left + 1 : node.left;
  const double total = static_cast<double>(cover_[static_cast<std::size_t>(hot)]) + cover_[static_cast<std::size_t>(cold)];
  const double hot_zero = total > 0 ? cover_[static_cast<std::size_t>(hot)] / total : 0.5, cold_zero = 1 - hot_zero;
  double above_zero = 1, above_one = 1;
  const std::int64_t split = node.feature & kFeature;
  std::uint32_t i = 1;
  while (i <= depth && path[i].feature != split) ++i;
  if (i <= depth) {  // the feature is on the path already: its shares multiply
    above_zero = path[i].zero;
    above_one = path[i].one;
    unwind(path, depth, i);
    --depth;
  }
  explain(row, hot, path, depth + 1, hot_zero * above_zero, above_one, split, out);
  explain(row, cold, path, depth + 1, cold_zero * above_zero, 0, split, out);
}

void Forest::shap(const Samples& X, Pool* pool, double* out) const {
  const std::size_t n = X.matrix.n, width = n_features + 1;
  std::fill(out, out + n * n_outputs * width, 0.0);
  for_blocks(X, pool, [&](std::size_t first, std::size_t count, const float* rows) {
    std::vector<Element> paths((static_cast<std::size_t>(deepest_) + 2) * (deepest_ + 3));
    for (std::size_t t = 0; t < roots_.size(); ++t)
      for (std::size_t i = 0; i < count; ++i) {
        double* to = out + ((first + i) * n_outputs + outputs_[t]) * width;
        explain(rows + i * n_features, roots_[t], paths.data(), 0, 1, 1, -1, to);
        to[n_features] += means_[t];
      }
  });
}

}  // namespace scb
