"""Targets of the study of the default, and whether its results meet them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scboost_lab.comparisons import Standing, average, compare
from scboost_lab.default_methods import (
    ALL,
    AT_100,
    AT_OWN,
    BEST,
    CHIMERA,
    DEFAULT,
    FAST,
    LABEL_NOISE_SETS,
    MULTICLASS,
    NOISE_LEVELS,
    OUTSIDE,
    PLAIN,
    REGRESSION,
    SHORT,
    SHORT_XGB,
    TUNED,
)
from scboost_lab.default_results import GROUPS, MEASURES, StudyResults
from scboost_lab.page import table

REDUNDANCY_PEERS = ("XGBoost", "LightGBM", "CatBoost")
COVERAGE = (0.85, 0.95)
"""Allowed coverage of intervals between the quantiles 0.05 and 0.95."""
MOST = 0.8
"""Fraction of the sets that counts as most of them."""
LONGER, SHORTER = 0.005, 0.01
"""Largest allowed rises of the log-loss with 1,000 and with 20 rounds."""


@dataclass(frozen=True)
class Target:
    """One target of the study, and whether it is met.

    Attributes
    ----------
    quantity, target : str
        What is measured, and the value asked for.
    met : bool
    measured : str
        Result over all sets.
    halves : tuple of str
        The same for the development and the confirmation sets; empty where there is no such split.
    """

    quantity: str
    target: str
    met: bool
    measured: str
    halves: tuple[str, ...] = ("", "")


def targets_table(study: StudyResults) -> str:
    """Make the table of targets and results."""
    found = [
        *_targets_at_own(study),
        *_targets_fast(study),
        *_targets_best(study),
        *_targets_robust(study),
        *_targets_beyond(study),
    ]
    rows = [[t.quantity, t.target, t.measured, *t.halves, "met" if t.met else "**not met**"] for t in found]
    return table(["quantity", "target", *GROUPS, ""], rows)


def _place(study: StudyResults, quantity: str, ours: str, peers: Sequence[str], measure: str, least: int = 1) -> Target:
    standings = [study.standing(ours, peers, measure, group) for group in GROUPS]
    target = "first" if least == 1 else "first or second"
    texts = [str(standing) for standing in standings]
    name = f"{quantity}: mean rank on {MEASURES[measure]}"
    return Target(name, target, standings[0].place <= least, texts[0], tuple(texts[1:]))


def _lower(
    study: StudyResults, quantity: str, ours: str, share: float, p: float = 1.0, theirs: str = "CatBoost"
) -> Target:
    cells = [study.against(ours, theirs, group=group) for group in GROUPS]
    tested = p < 1
    texts = [f"{c.won}, {1e4 * c.difference:+.0f}" + (f", p {c.p:.3f}" if tested else "") for c in cells]
    c = cells[0]
    met = c.wins >= share * c.n and c.difference < 0 and (c.p < p or not tested)
    target = f"{share:.0%} of the sets, " + (f"p < {p}" if tested else "and on average")
    return Target(f"{quantity}: log-loss lower", target, met, texts[0], tuple(texts[1:]))


def _targets_at_own(study: StudyResults) -> list[Target]:
    quantity, against = "default among all libraries at their defaults", "default against CatBoost's 1,000 rounds"
    ratios = {name: study.cpu_ratio(DEFAULT, name) for name in ("CatBoost", CHIMERA)}
    rated = study.rated(DEFAULT, AT_OWN, ALL, OUTSIDE, MULTICLASS)
    best = max(AT_OWN, key=lambda m: rated[m][0])
    most = max(study.results["ours"].values("n_trees", method=DEFAULT))
    theirs = max(study.results["peers"].values("n_trees", method="CatBoost"))
    return [
        _place(study, quantity, DEFAULT, AT_OWN, "log_loss"),
        _place(study, quantity, DEFAULT, AT_OWN, "AUC"),
        _place(study, quantity, DEFAULT, AT_OWN, "ACC", least=2),
        Target(
            f"{quantity}: Elo on log-loss, classification and tables with categorical features",
            "first",
            rated[DEFAULT][0] > rated[best][0],
            f"{rated[DEFAULT][0]:.0f} [{rated[DEFAULT][1]:.0f}, {rated[DEFAULT][2]:.0f}]; {best} {rated[best][0]:.0f}",
        ),
        _lower(study, against, DEFAULT, 0.7, p=0.05),
        _lower(study, "default against ChimeraBoost", DEFAULT, 0.6, p=0.05, theirs=CHIMERA),
        *(
            Target(
                f"default against {name}: CPU time, cross-validation included",
                f"at most {least}",
                ratios[name] <= least,
                f"{ratios[name]:.2f} of theirs",
            )
            for name, least in (("CatBoost", 0.2), (CHIMERA, 1.0))
        ),
        Target(f"{against}: rounds", "at most as many", most <= theirs, f"at most {most:,.0f}"),
    ]


def _targets_fast(study: StudyResults) -> list[Target]:
    found = []
    for measure in MEASURES:
        target = _place(study, '`preset="fast"` among all libraries at 100 rounds', FAST, AT_100, measure)
        confirmed = study.standing(FAST, AT_100, measure, "confirmation").place == 1
        found.append(replace(target, target="first, on the confirmation sets too", met=target.met and confirmed))
    return found


def _targets_best(study: StudyResults) -> list[Target]:
    against = '`preset="best"` against CatBoost\'s 1,000 rounds'
    among = '`preset="best"` among the three tuned defaults'
    ratio = study.cpu_ratio(BEST, "CatBoost")
    return [
        _lower(study, against, BEST, 0.75, p=0.05),
        _lower(study, '`preset="best"` against the default', BEST, 0.75, theirs=DEFAULT),
        Target(f"{against}: CPU seconds", "at most equal", ratio <= 1, f"{ratio:.2f} of theirs"),
        _place(study, among, BEST, TUNED, "log_loss"),
        _place(study, among, BEST, TUNED, "AUC"),
    ]


def _targets_robust(study: StudyResults) -> list[Target]:
    change = study.longer()
    worst = max(change, key=change.__getitem__)
    quantity, target = (
        "`n_estimators=1000`, against the selected number of rounds: log-loss",
        f"at most +{LONGER} on any set",
    )
    found = [Target(quantity, target, change[worst] <= LONGER, f"{change[worst]:+.4f} on {worst}")]
    for theirs in (PLAIN, "XGBoost"):
        levels = [study.label_noise(level) for level in NOISE_LEVELS]
        better = sum(level[DEFAULT][name] > level[theirs][name] for level in levels for name in LABEL_NOISE_SETS)
        n = len(levels) * len(LABEL_NOISE_SETS)
        quantity = f"label noise: AUC above that of {theirs}"
        found.append(Target(quantity, "every set and level", better == n, f"{better}/{n}"))
    auc, loss = study.short("AUC"), study.short("log_loss")
    c = compare(auc, SHORT, max(SHORT_XGB, key=lambda m: average(auc, m, ALL)), ALL, 1)
    gap = average(loss, SHORT, ALL) - average(loss, PLAIN, ALL)
    quantity = "20 rounds: AUC above that of XGBoost at its best single learning rate"
    found.append(Target(quantity, f"{MOST:.0%} of the sets", c.wins >= MOST * c.n, c.won))
    quantity = "20 rounds: mean log-loss against 100 rounds of plain boosting"
    return [*found, Target(quantity, f"at most +{SHORTER}", gap <= SHORTER, f"{gap:+.4f}")]


def _targets_beyond(study: StudyResults) -> list[Target]:
    found = []
    for measure, name in (("effective_rank", "effective rank higher"), ("redundancy", "mean redundancy lower")):
        counts = {m: study.less_redundant(measure, m) for m in REDUNDANCY_PEERS}
        text = ", ".join(f"{m} {k}/{n}" for m, (k, n) in counts.items())
        met = all(k >= MOST * n for k, n in counts.values())
        found.append(
            Target(
                f"redundancy: {name} than each of XGBoost, LightGBM and CatBoost", f"{MOST:.0%} of the sets", met, text
            )
        )
    for quantity, measure, sets in (
        ("regression: RMSE below that of the best other library", "RMSE", REGRESSION),
        ("multiclass: log-loss below that of the best other library", "log_loss", MULTICLASS),
    ):
        by_set = study.means(measure, (DEFAULT, *AT_OWN), sets)
        k = sum(by_set[DEFAULT][name] < min(by_set[m][name] for m in AT_OWN) for name in sets)
        found.append(Target(quantity, "all sets", k == len(sets), f"{k}/{len(sets)}"))
    standing = Standing(DEFAULT, study.quantile_ranks())
    second = 2
    found.append(
        Target("quantiles: mean rank on pinball loss", "second of five", standing.place <= second, str(standing))
    )
    cover = study.coverage(DEFAULT)
    inside = all(COVERAGE[0] <= value <= COVERAGE[1] for value in cover.values())
    text = f"{min(cover.values()):.2f} to {max(cover.values()):.2f}"
    found.append(Target("quantiles: coverage of 90 % intervals", "85 to 95 %", inside, text))
    return found
