// Python bindings. Arguments are checked by the Python layer beside this module; sizes are checked here again.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "arrays.h"
#include "bins.h"
#include "forest.h"
#include "grow.h"
#include "pool.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using scb::array;

void require(bool condition, const char* problem) {
  if (!condition) throw std::invalid_argument(problem);
}

scb::Matrix dense(const Rows<float>& X) {
  scb::Matrix matrix;
  matrix.n = X.shape(0);
  matrix.d = X.shape(1);
  static const float nothing = 0;
  matrix.dense = X.size() == 0 ? &nothing : X.data();
  require(matrix.n < (1ull << 31), "at most 2^31 - 1 samples are supported");
  return matrix;
}

scb::Matrix sparse(const Vector<std::int64_t>& indptr, const Vector<std::int32_t>& indices, const Vector<float>& values,
                   std::size_t d) {
  scb::Matrix matrix;
  require(indptr.shape(0) >= 1, "indptr is empty");
  matrix.n = indptr.shape(0) - 1;
  matrix.d = d;
  matrix.indptr = indptr.data();
  matrix.indices = indices.data();
  matrix.values = values.data();
  require(matrix.n < (1ull << 31), "at most 2^31 - 1 samples are supported");
  require(matrix.indptr[0] == 0, "indptr does not start with 0");
  for (std::size_t i = 0; i < matrix.n; ++i) require(matrix.indptr[i] <= matrix.indptr[i + 1], "indptr is not ascending");
  const auto count = static_cast<std::size_t>(matrix.indptr[matrix.n]);
  require(count == indices.shape(0) && count == values.shape(0), "indptr does not match the entries");
  for (std::size_t i = 0; i < count; ++i)
    require(matrix.indices[i] >= 0 && static_cast<std::size_t>(matrix.indices[i]) < d, "an index is not a feature");
  return matrix;
}

struct Cuts {
  const std::int64_t* indptr;
  const float* values;
};

Cuts checked_cuts(const Vector<std::int64_t>& indptr, const Vector<float>& values, std::size_t d) {
  require(indptr.shape(0) == d + 1 && indptr(0) == 0, "cut points do not match the features");
  for (std::size_t j = 0; j < d; ++j) {
    require(indptr(j) <= indptr(j + 1) && indptr(j + 1) <= static_cast<std::int64_t>(values.shape(0)),
            "cut points do not match the features");
    for (auto i = indptr(j); i + 1 < indptr(j + 1); ++i)
      require(values(i) < values(i + 1), "cut points are not ascending");
  }
  return {indptr.data(), values.data()};
}

using OptionalCounts = std::optional<Vector<std::uint32_t>>;
using OptionalWeights = std::optional<Vector<double>>;

std::unique_ptr<scb::Bins> make_bins(const scb::Matrix& X, std::uint32_t max_bin, const OptionalCounts& categories,
                                     const OptionalWeights& weight, const std::optional<Vector<std::int64_t>>& indptr,
                                     const std::optional<Vector<float>>& cuts, scb::Pool* pool) {
  require(!categories || categories->shape(0) == X.d, "categories do not match the features");
  require(!weight || weight->shape(0) == X.n, "weights do not match the samples");
  require(indptr.has_value() == cuts.has_value(), "cut points need an index");
  require(max_bin >= 2 && max_bin <= scb::kMaxCodes - 1, "max_bin must be from 2 to 65535");
  const std::uint32_t* counts = categories ? categories->data() : nullptr;
  std::optional<Cuts> given;
  if (cuts) given = checked_cuts(*indptr, *cuts, X.d);
  nb::gil_scoped_release release;
  if (given) return std::make_unique<scb::Bins>(X, given->indptr, given->values, counts, pool);
  return std::make_unique<scb::Bins>(X, max_bin, counts, weight ? weight->data() : nullptr, pool);
}

// Copies into memory owned by NumPy. An array that refers to foreign memory holds owner objects, which Python's garbage
// collector traverses repeatedly: 28 per tree.
template <class T>
nb::object copied(const std::vector<T>& values) {
  static const T none{};
  const T* data = values.empty() ? &none : values.data();
  return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data, {values.size()}), nb::rv_policy::copy);
}

