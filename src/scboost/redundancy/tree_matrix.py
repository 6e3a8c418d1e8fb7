"""One view of any tree ensemble: the matrix H of what each tree predicts for each row.

Every supported model is a weighted sum, ``margin = H @ weights + intercept``. Row i, column t of H is the value
of the leaf where tree t puts row i. What the margin is, by library:

=============================================  ============================================================
XGBoost (``XGBClassifier`` ..., ``Booster``)   ``predict(..., output_margin=True)``
LightGBM (``LGBMClassifier`` ..., ``Booster``) ``predict(..., raw_score=True)``, divided by T for boosting="rf"
CatBoost                                       ``predict(..., prediction_type="RawFormulaVal")``
GradientBoosting*, HistGradientBoosting*       ``decision_function``; the link's argument for regressors
RandomForest*, ExtraTrees*                     ``predict_proba`` (second class if there are two); ``predict``
AdaBoostClassifier                             ``decision_function``; a tree's value is its vote
AdaBoostRegressor                              the weighted *mean* of the trees (``predict`` is their median)
SCBoostClassifier, SCBoostRegressor            ``decision_function``; the raw score for the regressor
=============================================  ============================================================

The vote of a tree is defined here, once: +1 where its value is above the tree's share of the *ensemble's base*, -1
elsewhere. The base is what the ensemble says before it has seen the row, so a tree of a boosted sum votes by its sign
(the base is the intercept), a tree of a classification forest by P(class) against 1 / n_classes, a tree of a
regression forest by its value against the mean of the trees' roots, and AdaBoost's classifiers vote as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_is_fitted

from scboost.xgb.ubjson import decode, encode

FloatArray = npt.NDArray[np.floating]

BLOCK_ROWS = 8192

_SUPPORTED = (
    "XGBoost, LightGBM, CatBoost, SCBoost and scikit-learn's GradientBoosting*, HistGradientBoosting*, "
    "RandomForest*, ExtraTrees* and AdaBoost*"
)


@dataclass(frozen=True)
class TreeMatrix:
    """Per-tree predictions of an ensemble, and how they add up to its margin.

    With K outputs (K classes if there are more than two) and T trees per output there are T * K columns; column
    ``t * K + k`` is the t-th tree of output k.

    Attributes
    ----------
    H : ndarray of shape (n, T * K)
        Value of each tree for each row, in Fortran order (the transpose is contiguous by tree).
    column_weights : ndarray of shape (T * K,)
        Weight of each column in the margin of its output.
    intercepts : ndarray of shape (K,)
        What the margin is without any tree.
    centers : ndarray of shape (T * K,)
        Value that separates the two votes of a tree: see the module's text.
    library : str
        "xgboost", "lightgbm", "catboost", "sklearn" or "scboost".
    link : str
        How a margin becomes a prediction: "logit", "softmax", "identity", "quantile" (the margin is a quantile of
        y), "probability" (the margin is one), "vote" (AdaBoost's score) or "other".
    classes : ndarray of shape (n_classes,) or None
        Labels in the order of the outputs; None for regression and for boosters that do not know their labels.
    n_outputs : int
        K.
    average : bool
        Whether the trees are averaged (forests, AdaBoost) rather than added up: what a shorter ensemble would do.
    """

    H: FloatArray
    column_weights: FloatArray
    intercepts: FloatArray
    centers: FloatArray
    library: str
    link: str
    classes: npt.NDArray[Any] | None
    n_outputs: int
    average: bool

    @property
    def n_trees(self) -> int:
        """T, the number of trees of one output."""
        return len(self.column_weights) // self.n_outputs

    @property
    def weights(self) -> FloatArray:
        """Weights of shape (T,) for one output and (T * K, K) for several, so that H @ weights works for both."""
        if self.n_outputs == 1:
            return self.column_weights
        return self.column_weights[:, None] * np.tile(np.eye(self.n_outputs), (self.n_trees, 1))

    @property
    def intercept(self) -> Any:
        """A float for one output, an array of shape (K,) for several."""
        return float(self.intercepts[0]) if self.n_outputs == 1 else self.intercepts

    def margin(self) -> FloatArray:
        """Return H @ weights + intercept in float64, of shape (n,) or (n, K), without the zeros of the weights."""
        K = self.n_outputs
        F = np.empty((len(self.H), K))
        for start in range(0, len(F), BLOCK_ROWS):
            block = self.H[start : start + BLOCK_ROWS].astype(np.float64)
            for k in range(K):
                F[start : start + BLOCK_ROWS, k] = block[:, k::K] @ self.column_weights[k::K]
        F += self.intercepts
        return F[:, 0] if K == 1 else F

    def votes(self) -> npt.NDArray[np.int8]:
        """Return +1 where a tree's value is above its center and -1 elsewhere, of the shape of H."""
        return np.where(self.centers < self.H, np.int8(1), np.int8(-1))

    def output(self, k: int) -> TreeMatrix:
        """Return the trees of output k alone, as an ensemble with one output (a view)."""
        K = self.n_outputs
        return replace(
            self,
            H=self.H[:, k::K],
            column_weights=self.column_weights[k::K],
            intercepts=self.intercepts[k : k + 1],
            centers=self.centers[k::K],
            n_outputs=1,
        )


@dataclass(frozen=True)
class EnsembleReader:
    """What is known of a model before it sees rows: a TreeMatrix whose columns are computed on demand.

    ``fill(X, out)`` writes the columns of a block of rows into ``out``, a Fortran-ordered (b, T * K) array.
    """

    fill: Callable[[Any, FloatArray], None]
    column_weights: FloatArray
    intercepts: FloatArray
    centers: FloatArray
    library: str
    link: str
    classes: npt.NDArray[Any] | None
    n_features: int
    feature_names: list[str] | None = None
    average: bool = False

    def matrix(self, X: Any, dtype: npt.DTypeLike, block_rows: int) -> TreeMatrix:
        """Return the matrix of all rows of X, filled block by block."""
        n = len(self.column_weights)
        H = np.empty((n, X.shape[0]), dtype).T
        for start in range(0, X.shape[0], block_rows):
            rows = slice(start, min(start + block_rows, X.shape[0]))
            self.fill(_rows(X, rows), H[rows])
        return TreeMatrix(
            H,
            self.column_weights,
            self.intercepts,
            self.centers,
            self.library,
            self.link,
            self.classes,
            len(self.intercepts),
            self.average,
        )

    def check(self, X: Any) -> Any:
        """Return X as something with a shape and rows, or say which columns are wrong."""
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions, got shape {tuple(X.shape)}.")
        if X.shape[0] == 0:
            raise ValueError("X has no rows.")
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} columns, but the model was fitted with {self.n_features}.")
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else self.feature_names
        # LightGBM stores blanks as underscores
        if self.feature_names is not None and _no_blanks(names) != _no_blanks(self.feature_names):
            raise ValueError(
                f"X has columns {names}, but the model was fitted with {self.feature_names} in this order."
            )
        return X


