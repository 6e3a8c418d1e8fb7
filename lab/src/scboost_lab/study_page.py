"""Statistics of the study and the page ``docs/default.md``, written from its result files."""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from scboost_lab.study import (
    ALL,
    CHOOSE,
    CHOSEN,
    COLUMN_CAP,
    CONFIRM,
    DIAL_SWEEP,
    GAMMA_SWEEP,
    LARGE_SETS,
    MORE_DIALS,
    NOISY_SETS,
    OURS,
    PLAIN,
    RIVALS,
    ROW_CAP,
    SHORT_DIALS,
    SHORT_RATES,
    SIZE_CAP,
    SIZES,
    ours,
    read_dials,
)

Array = NDArray[np.float64]
Means = dict[str, dict[str, float]]
"""Mean over the folds by method and data set."""

# Sign with which a measure counts as better.
BETTER = {"log_loss": -1, "AUC": 1, "ACC": 1, "F1": 1}


def read(path: Path) -> list[dict[str, str]]:
    """Read the rows of a result file that are complete."""
    with path.open(newline="", encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row["status"] == "ok"]


def means(rows: Iterable[Mapping[str, str]], measure: str) -> Means:
    """Mean of a measure over the folds of each method on each set.

    Parameters
    ----------
    rows : iterable of mappings
        Rows with "method", "dataset" and the measure as text; rows without the measure do not count.
    measure : str
        A column.

    Returns
    -------
    dict of dict
        By method, then by data set.

    Examples
    --------
    >>> rows = [{"method": "a", "dataset": "d", "AUC": "0.5"}, {"method": "a", "dataset": "d", "AUC": "0.7"}]
    >>> round(means(rows, "AUC")["a"]["d"], 6)
    0.6
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[measure]:
            values[row["method"]][row["dataset"]].append(float(row[measure]))
    return {m: {d: float(np.mean(v)) for d, v in sets.items()} for m, sets in values.items()}


def mean_ranks(table: Means, methods: Sequence[str], sets: Sequence[str], sign: int) -> dict[str, float]:
    """Mean rank of each method over the sets; 1 is the best, equal values share their rank.

    Parameters
    ----------
    table : dict of dict
        See `means`.
    methods, sets : sequence of str
        What is compared.
    sign : {-1, 1}
        1 if larger values are better.

    Returns
    -------
    dict

    Examples
    --------
    >>> mean_ranks({"a": {"d": 0.9}, "b": {"d": 0.8}}, ["a", "b"], ["d"], 1)
    {'a': 1.0, 'b': 2.0}
    """
    values = np.array([[-sign * table[m][d] for m in methods] for d in sets])
    ranks = stats.rankdata(values, axis=1).mean(axis=0)
    return dict(zip(methods, map(float, ranks), strict=True))


@dataclass(frozen=True)
class Comparison:
    """One method against another over data sets.

    Attributes
    ----------
    difference : float
        Mean of ours minus theirs.
    low, high : float
        95 % percentile bootstrap interval of it; the sets are drawn anew.
    p : float
        Two-sided Wilcoxon signed-rank test over the sets; 1 if all differences are zero.
    wins : int
        Sets on which ours is better; a tie counts for neither.
    n : int
        Number of sets.
    """

    difference: float
    low: float
    high: float
    p: float
    wins: int
    n: int


def compare(table: Means, ours: str, theirs: str, sets: Sequence[str], sign: int) -> Comparison:
    """Compare two methods over the sets.

    Parameters
    ----------
    table : dict of dict
        See `means`.
    ours, theirs : str
        Methods.
    sets : sequence of str
        Data sets.
    sign : {-1, 1}
        1 if larger values are better.

    Returns
    -------
    Comparison
    """
    d = np.array([table[ours][s] - table[theirs][s] for s in sets])
    rng = np.random.default_rng(0)
    drawn = d[rng.integers(len(d), size=(10_000, len(d)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    p = float(stats.wilcoxon(d).pvalue) if d.any() else 1.0
    return Comparison(float(d.mean()), float(low), float(high), p, int(np.sum(sign * d > 0)), len(d))


# --- the page ------------------------------------------------------------------------------------------------------

DEFAULT, SAME_SHAPE = ours(CHOSEN, PLAIN)
NAMES = {
    DEFAULT: "**SCBoost**",
    SAME_SHAPE: "plain Newton boosting, same shape",
    "XGB": "XGBoost",
    "LGBM": "LightGBM",
    "CAT": "CatBoost",
    "HGB": "HistGradientBoosting",
    "RF": "random forest",
    "ADA": "AdaBoost",
    "GBDT": "GradientBoosting",
    "NGB": "NGBoost",
}
TWENTY = ours(f"{CHOSEN} trees=20")[0]
SHORT_RIVALS = tuple(f"XGB trees=20 eta={eta}" for eta in SHORT_RATES)
MEASURES = {"log_loss": "log-loss", "AUC": "AUC", "ACC": "accuracy", "F1": "F1"}
HALVES = {"all": ALL, "choose": CHOOSE, "confirm": CONFIRM}


def grid(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table.

    Examples
    --------
    >>> print(grid(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def signed(c: Comparison) -> str:
    """Write a difference in units of 0.0001 with its interval."""
    return f"{1e4 * c.difference:+.0f} [{1e4 * c.low:+.0f}, {1e4 * c.high:+.0f}]"


def won(c: Comparison) -> str:
    """Write the number of sets won."""
    return f"{c.wins}/{c.n}"


def said(c: Comparison) -> str:
    """Write a difference with the number of sets won."""
    return f"{signed(c)}, better on {won(c)}"


def average(table: Means, method: str, sets: Sequence[str]) -> float:
    """Mean of a method over the sets."""
    return float(np.mean([table[method][d] for d in sets]))


HEAD = """# Why the default is what it is

