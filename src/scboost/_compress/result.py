"""What :func:`scboost.compress` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from scboost._compress.certificate import Certificate
from scboost._compress.types import Float64

Model_co = TypeVar("Model_co", covariant=True)


@dataclass(frozen=True)
class SizePoint:
    """One point of the size curve, measured on held-out samples.

    Attributes
    ----------
    n_trees, n_leaves : int
        Size of the model: rounds (trees of each output), and leaves of all trees.
    divergence : float
        Mean divergence from the teacher; see :class:`Certificate`.
    agreement : float or None
        Share of samples with the teacher's label, or of pairs in the teacher's order; None for regression.
    loss : float or None
        Mean loss on `y`: log-loss, half the squared error, the deviance of counts, 1 - NDCG of queries, or the loss of
        a survival model. None without `y`.
    """

    n_trees: int
    n_leaves: int
    divergence: float
    agreement: float | None
    loss: float | None


@dataclass(frozen=True)
class Compressed(Generic[Model_co]):
    """A small model, and how it compares with its teacher on samples that were not used for fitting.

    Attributes
    ----------
    model : SCBoostClassifier, SCBoostRegressor, SCBoostRanker, SCBoostSurvival, XGBClassifier or XGBRegressor
        The fitted small model.
    n_trees, n_leaves, n_bytes : int
        Its size: rounds (trees of each output), leaves of all trees, and bytes of the native model in UBJSON.
    fidelity : float
        Share of the teacher's information that the student keeps, at most 1: one minus its divergence from the teacher
        over that of the best constant model.
    loss, teacher_loss : float or None
        Mean loss of student and teacher on `y`; None without `y`.
    curve : list of SizePoint
        Models of 1, 2, ... trees; only the last one is backfitted.
    certificate : Certificate
        Confidence bounds.
    max_leaves : int
        Largest number of leaves of a tree, selected under ``max_bytes``.
    ridge : float
        Penalty of leaf values, selected on validation samples.
    n_synthetic : int
        Number of synthetic samples fitted.
    violation : float
        Largest inner product of the weighted residual with a leaf, beyond the ridge's share, relative to the largest
        leaf sum of its absolute values: 0 if the residual is exactly orthogonal to all leaves.
    """

    model: Model_co
    n_trees: int
    n_leaves: int
    n_bytes: int
    fidelity: float
    loss: float | None
    teacher_loss: float | None
    curve: list[SizePoint]
    certificate: Certificate
    max_leaves: int
    ridge: float
    n_synthetic: int
    violation: float

    def __str__(self) -> str:
        size = f"{self.n_trees} trees, {self.n_leaves} leaves, {self.n_bytes / 1000:.0f} kB"
        lines = [
            f"{type(self.model).__name__}: {size}",
            f"Fidelity to the teacher: {100 * self.fidelity:.1f} % ({self.certificate.n_samples} held-out samples)",
        ]
        if self.loss is not None and self.teacher_loss is not None:
            lines.append(f"Loss: {self.loss:.4f} (teacher {self.teacher_loss:.4f})")
        return "\n".join([*lines, str(self.certificate)])

    def __repr__(self) -> str:
        return (
            f"Compressed({type(self.model).__name__}, n_trees={self.n_trees}, n_leaves={self.n_leaves}, "
            f"fidelity={self.fidelity:.4f})"
        )

    def curve_arrays(self) -> dict[str, Float64]:
        """Return the size curve as columns, for plotting: NaN where a quantity does not exist."""
        names = ("n_trees", "n_leaves", "divergence", "agreement", "loss")
        return {
            name: np.array([np.nan if getattr(p, name) is None else getattr(p, name) for p in self.curve], dtype=float)
            for name in names
        }
