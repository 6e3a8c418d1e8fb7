#include "bins.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace scb {
namespace {

constexpr std::size_t kColumns = 16;  // of which a line of a dense matrix is read at once
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr double kRounding = 1e-9;  // of sums of weights, relative: bins do not depend on the unit of the weights

// Values of a feature that are not missing, with their weights.
struct Column {
  std::vector<float> values;
  std::vector<double> weights;
  bool missing = false;
};

std::uint32_t sortable(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits ^ (static_cast<std::uint32_t>(-static_cast<std::int32_t>(bits >> 31)) | 0x80000000u);
}

float from_sortable(std::uint32_t key) {
  const std::uint32_t bits = key ^ (((key >> 31) - 1u) | 0x80000000u);
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Stable radix sort by 11 bits at a time of keys, and of the weights that go with them.
void sort_keys(std::vector<std::uint32_t>& keys, std::vector<double>& weights) {
  const std::size_t n = keys.size();
  if (weights.empty() && n < 2048) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  std::vector<std::uint32_t> other(n);
  std::vector<double> other_weights(weights.size());
  for (int shift = 0; shift < 32; shift += 11) {
    std::size_t start[2048] = {};
    for (std::size_t i = 0; i < n; ++i) ++start[(keys[i] >> shift) & 2047];
    std::size_t total = 0;
    for (auto& s : start) {
      const std::size_t count = s;
      s = total;
      total += count;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t place = start[(keys[i] >> shift) & 2047]++;
      other[place] = keys[i];
      if (!weights.empty()) other_weights[place] = weights[i];
    }
    keys.swap(other);
    weights.swap(other_weights);
  }
}

// A cut between two neighbouring values, such that a < cut <= b.
float between(float a, float b) {
  const float middle = static_cast<float>(static_cast<double>(a) / 2 + static_cast<double>(b) / 2);
  return middle > a && middle <= b ? middle : b;
}

// Distinct values that have positive weight, ascending, and their weights.
struct Distinct {
  std::vector<float> values;
  std::vector<double> weights;
};

Distinct distinct_values(Column& column) {
  std::vector<std::uint32_t> keys(column.values.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = sortable(column.values[i] + 0.0f);  // -0 is 0
  sort_keys(keys, column.weights);
  Distinct out;
  for (std::size_t i = 0; i < keys.size();) {
    std::size_t j = i;
    double weight = 0;
    for (; j < keys.size() && keys[j] == keys[i]; ++j) weight += column.weights.empty() ? 1.0 : column.weights[j];
    if (weight > 0) {
      out.values.push_back(from_sortable(keys[i]));
      out.weights.push_back(weight);
    }
    i = j;
  }
  return out;
}

// Values that have a bin of their own: all if they are few, otherwise those with more weight than a bin of the others.
std::vector<std::uint8_t> heavy_values(const std::vector<double>& weights, std::uint32_t max_bin) {
  std::vector<std::uint8_t> heavy(weights.size(), weights.size() <= max_bin);
  if (weights.size() <= max_bin) return heavy;
  double rest = 0;
  for (const double w : weights) rest += w;
  std::size_t bins = max_bin;
  for (bool changed = true; changed && bins > 0;) {
    changed = false;
    const double share = rest / static_cast<double>(bins);
    for (std::size_t i = 0; i < weights.size() && bins > 0; ++i)
      if (!heavy[i] && weights[i] >= share * (1 - kRounding)) {
        heavy[i] = 1;
        rest -= weights[i];
        --bins;
        changed = true;
      }
  }
  return heavy;
}

// Cut points of at most max_bin bins of about equal weight. The last cut is above all values.
std::vector<float> quantile_cuts(Column& column, std::uint32_t max_bin) {
  const Distinct distinct = distinct_values(column);
  const auto& weights = distinct.weights;
  const std::vector<std::uint8_t> heavy = heavy_values(weights, max_bin);
  double rest = 0;             // weight of the light values that are not in a bin yet
  std::size_t free = max_bin;  // bins for them
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (heavy[i]) --free;
    else rest += weights[i];
  }
  std::vector<float> cuts;
  double filled = 0;
  bool has_heavy = false;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    has_heavy |= heavy[i] != 0;
    if (!heavy[i]) filled += weights[i];
    bool close;
    if (has_heavy || heavy[i + 1]) {
      close = free > 0 || (has_heavy && heavy[i + 1]);
    } else {
      const double share = rest / static_cast<double>(std::max<std::size_t>(free, 1));
      close = free > 1 && (filled >= share * (1 - kRounding) || filled + weights[i + 1] / 2 > share * (1 + kRounding));
    }
    if (!close) continue;
    cuts.push_back(between(distinct.values[i], distinct.values[i + 1]));
    rest -= filled;
    if (!has_heavy) --free;
    filled = 0;
    has_heavy = false;
  }
  cuts.push_back(kLargest);
  return cuts;
}

// Calls visit(first, columns) for up to kColumns features at a time.
template <class Visit>
void for_columns(const Matrix& X, const double* weight, Pool* pool, const Visit& visit) {
  const std::size_t n_parts = (X.d + kColumns - 1) / kColumns;
  std::vector<std::vector<std::size_t>> entries;  // of a sparse matrix: those of each feature
  std::vector<std::uint32_t> row_of;
  if (X.dense == nullptr) {
    entries.resize(X.d);
    row_of.resize(static_cast<std::size_t>(X.indptr[X.n]));
    for (std::size_t i = 0; i < X.n; ++i)
      for (std::int64_t at = X.indptr[i]; at < X.indptr[i + 1]; ++at) {
        entries[static_cast<std::size_t>(X.indices[at])].push_back(static_cast<std::size_t>(at));
        row_of[static_cast<std::size_t>(at)] = static_cast<std::uint32_t>(i);
      }
  }
  run(pool, n_parts, [&](std::size_t part) {
    const std::size_t first = part * kColumns, last = std::min(first + kColumns, X.d);
    std::vector<Column> columns(last - first);
    const auto append = [&](Column& column, float x, std::size_t row) {
      if (std::isnan(x)) {
        column.missing = true;
        return;
      }
      column.values.push_back(x);
      if (weight != nullptr) column.weights.push_back(weight[row]);
    };
    if (X.dense != nullptr) {
      for (auto& column : columns) column.values.reserve(X.n);
      for (std::size_t i = 0; i < X.n; ++i)
        for (std::size_t j = first; j < last; ++j) append(columns[j - first], X.dense[i * X.d + j], i);
    } else {
      for (std::size_t j = first; j < last; ++j) {
        for (const std::size_t at : entries[j]) append(columns[j - first], X.values[at], row_of[at]);
        if (columns[j - first].values.size() < X.n) columns[j - first].missing = true;
      }
    }
    visit(first, columns);
  });
}

// Code of a category; missing if it is not a number from 0 to n_bins - 1.
std::uint32_t category(float x, std::uint32_t n_bins) {
  return x >= 0.0f && x < static_cast<float>(n_bins) ? static_cast<std::uint32_t>(x) : n_bins;
}

std::uint32_t bin_of(const float* cuts, std::uint32_t n_bins, float x) {
  const float* base = cuts;
  std::uint32_t size = n_bins - 1;  // the last bin is open
  while (size > 0) {                // the number of cuts <= x, without branches
    const std::uint32_t half = (size + 1) / 2;
    base += base[half - 1] <= x ? half : 0;
    size -= half;
  }
  return static_cast<std::uint32_t>(base - cuts);
}

}  // namespace