def tree_matrix(model: Any, X: Any, *, dtype: npt.DTypeLike = np.float32, block_rows: int = BLOCK_ROWS) -> TreeMatrix:
    """Compute what each tree of a fitted ensemble predicts for each row.

    The leaves are found by the library's own native code (one call per block of rows) and their values are gathered;
    nothing loops over rows in Python. If the model stopped early, the trees are those that its own ``predict`` uses.

    Parameters
    ----------
    model : object
        A fitted model of a supported library: see the table at the top of this module.
    X : array-like or data frame of shape (n, d)
        Rows, with the columns the model was fitted with.
    dtype : dtype, default=float32
        Precision of H. XGBoost's leaves are float32; the other libraries' are float64.
    block_rows : int, default=8192
        Rows per native call. Peak memory is the result, n * T * K * itemsize bytes, plus at most
        block_rows * T * K * 24 bytes while a block is computed.

    Returns
    -------
    TreeMatrix
        ``H``, ``weights`` and ``intercept`` with ``H @ weights + intercept`` equal to the model's margin.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model has not been fitted.
    TypeError
        If the model is of no supported kind.
    ValueError
        If X has other columns than the model was fitted with, or the model is not a sum of constant leaves (linear
        boosters, linear trees, a row-dependent ``init``).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> model = GradientBoostingClassifier(n_estimators=7, random_state=0).fit(X, y)
    >>> trees = tree_matrix(model, X)
    >>> trees.H.shape
    (200, 7)
    >>> bool(np.allclose(trees.H @ trees.weights + trees.intercept, model.decision_function(X), atol=1e-6))
    True
    """
    ensemble = read_ensemble(model)
    return ensemble.matrix(ensemble.check(X), dtype, _positive("block_rows", block_rows))


