"""scboost as a model of AutoGluon, and thereby of TabArena.

``TabularPredictor(label="y").fit(table, hyperparameters={SCBoostModel: {}})``; parameters of the estimator go into the
dictionary. ``python -m scboost_lab.autogluon_model`` runs AutoGluon's test of a model class. It needs
``pip install autogluon.tabular``.
"""

from __future__ import annotations

import time
from typing import Any

from autogluon.core.constants import QUANTILE, REGRESSION
from autogluon.core.models import AbstractModel

from scboost import SCBoostClassifier, SCBoostRegressor


class SCBoostModel(AbstractModel):  # type: ignore[misc] # AutoGluon has no types
    """SCBoostClassifier or SCBoostRegressor with its default settings, which it selects by cross-validation.

    Validation data of AutoGluon are not used: early stopping on them would make their predictions optimistic, and the
    rounds are selected without them.
    """

    ag_key = "SCBOOST"
    ag_name = "SCBoost"
    ag_priority = 45
    seed_name = "random_state"
    _supported_problem_types = ["binary", "multiclass", "regression", "quantile"]  # noqa: RUF012 - AutoGluon wants a list
    _default_auxiliary_params_extra = {"valid_raw_types": ["bool", "int", "float", "category"]}  # noqa: RUF012

    def _fit(  # type: ignore[explicit-override, unused-ignore]
        self,
        X: Any,
        y: Any,
        time_limit: float | None = None,
        num_cpus: int | None = None,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> None:
        del kwargs
        deadline = None if time_limit is None else time.monotonic() + time_limit
        params: dict[str, Any] = self._get_model_params()
        if num_cpus:
            params.setdefault("n_jobs", num_cpus)
        params.setdefault("verbose", False)
        if self.problem_type == QUANTILE:
            levels = [float(level) for level in self.quantile_levels]
            params |= {"loss": "quantile", "quantile": levels if len(levels) > 1 else levels[0]}
        cls = SCBoostRegressor if self.problem_type in {REGRESSION, QUANTILE} else SCBoostClassifier
        self.model = cls(**params)
        if deadline is not None:  # the rounds that are finished by then are the model
            self.model.set_params(callbacks=[lambda _: time.monotonic() > deadline])
        self.model.fit(self.preprocess(X), y.to_numpy(), sample_weight=sample_weight)
        self.model.set_params(callbacks=params.get("callbacks"))

    def _predict_proba(self, X: Any, **kwargs: Any) -> Any:
        predicted = super()._predict_proba(X, **kwargs)
        return predicted.reshape(len(predicted), -1) if self.problem_type == QUANTILE else predicted

    def _more_tags(self) -> dict[str, bool]:
        """Tell that the model can be fitted on training and validation data together."""
        return {"can_refit_full": True}


def main() -> None:
    """Run AutoGluon's test of a model class, on all kinds of problems, with bagging and refitting."""
    from autogluon.tabular.testing import FitHelper

    FitHelper.verify_model(model_cls=SCBoostModel, model_hyperparameters={"n_estimators": 50})
    print(f"AutoGluon's test of a model class passes for {', '.join(SCBoostModel.supported_problem_types())}.")


if __name__ == "__main__":
    main()