Bins::Bins(const Matrix& X, std::uint32_t max_bin, const std::uint32_t* categories, const double* weight, Pool* pool)
    : n(X.n), d(X.d), features(X.d) {
  std::vector<std::vector<float>> found(d);
  for_columns(X, weight, pool, [&](std::size_t first, std::vector<Column>& columns) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      Feature& f = features[first + i];
      f.categorical = categories != nullptr && categories[first + i] > 0;
      f.missing = columns[i].missing;
      if (f.categorical) {
        f.n_bins = categories[first + i];
        for (const float x : columns[i].values) f.missing |= category(x, f.n_bins) == f.n_bins;
        found[first + i].resize(f.n_bins);
        for (std::uint32_t c = 0; c < f.n_bins; ++c) found[first + i][c] = static_cast<float>(c);
      } else {
        // One byte holds 256 codes, of which one may be that of missing values.
        const std::uint32_t most = max_bin == 256 && f.missing ? 255 : max_bin;
        found[first + i] = quantile_cuts(columns[i], most);
        f.n_bins = static_cast<std::uint32_t>(found[first + i].size());
      }
    }
  });
  for (std::size_t j = 0; j < d; ++j) {
    features[j].cuts = static_cast<std::uint32_t>(cuts.size());
    cuts.insert(cuts.end(), found[j].begin(), found[j].end());
  }
  lay_out();
  encode(X, pool);
}