<!-- Written by `python -m scboost_lab.study_page` from results/study; do not edit. -->

The default is {dials}.

Everything below comes from `results/study/*.csv`; `scboost-lab study all --data-dir DIR` makes those files again.

Data: {n} binary sets, at most {cap:,} rows of each (stratified, drawn once) and at most {columns} columns (Madelon,
Scene and Bioresponse have more), or 50 where dials are swept. Five stratified folds. Every method gets the same matrix:
categories as numbers in the order of their names, missing values as they are, except that AdaBoost, GradientBoosting
and NGBoost get medians of the training rows, and HistGradientBoosting no column without any value. Peers are at their
defaults with 100 trees and one thread; times were taken on a busy machine and only compare methods roughly. The sets
were split into halves before any result was seen: dials were chosen on *choose* ({choose}), and *confirm* ({confirm})
was only looked at afterwards. The point from which the dials were swept came from earlier trials on some sets of both
halves, so what is confirmed is the choice among the settings listed here.

Differences are ours minus theirs in units of 0.0001, with a 95 % bootstrap interval over the sets; p is a two-sided
Wilcoxon signed-rank test over the sets. Log-loss should fall; AUC, accuracy and F1 should rise."""

WHY = """## Why these values

Projection and column sampling both make successive trees differ. Together they gained no more than projection alone,
and projection alone draws no random number, so the default offers every column to every tree. Between gamma 0.5 and 0.7
the choosing half does not decide ({strong}); 0.5 was taken because it does less harm where projection does not help:
its worst set loses {worst_mild:+.0f} against plain boosting, that of 0.7 {worst_strong:+.0f}. Trees of depth 6 grown
level by level did at least as well as leaf-wise ones ({leaves}). The rest of the shape was not tuned: it is the round
value of the earlier trials, and the table of dials shows how little depends on it."""

DIALS = """Each line differs from the default in what it names, and is compared with the default on the
choosing half, on the folds that both have (three, five or twice five).
`gamma=0` is plain boosting; `rate` multiplies the automatic learning rate; `depth` grows level by level; `metric=equal`
projects with equal weights of the rows instead of their curvature; `rule` lets gamma depend on the share of the
residual that history spans (`share`: gamma is that share) or on the round (`falling` from 0.8 to 0.2, `rising` back);
`step=orthogonal` divides each step by the share of the tree's norm that is orthogonal to the history (at most doubling
it), and `pick=orthogonal` keeps, of three trees, the one that is best by the objective of Orthogonal Gradient Boosting,
where `pick=correlation` does not divide by the orthogonal part."""

WEIGHTS = """`nonnegative`, `simplex`: weights from 20 % held out; `stop`: these rows only choose the number of trees;
`out_of_fold`: weights by round from five folds, then one model on all rows; `fold_average`: the five fold models kept,
weighted and averaged (with a pull of a million: averaged without weights). The last two cost six and five fits."""

SHORT = """Differences and sets won, on all sets. The best rate on each set is picked by the test score itself, which
favours XGBoost."""

NOISE = """Training labels of {n} sets ({sets}) flipped at random, three folds (five without noise); test labels are
clean, so log-loss also measures how far probabilities are drawn to one half."""

REDUNDANCY = """Spearman's correlation over the {n} settings of the dials, within each set, then averaged; positive
where the better settings have the larger value. Effective rank: exp of the entropy of the normalised eigenvalues of the
trees' correlation matrix on test rows; redundancy: mean absolute correlation of two trees."""

