// Growth of one tree on binned features.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "bins.h"
#include "pool.h"
#include "split.h"

namespace scb {

enum class Policy { depth_wise, leaf_wise, symmetric };

struct Parameters {
  Policy policy = Policy::depth_wise;
  std::uint32_t max_depth = 6;   // 0 for no limit
  std::uint32_t max_leaves = 0;  // 0 for no limit
  Penalties penalties;
  std::vector<std::int8_t> monotone;                         // by feature, or empty
  std::vector<std::vector<std::uint32_t>> interactions;      // groups of features, or empty
  double by_tree = 1, by_level = 1, by_node = 1;             // shares of the features
  std::uint32_t max_cat_to_onehot = 4, max_cat_threshold = 64;  // as in XGBoost
};

// A tree in the arrays of XGBoost's model document.
struct Tree {
  std::vector<std::int32_t> left_children, right_children, parents, split_indices;
  std::vector<float> split_conditions, base_weights, loss_changes, sum_hessian;
  std::vector<std::uint8_t> default_left, split_type;
  std::vector<std::int32_t> categories, categories_nodes;
  std::vector<std::int64_t> categories_segments, categories_sizes;
  std::vector<std::int32_t> leaves;  // nodes that are leaves, ascending
  std::size_t n_features = 0;
};

// Gradients, times a factor, and Hessians of all samples by output.
template <class T>
struct Derivatives {
  const T *gradient, *hessian;
  std::size_t n_outputs;
  double factor;
};

template <std::size_t C>
class Workspace;

// Memory that is kept from one tree to the next: memory that is new costs time.
template <std::size_t C>
class Workspaces {
 public:
  Workspaces();
  ~Workspaces();
  std::unique_ptr<Workspace<C>> take();
  void put_back(std::unique_ptr<Workspace<C>> work);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace<C>>> free_;
};

class Grower {
 public:
  Grower(const Bins& bins, Parameters parameters);

  // Grows a tree: of one output, or of the structure that several share, without values. Its gains are those of the
  // gradients added up to kChannels. Samples whose gradients and Hessians are 0 do not count. `features` are those that
  // the tree may use, all if null; `leaf` gets the place of each sample's leaf in Tree::leaves.
  template <class T>
  Tree grow(const Derivatives<T>& derivatives, std::uint64_t seed, const std::vector<std::uint32_t>* features,
            Pool* pool, std::int32_t* leaf);

  const Bins& bins;
  const Parameters parameters;

 private:
  Workspaces<1> single_;
  Workspaces<kChannels> shared_;
};

}  // namespace scb
