"""Going on with an earlier fit: what must be the same, and what may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from scboost._arrays import FloatArray, Keys
from scboost.boosting.content import mix64
from scboost.boosting.losses import Loss
from scboost.boosting.training import Rows
from scboost.boosting.workers import workers
from scboost.estimators.parameters import MAY_CHANGE_IN_WARM_START, Plan


@dataclass(frozen=True)
class Identity:
    """What a fit was about, small enough to be kept with it.

    Attributes
    ----------
    rows, target, weights, validation : int
        Checksums, in the order of the rows; in any order where workers share them.
    columns : tuple
        Number of columns and their names.
    parameters : dict of str to str
        Texts of the parameters that must not change.
    """

    rows: int
    target: int
    weights: int
    validation: int
    columns: tuple[Any, ...]
    parameters: dict[str, str]

    @classmethod
    def of(cls, estimator: Any, rows: Rows, validation: Rows | None) -> Identity:
        """Take the identity of a fit that is about to begin."""
        names = getattr(estimator, "feature_names_in_", None)
        parameters = {
            name: parameter_text(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in MAY_CHANGE_IN_WARM_START
        }
        if not isinstance(estimator.random_state, int | np.integer | None):
            parameters.pop("random_state")  # a generator moves on; the seed it gave is kept with the training
        checksum = _checksum if workers().size == 1 else _checksum_of_all_workers
        return cls(
            rows=checksum(rows.keys()),
            target=checksum(rows.keys(), rows.y.astype(np.float64)),
            weights=0 if rows.weight is None else checksum(rows.keys(), rows.weight),
            validation=0 if validation is None else checksum(validation.keys(), validation.y),
            columns=(estimator.n_features_in_, *(() if names is None else map(str, names))),
            parameters=parameters,
        )

    def check_same(self, now: Identity) -> None:
        """Raise ValueError that names what has changed."""
        if self.columns != now.columns:
            raise ValueError(
                f"The fit to go on with had the columns {_columns(self)}, X has {_columns(now)}; give the same "
                "columns in the same order, or start anew with warm_start=False or a clone."
            )
        for name, old in self.parameters.items():
            if now.parameters.get(name, old) != old:
                raise ValueError(
                    f"{name}={now.parameters[name]} was {old} in the fit to go on with. Between two fits with "
                    f"warm_start=True only {', '.join(sorted(MAY_CHANGE_IN_WARM_START))} may change; use "
                    "warm_start=False, or a clone, to start anew."
                )
        parts = {"rows": "X", "target": "y", "weights": "sample_weight", "validation": "the validation rows"}
        changed = [said for name, said in parts.items() if getattr(self, name) != getattr(now, name)]
        if changed:
            raise ValueError(
                f"warm_start=True goes on with the first fit and needs its rows, but {' and '.join(changed)} "
                f"{'has' if len(changed) == 1 else 'have'} changed; use warm_start=False, or a clone, to start anew."
            )


def _checksum(keys: Keys, values: FloatArray | None = None) -> int:
    """Return a number that differs if any of the rows, or of their values, does, or their order."""
    return crc32(keys.tobytes()) if values is None else crc32(values.tobytes())


def _checksum_of_all_workers(keys: Keys, values: FloatArray | None = None) -> int:
    """Return the same for the rows of all workers, whichever has them, in any order."""
    with np.errstate(over="ignore"):
        if values is not None:
            keys = mix64(keys ^ mix64(np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)))
        parts: list[int] = workers().gather(int(keys.sum(dtype=np.uint64)))
    return sum(parts) % 2**53


def check_base(estimator: Any, base: Any, loss: Loss, plan: Plan) -> None:
    """Raise ValueError if a fit cannot go on from another fitted model.

    Parameters
    ----------
    estimator : estimator
        About to be fitted; its columns and classes are known.
    base : estimator
        The model to go on from.
    loss : Loss
        The loss of the new rounds.
    plan : Plan
        What the fit will do.
    """
    problem = ""
    if type(base) is not type(estimator):
        problem = f"is a {type(base).__name__}; this is a {type(estimator).__name__}"
    elif estimator.warm_start or plan.uses_folds or estimator.callbacks:
        problem = (
            "adds rounds to a finished model: give n_estimators as a number (or X_val, y_val), without warm_start, "
            "fold models and callbacks"
        )
    elif _names(base) != _names(estimator):
        problem = f"has the columns {_names(base)}, X has {_names(estimator)}; give the same columns in the same order"
    elif (base._columns, base._sparse) != (estimator._columns, estimator._sparse):
        problem = (
            "was fitted on other kinds of columns: numbers where X has categories, or dense rows where X is sparse"
        )
    elif not np.array_equal(getattr(base, "classes_", ()), getattr(estimator, "classes_", ())):
        problem = f"has the classes {base.classes_.tolist()}, y has {estimator.classes_.tolist()}"
    elif type(base._loss) is not type(loss) or vars(base._loss) != vars(loss):
        problem = "was fitted with another loss"
    if problem:
        raise ValueError(f"init_model {problem}.")


def _names(estimator: Any) -> list[Any]:
    names = getattr(estimator, "feature_names_in_", None)
    return list(range(estimator.n_features_in_)) if names is None else list(names)


def _columns(identity: Identity) -> str:
    number, *names = identity.columns
    return str(names) if names else f"0 to {number - 1}, without names"


def parameter_text(value: Any) -> str:
    """Text of a parameter's value, by which it is compared."""
    return str(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