OVER_SETS = """Over the sets, the fall of redundancy from plain boosting to the default and the gain in log-loss
correlate with {rho:+.2f} (p {p:.2f}); redundancy falls on {falls} of {n} sets, from {before:.3f} to {after:.3f} on
average."""


class Page:
    """The page, section by section.

    Parameters
    ----------
    directory : Path
        Of the result files.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def tables(self, part: str, setting: str | None = None) -> dict[str, Means]:
        """Means of every measure, of one setting or of all rows."""
        rows = [r for r in read(self.directory / f"{part}.csv") if setting is None or r["setting"] == setting]
        return {m: means(rows, m) for m in (*MEASURES, "fit_seconds", "effective_rank", "redundancy")}

    def text(self) -> str:
        """Write the whole page."""
        sections = (
            self.head,
            self.figures,
            self.why,
            self.answers,
            self.peers,
            self.plain,
            self.dials,
            self.weighting,
            self.short,
            self.noise,
            self.sizes,
            self.redundancy,
        )
        return "\n\n".join(section() for section in sections) + "\n"

    def head(self) -> str:
        """Say what was measured, and how."""
        spec = read_dials(CHOSEN).params
        dials = ", ".join(f"`{k}={v!r}`" for k, v in spec.items() if v is not None)
        choose, confirm = ", ".join(CHOOSE), ", ".join(CONFIRM)
        return HEAD.format(dials=dials, n=len(ALL), cap=ROW_CAP, columns=COLUMN_CAP, choose=choose, confirm=confirm)

    def figures(self) -> str:
        """Compare what was to be reached with what was found."""
        t = self.tables("peers")
        methods = [DEFAULT, *RIVALS]
        lines = []
        for measure, label in MEASURES.items():
            ranks = mean_ranks(t[measure], methods, ALL, BETTER[measure])
            place = 1 + sum(r < ranks[DEFAULT] for r in ranks.values())
            best = min((m for m in methods if m != DEFAULT), key=ranks.__getitem__)
            aim = 1 if measure in {"log_loss", "AUC"} else 2
            goal = "best" if aim == 1 else "best or second"
            found = f"place {place} ({ranks[DEFAULT]:.2f}; {NAMES[best]} {ranks[best]:.2f})"
            lines.append([f"mean rank on {label} among {len(methods)} methods", goal, found, _met(place <= aim)])
        for measure, least in (("log_loss", 0.8), ("AUC", 0.7)):
            c = compare(t[measure], DEFAULT, SAME_SHAPE, ALL, BETTER[measure])
            share = c.wins / c.n
            what = f"{MEASURES[measure]} better than plain boosting of the same shape"
            lines.append([what, f"{least:.0%} of the sets", f"{share:.0%} ({won(c)})", _met(share >= least)])
        for dials, theirs in product(SHORT_DIALS[:2], ("one", "best")):
            c = self._short_auc(theirs, dials=dials)
            factor = f", our rate {dials.partition('rate=')[2]} times the automatic one" if "rate" in dials else ""
            label = "its best rate on each set" if theirs == "best" else "its best one rate"
            what = f"20 trees: AUC above XGBoost's 20 at {label}{factor}"
            lines.append([what, "80% of the sets", f"{c.wins / c.n:.0%} ({won(c)})", _met(c.wins / c.n >= 0.8)])
        return "## What was to be reached\n\n" + grid(["figure", "aim", "found", ""], lines)

    def peers(self) -> str:
        """Compare the default with the peers."""
        t = self.tables("peers")
        methods = [DEFAULT, *RIVALS]
        blocks = ["## Against the peers", "Mean rank over the sets (1 is best), and means:"]
        for half, sets in HALVES.items():
            ranks = {m: mean_ranks(t[m], methods, sets, BETTER[m]) for m in MEASURES}
            body = [
                [
                    NAMES[m],
                    *(f"{ranks[k][m]:.2f} ({average(t[k], m, sets):.4f})" for k in MEASURES),
                    f"{average(t['fit_seconds'], m, sets):.2f}",
                ]
                for m in sorted(methods, key=ranks["log_loss"].__getitem__)
            ]
            blocks.append(f"{half}, {len(sets)} sets:")
            blocks.append(grid(["", *MEASURES.values(), "fit, seconds"], body))
        body = []
        for m in (*RIVALS, SAME_SHAPE):
            cells = [NAMES[m]]
            for k in ("log_loss", "AUC"):
                c = compare(t[k], DEFAULT, m, ALL, BETTER[k])
                halves = "/".join(str(compare(t[k], DEFAULT, m, s, BETTER[k]).wins) for s in (CHOOSE, CONFIRM))
                cells += [signed(c), f"{c.p:.3f}", f"{won(c)} ({halves})"]
            body.append(cells)
        blocks.append(
            "SCBoost against each, on all sets; in brackets the sets won in the choosing and the confirming half:"
        )
        blocks.append(grid(["against", "log-loss", "p", "won", "AUC", "p", "won"], body))
        return "\n\n".join(blocks)

    def plain(self) -> str:
        """Compare with plain boosting of the same shape, set by set."""
        t = self.tables("peers")
        body = []
        for half in ("choose", "confirm"):
            for d in HALVES[half]:
                gains = [1e4 * (t[k][DEFAULT][d] - t[k][SAME_SHAPE][d]) for k in MEASURES]
                body.append(
                    [
                        d,
                        half,
                        f"{t['log_loss'][SAME_SHAPE][d]:.4f}",
                        *(f"{g:+.0f}" for g in gains),
                        f"{t['effective_rank'][SAME_SHAPE][d]:.0f} -> {t['effective_rank'][DEFAULT][d]:.0f}",
                    ]
                )
        lost = [d for d in ALL if t["log_loss"][DEFAULT][d] > t["log_loss"][SAME_SHAPE][d]]
        rows = []
        for half, sets in HALVES.items():
            cs = [compare(t[k], DEFAULT, SAME_SHAPE, sets, BETTER[k]) for k in MEASURES]
            rows.append([half, *(f"{signed(c)}, p {c.p:.3f}, {won(c)}" for c in cs)])
        return "\n\n".join(
            [
                "## Does projection beat plain boosting of the same shape?",
                "The same trees, learning rate, columns and rounds, with and without projection (gamma 0):",
                grid(["", *MEASURES.values()], rows),
                f"Log-loss is worse on: {', '.join(lost) or 'no set'}. Set by set, in units of 0.0001:",
                grid(["set", "half", "plain log-loss", *(f"{v}" for v in MEASURES.values()), "effective rank"], body),
            ]
        )

    def _dial_rows(self) -> dict[str, list[dict[str, str]]]:
        """Rows of every swept method that has all of its sets."""
        found: dict[str, list[dict[str, str]]] = defaultdict(list)
        for part in ("gamma", "dials", "more"):
            for row in read(self.directory / f"{part}.csv"):
                found[row["method"]].append(row)
        return {m: rows for m, rows in found.items() if {r["dataset"] for r in rows} == set(CHOOSE)}

    def _against(self, dials: str, measure: str, reference: str = CHOSEN) -> Comparison:
        """Compare one setting with another on the choosing half, on the folds that both have."""
        swept = self._dial_rows()
        ours_, theirs = ours(dials, reference)
        common = {_cut(r) for r in swept[ours_]} & {_cut(r) for r in swept[theirs]}
        rows = [r for m in (ours_, theirs) for r in swept[m] if _cut(r) in common]
        return compare(means(rows, measure), ours_, theirs, CHOOSE, BETTER[measure])

    def _changes(self, *settings: str, measure: str = "log_loss") -> str:
        """Write what each setting changes against the default."""
        found = [(d, self._against(d, measure)) for d in settings]
        return "; ".join(f"`{d}` {said(c)}" for d, c in found) + "."

    def why(self) -> str:
        """Say why the values are what they are."""
        table = means(read(self.directory / "gamma.csv"), "log_loss")
        mild, strong, none = ours(CHOSEN, "gamma=0.7", "gamma=0")
        worst = [max(1e4 * (table[m][d] - table[none][d]) for d in CHOOSE) for m in (mild, strong)]
        return WHY.format(
            strong=self._changes("gamma=0.7").rstrip("."),
            leaves=self._changes("leaves=31").rstrip("."),
            worst_mild=worst[0],
            worst_strong=worst[1],
        )

    def answers(self) -> str:
        """Answer the questions of the study, one paragraph each."""
        t = self.tables("peers")
        loss, auc = (compare(t[k], DEFAULT, SAME_SHAPE, ALL, BETTER[k]) for k in ("log_loss", "AUC"))
        halves = [compare(t["log_loss"], DEFAULT, SAME_SHAPE, s, -1) for s in (CHOOSE, CONFIRM)]
        lost = [d for d in ALL if t["log_loss"][DEFAULT][d] > t["log_loss"][SAME_SHAPE][d]]
        one, best = self._short_auc("one"), self._short_auc("best")
        noisy = []
        for level in ("0.1", "0.2", "0.3"):
            c = compare(self.tables("noise", f"noise={level}")["log_loss"], DEFAULT, SAME_SHAPE, NOISY_SETS, -1)
            a = compare(self.tables("noise", f"noise={level}")["AUC"], DEFAULT, SAME_SHAPE, NOISY_SETS, 1)
            noisy.append(f"{float(level):.0%} flipped: {said(c)} (AUC {said(a)})")
        clean = compare(t["log_loss"], DEFAULT, SAME_SHAPE, NOISY_SETS, -1)
        sampled = self._against("cols=0.8", "log_loss", "gamma=0 cols=0.8")
        whole = self._against("", "log_loss", "gamma=0")
        divided = self._against(
            "candidates=3 pick=orthogonal cols=0.8", "log_loss", "candidates=3 pick=correlation cols=0.8"
        )
        paragraphs = {
            "Does projection beat plain boosting of the same shape?": f"Log-loss {said(loss)} sets, p {loss.p:.3f} "
            f"({won(halves[0])} where it was chosen, {won(halves[1])} where it was confirmed); AUC {said(auc)}, "
            f"p {auc.p:.3f}. Log-loss is worse on {', '.join(lost) or 'no set'}.",
            "Why no column sampling?": "Both make trees differ. The gain of projection over plain boosting is "
            f"{said(whole)} where every tree sees all columns, and {said(sampled)} where it sees 80 %; against the "
            f"default, sampling columns changes: {self._changes('cols=0.8')} Without it a fit draws no random number.",
            "Which gamma, alpha and memory, and how flat is the optimum?": self._changes(
                *("gamma=0", "gamma=0.7", "gamma=1", "alpha=0.5", "alpha=0.99"),
                *("memory=1", "memory=2", "memory=10", "memory=20"),
            ),
            "Does a cheap memory lose anything against all history?": self._changes("memory=all"),
            "Which metric?": "Projecting with equal row weights, as in the paper, instead of the loss's curvature: "
            + self._changes("metric=equal"),
            "Which trees and steps?": self._changes(
                *("leaves=31", "depth=5", "depth=7", "rate=0.7", "rate=1.3", "l2=1", "l2=10", "child=0.3", "child=3"),
                "rows=0.8",
            )
            + " Sampling rows is not part of the default because a row of weight two must equal two rows.",
            "Is there a form of CRW that pays?": self._changes(
                *("crw=nonnegative", "crw=simplex", "crw=stop trees=200", "crw=out_of_fold", "crw=fold_average"),
                "crw=fold_average pull=1000000",
            )
            + " None is part of the default: the forms that learn from all rows cost five or six fits.",
            "What do 20 trees reach?": f"AUC {said(one)} against XGBoost's 20 at the rate that suits it best over all "
            f"sets, {said(best)} at the rate that suits it best on each set. The table below also has other rates of "
            "ours, log-loss, and 100 trees of plain boosting.",
            "Does label noise favour projection?": "Log-loss against plain boosting, without noise "
            f"{said(clean)}; {'; '.join(noisy)}.",
            "Should gamma adapt?": self._changes("rule=share", "rule=falling", "rule=rising"),
            "Does the division of Orthogonal Gradient Boosting help?": "As a longer step: "
            + self._changes("step=orthogonal")
            + f" As the criterion that picks one of three trees, against the same choice without it: {said(divided)}.",
        }
        return "## Answers\n\n" + "\n\n".join(f"**{question}** {text}" for question, text in paragraphs.items())

    def _dial_lines(self, methods: Iterable[str], measures: Sequence[str]) -> Iterable[list[str]]:
        """Each method against the default on the folds that both have."""
        swept = self._dial_rows()
        for m in methods:
            if m not in swept:
                continue
            keys = {_cut(r) for r in swept[m]}
            rows = [*swept[m], *(r for r in swept[DEFAULT] if m != DEFAULT and _cut(r) in keys)]
            cells = [m.removeprefix(OURS).strip() or "(default)"]
            for k in measures:
                c = compare(means(rows, k), m, DEFAULT, CHOOSE, BETTER[k])
                cells += [signed(c), won(c)]
            rank, redundancy = (average(means(rows, k), m, CHOOSE) for k in ("effective_rank", "redundancy"))
            yield [*cells, f"{rank:.0f}", f"{redundancy:.3f}"]

    def dials(self) -> str:
        """List every dial."""
        methods = [m for m in ours(*GAMMA_SWEEP, *DIAL_SWEEP, *MORE_DIALS) if "crw" not in m]
        header = ["dial", "log-loss", "won", "AUC", "won", "effective rank", "redundancy"]
        return "\n\n".join(["## The dials", DIALS, grid(header, self._dial_lines(methods, ("log_loss", "AUC")))])

    def weighting(self) -> str:
        """List the forms of weighting."""
        methods = [m for m in ours(*GAMMA_SWEEP, *DIAL_SWEEP, *MORE_DIALS) if "crw" in m]
        header = [
            "form",
            "log-loss",
            "won",
            "AUC",
            "won",
            "accuracy",
            "won",
            "effective rank",
            "redundancy",
            "fit time",
        ]
        body = self._dial_lines(methods, ("log_loss", "AUC", "ACC"))
        swept, averaged = self._dial_rows(), ours("crw=fold_average")[0]
        cuts = {_cut(r) for r in swept[averaged]}
        table = means([r for m in (averaged, DEFAULT) for r in swept[m] if _cut(r) in cuts], "log_loss")
        by_set = ", ".join(f"{d} {1e4 * (table[averaged][d] - table[DEFAULT][d]):+.0f}" for d in CHOOSE)
        sets = f"Log-loss of `fold_average` against the default, set by set, small sets first: {by_set}."
        return "\n\n".join(["## Covariance-regularized weights", WEIGHTS, grid(header, body), sets])

    def _short_table(self, measure: str) -> Means:
        """Means of the short ensembles; "best" is XGBoost at the rate that suits it best on each set."""
        table, sign = self.tables("short")[measure], BETTER[measure]
        table["best"] = {d: sign * max(sign * table[m][d] for m in SHORT_RIVALS) for d in ALL}
        return table

    def _short_auc(self, theirs: str, sets: Sequence[str] = ALL, dials: str = SHORT_DIALS[0]) -> Comparison:
        """Compare AUC with 20 trees of XGBoost: "best" on each set, or the "one" rate that is best on average."""
        table = self._short_table("AUC")
        one = max(SHORT_RIVALS, key=lambda m: average(table, m, ALL))
        return compare(table, ours(f"{CHOSEN} {dials}")[0], {"one": one, "best": "best"}[theirs], sets, 1)

    def short(self) -> str:
        """Compare ensembles of 20 trees."""
        auc, loss, long = self._short_table("AUC"), self._short_table("log_loss"), self.tables("peers")
        rivals = {**dict.fromkeys(SHORT_RIVALS), "best": "XGBoost, the best of these on each set"}
        rivals |= {ours(f"{PLAIN} trees=20")[0]: "plain boosting, 20 trees"}
        rivals |= {SAME_SHAPE: "plain boosting, 100 trees", "XGB": "XGBoost, 100 trees"}
        for m in (SAME_SHAPE, "XGB"):
            auc[m], loss[m] = long["AUC"][m], long["log_loss"][m]
        body = []
        for m, label in rivals.items():
            cells = [label or m.replace("XGB trees=20 eta=", "XGBoost, 20 trees, rate ")]
            for dials in SHORT_DIALS:
                mine = ours(f"{CHOSEN} {dials}")[0]
                cells += [
                    f"{signed(c)}, {won(c)}" for c in (compare(auc, mine, m, ALL, 1), compare(loss, mine, m, ALL, -1))
                ]
            body.append(cells)
        factors = [d.partition("rate=")[2] or "1" for d in SHORT_DIALS]
        header = ["against", *(f"{k}, automatic rate x {f}" for f in factors for k in ("AUC", "log-loss"))]
        halves = ", ".join(
            f"{won(self._short_auc(theirs, HALVES[half]))} in *{half}* against {label}"
            for theirs, label in (("one", "its best one rate"), ("best", "its best rate on each set"))
            for half in ("choose", "confirm")
        )
        lost = [d for d in ALL if auc[TWENTY][d] <= auc["best"][d]]
        return "\n\n".join(
            [
                "## Twenty trees",
                SHORT,
                grid(header, body),
                f"By halves, AUC at the automatic rate: {halves}.",
                f"Sets on which XGBoost is ahead at its best rate: {', '.join(lost)}.",
            ]
        )

    def noise(self) -> str:
        """Compare under flipped labels."""
        body = []
        clean = self.tables("peers")
        for level in ("0.0", "0.1", "0.2", "0.3"):
            t = clean if level == "0.0" else self.tables("noise", f"noise={level}")
            methods = [DEFAULT, SAME_SHAPE, "XGB", "LGBM", "CAT"]
            for k in ("AUC", "log_loss"):
                c = compare(t[k], DEFAULT, SAME_SHAPE, NOISY_SETS, BETTER[k])
                cells = [f"{average(t[k], m, NOISY_SETS):.4f}" for m in methods]
                body.append([f"{float(level):.0%}", MEASURES[k], *cells, f"{signed(c)}, {won(c)}"])
        header = ["flipped", "", "SCBoost", "plain", "XGBoost", "LightGBM", "CatBoost", "SCBoost against plain"]
        return "\n\n".join(
            [
                "## Label noise",
                NOISE.format(n=len(NOISY_SETS), sets=", ".join(NOISY_SETS)),
                grid(header, body),
            ]
        )

    def sizes(self) -> str:
        """Compare with plain boosting over numbers of rows."""
        body = []
        for n in SIZES:
            t = self.tables("sizes", f"rows={n}")
            cs = [compare(t[k], DEFAULT, SAME_SHAPE, LARGE_SETS, BETTER[k]) for k in ("log_loss", "AUC")]
            one = [f"{1e4 * (t['log_loss'][DEFAULT][d] - t['log_loss'][SAME_SHAPE][d]):+.0f}" for d in LARGE_SETS]
            adaptive = compare(t["log_loss"], ours("rule=rows")[0], DEFAULT, LARGE_SETS, -1)
            body.append([f"{n:,}", *(f"{signed(c)}, {won(c)}" for c in (*cs, adaptive)), *one])
        rule = "log-loss of gamma falling with rows, against the default"
        header = ["training rows", "log-loss", "AUC", rule, *(f"{d}, log-loss" for d in LARGE_SETS)]
        return "\n\n".join(
            [
                "## Sizes",
                f"Against plain boosting of the same shape; rows drawn from {SIZE_CAP:,} of each set, three folds:",
                grid(header, body),
            ]
        )

    def redundancy(self) -> str:
        """Relate redundancy to scores."""
        swept = self._dial_rows()
        methods = [m for m in swept if "crw" not in m and "trees" not in m]
        rows = [r for m in methods for r in swept[m] if int(r["fold"]) < 3 and r["seed"] == "0"]
        t = {k: means(rows, k) for k in ("log_loss", "AUC", "effective_rank", "redundancy")}
        body = []
        for k in ("log_loss", "AUC"):
            cells = [MEASURES[k]]
            for x in ("effective_rank", "redundancy"):
                rho = [
                    stats.spearmanr([t[x][m][d] for m in methods], [BETTER[k] * t[k][m][d] for m in methods]).statistic
                    for d in CHOOSE
                ]
                cells.append(f"{np.mean(rho):+.2f} ({sum(r > 0 for r in rho)}/{len(rho)} positive)")
            body.append(cells)
        p = self.tables("peers")
        gain = [p["log_loss"][SAME_SHAPE][d] - p["log_loss"][DEFAULT][d] for d in ALL]
        fall = [p["redundancy"][SAME_SHAPE][d] - p["redundancy"][DEFAULT][d] for d in ALL]
        found = stats.spearmanr(fall, gain)
        return "\n\n".join(
            [
                "## Does less redundancy go with better scores?",
                REDUNDANCY.format(n=len(methods)),
                grid(["", "effective rank", "redundancy"], body),
                OVER_SETS.format(
                    rho=found.statistic,
                    p=found.pvalue,
                    falls=sum(f > 0 for f in fall),
                    n=len(fall),
                    before=average(p["redundancy"], SAME_SHAPE, ALL),
                    after=average(p["redundancy"], DEFAULT, ALL),
                ),
            ]
        )


def _cut(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["dataset"], row["fold"], row["seed"]


def _met(reached: bool) -> str:
    return "reached" if reached else "not reached"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="scboost_lab.study_page", description="Write docs/default.md.")
    parser.add_argument("--results", type=Path, default=Path("results/study"))
    parser.add_argument("--out", type=Path, default=Path("docs/default.md"))
    args = parser.parse_args(arguments)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(Page(args.results).text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