Bins::Bins(const Matrix& X, const std::int64_t* indptr, const float* values, const std::uint32_t* categories,
           Pool* pool)
    : n(X.n), d(X.d), features(X.d), cuts(values, values + indptr[X.d]) {
  for_columns(X, nullptr, pool, [&](std::size_t first, std::vector<Column>& columns) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      Feature& f = features[first + i];
      f.categorical = categories != nullptr && categories[first + i] > 0;
      f.missing = columns[i].missing;
      f.cuts = static_cast<std::uint32_t>(indptr[first + i]);
      f.n_bins = static_cast<std::uint32_t>(indptr[first + i + 1] - indptr[first + i]);
      if (f.n_bins == 0 && !columns[i].values.empty())
        throw std::invalid_argument("feature " + std::to_string(first + i) + " has values but no cut points");
      if (f.categorical)
        for (const float x : columns[i].values) f.missing |= category(x, f.n_bins) == f.n_bins;
    }
  });
  lay_out();
  encode(X, pool);
}

void Bins::lay_out() {
  std::vector<std::uint32_t> narrow, wide;
  for (std::size_t j = 0; j < d; ++j) {
    Feature& f = features[j];
    f.n_codes = std::max(f.n_bins + (f.missing ? 1u : 0u), 1u);
    if (f.n_codes > kMaxCodes)
      throw std::invalid_argument("feature " + std::to_string(j) + " has " + std::to_string(f.n_codes) +
                                  " bins or categories, the missing value included; at most 65536 are allowed");
    (f.n_codes <= 256 ? narrow : wide).push_back(static_cast<std::uint32_t>(j));
  }
  const auto add_groups = [&](const std::vector<std::uint32_t>& list, std::uint32_t bits) {
    const std::uint32_t most = 64 / bits;
    for (std::size_t i = 0; i < list.size(); i += most) {
      Group group;
      group.first = static_cast<std::uint32_t>(members.size());
      group.count = static_cast<std::uint32_t>(std::min<std::size_t>(most, list.size() - i));
      group.bits = bits;
      group.offset = n_entries;
      for (std::uint32_t k = 0; k < group.count; ++k) {
        Feature& f = features[list[i + k]];
        f.group = static_cast<std::uint32_t>(groups.size());
        f.place = k;
        f.shift = k * bits;
        group.stride = std::max(group.stride, f.n_codes);
        members.push_back(list[i + k]);
      }
      // A full group of features with many bins has the stride that its kernel is compiled for.
      if (bits == 8 && group.count == 8 && group.stride > 64) group.stride = 256;
      n_entries += static_cast<std::size_t>(group.stride) * group.count;
      groups.push_back(group);
    }
  };
  add_groups(narrow, 8);
  add_groups(wide, 16);
}

void Bins::encode(const Matrix& X, Pool* pool) {
  words_.reserve(groups.size() * n);
  if (X.dense != nullptr) {
    run(pool, groups.size(), [&](std::size_t g) {
      const Group& group = groups[g];
      std::uint64_t* out = words_.data() + g * n;
      for (std::size_t i = 0; i < n; ++i) {
        const float* row = X.dense + i * d;
        std::uint64_t word = 0;
        for (std::uint32_t k = 0; k < group.count; ++k) {
          const std::uint32_t j = members[group.first + k];
          const Feature& f = features[j];
          const float x = row[j];
          const std::uint32_t code = std::isnan(x)   ? f.n_bins
                                     : f.categorical ? category(x, f.n_bins)
                                                     : bin_of(&cuts[f.cuts], f.n_bins, x);
          word |= static_cast<std::uint64_t>(code) << f.shift;
        }
        out[i] = word;
      }
    });
    return;
  }
  std::vector<std::uint64_t> empty(groups.size(), 0);
  for (const Feature& f : features) empty[f.group] |= static_cast<std::uint64_t>(f.n_codes - 1) << f.shift;
  for (std::size_t g = 0; g < groups.size(); ++g) std::fill_n(words_.data() + g * n, n, empty[g]);
  const std::size_t kRows = 4096;
  run(pool, (n + kRows - 1) / kRows, [&](std::size_t part) {
    for (std::size_t i = part * kRows; i < std::min(n, (part + 1) * kRows); ++i)
      for (std::int64_t at = X.indptr[i]; at < X.indptr[i + 1]; ++at) {
        const Feature& f = features[static_cast<std::size_t>(X.indices[at])];
        const float x = X.values[at];
        const std::uint32_t code = std::isnan(x)   ? f.n_bins
                                   : f.categorical ? category(x, f.n_bins)
                                                   : bin_of(&cuts[f.cuts], f.n_bins, x);
        const std::uint64_t mask = ((1ull << groups[f.group].bits) - 1) << f.shift;
        std::uint64_t& word = words_[static_cast<std::size_t>(f.group) * n + i];
        word = (word & ~mask) | static_cast<std::uint64_t>(code) << f.shift;
      }
  });
}

}  // namespace scb
