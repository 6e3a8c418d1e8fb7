"""Reader of LightGBM models, which are read and written through LightGBM's text format."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._registry import Reader, instances
from scboost.diagnostics._tree_matrix import EnsembleReader, gather


class _Booster(Protocol):
    """The methods of ``lightgbm.Booster`` used here."""

    def model_to_string(self, *, num_iteration: int | None) -> str: ...
    def num_model_per_iteration(self) -> int: ...
    def feature_name(self) -> list[str]: ...
    def num_feature(self) -> int: ...
    def predict(self, data: Any, *, pred_leaf: bool, num_iteration: int | None) -> Any: ...


class _Model(Protocol):
    """The members of LightGBM's scikit-learn estimators used here."""

    booster_: _Booster
    _Booster: _Booster
    _best_iteration: int

    def set_params(self, **params: Any) -> _Model: ...


_matches_booster = instances("lightgbm", "Booster")


def _is_booster(model: _Booster | _Model) -> TypeGuard[_Booster]:
    return _matches_booster(model)


def _booster(model: _Booster | _Model) -> _Booster:
    if _is_booster(model):
        return model
    check_is_fitted(model)
    return cast("_Model", model).booster_


class _Text:
    """A model in text format, split into header, trees and footer, with the leaf values of the trees.

    Attributes
    ----------
    average : bool
        Whether the trees are averaged.
    base : ndarray of shape (K,)
        Mean of the first tree of each output over the training samples: LightGBM adds its base score to these leaves,
        and to those of every tree if the trees are averaged.
    values : list of ndarray
        Leaf values of each tree, without the base score.
    """

    def __init__(self, booster: _Booster) -> None:
        # num_iteration=None means "up to the best iteration", here as in predict
        text = booster.model_to_string(num_iteration=None)
        self.head, *self.trees = re.split(r"^(?=Tree=\d+$)", text, flags=re.MULTILINE)
        if not self.trees:
            raise ValueError("The LightGBM booster has no trees.")
        self.trees[-1], mark, rest = self.trees[-1].partition("end of trees")
        self.tail = mark + rest
        self.average = re.search(r"^average_output$", self.head, flags=re.MULTILINE) is not None
        K = booster.num_model_per_iteration()
        self.values = [self._leaves(tree) for tree in self.trees]
        self.base = np.array([self._mean(self.trees[k], self.values[k]) for k in range(K)])
        for c in range(len(self.trees) if self.average else K):
            self.values[c] = self.values[c] - self.base[c % K]

    @staticmethod
    def _leaves(tree: str) -> FloatArray:
        match = re.search(r"^leaf_value=(.*)$", tree, flags=re.MULTILINE)
        if match is None or re.search(r"^is_linear=1", tree, flags=re.MULTILINE):
            raise ValueError("LightGBM's linear trees (linear_tree=True) have no constant leaves.")
        return np.array(match.group(1).split(), dtype=np.float64)

    @staticmethod
    def _mean(tree: str, leaves: FloatArray) -> float:
        counts = re.search(r"^leaf_count=(.+)$", tree, flags=re.MULTILINE)
        return float(np.average(leaves, weights=np.array(counts.group(1).split(), float)) if counts else leaves[0])

    @property
    def objective(self) -> list[str]:
        """Name of the objective, and its options."""
        found = re.search(r"^objective=(.*)$", self.head, flags=re.MULTILINE)
        return found.group(1).split() if found else ["custom"]

    def link(self) -> str:
        name, *options = self.objective
        if name == "binary":
            return "logit" if "sigmoid:1" in options else "other"
        if name in {"regression", "regression_l1", "huber", "fair", "mape"} and "sqrt" not in options:
            return "identity"
        return {"multiclass": "softmax", "quantile": "quantile"}.get(name, "other")

    def with_trees(self, kept: IntArray, values: Sequence[FloatArray]) -> str:
        """Return the text of a model that sums the kept trees with other leaf values."""
        trees = []
        for i, (c, leaves) in enumerate(zip(kept, values, strict=True)):
            text = " ".join(f"{value:.17g}" for value in leaves)
            tree = re.sub(r"^Tree=\d+$", f"Tree={i}", self.trees[c], count=1, flags=re.MULTILINE)
            trees.append(re.sub(r"^leaf_value=.*$", f"leaf_value={text}", tree, count=1, flags=re.MULTILINE))
        # without tree_sizes, LightGBM parses the trees sequentially
        head = re.sub(r"^(tree_sizes=.*|average_output)\n", "", self.head, flags=re.MULTILINE)
        return head + "".join(trees) + self.tail


def _read(model: _Booster | _Model) -> EnsembleReader:
    booster = _booster(model)
    text = _Text(booster)
    find = gather([leaf[:, None] for leaf in text.values])
    names = booster.feature_name()
    automatic = all(re.fullmatch(r"Column_\d+", name) for name in names)
    n = len(text.trees)

    def fill(X: Any, out: FloatArray) -> None:
        leaves = booster.predict(X, pred_leaf=True, num_iteration=None)
        find(np.asarray(leaves).reshape(out.shape), out)

    return EnsembleReader(
        fill,
        np.full(n, len(text.base) / n if text.average else 1.0),
        text.base,
        np.zeros(n),
        "lightgbm",
        text.link(),
        getattr(model, "classes_", None),
        booster.num_feature(),
        None if automatic else names,
        text.average,
        needs_table=re.search(r"^pandas_categorical:\[\[", text.tail, flags=re.MULTILINE) is not None,
        task="ranking" if text.objective[0] in {"lambdarank", "rank_xendcg"} else "",
    )


def _write(model: _Booster | _Model, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> _Booster | _Model:
    """Scale the leaves of the kept trees; the intercept is added to those of the first round."""
    import lightgbm

    text = _Text(_booster(model))
    K = len(intercept)
    columns = (kept[:, None] * K + np.arange(K)).ravel()
    values = [text.values[c] * w for c, w in zip(columns, weights.ravel(), strict=True)]
    values[:K] = [leaves + by for leaves, by in zip(values, intercept, strict=False)]
    booster: _Booster = lightgbm.Booster(model_str=text.with_trees(columns, values))
    if _is_booster(model):
        return booster
    new = copy.copy(cast("_Model", model)).set_params(n_estimators=len(kept))
    new._Booster = booster  # noqa: SLF001  (the estimators of LightGBM have no public setter)
    new._best_iteration = 0  # noqa: SLF001
    return new


READER = Reader("lightgbm", "LightGBM", instances("lightgbm", "Booster", "LGBMModel"), _read, _write)
