"""The page ``docs/projection.md``: what the template asks for, computed from the study's result files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

from scboost_lab.comparisons import Comparison, Means, average, compare, mean_ranks, means
from scboost_lab.models import LIBRARIES, SCBOOST
from scboost_lab.page import fill, made_with, table, template
from scboost_lab.results import Results, Row
from scboost_lab.scoring import HIGHER_IS_BETTER
from scboost_lab.study import (
    ALL,
    CHOOSE,
    CHOSEN,
    COLUMN_CAP,
    CONFIRM,
    LARGE_SETS,
    NOISY_SETS,
    PARTS,
    PLAIN,
    RIVALS,
    ROW_CAP,
    SHORT_RATES,
    SHORT_SETTINGS,
    SIZE_CAP,
    SIZES,
    ours,
)

DEFAULT, SAME_SHAPE = ours(CHOSEN, PLAIN)
NAMES = {
    **{key: library.name for key, library in LIBRARIES.items()},
    DEFAULT: "**SCBoost**",
    SAME_SHAPE: "plain Newton boosting, same shape",
}
TWENTY = ours(f"{CHOSEN} trees=20")[0]
SHORT_RIVALS = tuple(f"XGB trees=20 eta={eta}" for eta in SHORT_RATES)
MEASURES = {"log_loss": "log-loss", "AUC": "AUC", "ACC": "accuracy", "F1": "F1"}
HALVES = {"all": ALL, "choose": CHOOSE, "confirm": CONFIRM}


class Page:
    """Tables and figures of the page.

    Parameters
    ----------
    directory : Path
        Of the result files.
    """

    def __init__(self, directory: Path) -> None:
        self.results = {part: Results(directory / f"{part}.csv") for part in PARTS}
        self.table = cache(self._table)
        swept: dict[str, list[Row]] = defaultdict(list)
        for part in ("gamma", "shapes", "more"):
            for row in self.results[part].rows:
                swept[row["method"]].append(row)
        # Methods that were run on all sets of the choosing half.
        self.swept = {m: rows for m, rows in swept.items() if {r["dataset"] for r in rows} == set(CHOOSE)}

    def _table(self, part: str, measure: str, setting: str | None = None) -> Means:
        """Means of a measure by method and set, of one setting or of all rows."""
        results = self.results[part]
        return means(results.rows if setting is None else results.select(setting=setting), measure)

    def against(self, settings: str, measure: str = "log_loss", reference: str = CHOSEN) -> Comparison:
        """Compare one setting with another on the choosing half, on the folds that both have."""
        mine, theirs = ours(settings, reference)
        common = {_cut(r) for r in self.swept[mine]} & {_cut(r) for r in self.swept[theirs]}
        rows = [r for m in (mine, theirs) for r in self.swept[m] if _cut(r) in common]
        return compare(means(rows, measure), mine, theirs, CHOOSE, HIGHER_IS_BETTER[measure])

    def __getitem__(self, settings: str) -> str:
        """Say what settings change in log-loss against the default; the template's ``change``."""
        return f"`{settings}` {self.against(settings)}"

    def to_plain(self, measure: str, sets: Sequence[str] = ALL) -> Comparison:
        """Compare the default with plain boosting of the same shape."""
        return compare(self.table("peers", measure), DEFAULT, SAME_SHAPE, sets, HIGHER_IS_BETTER[measure])

    def lost(self) -> str:
        """Name the sets on which plain boosting has the lower log-loss."""
        t = self.table("peers", "log_loss")
        return ", ".join(d for d in ALL if t[DEFAULT][d] > t[SAME_SHAPE][d]) or "no set"

    def aims(self) -> str:
        """Compare what was to be reached with what was found."""
        methods = [DEFAULT, *RIVALS]
        lines = []
        for measure, label in MEASURES.items():
            ranks = mean_ranks(self.table("peers", measure), methods, ALL, HIGHER_IS_BETTER[measure])
            place = 1 + sum(r < ranks[DEFAULT] for r in ranks.values())
            best = min((m for m in methods if m != DEFAULT), key=ranks.__getitem__)
            aim = 1 if measure in {"log_loss", "AUC"} else 2
            goal = "best" if aim == 1 else "best or second"
            found = f"place {place} ({ranks[DEFAULT]:.2f}; {NAMES[best]} {ranks[best]:.2f})"
            lines.append([f"mean rank on {label} among {len(methods)} methods", goal, found, _met(place <= aim)])
        for measure, least in (("log_loss", 0.8), ("AUC", 0.7)):
            what = f"{MEASURES[measure]} better than plain boosting of the same shape"
            lines.append([what, *_share(self.to_plain(measure), least)])
        for settings, theirs in product(SHORT_SETTINGS[:2], ("one", "best")):
            rate = settings.partition("rate=")[2]
            factor = f", our rate {rate} times the automatic one" if rate else ""
            label = "its best rate on each set" if theirs == "best" else "its best one rate"
            what = f"20 trees: AUC above XGBoost's 20 at {label}{factor}"
            lines.append([what, *_share(self.short_auc(theirs, settings=settings), 0.8)])
        return table(["figure", "aim", "found", ""], lines)

    def peers(self) -> str:
        """Ranks and means of the default and the peers, over all sets and by halves."""
        methods = [DEFAULT, *RIVALS]
        t = {k: self.table("peers", k) for k in (*MEASURES, "fit_seconds")}
        blocks = []
        for half, sets in HALVES.items():
            ranks = {m: mean_ranks(t[m], methods, sets, HIGHER_IS_BETTER[m]) for m in MEASURES}
            body = [
                [
                    NAMES[m],
                    *(f"{ranks[k][m]:.2f} ({average(t[k], m, sets):.4f})" for k in MEASURES),
                    f"{average(t['fit_seconds'], m, sets):.2f}",
                ]
                for m in sorted(methods, key=ranks["log_loss"].__getitem__)
            ]
            blocks += [f"{half}, {len(sets)} sets:", table(["", *MEASURES.values(), "fit, seconds"], body)]
        return "\n\n".join(blocks)

    def against_peers(self) -> str:
        """Compare the default with each peer."""
        body = []
        for m in (*RIVALS, SAME_SHAPE):
            cells = [NAMES[m]]
            for k in ("log_loss", "AUC"):
                c, *halves = (
                    compare(self.table("peers", k), DEFAULT, m, s, HIGHER_IS_BETTER[k]) for s in HALVES.values()
                )
                cells += [c.interval, f"{c.p:.3f}", f"{c.won} ({'/'.join(str(h.wins) for h in halves)})"]
            body.append(cells)
        return table(["against", "log-loss", "p", "won", "AUC", "p", "won"], body)

    def plain(self) -> str:
        """Compare with plain boosting, over all sets and by halves."""
        body = []
        for half, sets in HALVES.items():
            found = [self.to_plain(k, sets) for k in MEASURES]
            body.append([half, *(f"{c.interval}, p {c.p:.3f}, {c.won}" for c in found)])
        return table(["", *MEASURES.values()], body)

    def plain_by_set(self) -> str:
        """Compare with plain boosting, set by set."""
        t = {k: self.table("peers", k) for k in (*MEASURES, "effective_rank")}
        body = [
            [
                d,
                half,
                f"{t['log_loss'][SAME_SHAPE][d]:.4f}",
                *(f"{1e4 * (t[k][DEFAULT][d] - t[k][SAME_SHAPE][d]):+.0f}" for k in MEASURES),
                f"{t['effective_rank'][SAME_SHAPE][d]:.0f} -> {t['effective_rank'][DEFAULT][d]:.0f}",
            ]
            for half in ("choose", "confirm")
            for d in HALVES[half]
        ]
        return table(["set", "half", "plain log-loss", *MEASURES.values(), "effective rank"], body)

    def sweep(self, methods: Iterable[str], measures: Sequence[str]) -> Iterable[list[str]]:
        """Each method against the default on the folds that both have."""
        for m in methods:
            keys = {_cut(r) for r in self.swept[m]}
            rows = [*self.swept[m], *(r for r in self.swept[DEFAULT] if m != DEFAULT and _cut(r) in keys)]
            cells = [m.removeprefix(SCBOOST).strip() or "(default)"]
            for k in measures:
                c = compare(means(rows, k), m, DEFAULT, CHOOSE, HIGHER_IS_BETTER[k])
                cells += [c.interval, c.won]
            rank, redundancy = (average(means(rows, k), m, CHOOSE) for k in ("effective_rank", "redundancy"))
            yield [*cells, f"{rank:.0f}", f"{redundancy:.3f}"]

    def sweep_table(self, first: str, measures: Sequence[str], *, weighted: bool) -> str:
        """Every setting that was swept, with or without weights of the trees."""
        methods = sorted((m for m in self.swept if ("crw" in m) is weighted), key=lambda m: m != DEFAULT)
        header = [first, *(cell for k in measures for cell in (MEASURES[k], "won")), "effective rank", "redundancy"]
        return table(header, self.sweep(methods, measures))

    def fold_average(self) -> str:
        """Log-loss of the weighted fold models against the default, set by set."""
        averaged = ours("crw=fold_average")[0]
        cuts = {_cut(r) for r in self.swept[averaged]}
        t = means([r for m in (averaged, DEFAULT) for r in self.swept[m] if _cut(r) in cuts], "log_loss")
        return ", ".join(f"{d} {1e4 * (t[averaged][d] - t[DEFAULT][d]):+.0f}" for d in CHOOSE)

    def short_table(self, measure: str) -> Means:
        """Means of the short ensembles; "best" is XGBoost at the rate that suits it best on each set."""
        t, long, sign = dict(self.table("short", measure)), self.table("peers", measure), HIGHER_IS_BETTER[measure]
        t["best"] = {d: sign * max(sign * t[m][d] for m in SHORT_RIVALS) for d in ALL}
        return {**t, **{m: long[m] for m in (SAME_SHAPE, "XGB")}}

    def short_auc(self, theirs: str, sets: Sequence[str] = ALL, settings: str = SHORT_SETTINGS[0]) -> Comparison:
        """Compare AUC with 20 trees of XGBoost: "best" on each set, or the "one" rate that is best on average."""
        t = self.short_table("AUC")
        one = max(SHORT_RIVALS, key=lambda m: average(t, m, ALL))
        return compare(t, ours(f"{CHOSEN} {settings}")[0], {"one": one, "best": "best"}[theirs], sets, 1)

    def short(self) -> str:
        """Compare ensembles of 20 trees."""
        t = {k: self.short_table(k) for k in ("AUC", "log_loss")}
        rivals = {m: m.replace("XGB trees=20 eta=", "XGBoost, 20 trees, rate ") for m in SHORT_RIVALS}
        rivals |= {"best": "XGBoost, the best of these on each set"}
        rivals |= {ours(f"{PLAIN} trees=20")[0]: "plain boosting, 20 trees"}
        rivals |= {SAME_SHAPE: "plain boosting, 100 trees", "XGB": "XGBoost, 100 trees"}
        body = []
        for m, label in rivals.items():
            mine = ours(*(f"{CHOSEN} {settings}" for settings in SHORT_SETTINGS))
            found = [compare(t[k], name, m, ALL, HIGHER_IS_BETTER[k]) for name in mine for k in t]
            body.append([label, *(f"{c.interval}, {c.won}" for c in found)])
        factors = [settings.partition("rate=")[2] or "1" for settings in SHORT_SETTINGS]
        return table(["against", *(f"{k}, automatic rate x {f}" for f in factors for k in ("AUC", "log-loss"))], body)

    def short_halves(self) -> str:
        """Count the sets won with 20 trees, by halves."""
        return ", ".join(
            f"{self.short_auc(theirs, HALVES[half]).won} in *{half}* against {label}"
            for theirs, label in (("one", "its best one rate"), ("best", "its best rate on each set"))
            for half in ("choose", "confirm")
        )

    def short_lost(self) -> str:
        """Name the sets on which XGBoost's 20 trees are ahead."""
        t = self.short_table("AUC")
        return ", ".join(d for d in ALL if t[TWENTY][d] <= t["best"][d])

    def noisy(self, level: str, measure: str) -> tuple[Means, Comparison]:
        """Means under flipped labels, and the default against plain boosting."""
        t = self.table("peers", measure) if level == "0.0" else self.table("noise", measure, f"noise={level}")
        return t, compare(t, DEFAULT, SAME_SHAPE, NOISY_SETS, HIGHER_IS_BETTER[measure])

    def noise(self) -> str:
        """Compare under flipped labels."""
        body = []
        for level, k in product(("0.0", "0.1", "0.2", "0.3"), ("AUC", "log_loss")):
            t, c = self.noisy(level, k)
            cells = [f"{average(t, m, NOISY_SETS):.4f}" for m in (DEFAULT, SAME_SHAPE, "XGB", "LGBM", "CAT")]
            body.append([f"{float(level):.0%}", MEASURES[k], *cells, f"{c.interval}, {c.won}"])
        header = ["flipped", "", "SCBoost", "plain", "XGBoost", "LightGBM", "CatBoost", "SCBoost against plain"]
        return table(header, body)

    def sizes(self) -> str:
        """Compare with plain boosting over numbers of rows."""
        body = []
        for n in SIZES:
            loss, auc = (self.table("sizes", k, f"rows={n}") for k in ("log_loss", "AUC"))
            found = [
                compare(loss, DEFAULT, SAME_SHAPE, LARGE_SETS, -1),
                compare(auc, DEFAULT, SAME_SHAPE, LARGE_SETS, 1),
                compare(loss, ours("rule=rows")[0], DEFAULT, LARGE_SETS, -1),
            ]
            one = [f"{1e4 * (loss[DEFAULT][d] - loss[SAME_SHAPE][d]):+.0f}" for d in LARGE_SETS]
            body.append([f"{n:,}", *(f"{c.interval}, {c.won}" for c in found), *one])
        rule = "log-loss of gamma falling with rows, against the default"
        return table(["training rows", "log-loss", "AUC", rule, *(f"{d}, log-loss" for d in LARGE_SETS)], body)

    def redundancy(self) -> dict[str, object]:
        """Relate redundancy to scores: over settings within a set, and over sets."""
        methods = [m for m in self.swept if "crw" not in m and "trees" not in m]
        rows = [r for m in methods for r in self.swept[m] if int(r["fold"]) < 3 and r["seed"] == "0"]
        t = {k: means(rows, k) for k in ("log_loss", "AUC", "effective_rank", "redundancy")}
        body = []
        for k in ("log_loss", "AUC"):
            cells = [MEASURES[k]]
            for x in ("effective_rank", "redundancy"):
                score = {d: [HIGHER_IS_BETTER[k] * t[k][m][d] for m in methods] for d in CHOOSE}
                rho = [stats.spearmanr([t[x][m][d] for m in methods], score[d]).statistic for d in CHOOSE]
                cells.append(f"{np.mean(rho):+.2f} ({sum(r > 0 for r in rho)}/{len(rho)} positive)")
            body.append(cells)
        loss, redundant = (self.table("peers", k) for k in ("log_loss", "redundancy"))
        gain, fall = ([of[SAME_SHAPE][d] - of[DEFAULT][d] for d in ALL] for of in (loss, redundant))
        found = stats.spearmanr(fall, gain)
        return {
            "n_swept": len(methods),
            "redundancy": table(["", "effective rank", "redundancy"], body),
            "rho": found.statistic,
            "rho_p": found.pvalue,
            "falls": sum(f > 0 for f in fall),
            "before": average(redundant, SAME_SHAPE, ALL),
            "after": average(redundant, DEFAULT, ALL),
        }