// The tree as in XGBoost's model document.
nb::dict to_dict(const scb::Tree& tree) {
  nb::dict out;
  const std::size_t count = tree.left_children.size();
  out["base_weights"] = copied(tree.base_weights);
  out["categories"] = copied(tree.categories);
  out["categories_nodes"] = copied(tree.categories_nodes);
  out["categories_segments"] = copied(tree.categories_segments);
  out["categories_sizes"] = copied(tree.categories_sizes);
  out["default_left"] = copied(tree.default_left);
  out["id"] = 0;
  out["left_children"] = copied(tree.left_children);
  out["loss_changes"] = copied(tree.loss_changes);
  out["parents"] = copied(tree.parents);
  out["right_children"] = copied(tree.right_children);
  out["split_conditions"] = copied(tree.split_conditions);
  out["split_indices"] = copied(tree.split_indices);
  out["split_type"] = copied(tree.split_type);
  out["sum_hessian"] = copied(tree.sum_hessian);
  nb::dict parameters;
  parameters["num_deleted"] = "0";
  parameters["num_feature"] = std::to_string(tree.n_features);
  parameters["num_nodes"] = std::to_string(count);
  parameters["size_leaf_vector"] = "1";
  out["tree_param"] = parameters;
  return out;
}

// Total gain of each feature.
nb::object tree_gains(const scb::Tree& tree) {
  std::vector<double> gains(tree.n_features);
  for (std::size_t node = 0; node < tree.left_children.size(); ++node)
    if (tree.left_children[node] != -1)
      gains[static_cast<std::size_t>(tree.split_indices[node])] += static_cast<double>(tree.loss_changes[node]);
  return array(std::move(gains));
}

scb::Parameters make_parameters(const std::string& policy, std::uint32_t max_depth, std::uint32_t max_leaves,
                                double reg_lambda, double reg_alpha, double min_child_weight, double min_split_loss,
                                double max_delta_step, std::vector<int> monotone,
                                std::vector<std::vector<std::uint32_t>> interactions, double by_tree, double by_level,
                                double by_node, std::uint32_t max_cat_to_onehot, std::uint32_t max_cat_threshold,
                                std::size_t d) {
  scb::Parameters p;
  p.policy = policy == "leaf-wise"   ? scb::Policy::leaf_wise
             : policy == "symmetric" ? scb::Policy::symmetric
                                     : scb::Policy::depth_wise;
  p.max_depth = max_depth;
  p.max_leaves = max_leaves;
  p.penalties.reg_lambda = reg_lambda;
  p.penalties.reg_alpha = reg_alpha;
  p.penalties.min_child_weight = min_child_weight;
  p.penalties.min_split_loss = min_split_loss;
  p.penalties.max_delta_step = max_delta_step;
  require(monotone.empty() || monotone.size() == d, "monotone constraints do not match the features");
  for (const int sign : monotone) {
    p.monotone.push_back(static_cast<std::int8_t>((sign > 0) - (sign < 0)));
    p.penalties.monotone |= sign != 0;
  }
  for (const auto& group : interactions)
    for (const std::uint32_t j : group) require(j < d, "an interaction constraint names an unknown feature");
  p.interactions = std::move(interactions);
  p.by_tree = by_tree;
  p.by_level = by_level;
  p.by_node = by_node;
  p.max_cat_to_onehot = max_cat_to_onehot;
  p.max_cat_threshold = max_cat_threshold;
  return p;
}

// A tree with the leaves of the samples and their values.
nb::tuple grown(scb::Tree&& tree, const std::int32_t* leaf, std::size_t n) {
  const std::size_t count = tree.leaves.size();
  nb::object leaves = scb::compact(leaf, n, count);
  std::vector<float> values;
  for (const std::int32_t node : tree.leaves) values.push_back(tree.split_conditions[static_cast<std::size_t>(node)]);
  return nb::make_tuple(std::move(tree), leaves, array(std::move(values)));
}

template <class T>
void check(const scb::Grower& grower, const Rows<T>& gradient, const Rows<T>& hessian,
           const std::optional<std::vector<std::uint32_t>>& features) {
  const std::size_t K = gradient.shape(0), n = grower.bins.n;
  require(gradient.shape(1) == n && hessian.shape(1) == n && hessian.shape(0) == K,
          "gradient and Hessian must have the shape (outputs, samples)");
  if (features)
    for (const std::uint32_t j : *features) require(j < grower.bins.d, "an unknown feature is offered");
}