def iter_tree_matrix(
    model: Any, X: Any, *, dtype: npt.DTypeLike = np.float32, block_rows: int = BLOCK_ROWS
) -> Iterator[TreeMatrix]:
    """Yield :func:`tree_matrix` for consecutive blocks of rows, in bounded memory.

    Parameters
    ----------
    model, X, dtype
        As for :func:`tree_matrix`.
    block_rows : int, default=8192
        Rows of a block (the last may be shorter). Peak memory is block_rows * T * K * (itemsize + 24) bytes,
        whatever the number of rows of X.

    Yields
    ------
    TreeMatrix
        Of the next rows; all but ``H`` is the same in every block.
    """
    ensemble = read_ensemble(model)
    X = ensemble.check(X)
    block_rows = _positive("block_rows", block_rows)
    for start in range(0, X.shape[0], block_rows):
        block = _rows(X, slice(start, min(start + block_rows, X.shape[0])))
        yield ensemble.matrix(block, dtype, block_rows)


def read_ensemble(model: Any) -> EnsembleReader:
    """Find out which library a model is from, without importing any, and read its trees."""
    ancestors = type(model).__mro__
    packages = {cls.__module__.partition(".")[0] for cls in ancestors}
    names = {cls.__name__ for cls in ancestors}
    if "WeightedTrees" in names:
        return model.ensemble()  # type: ignore[no-any-return]
    if "scboost" in packages:
        return _read_scboost(model)
    if "xgboost" in packages:
        return _read_xgboost(model)
    if "lightgbm" in packages:
        return _read_lightgbm(model)
    if "catboost" in packages:
        return _read_catboost(model)
    for base, reader in _SKLEARN.items():
        if base in names:
            check_is_fitted(model)
            names_in = getattr(model, "feature_names_in_", None)
            return replace(reader(model), feature_names=None if names_in is None else list(names_in))
    raise TypeError(
        f"model must be a tree ensemble of {_SUPPORTED}; got {type(model).__name__}. "
        "For a pipeline, pass its last step and the transformed rows."
    )


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}.")
    return int(value)


def _no_blanks(names: list[str] | None) -> list[str]:
    return [re.sub(r"\s", "_", name) for name in names or []]


def _rows(X: Any, rows: slice) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _gather(values: list[FloatArray]) -> Callable[[Any, FloatArray], None]:
    """Return a function that replaces leaf numbers (b, T) by leaf values; values[t] has shape (leaves, K)."""
    K = values[0].shape[1]
    tables = [[np.ascontiguousarray(table[:, k]) for k in range(K)] for table in values]
    cast = {np.dtype(np.float32): [[v.astype(np.float32) for v in columns] for columns in tables]}

    def fill(leaves: Any, out: FloatArray) -> None:
        leaves = leaves.astype(np.intp)
        for t, columns in enumerate(cast.get(out.dtype, tables)):
            for k, table in enumerate(columns):
                # "clip" only because it writes straight into out; a library's own leaf numbers are in range
                table.take(leaves[:, t], out=out[:, t * K + k], mode="clip")

    return fill


# --- XGBoost ---------------------------------------------------------------------------------------------------


