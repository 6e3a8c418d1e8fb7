"""The page ``docs/default.md`` and the README's table: what the templates ask for, from the study's result files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from scboost_lab.comparisons import Comparison, Means, average, compare, mean_ranks, means
from scboost_lab.default_study import (
    ALL,
    ALL_COLUMNS,
    AT_100,
    AT_OWN,
    BEST,
    CHOOSE,
    COLUMN_CAP,
    CONFIRM,
    DEEP,
    DEEP_GROUPS,
    DEFAULT,
    FAST,
    FIRST,
    FLIPPED,
    LARGE_STEPS,
    LINEAR_FROM,
    LONG,
    LOSSES,
    MANY_CLASSES,
    NO_EXPLORATION,
    NO_PROJECTION,
    NOISY_SETS,
    OUTSIDE,
    PARTS,
    PLAIN,
    QUANTILES,
    REGRESSION,
    ROW_CAP,
    SHORT,
    SHORT_XGB,
    TUNED,
    WITH_QUANTILES,
)
from scboost_lab.page import fill, made_with, table, template
from scboost_lab.results import Results, Row
from scboost_lab.scoring import HIGHER_IS_BETTER

MEASURES = {"log_loss": "log-loss", "AUC": "AUC", "ACC": "accuracy", "F1": "F1"}
HALVES = {"all": ALL, "choose": CHOOSE, "confirm": CONFIRM}
REDUNDANCY_PEERS = ("XGBoost", "LightGBM", "CatBoost")
COVERAGE = (0.85, 0.95)
"""What intervals between the quantiles .05 and .95 should cover."""
CONSTANT, CHOSEN_SLOWLY = "0.5, constant", "chosen at rate 0.05 on 5 of five folds"
"""What the other prototypes are compared with."""
SHORT_REFERENCE = "XGBoost, rate 0.3"
"""What ensembles of 20 rounds are compared with."""
UNCHANGED = "unchanged"
"""What the changes of the finished estimator are compared with."""
MOST = 0.8
"""Share of the sets that counts as most of them."""
LONGER, SHORTER = 0.005, 0.01
"""Largest rises of the log-loss, by too many and by too few rounds."""


class Standing:
    """The place of one method among others.

    Parameters
    ----------
    ours : str
        The method.
    ranks : dict
        Mean rank of each.
    """

    def __init__(self, ours: str, ranks: dict[str, float]) -> None:
        self.place = 1 + sum(rank < ranks[ours] for rank in ranks.values())
        self.rank = ranks[ours]
        self.rival, self.rival_rank = min(
            ((m, r) for m, r in ranks.items() if m != ours), key=lambda pair: pair[1], default=("", np.nan)
        )

    def __str__(self) -> str:
        return f"place {self.place} ({self.rank:.2f}; {self.rival} {self.rival_rank:.2f})"


def common_folds(rows: Sequence[Row], methods: Sequence[str], sets: Sequence[str]) -> list[Row]:
    """Rows of the methods and sets, of the folds that all of them have.

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


