// Prediction with trees of XGBoost's model document, prepared once.
#pragma once

#include <cstdint>
#include <vector>

#include "bins.h"
#include "pool.h"

namespace scb {

// The arrays of one tree that predictions need; see Tree.
struct TreeView {
  std::size_t n_nodes = 0, n_categories = 0, n_categorical = 0;
  const std::int32_t *left = nullptr, *right = nullptr, *feature = nullptr;
  const float *condition = nullptr, *cover = nullptr;
  const std::uint8_t *default_left = nullptr, *split_type = nullptr;
  const std::int32_t *categories = nullptr, *categories_nodes = nullptr;
  const std::int64_t *segments = nullptr, *sizes = nullptr;
  std::uint32_t output = 0;
};

// Samples to predict: float or double, or CSR.
struct Samples {
  Matrix matrix;                  // without `dense` where the samples are double
  const double* wide = nullptr;
};

class Forest {
 public:
  Forest(const std::vector<TreeView>& trees, std::size_t n_features, std::size_t n_outputs);

  std::size_t n_features, n_outputs;
  std::size_t n_trees() const { return roots_.size(); }

  // Sums of the trees of each output, of shape (n_outputs, n).
  void scores(const Samples& X, Pool* pool, double* out) const;
  // Value of each tree, of shape (n_trees, n).
  void values(const Samples& X, Pool* pool, float* out) const;
  // Node of each tree, numbered as in the document, of shape (n, n_trees).
  void nodes(const Samples& X, Pool* pool, std::int32_t* out) const;
  // Path-dependent TreeSHAP values, of shape (n, n_outputs, n_features + 1), the mean score last.
  void shap(const Samples& X, Pool* pool, double* out) const;

 private:
  // Children are neighbours. A leaf leads to itself, whatever the value: NaN is not above anything.
  struct Node {
    float cut;
    std::uint32_t feature;  // with the two flags below
    std::int32_t left;
    float value;
  };
  // A tree that is not deep, as a full binary tree: the children of node i are 2i + 1 and 2i + 2.
  struct Step {
    float cut;              // of a split by category, the bits of the set
    std::uint32_t feature;  // with the same flags
  };
  struct Element;

  template <class Visit>
  void for_blocks(const Samples& X, Pool* pool, const Visit& visit) const;
  template <bool kCategories>
  std::int32_t next(std::int32_t at, const float* row) const;
  template <int kLanes, bool kCategories>
  void walk(std::int32_t* at, const float* const* rows, std::uint32_t depth) const;
  template <int kLanes, bool kMissing, bool kCategories>
  void walk_full(std::uint32_t* at, const Step* const* steps, const float* const* rows, std::uint32_t depth) const;
  // The node of the leaf of each sample if T is an integer, the value of the leaf if it is float.
  template <bool kMissing, bool kCategories, class T>
  void leaves_of_full(const float* rows, std::size_t stride, std::size_t count, std::size_t tree, T* out) const;
  template <bool kCategories, class T>
  void leaves_of_any(const float* rows, std::size_t stride, std::size_t count, std::size_t tree, T* out) const;
  template <class T>
  void leaves_of(const float* rows, std::size_t stride, std::size_t count, std::size_t tree, bool missing,
                 T* out) const;
  void leaves_of_one(const float* row, std::int32_t* leaf) const;
  void fill(std::size_t place, std::uint32_t depth, std::int32_t at, Step* steps, std::int32_t* leaves) const;
  bool is_leaf(std::int32_t at) const { return nodes_[static_cast<std::size_t>(at)].left == at - 1; }
  void explain(const float* row, std::int32_t at, Element* parents, std::uint32_t depth, double zero, double one,
               std::int64_t feature, double* out) const;

  std::vector<Node> nodes_;
  std::vector<std::int32_t> original_;  // number of each node in its document
  std::vector<float> cover_;
  std::vector<std::int32_t> roots_;
  std::vector<std::uint32_t> depths_, outputs_;
  std::vector<double> means_;  // of each tree
  std::vector<std::uint32_t> set_start_, set_size_;  // of the categories of a node, in words
  std::vector<std::uint32_t> sets_;
  std::vector<Step> steps_;            // of the full trees
  std::vector<std::int32_t> leaves_;   // the nodes of their leaves,
  std::vector<float> leaf_values_;     // and the values of these
  std::vector<char> has_categories_;   // whether a tree has splits by category
  std::vector<std::int64_t> first_step_, first_leaf_;  // of each tree; -1 if it is not full
  std::uint32_t deepest_ = 0;
  bool categorical_ = false;
};

}  // namespace scb