template <class T>
nb::list grow(scb::Grower& grower, const Rows<T>& gradient, const Rows<T>& hessian, double factor,
              const std::vector<std::uint64_t>& seeds, const std::optional<std::vector<std::uint32_t>>& features,
              scb::Pool* pool) {
  check(grower, gradient, hessian, features);
  const std::size_t K = gradient.shape(0), n = grower.bins.n;
  require(seeds.size() == K, "there must be one seed for each tree");
  std::vector<scb::Tree> trees(K);
  std::vector<std::int32_t> leaf(K * n);
  {
    nb::gil_scoped_release release;
    const auto one = [&](std::size_t k, scb::Pool* inner) {
      const scb::Derivatives<T> derivatives{gradient.data() + k * n, hessian.data() + k * n, 1, factor};
      trees[k] = grower.grow(derivatives, seeds[k], features ? &*features : nullptr, inner, leaf.data() + k * n);
    };
    const std::size_t n_threads = pool == nullptr ? 1 : static_cast<std::size_t>(pool->n_threads());
    if (K >= n_threads) {
      scb::run(pool, K, [&](std::size_t k) { one(k, nullptr); });
    } else {
      for (std::size_t k = 0; k < K; ++k) one(k, pool);
    }
  }
  nb::list out;
  for (std::size_t k = 0; k < K; ++k) out.append(grown(std::move(trees[k]), leaf.data() + k * n, n));
  return out;
}

template <class T>
nb::tuple grow_shared(scb::Grower& grower, const Rows<T>& gradient, const Rows<T>& hessian, double factor,
                      std::uint64_t seed, const std::optional<std::vector<std::uint32_t>>& features, scb::Pool* pool) {
  check(grower, gradient, hessian, features);
  require(grower.parameters.penalties.plain(), "monotone constraints and max_delta_step need one tree per output");
  const std::size_t n = grower.bins.n;
  std::vector<std::int32_t> leaf(n);
  scb::Tree tree;
  {
    nb::gil_scoped_release release;
    const scb::Derivatives<T> derivatives{gradient.data(), hessian.data(), gradient.shape(0), factor};
    tree = grower.grow(derivatives, seed, features ? &*features : nullptr, pool, leaf.data());
  }
  return grown(std::move(tree), leaf.data(), n);
}

// Memory of a new array, which is not initialised.
template <class T>
struct Result {
  std::unique_ptr<T[]> data;
  std::vector<std::size_t> shape;

  explicit Result(std::vector<std::size_t> s) : shape(std::move(s)) {
    std::size_t size = 1;
    for (const std::size_t k : shape) size *= k;
    data.reset(new T[size > 0 ? size : 1]);
  }
  nb::object take() {
    T* memory = data.release();
    nb::capsule owner(memory, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(memory, shape.size(), shape.data(), owner));
  }
};

// Arrays of a tree document, kept alive while they are read.
struct Trees {
  std::vector<scb::TreeView> views;
  std::vector<nb::object> owners;

  template <class T>
  const T* read(const nb::dict& tree, const char* name, std::size_t* size) {
    auto values = nb::cast<Vector<T>>(tree[name]);
    if (*size == 0) *size = values.shape(0);
    require(values.shape(0) == *size, "the arrays of a tree differ in length");
    owners.push_back(nb::cast(values));
    return values.data();
  }
};

std::unique_ptr<scb::Forest> make_forest(const nb::list& documents, const std::vector<std::uint32_t>& outputs,
                                         std::size_t n_features, std::size_t n_outputs) {
  Trees trees;
  require(outputs.size() == documents.size(), "there must be one output for each tree");
  std::size_t t = 0;
  for (const nb::handle item : documents) {
    const auto tree = nb::cast<nb::dict>(item);
    scb::TreeView view;
    view.left = trees.read<std::int32_t>(tree, "left_children", &view.n_nodes);
    require(view.n_nodes > 0, "a tree has no nodes");
    view.right = trees.read<std::int32_t>(tree, "right_children", &view.n_nodes);
    view.feature = trees.read<std::int32_t>(tree, "split_indices", &view.n_nodes);
    view.condition = trees.read<float>(tree, "split_conditions", &view.n_nodes);
    view.cover = trees.read<float>(tree, "sum_hessian", &view.n_nodes);
    view.default_left = trees.read<std::uint8_t>(tree, "default_left", &view.n_nodes);
    view.split_type = trees.read<std::uint8_t>(tree, "split_type", &view.n_nodes);
    const auto nodes = nb::cast<Vector<std::int32_t>>(tree["categories_nodes"]);
    view.n_categorical = nodes.shape(0);
    if (view.n_categorical > 0) {
      view.categories_nodes = trees.read<std::int32_t>(tree, "categories_nodes", &view.n_categorical);
      view.segments = trees.read<std::int64_t>(tree, "categories_segments", &view.n_categorical);
      view.sizes = trees.read<std::int64_t>(tree, "categories_sizes", &view.n_categorical);
      view.categories = trees.read<std::int32_t>(tree, "categories", &view.n_categories);
    }
    view.output = outputs[t++];
    trees.views.push_back(view);
  }
  return std::make_unique<scb::Forest>(trees.views, n_features, n_outputs);
}

