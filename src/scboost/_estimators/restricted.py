"""Checks for estimators of tasks other than classification and regression, which support fewer options."""

from __future__ import annotations

from scboost._core.parameters import Parameters
from scboost._core.spec import Strategy
from scboost._data.batches import OpenBatches
from scboost._estimators.base import SCBoost
from scboost._estimators.fitting import FitArguments
from scboost._runtime.communicator import Communicator


class RestrictedSCBoost(SCBoost):
    """Base class of estimators for survival, ranking and distributions."""

    _distributes: bool = False

    def _check(self, given: FitArguments, parameters: Parameters, communicator: Communicator) -> Strategy:
        problems = {
            "a fit to Batches": isinstance(given.X, OpenBatches) or isinstance(given.X_val, OpenBatches),
            "a fit on several workers": communicator.size > 1 and not self._distributes,
        }
        for problem, found in problems.items():
            if found:
                raise ValueError(
                    f"{type(self).__name__} does not support {problem} yet; use SCBoostClassifier or SCBoostRegressor."
                )
        return super()._check(given, parameters, communicator)