def xgboost_document(booster: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a Booster's decoded model and the part of it that holds the trees."""
    document = decode(booster.save_raw("ubj"))
    model = document["learner"]["gradient_booster"]
    if model["name"] == "dart":
        model = model["gbtree"]
    if "trees" not in model["model"]:
        raise ValueError(f"The booster {model['name']!r} has no trees; allowed: 'gbtree' and 'dart'.")
    return document, model["model"]


def xgboost_order(part: dict[str, Any], n_outputs: int) -> npt.NDArray[np.intp]:
    """Return the trees of an XGBoost model in our order: first by position within the output, then by output."""
    output = np.asarray(part["tree_info"])
    by_output = [np.flatnonzero(output == k) for k in range(n_outputs)]
    if len({len(trees) for trees in by_output}) != 1:
        raise ValueError("The XGBoost model has different numbers of trees for its outputs.")
    return np.stack(by_output, axis=1).ravel()


def xgboost_base(document: dict[str, Any], part: dict[str, Any]) -> FloatArray:
    """Return the margin of a Booster whose trees all say zero; XGBoost itself applies the objective's link."""
    end = int(part["iteration_indptr"][1])
    silent = [
        {**tree, "split_conditions": np.where(tree["left_children"] == -1, np.float32(0), tree["split_conditions"])}
        for tree in part["trees"][:end]
    ]
    learner = {**document["learner"], "feature_names": [], "feature_types": []}
    booster = _xgboost_load(document, learner, part, silent, list(part["tree_info"][:end]), 1)
    row = np.full((1, int(learner["learner_model_param"]["num_feature"])), np.nan)
    return np.asarray(booster.inplace_predict(row, predict_type="margin"), np.float64).ravel()


def _xgboost_load(
    document: dict[str, Any],
    learner: dict[str, Any],
    part: dict[str, Any],
    trees: list[Any],
    outputs: list[int],
    n_threads: int,
) -> Any:
    """Return a Booster with one round that holds the given trees."""
    import xgboost

    booster = {
        **part,
        "trees": trees,
        "tree_info": outputs,
        "iteration_indptr": [0, len(trees)],
        "gbtree_model_param": {**part["gbtree_model_param"], "num_trees": str(len(trees))},
    }
    learner = {**learner, "gradient_booster": {"model": booster, "name": "gbtree"}}
    loaded = xgboost.Booster({"nthread": n_threads})
    loaded.load_model(bytearray(encode({**document, "learner": learner})))
    return loaded


def _xgboost_by_tree(document: dict[str, Any], part: dict[str, Any], n_threads: int) -> Any:
    """Return a Booster that predicts each tree by itself.

    Finding leaf numbers (``pred_leaf``) takes XGBoost three times as long as predicting. A model with one class per
    tree has the trees' values as its margins, at the price of an ordinary prediction.
    """
    T = len(part["trees"])
    learner = {
        **document["learner"],
        "learner_model_param": {
            **document["learner"]["learner_model_param"],
            "num_class": str(T),
            "num_target": "1",
            "base_score": "0E0",
        },
        "objective": {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": str(T)}},
    }
    # one tree alone would be a model with one class, which XGBoost does not know: let it be the second of two
    if T == 1:
        learner["learner_model_param"]["num_class"] = "2"
        learner["objective"]["softmax_multiclass_param"]["num_class"] = "2"
    return _xgboost_load(document, learner, part, part["trees"], list(range(T)), n_threads)


_XGBOOST_LINK = {
    "binary:logistic": "logit",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "reg:squarederror": "identity",
    "reg:absoluteerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:quantileerror": "quantile",
}


def _read_xgboost(model: Any) -> EnsembleReader:
    import xgboost

    wrapper = None if isinstance(model, xgboost.Booster) else model
    if wrapper is not None:
        check_is_fitted(wrapper)
        model = wrapper.get_booster()
        if getattr(wrapper, "early_stopping_rounds", None):
            model = model[: wrapper.best_iteration + 1]
    document, part = xgboost_document(model)
    if not part["trees"]:
        raise ValueError("The XGBoost booster has no trees.")
    if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in part["trees"]):
        raise ValueError("XGBoost's multi_strategy='multi_output_tree' is not supported.")
    intercepts = xgboost_base(document, part)
    order = xgboost_order(part, len(intercepts))
    weights = np.ones(len(order))
    if document["learner"]["gradient_booster"]["name"] == "dart":
        weights = np.asarray(document["learner"]["gradient_booster"]["weight_drop"], np.float64)[order]
    n_threads = int(json.loads(model.save_config())["learner"]["generic_param"]["nthread"])
    by_tree = _xgboost_by_tree(document, part, n_threads)
    missing = np.nan if wrapper is None else wrapper.missing

    def fill(X: Any, out: FloatArray) -> None:
        out[:] = by_tree.inplace_predict(X, predict_type="margin", missing=missing)[:, order]

    return EnsembleReader(
        fill,
        weights,
        intercepts,
        np.zeros(len(order)),
        "xgboost",
        _XGBOOST_LINK.get(document["learner"]["objective"]["name"], "other"),
        getattr(wrapper, "classes_", None),
        model.num_features(),
        model.feature_names,
    )


# --- LightGBM --------------------------------------------------------------------------------------------------


def lightgbm_trees(text: str) -> tuple[str, list[str], str]:
    """Split a LightGBM model's text into its header, its trees and the rest."""
    head, *trees = re.split(r"^(?=Tree=\d+$)", text, flags=re.MULTILINE)
    if not trees:
        raise ValueError("The LightGBM booster has no trees.")
    trees[-1], mark, tail = trees[-1].partition("end of trees")
    return head, trees, mark + tail


def lightgbm_leaves(tree: str) -> FloatArray:
    """Return the leaf values of one tree of the text."""
    match = re.search(r"^leaf_value=(.*)$", tree, flags=re.MULTILINE)
    if match is None or re.search(r"^is_linear=1", tree, flags=re.MULTILINE):
        raise ValueError("LightGBM's linear trees (linear_tree=True) have no constant leaves.")
    return np.array(match.group(1).split(), dtype=np.float64)


def lightgbm_means(trees: list[str]) -> FloatArray:
    """Return the training mean of each tree given: LightGBM keeps its base score in the first tree's leaves."""
    means = []
    for tree in trees:
        counts = re.search(r"^leaf_count=(.+)$", tree, flags=re.MULTILINE)
        leaves = lightgbm_leaves(tree)
        means.append(np.average(leaves, weights=np.array(counts.group(1).split(), float)) if counts else leaves[0])
    return np.array(means)


def _lightgbm_link(head: str) -> str:
    objective = re.search(r"^objective=(.*)$", head, flags=re.MULTILINE)
    name, *options = objective.group(1).split() if objective else ["custom"]
    if name == "binary":
        return "logit" if "sigmoid:1" in options else "other"
    if name in {"regression", "regression_l1", "huber", "fair", "mape"} and "sqrt" not in options:
        return "identity"
    return {"multiclass": "softmax", "quantile": "quantile"}.get(name, "other")


def _read_lightgbm(model: Any) -> EnsembleReader:
    import lightgbm

    classes = None
    booster = model
    if not isinstance(model, lightgbm.Booster):
        check_is_fitted(model)
        booster = model.booster_
        classes = getattr(model, "classes_", None)
    # num_iteration=None means "up to the best iteration", here as in predict
    head, trees, _ = lightgbm_trees(booster.model_to_string(num_iteration=None))
    K = booster.num_model_per_iteration()
    T = len(trees) // K
    values = [lightgbm_leaves(tree) for tree in trees]
    average = re.search(r"^average_output$", head, flags=re.MULTILINE) is not None
    shift = lightgbm_means(trees[:K])
    shifted = trees if average else trees[:K]
    for c in range(len(shifted)):
        values[c] = values[c] - shift[c % K]
    gather = _gather([leaf[:, None] for leaf in values])
    names = booster.feature_name()
    automatic = all(re.fullmatch(r"Column_\d+", name) for name in names)

    def fill(X: Any, out: FloatArray) -> None:
        leaves = booster.predict(X, pred_leaf=True, num_iteration=None)
        gather(np.asarray(leaves).reshape(out.shape), out)

    return EnsembleReader(
        fill,
        np.full(T * K, 1 / T if average else 1.0),
        shift,
        np.zeros(T * K),
        "lightgbm",
        _lightgbm_link(head),
        classes,
        booster.num_feature(),
        None if automatic else names,
        average,
    )


# --- CatBoost --------------------------------------------------------------------------------------------------

_CATBOOST_LINK = {
    "Logloss": "logit",
    "CrossEntropy": "logit",
    "MultiClass": "softmax",
    "RMSE": "identity",
    "MAE": "identity",
    "Huber": "identity",
    "Quantile": "quantile",
}


def _read_catboost(model: Any) -> EnsembleReader:
    if not model.is_fitted():
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(model).__name__} has not been fitted.")
    scale, bias = model.get_scale_and_bias()
    intercepts = np.atleast_1d(np.asarray(bias, np.float64))
    K = len(intercepts)
    counts = np.asarray(model.get_tree_leaf_counts())
    values = np.asarray(model.get_leaf_values()).reshape(-1, K)
    gather = _gather(np.split(values, np.cumsum(counts)[:-1]))
    categorical = bool(model.get_cat_feature_indices())

    def fill(X: Any, out: FloatArray) -> None:
        if isinstance(X, np.ndarray) and not categorical:
            X = np.asfortranarray(X, np.float32)  # what CatBoost reads anyway, and reads fastest
        gather(model.calc_leaf_indexes(X, thread_count=model.get_param("thread_count") or -1), out)

    loss = str(model.get_all_params().get("loss_function", "")).partition(":")[0]
    classes = np.asarray(model.classes_) if len(model.classes_) else None
    return EnsembleReader(
        fill,
        np.full(len(counts) * K, float(scale)),
        intercepts,
        np.zeros(len(counts) * K),
        "catboost",
        _CATBOOST_LINK.get(loss, "other"),
        classes,
        len(model.feature_names_),
    )