def page_text(directory: Path) -> str:
    """Write the page from the result files in a directory."""
    page = Page(directory)
    swept = page.table("gamma", "log_loss")
    none, mild, strong = ours("gamma=0", CHOSEN, "gamma=0.7")
    worst = {m: max(1e4 * (swept[m][d] - swept[none][d]) for d in CHOOSE) for m in (mild, strong)}
    noisy = [
        f"{float(level):.0%} flipped: {page.noisy(level, 'log_loss')[1]} (AUC {page.noisy(level, 'AUC')[1]})"
        for level in ("0.1", "0.2", "0.3")
    ]
    return fill(
        template("projection"),
        versions=made_with(*page.results.values()),
        n_sets=len(ALL),
        row_cap=ROW_CAP,
        column_cap=COLUMN_CAP,
        size_cap=SIZE_CAP,
        choose=", ".join(CHOOSE),
        confirm=", ".join(CONFIRM),
        n_noisy=len(NOISY_SETS),
        noisy_sets=", ".join(NOISY_SETS),
        change=page,
        worst_mild=worst[mild],
        worst_strong=worst[strong],
        loss=page.to_plain("log_loss"),
        loss_choose=page.to_plain("log_loss", CHOOSE),
        loss_confirm=page.to_plain("log_loss", CONFIRM),
        auc=page.to_plain("AUC"),
        lost=page.lost(),
        whole=page.against("", reference="gamma=0"),
        sampled=page.against("cols=0.8", reference="gamma=0 cols=0.8"),
        divided=page.against(
            "candidates=3 pick=orthogonal cols=0.8", reference="candidates=3 pick=correlation cols=0.8"
        ),
        short_one=page.short_auc("one"),
        short_best=page.short_auc("best"),
        clean=page.noisy("0.0", "log_loss")[1],
        noisy="; ".join(noisy),
        aims=page.aims(),
        peers=page.peers(),
        against_peers=page.against_peers(),
        plain=page.plain(),
        plain_by_set=page.plain_by_set(),
        swept=page.sweep_table("setting", ("log_loss", "AUC"), weighted=False),
        weighting=page.sweep_table("form", ("log_loss", "AUC", "ACC"), weighted=True),
        fold_average=page.fold_average(),
        short=page.short(),
        short_halves=page.short_halves(),
        short_lost=page.short_lost(),
        noise=page.noise(),
        sizes=page.sizes(),
        **page.redundancy(),
    )


def _cut(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["dataset"], row["fold"], row["seed"]


def _met(reached: bool) -> str:
    return "reached" if reached else "not reached"


def _share(c: Comparison, least: float) -> list[str]:
    share = c.wins / c.n
    return [f"{least:.0%} of the sets", f"{share:.0%} ({c.won})", _met(share >= least)]
