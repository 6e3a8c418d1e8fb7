"""A model in training: the ensemble, the state of the loop and the log of the rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.conformal import Conformal
from scboost._core.loop import Round, Settings, State
from scboost._core.stopping import NOT_STOPPED, Stop, StopReason
from scboost._engine.ensemble import Ensemble
from scboost._engine.interface import TreeOptions


@dataclass
class Companions:
    """The average of fold models that is to be averaged with a model on all samples.

    Attributes
    ----------
    ensemble : Ensemble
        Their weighted learners, one model after the other.
    sizes : list of int
        Number of rounds of each model.
    """

    ensemble: Ensemble
    sizes: list[int]


@dataclass
class Training:
    """An ensemble with the log of its rounds: everything a later fit needs to resume.

    Attributes
    ----------
    ensemble : Ensemble
        The learners.
    state : State
        State of the loop.
    settings : Settings
        Settings of the loop; fixed after the first round.
    loss, validation_loss : list of float
        Mean loss before each round on the training samples, and after each round on the validation set (minus the
        score, if a metric replaces the loss).
    last_loss : float
        Mean loss on the training samples after the last round; NaN if it was not measured.
    metric : str
        Name of the metric that replaces the loss on the validation set; empty for the loss.
    components, energy_kept, energy_removed : list of float
        k, the share of the history's energy in these directions, and the share of the residual's energy that lies in
        their span, each round; means over the outputs.
    stop : Stop
        Why the loop ended before the requested number of rounds.
    interrupted : bool
        Whether a keyboard interrupt ended it.
    grown : tuple of (weights, intercept) or None
        Weights and intercept when the loop ended, restored before resuming if the ensemble was reweighted since.
    shift : list of float
        Shift of the scores of each output, estimated out of fold and applied after the last round; empty for none.
    scale : list of float
        Factor of all learners, estimated out of fold and applied after the last round; empty for 1.
    baseline : mapping of str to ndarray
        Baseline of the survival functions, estimated from out-of-fold predictions; empty for other losses.
    companions : Companions or None
        Fold models that join the ensemble after the last round.
    members : list of int
        Number of rounds of each fold model that is part of the ensemble; empty if there are none.
    conformal : Intervals, LabelSets or None
        Conformal state, estimated from out-of-fold predictions.
    options : TreeOptions
        Options of the trees.
    without_scores : bool
        Whether the state lacks scores and histories, as in the checkpoint of a distributed fit: they are recomputed
        from the learners before resuming.
    """

    ensemble: Ensemble
    state: State
    settings: Settings
    loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    last_loss: float = np.nan
    metric: str = ""
    components: list[float] = field(default_factory=list)
    energy_kept: list[float] = field(default_factory=list)
    energy_removed: list[float] = field(default_factory=list)
    stop: Stop = NOT_STOPPED
    interrupted: bool = False
    grown: tuple[FloatArray, FloatArray] | None = None
    shift: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    baseline: Mapping[str, FloatArray] = field(default_factory=dict)
    companions: Companions | None = None
    members: list[int] = field(default_factory=list)
    conformal: Conformal | None = None
    options: TreeOptions = field(default_factory=TreeOptions)
    without_scores: bool = False

    def record(self, done: Round) -> None:
        """Append the measurements of a round to the log."""
        self.loss.append(done.loss)
        n, (k, kept, removed) = len(done.projections) or 1, (0, 0.0, 0.0)
        for projection in done.projections:
            k += projection.k
            kept += projection.energy_kept
            removed += projection.share
        self.components.append(k / n)
        self.energy_kept.append(kept / n)
        self.energy_removed.append(removed / n)

    def interrupt(self) -> None:
        """Record an interrupt after the last round."""
        self.interrupted, self.stop = True, Stop(StopReason.INTERRUPTED)

    def forget_last(self) -> None:
        """Remove the measurements of the last round from the log."""
        self.last_loss = self.loss[-1]
        for column in (self.loss, self.validation_loss, self.components, self.energy_kept, self.energy_removed):
            del column[-1:]

    def log(self) -> dict[str, FloatArray]:
        """Return the log as columns of equal length, one entry per round; losses are measured after the round."""
        columns = {
            "round": np.arange(1, len(self.loss) + 1),
            "loss": np.array([*self.loss[1:], self.last_loss][: len(self.loss)]),
            "components": np.array(self.components),
            "energy_kept": np.array(self.energy_kept),
            "energy_removed": np.array(self.energy_removed),
        }
        if self.validation_loss:
            columns |= validation_column(self.validation_loss, self.metric)
        return columns


def validation_column(losses: Sequence[float], metric: str) -> dict[str, FloatArray]:
    """Return validation losses as a column of a log, under the name and with the sign of the metric if there is one."""
    values = np.array(losses, dtype=np.float64)
    return {f"validation_{metric}": -values} if metric else {"validation_loss": values}
