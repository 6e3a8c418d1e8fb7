"""Read the results of the study of the default: means, ranks and comparisons over common folds."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from scboost_lab.comparisons import Comparison, Means, Standing, average, compare, elo, mean_ranks, means
from scboost_lab.default_methods import (
    ALL,
    CONFIRMATION,
    DEFAULT,
    DEVELOPMENT,
    FULL_SIZE,
    LONG,
    LOSSES,
    MULTICLASS,
    OUTSIDE,
    QUANTILES,
    REGRESSION,
    WITH_QUANTILES,
)
from scboost_lab.default_study import PARTS
from scboost_lab.page import table
from scboost_lab.results import Results, Row
from scboost_lab.scoring import HIGHER_IS_BETTER

MEASURES = {"log_loss": "log-loss", "AUC": "AUC", "ACC": "accuracy", "F1": "F1"}
GROUPS = {"all": ALL, "development": DEVELOPMENT, "confirmation": CONFIRMATION}


def common_folds(rows: Sequence[Row], methods: Sequence[str], sets: Sequence[str]) -> list[Row]:
    """Return the rows of the folds that all of the methods have on all of the sets.

    Examples
    --------
    >>> rows = [{"method": "a", "dataset": "d", "fold": "0"}, {"method": "a", "dataset": "d", "fold": "1"}]
    >>> rows += [{"method": "b", "dataset": "d", "fold": "1"}]
    >>> [row["fold"] for row in common_folds(rows, ["a", "b"], ["d"])]
    ['1', '1']
    """
    chosen = [row for row in rows if row["method"] in methods and row["dataset"] in sets]
    have: dict[str, set[tuple[str, str]]] = {}
    for row in chosen:
        have.setdefault(row["fold"], set()).add((row["method"], row["dataset"]))
    complete = {fold for fold, cells in have.items() if len(cells) == len(set(methods)) * len(set(sets))}
    return [row for row in chosen if row["fold"] in complete]


def sets_of(group: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the data sets of a group, and those that must all have a fold for it to be compared.

    Examples
    --------
    >>> sets_of("development") == (DEVELOPMENT, ALL)
    True
    """
    return (OUTSIDE, OUTSIDE) if group == "outside" else (GROUPS[group], ALL)