def sets_of(half: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the sets of a half, or those from "outside"; and all sets that must have a fold for it to be compared.

    Examples
    --------
    >>> sets_of("choose") == (CHOOSE, ALL)
    True
    """
    return (OUTSIDE, OUTSIDE) if half == "outside" else (HALVES[half], ALL)


class Page:
    """Tables and figures of the page.

    Parameters
    ----------
    directory : Path
        Of the result files.
    """

    def __init__(self, directory: Path) -> None:
        self.results = {part: Results(directory / f"{part}.csv") for part in PARTS}
        self.prototypes = Results(directory / "prototypes.csv")
        self.compared = [row for part in ("ours", "peers", "outside") for row in self.results[part].rows]
        self.means = cache(self._means)
        self.measured = cache(self._measured)

    def _means(self, measure: str, methods: tuple[str, ...], sets: tuple[str, ...]) -> Means:
        """Mean of a measure over the folds that all of the methods have on all of the sets."""
        return means(common_folds(self.compared, methods, sets), measure)

    def folds(self, methods: tuple[str, ...], sets: tuple[str, ...]) -> int:
        """Count the folds that all of the methods have on all of the sets."""
        return len({row["fold"] for row in common_folds(self.compared, methods, sets)})

    # --- two classes -----------------------------------------------------------------------------------------------

    def standing(self, ours: str, peers: Sequence[str], measure: str, half: str) -> Standing:
        """Rank a method of ours among peers."""
        methods = (ours, *peers)
        by_set = self.means(measure, methods, ALL)
        return Standing(ours, mean_ranks(by_set, methods, HALVES[half], HIGHER_IS_BETTER[measure]))

    def against(self, ours: str, theirs: str, measure: str = "log_loss", half: str = "all") -> Comparison:
        """Compare two methods over the sets of a half, or over those from outside."""
        sets, every = sets_of(half)
        by_set = self.means(measure, (ours, theirs), every)
        return compare(by_set, ours, theirs, sets, HIGHER_IS_BETTER[measure])

    def cpu_ratio(self, ours: str, theirs: str, sets: tuple[str, ...] = ALL, part: str = "cost") -> float:
        """CPU seconds of all fits of one method, over those of another."""
        seconds = means(common_folds(self.results[part].rows, (ours, theirs), sets), "cpu_seconds")
        return average(seconds, ours, sets) / average(seconds, theirs, sets)

    def leaders(self, ours: Sequence[str], peers: Sequence[str], half: str = "all") -> str:
        """Make the table of means and, in brackets, mean ranks; by log-loss."""
        methods = (*ours, *peers)
        sets, every = sets_of(half)
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
        """Make the table of a measure set by set; the best one is bold."""
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

    def worst(self, ours: str, theirs: str) -> str:
        """Name the sets on which the log-loss is higher than a peer's, with both values."""
        found = self.means("log_loss", (ours, theirs), ALL)
        behind = sorted(
            (name for name in ALL if found[ours][name] > found[theirs][name]),
            key=lambda name: found[theirs][name] - found[ours][name],
        )
        return ", ".join(f"{name} ({found[ours][name]:.4f} against {found[theirs][name]:.4f})" for name in behind)

    # --- other questions ---------------------------------------------------------------------------------------------

    def longer(self) -> dict[str, float]:
        """By set, the log-loss of 1,000 rounds minus that of the rounds chosen, on common folds."""
        rows = [*self.results["rounds"].rows, *self.results["ours"].rows]
        found = means(common_folds(rows, (LONG, DEFAULT), ALL), "log_loss")
        return {name: found[LONG][name] - found[DEFAULT][name] for name in ALL}

    def noisy(self, share: float) -> Means:
        """AUC with a share of the training labels flipped."""
        return means(self.results["noise"].select(setting=f"noise={share}"), "AUC")

    def short(self, measure: str) -> Means:
        """Return a measure of the short ensembles by method and set."""
        return means(self.results["short"].rows, measure)

    def _measured(self, measure: str) -> Means:
        """Return a measure of the models whose redundancy is known."""
        rows = [*self.compared, *self.results["redundancy"].rows]
        return means([row for row in rows if row["effective_rank"]], measure)

    def less_redundant(self, measure: str, theirs: str, ours: str = DEFAULT) -> tuple[int, int]:
        """Count the sets with two classes on which the trees of ours repeat each other less than a peer's."""
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
        """Mean rank of a loss over the sets with a real target."""
        found = means(self.results["losses"].select(setting=f"loss={loss}"), "test_loss")
        return mean_ranks(found, LOSSES[loss], REGRESSION, -1)

    def coverage(self, method: str) -> dict[str, float]:
        """By set, the share of the rows between the predicted quantiles .05 and .95."""
        below = {
            q: means(self.results["quantiles"].select(setting=f"quantile={q}", method=method), "below")[method]
            for q in (QUANTILES[0], QUANTILES[-1])
        }
        return {name: below[QUANTILES[-1]][name] - below[QUANTILES[0]][name] for name in REGRESSION}


def page_text(directory: Path) -> str:
    """Write the page from the result files of a directory."""
    page = Page(directory)
    own = (DEFAULT, *AT_OWN)
    return fill(
        template("default"),
        versions=made_with(*page.results.values(), page.prototypes),
        n_binary=len(ALL),
        n_many=len(MANY_CLASSES),
        n_regression=len(REGRESSION),
        row_cap=ROW_CAP,
        column_cap=COLUMN_CAP,
        n_folds=page.folds(own, ALL),
        n_folds_many=page.folds(own, MANY_CLASSES),
        n_folds_numbers=page.folds((*own, *TUNED), REGRESSION),
        n_folds_tuned=page.folds((BEST, *TUNED), ALL),
        choose=", ".join(CHOOSE),
        confirm=", ".join(CONFIRM),
        aims=aims(page),
        own=page.leaders((DEFAULT,), AT_OWN),
        own_choose=page.leaders((DEFAULT,), AT_OWN, "choose"),
        own_confirm=page.leaders((DEFAULT,), AT_OWN, "confirm"),
        default_catboost=page.against(DEFAULT, "CatBoost"),
        default_catboost_auc=page.against(DEFAULT, "CatBoost", "AUC"),
        behind=page.worst(DEFAULT, "CatBoost"),
        fast=page.leaders((FAST,), AT_100),
        fast_confirm=page.leaders((FAST,), AT_100, "confirm"),
        tuned=page.leaders((BEST, DEFAULT), (*TUNED, "CatBoost")),
        best_catboost=page.against(BEST, "CatBoost"),
        parts=parts_table(page),
        n_outside=len(OUTSIDE),
        n_folds_outside=page.folds((DEFAULT, DEEP, DEEP_GROUPS, FAST, BEST, *AT_OWN), OUTSIDE),
        outside=page.leaders((DEFAULT, DEEP, DEEP_GROUPS, FAST, BEST), AT_OWN, "outside"),
        outside_deep=page.against(DEFAULT, DEEP, half="outside"),
        outside_best=page.against(BEST, "CatBoost", half="outside"),
        outside_catboost=page.against(DEFAULT, "CatBoost", half="outside"),
        outside_catboost_auc=page.against(DEFAULT, "CatBoost", "AUC", half="outside"),
        outside_cpu=page.cpu_ratio(DEFAULT, "CatBoost", OUTSIDE, "outside"),
        outside_groups=page.against(DEEP, DEEP_GROUPS, half="outside"),
        sets=page.by_set("log_loss", (DEFAULT, BEST, FAST, "CatBoost", "LightGBM", "XGBoost", *TUNED), ALL),
        longer=longer_text(page),
        noisy_sets=", ".join(NOISY_SETS),
        noise=noise_table(page),
        short=short_table(page),
        redundancy=redundancy_table(page),
        regression=page.by_set("RMSE", (DEFAULT, *AT_OWN, *TUNED), REGRESSION),
        many=page.by_set("log_loss", (*own, *TUNED), MANY_CLASSES),
        quantiles=", ".join(map(str, QUANTILES)),
        quantile_table=quantile_table(page),
        loss_table=loss_table(page),
        linear_from=LINEAR_FROM,
        exploration=prototype_table(page, "exploration", CONSTANT),
        choosing=prototype_table(page, "choosing", CHOSEN_SLOWLY),
        tried=tried_table(page, "default", "log_loss"),
        tried_all=tried_table(page, "default, all sets", "log_loss"),
        tried_factor=tried_table(page, "with the factor", "log_loss"),
        tried_columns=tried_table(page, "columns", "log_loss"),
        tried_depth=tried_table(page, "depth, tables from outside", "log_loss"),
        tried_depth_again=tried_table(page, "depth, confirmed", "log_loss"),
        tried_depth_sets=tried_table(page, "depth", "log_loss"),
        tried_depth_numbers=tried_table(page, "depth, numbers", "RMSE"),
        tried_seeds=tried_table(page, "1,000 rounds, five seeds", "log_loss"),
        tried_hedge=tried_table(page, "depth, hedged", "log_loss"),
        tried_numbers_later=tried_table(page, "default, numbers, later", "RMSE"),
        tried_numbers_outside=tried_table(page, "default, numbers from outside", "RMSE"),
        tried_many=tried_table(page, "default, many classes", "log_loss"),
        tried_many_outside=tried_table(page, "default, many classes from outside", "log_loss"),
        tried_short=prototype_table(page, "20 rounds", SHORT_REFERENCE),
        tried_numbers=tried_table(page, "default, numbers", "RMSE"),
        tried_fast=tried_table(page, "fast", "log_loss"),
        tried_fast_many=tried_table(page, "fast, many classes", "log_loss"),
        tried_fast_numbers=tried_table(page, "fast, numbers", "RMSE"),
        tried_best=tried_table(page, "best", "log_loss"),
        tried_mean=tried_table(page, "best, mean with the default", "log_loss"),
        made="\n".join(results.made_by() for results in (*page.results.values(), page.prototypes)),
    )


# --- aims ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aim:
    """A figure that was to be reached.

    Attributes
    ----------
    figure, aim : str
        What was measured, and what was asked.
    reached : bool
    found : str
        What was found over all sets.
    halves : tuple of str
        The same for the choosing and the confirming half; empty where the sets are not halved.
    """

    figure: str
    aim: str
    reached: bool
    found: str
    halves: tuple[str, ...] = ("", "")


def aims(page: Page) -> str:
    """Make the table of what was asked, what was found on both halves, and whether it is reached."""
    found = [*_aims_at_own(page), *_aims_fast(page), *_aims_best(page), *_aims_robust(page), *_aims_beyond(page)]
    rows = [[a.figure, a.aim, a.found, *a.halves, "reached" if a.reached else "**not reached**"] for a in found]
    return table(["figure", "aim", *HALVES, ""], rows)


def _place(page: Page, figure: str, ours: str, peers: Sequence[str], measure: str, least: int = 1) -> Aim:
    standings = [page.standing(ours, peers, measure, half) for half in HALVES]
    aim = "first" if least == 1 else "first or second"
    texts = [str(standing) for standing in standings]
    name = f"{figure}: mean rank on {MEASURES[measure]}"
    return Aim(name, aim, standings[0].place <= least, texts[0], tuple(texts[1:]))


def _lower(page: Page, figure: str, ours: str, share: float, p: float = 1.0) -> Aim:
    cells = [page.against(ours, "CatBoost", half=half) for half in HALVES]
    tested = p < 1
    texts = [f"{c.won}, {1e4 * c.difference:+.0f}" + (f", p {c.p:.3f}" if tested else "") for c in cells]
    c = cells[0]
    reached = c.wins >= share * c.n and c.difference < 0 and (c.p < p or not tested)
    aim = f"{share:.0%} of the sets, " + (f"p < {p}" if tested else "and on average")
    return Aim(f"{figure}: log-loss lower", aim, reached, texts[0], tuple(texts[1:]))


def _aims_at_own(page: Page) -> list[Aim]:
    figure, against = "default among all peers at their own defaults", "default against CatBoost's 1,000 rounds"
    ratio = page.cpu_ratio(DEFAULT, "CatBoost")
    most = max(page.results["ours"].values("n_trees", method=DEFAULT))
    theirs = max(page.results["peers"].values("n_trees", method="CatBoost"))
    return [
        _place(page, figure, DEFAULT, AT_OWN, "log_loss"),
        _place(page, figure, DEFAULT, AT_OWN, "AUC"),
        _place(page, figure, DEFAULT, AT_OWN, "ACC", least=2),
        _lower(page, against, DEFAULT, 0.6),
        Aim(f"{against}: CPU seconds, choosing included", "at most a half", ratio <= 1 / 2, f"{ratio:.2f} of theirs"),
        Aim(f"{against}: rounds", "at most as many", most <= theirs, f"at most {most:,.0f}"),
    ]


def _aims_fast(page: Page) -> list[Aim]:
    found = []
    for measure in MEASURES:
        aim = _place(page, '`preset="fast"` among all peers at 100 rounds', FAST, AT_100, measure)
        confirmed = page.standing(FAST, AT_100, measure, "confirm").place == 1
        found.append(replace(aim, aim="first, in the confirming half too", reached=aim.reached and confirmed))
    return found


def _aims_best(page: Page) -> list[Aim]:
    against = '`preset="best"` against CatBoost\'s 1,000 rounds'
    among = '`preset="best"` among the three tuned defaults'
    ratio = page.cpu_ratio(BEST, "CatBoost")
    return [
        _lower(page, against, BEST, 0.75, p=0.05),
        Aim(f"{against}: CPU seconds", "at most equal", ratio <= 1, f"{ratio:.2f} of theirs"),
        _place(page, among, BEST, TUNED, "log_loss"),
        _place(page, among, BEST, TUNED, "AUC"),
    ]


def _aims_robust(page: Page) -> list[Aim]:
    change = page.longer()
    worst = max(change, key=change.__getitem__)
    figure, aim = "1,000 rounds asked for, against the rounds chosen: log-loss", f"at most +{LONGER} on any set"
    found = [Aim(figure, aim, change[worst] <= LONGER, f"{change[worst]:+.4f} on {worst}")]
    for theirs in (PLAIN, "XGBoost"):
        levels = [page.noisy(share) for share in FLIPPED]
        better = sum(level[DEFAULT][name] > level[theirs][name] for level in levels for name in NOISY_SETS)
        n = len(levels) * len(NOISY_SETS)
        figure = f"wrong labels: AUC above that of {theirs}"
        found.append(Aim(figure, "every set and level", better == n, f"{better}/{n}"))
    auc, loss = page.short("AUC"), page.short("log_loss")
    c = compare(auc, SHORT, max(SHORT_XGB, key=lambda m: average(auc, m, ALL)), ALL, 1)
    gap = average(loss, SHORT, ALL) - average(loss, PLAIN, ALL)
    figure = "20 rounds: AUC above XGBoost's 20 at its best single rate"
    found.append(Aim(figure, f"{MOST:.0%} of the sets", c.wins >= MOST * c.n, c.won))
    figure = "20 rounds: mean log-loss against plain boosting's 100"
    return [*found, Aim(figure, f"at most +{SHORTER}", gap <= SHORTER, f"{gap:+.4f}")]


def _aims_beyond(page: Page) -> list[Aim]:
    found = []
    for measure, name in (("effective_rank", "effective rank higher"), ("redundancy", "mean redundancy lower")):
        counts = {m: page.less_redundant(measure, m) for m in REDUNDANCY_PEERS}
        text = ", ".join(f"{m} {k}/{n}" for m, (k, n) in counts.items())
        reached = all(k >= MOST * n for k, n in counts.values())
        found.append(Aim(f"redundancy: {name} than that of each peer", f"{MOST:.0%} of the sets", reached, text))
    for figure, measure, sets in (
        ("a real target: RMSE below the best peer's", "RMSE", REGRESSION),
        ("many classes: log-loss below the best peer's", "log_loss", MANY_CLASSES),
    ):
        by_set = page.means(measure, (DEFAULT, *AT_OWN), sets)
        k = sum(by_set[DEFAULT][name] < min(by_set[m][name] for m in AT_OWN) for name in sets)
        found.append(Aim(figure, "all sets", k == len(sets), f"{k}/{len(sets)}"))
    standing = Standing(DEFAULT, page.quantile_ranks())
    second = 2
    found.append(Aim("quantiles: mean rank on pinball loss", "second of five", standing.place <= second, str(standing)))
    cover = page.coverage(DEFAULT)
    inside = all(COVERAGE[0] <= value <= COVERAGE[1] for value in cover.values())
    text = f"{min(cover.values()):.2f} to {max(cover.values()):.2f}"
    found.append(Aim("quantiles: what intervals of 90 % cover", "85 to 95 %", inside, text))
    return found


# --- tables ----------------------------------------------------------------------------------------------------------


def prototype_table(page: Page, setting: str, reference: str) -> str:
    """Compare what was tried with a reference, on the sets and folds that both have."""
    rows = []
    found: dict[str, dict[tuple[str, str], Row]] = {}
    for row in page.prototypes.select(setting=setting):
        found.setdefault(row["method"], {})[row["dataset"], row["fold"]] = row
    for method, cells in found.items():
        common = [cell for cell in cells if cell in found[reference]]
        losses, theirs = ([float(found[m][cell]["log_loss"]) for cell in common] for m in (method, reference))
        better = sum(a < b for a, b in zip(losses, theirs, strict=True))
        loss, change = float(np.mean(losses)), float(np.mean(losses) - np.mean(theirs))
        auc = float(np.mean([float(cells[cell]["AUC"]) for cell in common]))
        against = ["", ""] if method == reference else [f"{1e4 * change:+.0f}", f"{better}/{len(common)}"]
        rows.append([method, str(len(common)), f"{loss:.4f}", f"{auc:.4f}", *against])
    return table(["", "sets and folds", "log-loss", "AUC", f"against *{reference}*", "better on"], rows)


def tried_table(page: Page, setting: str, measure: str) -> str:
    """Compare changes of the finished estimator with `UNCHANGED`: log-loss in 0.0001, RMSE in percent."""
    found: dict[str, dict[tuple[str, str], Row]] = {}
    for row in page.prototypes.select(setting=setting):
        found.setdefault(row["method"], {})[row["dataset"], row["fold"]] = row
    reference, rows = found.pop(UNCHANGED), []
    for method, cells in found.items():
        theirs = [reference[cell] for cell in cells]
        ours, base = (np.array([float(row[measure]) for row in some]) for some in (cells.values(), theirs))
        change = 100 * (ours / base - 1) if measure == "RMSE" else 1e4 * (ours - base)
        error = change.std(ddof=1) / np.sqrt(len(change))
        cpu = sum(float(row["cpu_seconds"]) for row in cells.values()) / sum(float(r["cpu_seconds"]) for r in theirs)
        wins, losses = int((change < 0).sum()), int((change > 0).sum())
        better = f"{wins}/{len(change)}" + (f", worse on {losses}" if wins + losses < len(change) else "")
        rows.append([method, f"{change.mean():+.1f} ± {error:.1f}", better, f"{cpu:.2f}"])
    unit = "RMSE, %" if measure == "RMSE" else "log-loss, 0.0001"
    return table(["", unit, "better on", "CPU seconds, ratio"], rows)


def parts_table(page: Page) -> str:
    """Compare the default with one part left out with what it is a part of."""
    rows = []
    pairs = [
        (DEEP, DEFAULT),
        (ALL_COLUMNS, DEFAULT),
        *((less, ALL_COLUMNS) for less in (NO_PROJECTION, NO_EXPLORATION, FIRST, PLAIN)),
    ]
    for less, more in pairs:
        cells = []
        for half in HALVES:
            lost = page.against(more, less, half=half)
            cells.append(f"{page.against(less, more, half=half).interval}, worse on {lost.wins}/{lost.n}")
        rows.append([less, more, *cells, page.against(less, more, "AUC").interval])
    return table(["", "against", *(f"log-loss, {half}" for half in HALVES), "AUC, all"], rows)


def longer_text(page: Page) -> str:
    """Say what 1,000 rounds change against the rounds chosen, and how far models go: rate times rounds."""
    change = page.longer()
    rows = common_folds([*page.results["rounds"].rows, *page.results["ours"].rows], (LONG, DEFAULT), ALL)
    far = means([{**row, "far": str(float(row["learning_rate"]) * float(row["n_trees"]))} for row in rows], "far")
    worst = sorted(change, key=lambda name: -change[name])[:3]
    named = "; ".join(f"{name} {change[name]:+.4f}" for name in worst)
    chosen = [far[DEFAULT][name] for name in ALL]
    return (
        f"1,000 rounds asked for explicitly change the log-loss by {np.mean(list(change.values())):+.4f} on average\n"
        "against the rounds that the data choose. How far a model goes is its rate times its rounds: the data choose\n"
        f"{min(chosen):.0f} to {max(chosen):.0f}, and no rule by the number of rows alone can know it. So the folds "
        "choose the rate where 500 rounds\nor more are asked for, and these go as far, in other steps. "
        f"The largest rises: {named}."
    )


def noise_table(page: Page) -> str:
    """AUC by share of flipped labels."""
    rows = []
    for share in FLIPPED:
        found = page.noisy(share)
        cells = [f"{average(found, DEFAULT, NOISY_SETS):.4f}"]
        for theirs in (PLAIN, "XGBoost"):
            c = compare(found, DEFAULT, theirs, NOISY_SETS, 1)
            cells.append(f"{average(found, theirs, NOISY_SETS):.4f} ({c.won})")
        rows.append([f"{share:.0%}", *cells])
    return table(["flipped", DEFAULT, PLAIN, "XGBoost"], rows)


def short_table(page: Page) -> str:
    """AUC and log-loss of 20 rounds, and of plain boosting's 100."""
    auc, loss = page.short("AUC"), page.short("log_loss")
    rows = []
    for method in (SHORT, *SHORT_XGB, PLAIN):
        won = "" if method in {SHORT, PLAIN} else compare(auc, SHORT, method, ALL, 1).won
        name = f"{method}, 100 rounds" if method == PLAIN else method
        rows.append([name, f"{average(auc, method, ALL):.4f}", f"{average(loss, method, ALL):.4f}", won])
    return table(["", "AUC", "log-loss", "ours has the higher AUC"], rows)


def redundancy_table(page: Page) -> str:
    """Make the table of log-loss and redundancy on the first fold, and of the counts against each peer."""
    columns = {"log_loss": 4, "n_trees": 0, "effective_rank": 1, "redundancy": 3}
    ours = (DEFAULT, *LARGE_STEPS, FAST)
    rows = []
    for method in (*ours, *REDUNDANCY_PEERS, "CatBoost, 100 rounds", "HistGradientBoosting"):
        cells = [f"{average(page.measured(measure), method, ALL):.{digits}f}" for measure, digits in columns.items()]
        for measure in ("effective_rank", "redundancy"):
            counts = [page.less_redundant(measure, theirs, method)[0] for theirs in REDUNDANCY_PEERS]
            cells.append(", ".join(map(str, counts)) if method in ours else "")
        rows.append([method, *cells])
    header = ["", "log-loss", "trees", "effective rank", "redundancy", "rank is higher", "redundancy is lower"]
    return table(header, rows)


def loss_table(page: Page) -> str:
    """Mean ranks of each loss by library; empty where a library does not have it."""
    ranks = {loss: page.loss_ranks(loss) for loss in LOSSES}
    rows = [
        [m, *(f"{found[m]:.2f} of {len(found)}" if m in found else "" for found in ranks.values())]
        for m in WITH_QUANTILES
    ]
    return table(["", *LOSSES], rows)


def quantile_table(page: Page) -> str:
    """Mean ranks and coverage by library."""
    ranks = page.quantile_ranks()
    rows = [
        [m, f"{ranks[m]:.2f}", *(f"{value:.3f}" for value in page.coverage(m).values())]
        for m in sorted(WITH_QUANTILES, key=ranks.__getitem__)
    ]
    return table(["", "mean rank", *REGRESSION], rows)
