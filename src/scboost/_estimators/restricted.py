"""Checks for estimators of tasks other than classification and regression, which support fewer options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from scboost._core.parameters import Parameters
from scboost._core.spec import Strategy
from scboost._data.batches import OpenBatches
from scboost._estimators.base import SCBoost
from scboost._estimators.fitting import FitArguments
from scboost._runtime.communicator import Communicator

if TYPE_CHECKING:
    from scboost._arrays import ArrayLike


class RestrictedSCBoost(SCBoost):
    """Base class of estimators for survival, ranking and distributions."""

    def _check(self, given: FitArguments, parameters: Parameters, communicator: Communicator) -> Strategy:
        name, p = type(self).__name__, parameters
        problems = {
            f"weighting={p.weighting!r}": p.weighting is not None,
            "preset='best', which weights trees,": p.preset == "best",
            f"max_trees={p.max_trees!r}": p.max_trees is not None,
            "a fit to Batches": isinstance(given.X, OpenBatches) or isinstance(given.X_val, OpenBatches),
            "a fit on several workers": communicator.size > 1,
        }
        for problem, found in problems.items():
            if found:
                raise ValueError(f"{name} does not support {problem} yet; use SCBoostClassifier or SCBoostRegressor.")
        return super()._check(given, parameters, communicator)

    def compress(self, X: ArrayLike, y: ArrayLike | None = None, **options: Any) -> NoReturn:
        """Raise ValueError: only models of classification and regression can be compressed.

        Parameters
        ----------
        X, y, **options
            Ignored.
        """
        del X, y, options
        raise ValueError(f"compress supports classification and regression; this is a {type(self).__name__}.")