using Wide = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

scb::Samples samples(const scb::Forest& forest, const Rows<float>& X) {
  require(X.shape(1) == forest.n_features, "the samples have another number of features than the trees");
  return {dense(X), nullptr};
}

scb::Samples samples(const scb::Forest& forest, const Wide& X) {
  require(X.shape(1) == forest.n_features, "the samples have another number of features than the trees");
  static const double nothing = 0;
  scb::Samples out;
  out.matrix.n = X.shape(0);
  out.matrix.d = X.shape(1);
  out.wide = X.size() == 0 ? &nothing : X.data();
  return out;
}

nb::object predict(const scb::Forest& forest, const scb::Samples& X, const std::string& what, scb::Pool* pool) {
  const std::size_t n = X.matrix.n;
  if (what == "scores") {
    Result<double> out({forest.n_outputs, n});
    {
      nb::gil_scoped_release release;
      forest.scores(X, pool, out.data.get());
    }
    return out.take();
  }
  if (what == "values") {
    Result<float> out({forest.n_trees(), n});
    {
      nb::gil_scoped_release release;
      forest.values(X, pool, out.data.get());
    }
    return out.take();
  }
  if (what == "nodes") {
    Result<std::int32_t> out({n, forest.n_trees()});
    {
      nb::gil_scoped_release release;
      forest.nodes(X, pool, out.data.get());
    }
    return out.take();
  }
  require(what == "shap", "unknown kind of prediction");
  Result<double> out({n, forest.n_outputs, forest.n_features + 1});
  {
    nb::gil_scoped_release release;
    forest.shap(X, pool, out.data.get());
  }
  return out.take();
}

}  // namespace

void bind_finish(nb::module_& m);
void bind_joint_leaves(nb::module_& m);
void bind_ranking(nb::module_& m);
void bind_rounds(nb::module_& m);

