"""Observers of a fit: progress bars and callbacks."""

from __future__ import annotations

from typing import Any


class Observer:
    """Is notified of the models and rounds of a fit; this one ignores them.

    Attributes
    ----------
    reads_log : bool
        Whether the training loss after each round must be measured before it is notified.
    """

    reads_log: bool = False

    def begin(self, n_rounds: int, label: str, *, kept: bool) -> None:
        """Act before the first round of a model, or of several that grow in step.

        Parameters
        ----------
        n_rounds : int
            Maximum number of rounds.
        label : str
            Label of a progress bar.
        kept : bool
            Whether the first of the models is part of the result.
        """

    def begin_round(self) -> None:
        """Act before a round of all models."""

    def end_round(self, training: Any, validation_loss: float | None) -> bool:
        """Act after a round of all models, given the training of the first; True stops the fit."""
        del training, validation_loss
        return False

    def end(self) -> None:
        """Act after the last round."""

    def warn(self, message: str) -> None:
        """Report a problem that does not stop the fit."""


SILENT = Observer()
"""An observer that ignores everything."""