class StudyResults:
    """Results of the study of the default.

    Parameters
    ----------
    directory : Path
        Directory of the result files.
    """

    def __init__(self, directory: Path) -> None:
        self.results = {part: Results(directory / f"{part}.csv") for part in PARTS}
        self.compared = [row for part in ("ours", "peers", "outside") for row in self.results[part].rows]
        self.means = cache(self._means)
        self.measured = cache(self._measured)

    def _means(self, measure: str, methods: tuple[str, ...], sets: tuple[str, ...]) -> Means:
        """Mean of a measure by method and set, over common folds."""
        return means(common_folds(self.compared, methods, sets), measure)

    def folds(self, methods: tuple[str, ...], sets: tuple[str, ...]) -> int:
        """Return the number of common folds of the methods on the sets."""
        return len({row["fold"] for row in common_folds(self.compared, methods, sets)})

    def standing(self, ours: str, peers: Sequence[str], measure: str, group: str) -> Standing:
        """Rank a method among others over a group of sets."""
        methods = (ours, *peers)
        by_set = self.means(measure, methods, ALL)
        return Standing(ours, mean_ranks(by_set, methods, GROUPS[group], HIGHER_IS_BETTER[measure]))

    def against(self, ours: str, theirs: str, measure: str = "log_loss", group: str = "all") -> Comparison:
        """Compare two methods over a group of sets."""
        sets, every = sets_of(group)
        by_set = self.means(measure, (ours, theirs), every)
        return compare(by_set, ours, theirs, sets, HIGHER_IS_BETTER[measure])

    def cpu_ratio(self, ours: str, theirs: str, sets: tuple[str, ...] = ALL, part: str = "cost") -> float:
        """Return the CPU time of one method divided by that of another."""
        seconds = means(common_folds(self.results[part].rows, (ours, theirs), sets), "cpu_seconds")
        return average(seconds, ours, sets) / average(seconds, theirs, sets)

    def leaders(self, ours: Sequence[str], peers: Sequence[str], group: str = "all") -> str:
        """Make the table of means with mean ranks in brackets, sorted by log-loss."""
        methods = (*ours, *peers)
        sets, every = sets_of(group)
        columns: dict[str, dict[str, str]] = {m: {} for m in methods}
        for measure in MEASURES:
            by_set = self.means(measure, methods, every)
            ranks = mean_ranks(by_set, methods, sets, HIGHER_IS_BETTER[measure])
            for m in methods:
                columns[m][measure] = f"{average(by_set, m, sets):.4f} ({ranks[m]:.2f})"
        cost = {name: self.means(name, methods, every) for name in ("cpu_seconds", "n_trees")}
        rows = [
            [
                f"**{m}**" if m in ours else m,
                *(columns[m][measure] for measure in MEASURES),
                f"{average(cost['cpu_seconds'], m, sets):.2f}",
                f"{average(cost['n_trees'], m, sets):.0f}",
            ]
            for m in sorted(methods, key=lambda m: columns[m]["log_loss"])
        ]
        return table(["", *MEASURES.values(), "CPU seconds", "rounds"], rows)

    def by_set(self, measure: str, methods: Sequence[str], sets: tuple[str, ...], digits: int = 4) -> str:
        """Make the table of a measure by data set, with the best value in bold."""
        found = self.means(measure, tuple(methods), sets)
        sign = HIGHER_IS_BETTER[measure]
        rows = []
        for name in sets:
            best = max(sign * found[m][name] for m in methods)
            cells = [f"{found[m][name]:.{digits}g}" for m in methods]
            rows.append(
                [
                    name,
                    *(f"**{c}**" if sign * found[m][name] == best else c for m, c in zip(methods, cells, strict=True)),
                ]
            )
        return table(["", *methods], rows)

    def rated(self, ours: str, peers: Sequence[str], *groups: tuple[str, ...]) -> dict[str, tuple[float, float, float]]:
        """Rate methods by their log-losses on groups of sets: Elo and its interval, random forest = 1000."""
        methods = (ours, *peers)
        found = [self.means("log_loss", methods, sets) for sets in groups]
        merged = {m: {name: value for means_ in found for name, value in means_[m].items()} for m in methods}
        return elo(merged, methods, [name for sets in groups for name in sets], -1, "random forest")

    def full_size(self) -> str:
        """Make the table of the sets at full size: log-loss or RMSE, and CPU seconds in brackets."""
        rows = self.results["full_size"].rows
        loss, rmse, seconds = (means(rows, name) for name in ("log_loss", "RMSE", "cpu_seconds"))
        methods = PARTS["full_size"].methods
        lines = []
        for name in FULL_SIZE:
            found = {m: {**loss.get(m, {}), **rmse.get(m, {})}.get(name) for m in methods}
            if any(value is None for value in found.values()):  # not all methods were run
                continue
            best = min(value for value in found.values() if value is not None)
            cells = []
            for m, value in found.items():
                text = f"{value:.4g} ({seconds[m][name]:.0f})"
                cells.append(f"**{text}**" if value == best else text)
            lines.append([name, *cells])
        return table(["", *methods], lines)

    def behind(self, ours: str, theirs: str) -> str:
        """List the sets on which the log-loss is higher than that of another method, with both values."""
        found = [
            (name, mean[ours][name], mean[theirs][name])
            for sets in (ALL, MULTICLASS)
            for mean in [self.means("log_loss", (ours, theirs), sets)]
            for name in sets
        ]
        higher = sorted((one for one in found if one[1] > one[2]), key=lambda one: one[2] - one[1])
        return ", ".join(f"{name} ({own:.4f} against {other:.4f})" for name, own, other in higher)

    def longer(self) -> dict[str, float]:
        """Return, by set, the log-loss of 1,000 rounds minus that of the selected number of rounds."""
        rows = [*self.results["rounds"].rows, *self.results["ours"].rows]
        found = means(common_folds(rows, (LONG, DEFAULT), ALL), "log_loss")
        return {name: found[LONG][name] - found[DEFAULT][name] for name in ALL}

    def label_noise(self, fraction: float) -> Means:
        """Return the AUC with a fraction of the training labels flipped."""
        return means(self.results["noise"].select(setting=f"noise={fraction}"), "AUC")

    def short(self, measure: str) -> Means:
        """Return a measure of the fits of 20 rounds."""
        return means(self.results["short"].rows, measure)

    def _measured(self, measure: str) -> Means:
        """Return a measure of the models whose redundancy was measured."""
        rows = [*self.compared, *self.results["redundancy"].rows]
        return means([row for row in rows if row["effective_rank"]], measure)

    def less_redundant(self, measure: str, theirs: str, ours: str = DEFAULT) -> tuple[int, int]:
        """Count the binary sets on which the trees of one method are less redundant than those of another."""
        found = self.measured(measure)
        sets = [name for name in ALL if name in found[ours] and name in found[theirs]]
        sign = 1 if measure == "effective_rank" else -1
        return sum(sign * found[ours][name] > sign * found[theirs][name] for name in sets), len(sets)

    def quantile_ranks(self) -> dict[str, float]:
        """Mean rank of the pinball loss over sets and quantiles."""
        cells = {
            (name, q): means(self.results["quantiles"].select(setting=f"quantile={q}", dataset=name), "pinball")
            for name in REGRESSION
            for q in QUANTILES
        }
        ranked: Means = {m: {f"{name} {q}": cell[m][name] for (name, q), cell in cells.items()} for m in WITH_QUANTILES}
        return mean_ranks(ranked, WITH_QUANTILES, [f"{name} {q}" for name, q in cells], -1)

    def loss_ranks(self, loss: str) -> dict[str, float]:
        """Mean rank of a loss over the regression sets."""
        found = means(self.results["losses"].select(setting=f"loss={loss}"), "test_loss")
        return mean_ranks(found, LOSSES[loss], REGRESSION, -1)

    def coverage(self, method: str) -> dict[str, float]:
        """Return, by set, the fraction of test targets between the predicted quantiles 0.05 and 0.95."""
        below = {
            q: means(self.results["quantiles"].select(setting=f"quantile={q}", method=method), "below")[method]
            for q in (QUANTILES[0], QUANTILES[-1])
        }
        return {name: below[QUANTILES[-1]][name] - below[QUANTILES[0]][name] for name in REGRESSION}