# --- scikit-learn ----------------------------------------------------------------------------------------------


def _read_gradient_boosting(model: Any) -> EnsembleReader:
    if model.init_ != "zero" and type(model.init_).__name__ not in {"DummyClassifier", "DummyRegressor"}:
        raise ValueError(
            f"init={model.init_!r} predicts a different start for each row, so the margin is not a sum of trees."
        )
    trees = model.estimators_.ravel()
    K = model.estimators_.shape[1]

    def fill(X: Any, out: FloatArray) -> None:
        X = check_array(X, dtype=np.float32, order="C", accept_sparse="csr")
        for c, tree in enumerate(trees):
            out[:, c] = tree.tree_.predict(X)[:, 0]

    classes = getattr(model, "classes_", None)
    if classes is None:
        link = "quantile" if model.loss == "quantile" else "identity"
    elif K > 1:
        link = "softmax"
    else:
        link = "logit" if model.loss == "log_loss" else "other"
    row = np.zeros((1, model.n_features_in_), np.float32)
    sums = np.reshape([tree.tree_.predict(row)[0, 0] for tree in trees], (-1, K)).sum(axis=0)
    start = model._raw_predict(row)[0] - model.learning_rate * sums  # noqa: SLF001  (public calls ask for names)
    return EnsembleReader(
        fill,
        np.full(len(trees), float(model.learning_rate)),
        np.asarray(start),
        np.zeros(len(trees)),
        "sklearn",
        link,
        classes,
        model.n_features_in_,
    )


