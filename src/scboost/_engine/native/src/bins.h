// Binned features: every value is replaced by the number of its bin.
//
// Codes of eight features (four, if one of them has more than 256 codes) share a 64-bit word. The words of one group
// of features are contiguous: the histograms of a group fit into the first-level cache, and its words into the second.
#pragma once

#include <cstdint>
#include <vector>

#include "common.h"
#include "pool.h"

namespace scb {

constexpr std::uint32_t kMaxCodes = 65536;

// A dense matrix (row by row), or a sparse one in CSR form, whose absent entries are missing values.
struct Matrix {
  std::size_t n = 0, d = 0;
  const float* dense = nullptr;
  const std::int64_t* indptr = nullptr;
  const std::int32_t* indices = nullptr;
  const float* values = nullptr;
};

struct Feature {
  std::uint32_t n_bins = 0;       // bins of values; the code of a missing value is n_bins
  std::uint32_t n_codes = 0;      // n_bins, and 1 more if a value is missing
  std::uint32_t cuts = 0;         // where its cut points start in Bins::cuts
  std::uint32_t group = 0;        // which word holds its code
  std::uint32_t shift = 0;        // and where in it
  std::uint32_t place = 0;        // position within the group
  bool categorical = false;
  bool missing = false;           // some value is missing
};

// Features whose codes share a word.
struct Group {
  std::uint32_t first = 0, count = 0;  // members: Bins::members[first .. first + count)
  std::uint32_t bits = 8;              // of a code
  std::uint32_t stride = 0;            // histogram entries from one member to the next
  std::size_t offset = 0;              // where its histograms start among those of all groups
};

class Bins {
 public:
  // `categories[j]` is the number of categories of feature j, 0 for a numeric one. `weight` may be null.
  Bins(const Matrix& X, std::uint32_t max_bin, const std::uint32_t* categories, const double* weight, Pool* pool);
  // Cut points of feature j are cuts[indptr[j] .. indptr[j + 1]), ascending; bin i holds cuts[i - 1] <= x < cuts[i].
  Bins(const Matrix& X, const std::int64_t* indptr, const float* cuts, const std::uint32_t* categories, Pool* pool);

  std::size_t n = 0, d = 0;
  std::vector<Feature> features;
  std::vector<float> cuts;
  std::vector<Group> groups;
  std::vector<std::uint32_t> members;
  std::size_t n_entries = 0;  // of the histograms of all groups

  const std::uint64_t* words(std::uint32_t group) const { return words_.data() + group * n; }
  std::uint32_t code(const Feature& f, std::size_t row) const {
    const std::uint32_t bits = groups[f.group].bits;
    return static_cast<std::uint32_t>(words(f.group)[row] >> f.shift) & ((1u << bits) - 1u);
  }
  // The threshold below which `count` bins lie; the lowest is below all values.
  float cut(const Feature& f, std::uint32_t count) const {
    return count == 0 ? std::numeric_limits<float>::lowest() : cuts[f.cuts + count - 1];
  }
  std::size_t nbytes() const { return words_.size() * sizeof(std::uint64_t) + cuts.size() * sizeof(float); }

 private:
  void lay_out();
  void encode(const Matrix& X, Pool* pool);
  Buffer<std::uint64_t> words_;
};

}  // namespace scb