NB_MODULE(_native, m) {
  m.doc() = "Compiled kernels of scboost.";
  nb::set_leak_warnings(false);  // of objects that are alive when Python ends
  bind_joint_leaves(m);
  bind_ranking(m);
  bind_rounds(m);

  nb::class_<scb::Pool>(m, "Pool").def(nb::init<int>(), "n_threads"_a).def_prop_ro("n_threads", &scb::Pool::n_threads);

  nb::class_<scb::Bins>(m, "Bins")
      .def_static(
          "dense",
          [](const Rows<float>& X, std::uint32_t max_bin, const OptionalCounts& categories,
             const OptionalWeights& weight, const std::optional<Vector<std::int64_t>>& indptr,
             const std::optional<Vector<float>>& cuts, scb::Pool* pool) {
            return make_bins(dense(X), max_bin, categories, weight, indptr, cuts, pool);
          },
          "X"_a, "max_bin"_a, "categories"_a.none(), "weight"_a.none(), "cut_indptr"_a.none(), "cuts"_a.none(),
          "pool"_a.none())
      .def_static(
          "sparse",
          [](const Vector<std::int64_t>& indptr, const Vector<std::int32_t>& indices, const Vector<float>& values,
             std::size_t d, std::uint32_t max_bin, const OptionalCounts& categories, const OptionalWeights& weight,
             const std::optional<Vector<std::int64_t>>& cut_indptr, const std::optional<Vector<float>>& cuts,
             scb::Pool* pool) {
            return make_bins(sparse(indptr, indices, values, d), max_bin, categories, weight, cut_indptr, cuts, pool);
          },
          "indptr"_a, "indices"_a, "values"_a, "n_features"_a, "max_bin"_a, "categories"_a.none(), "weight"_a.none(),
          "cut_indptr"_a.none(), "cuts"_a.none(), "pool"_a.none())
      .def_ro("n_samples", &scb::Bins::n)
      .def_ro("n_features", &scb::Bins::d)
      .def_prop_ro("nbytes", &scb::Bins::nbytes)
      .def("cut_points",
           [](const scb::Bins& bins) {
             std::vector<std::int64_t> indptr{0};
             for (const auto& f : bins.features) indptr.push_back(indptr.back() + f.n_bins);
             std::vector<float> cuts = bins.cuts;
             return nb::make_tuple(array(std::move(indptr)), array(std::move(cuts)));
           })
      .def("codes", [](const scb::Bins& bins) {
        std::vector<std::int32_t> codes(bins.n * bins.d);
        for (std::size_t i = 0; i < bins.n; ++i)
          for (std::size_t j = 0; j < bins.d; ++j)
            codes[i * bins.d + j] = static_cast<std::int32_t>(bins.code(bins.features[j], i));
        return array(std::move(codes));
      });

  nb::class_<scb::Tree>(m, "Tree")
      .def("document", &to_dict)
      .def("gains", &tree_gains)
      .def("leaves", [](const scb::Tree& tree) { return copied(tree.leaves); });

  nb::class_<scb::Grower>(m, "Grower")
      .def(
          "__init__",
          [](scb::Grower* self, const scb::Bins& bins, const std::string& policy, std::uint32_t max_depth,
             std::uint32_t max_leaves, double reg_lambda, double reg_alpha, double min_child_weight,
             double min_split_loss, double max_delta_step, std::vector<int> monotone,
             std::vector<std::vector<std::uint32_t>> interactions, double by_tree, double by_level, double by_node,
             std::uint32_t max_cat_to_onehot, std::uint32_t max_cat_threshold) {
            new (self) scb::Grower(
                bins, make_parameters(policy, max_depth, max_leaves, reg_lambda, reg_alpha, min_child_weight,
                                      min_split_loss, max_delta_step, std::move(monotone), std::move(interactions),
                                      by_tree, by_level, by_node, max_cat_to_onehot, max_cat_threshold, bins.d));
          },
          nb::keep_alive<1, 2>(), "bins"_a, "policy"_a, "max_depth"_a, "max_leaves"_a, "reg_lambda"_a, "reg_alpha"_a,
          "min_child_weight"_a, "min_split_loss"_a, "max_delta_step"_a, "monotone"_a, "interactions"_a, "by_tree"_a,
          "by_level"_a, "by_node"_a, "max_cat_to_onehot"_a, "max_cat_threshold"_a)
      .def("grow_shared", &grow_shared<float>, "gradient"_a.noconvert(), "hessian"_a.noconvert(), "factor"_a, "seed"_a,
           "features"_a.none(), "pool"_a.none())
      .def("grow_shared", &grow_shared<double>, "gradient"_a.noconvert(), "hessian"_a.noconvert(), "factor"_a, "seed"_a,
           "features"_a.none(), "pool"_a.none())
      .def("grow", &grow<float>, "gradient"_a.noconvert(), "hessian"_a.noconvert(), "factor"_a, "seeds"_a,
           "features"_a.none(), "pool"_a.none())
      .def("grow", &grow<double>, "gradient"_a.noconvert(), "hessian"_a.noconvert(), "factor"_a, "seeds"_a, "features"_a.none(), "pool"_a.none());

  nb::class_<scb::Forest>(m, "Forest")
      .def_static("make", &make_forest, "trees"_a, "outputs"_a, "n_features"_a, "n_outputs"_a)
      .def_ro("n_features", &scb::Forest::n_features)
      .def_ro("n_outputs", &scb::Forest::n_outputs)
      .def_prop_ro("n_trees", &scb::Forest::n_trees)
      .def(
          "predict",
          [](const scb::Forest& forest, const Rows<float>& X, const std::string& what, scb::Pool* pool) {
            return predict(forest, samples(forest, X), what, pool);
          },
          "X"_a.noconvert(), "what"_a, "pool"_a.none())
      .def(
          "predict",
          [](const scb::Forest& forest, const Wide& X, const std::string& what, scb::Pool* pool) {
            return predict(forest, samples(forest, X), what, pool);
          },
          "X"_a.noconvert(), "what"_a, "pool"_a.none())
      .def(
          "predict_sparse",
          [](const scb::Forest& forest, const Vector<std::int64_t>& indptr, const Vector<std::int32_t>& indices,
             const Vector<float>& values, const std::string& what, scb::Pool* pool) {
            return predict(forest, {sparse(indptr, indices, values, forest.n_features), nullptr}, what, pool);
          },
          "indptr"_a, "indices"_a, "values"_a, "what"_a, "pool"_a.none());

  bind_finish(m);
}