def _read_hist_gradient_boosting(model: Any) -> EnsembleReader:
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    predictors = [tree for trees in model._predictors for tree in trees]  # noqa: SLF001  (no public access)
    bitsets, feature_map = model._bin_mapper.make_known_categories_bitsets()  # noqa: SLF001

    def fill(X: Any, out: FloatArray) -> None:
        X = model._preprocess_X(X, reset=False)  # noqa: SLF001
        threads = _openmp_effective_n_threads()
        for c, tree in enumerate(predictors):
            out[:, c] = tree.predict(X, bitsets, feature_map, threads)

    intercepts = np.asarray(model._baseline_prediction, np.float64).ravel()  # noqa: SLF001
    classes = getattr(model, "classes_", None)
    if classes is None:
        link = {"poisson": "other", "gamma": "other", "quantile": "quantile"}.get(model.loss, "identity")
    else:
        link = "logit" if len(intercepts) == 1 else "softmax"
    n = len(predictors)
    return EnsembleReader(fill, np.ones(n), intercepts, np.zeros(n), "sklearn", link, classes, model.n_features_in_)


def _read_forest(model: Any) -> EnsembleReader:
    classes = getattr(model, "classes_", None)
    trees = [tree.tree_ for tree in model.estimators_]
    if classes is None:
        values = [tree.value[:, :, 0] for tree in trees]
    elif isinstance(classes, list):
        raise ValueError("Forests that predict several labels at once are not supported.")
    else:
        values = [tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True) for tree in trees]
        if len(classes) == 2:
            values = [value[:, 1:] for value in values]
    T, K = len(values), values[0].shape[1]
    gather = _gather(values)
    if classes is None:
        centers = np.tile(np.mean([value[0] for value in values], axis=0), T)
    else:
        centers = np.full(T * K, 1 / len(classes))

    def fill(X: Any, out: FloatArray) -> None:
        gather(model.apply(X), out)

    link = "identity" if classes is None else "probability"
    weights, zero, d = np.full(T * K, 1 / T), np.zeros(K), model.n_features_in_
    return EnsembleReader(fill, weights, zero, centers, "sklearn", link, classes, d, average=True)


def _read_adaboost(model: Any) -> EnsembleReader:
    learners = model.estimators_
    weights = np.asarray(model.estimator_weights_[: len(learners)], np.float64)
    weights = weights / weights.sum()
    classes = getattr(model, "classes_", None)
    if classes is None:

        def fill(X: Any, out: FloatArray) -> None:
            X = _plain(X)
            for t, learner in enumerate(learners):
                out[:, t] = learner.predict(X)

        center = float(np.mean([_root_value(learner) for learner in learners]))
        centers = np.full(len(learners), center)
        d = model.n_features_in_
        return EnsembleReader(fill, weights, np.zeros(1), centers, "sklearn", "identity", None, d, average=True)
    n_classes = len(classes)
    K = 1 if n_classes == 2 else n_classes
    against = -1 / (n_classes - 1)

    def fill_votes(X: Any, out: FloatArray) -> None:
        X = _plain(X)
        for t, learner in enumerate(learners):
            label = learner.predict(X)
            for k in range(K):
                out[:, t * K + k] = np.where(label == classes[-1 if K == 1 else k], 1.0, against)

    scale = 2.0 if K == 1 else 1.0  # scikit-learn's two-class score is the difference of two opposite sums
    n = len(learners) * K
    return EnsembleReader(
        fill_votes,
        np.repeat(scale * weights, K),
        np.zeros(K),
        np.zeros(n),
        "sklearn",
        "vote",
        classes,
        model.n_features_in_,
        average=True,
    )


def _plain(X: Any) -> Any:
    """Return X without column names: AdaBoost's learners were fitted without."""
    return X.to_numpy() if hasattr(X, "to_numpy") else X


def _root_value(learner: Any) -> float:
    if not hasattr(learner, "tree_"):
        raise ValueError(f"AdaBoostRegressor's learners must be trees, got {type(learner).__name__}.")
    return float(learner.tree_.value[0].ravel()[0])


_SKLEARN: dict[str, Callable[[Any], EnsembleReader]] = {
    "BaseHistGradientBoosting": _read_hist_gradient_boosting,
    "BaseGradientBoosting": _read_gradient_boosting,
    "BaseForest": _read_forest,
    "BaseWeightBoosting": _read_adaboost,
}


# --- SCBoost ---------------------------------------------------------------------------------------------------


def _read_scboost(model: Any) -> EnsembleReader:
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    rows = model._ensemble  # noqa: SLF001  (the same package)
    d = model.n_features_in_
    if classes is None:
        link = {"quantile": "quantile", "poisson": "other"}.get(getattr(model, "loss", ""), "identity")
    else:
        link = "logit" if rows.n_outputs == 1 else "softmax"
    if hasattr(rows, "booster"):
        native = _read_xgboost(model.get_booster())

        def fill(X: Any, out: FloatArray) -> None:
            native.fill(model._encode(X, reset=False), out)  # noqa: SLF001

        link = link if link in {"quantile", "other"} else native.link
        return replace(native, fill=fill, library="scboost", link=link, classes=classes, feature_names=None)

    def fill_by_learner(X: Any, out: FloatArray) -> None:
        H = rows.contributions(model._encode(X, reset=False))  # noqa: SLF001
        out[:] = H.reshape(-1, len(out)).T

    n = rows.weights.size
    return EnsembleReader(
        fill_by_learner, rows.weights.ravel(), rows.intercept, np.zeros(n), "scboost", link, classes, d
    )
