"""The page ``docs/default.md``, from the results of the study of the default."""

from pathlib import Path

import numpy as np

from scboost_lab import category_study
from scboost_lab.comparisons import average, compare
from scboost_lab.default_methods import (
    ALL,
    ALL_FEATURES,
    AT_100,
    AT_OWN,
    BEST,
    CHIMERA,
    COLUMN_CAP,
    CONFIRMATION,
    DEEP,
    DEEP_SUBSETS,
    DEFAULT,
    DEVELOPMENT,
    FAST,
    HUBER_DELTA,
    LABEL_NOISE_SETS,
    LARGE_RATE_METHODS,
    LOSSES,
    MULTICLASS,
    NO_EXPLORATION,
    NO_PROJECTION,
    NOISE_LEVELS,
    OUTSIDE,
    PLAIN,
    QUANTILES,
    REGRESSION,
    ROW_CAP,
    SHORT,
    SHORT_XGB,
    TUNED,
    WITH_QUANTILES,
)
from scboost_lab.default_results import GROUPS, StudyResults
from scboost_lab.default_targets import REDUNDANCY_PEERS, targets_table
from scboost_lab.page import fill, made_with, table, template
from scboost_lab.results import Results


def page_text(directory: Path) -> str:
    """Write the page from the result files of a directory."""
    study = StudyResults(directory)
    own = (DEFAULT, *AT_OWN)
    return fill(
        template("default"),
        versions=made_with(*study.results.values()),
        n_binary=len(ALL),
        n_multiclass=len(MULTICLASS),
        n_regression=len(REGRESSION),
        row_cap=ROW_CAP,
        column_cap=COLUMN_CAP,
        n_folds=study.folds(own, ALL),
        n_folds_multiclass=study.folds(own, MULTICLASS),
        n_folds_regression=study.folds((*own, *TUNED), REGRESSION),
        n_folds_tuned=study.folds((BEST, *TUNED), ALL),
        development=", ".join(DEVELOPMENT),
        confirmation=", ".join(CONFIRMATION),
        targets=targets_table(study),
        own=study.leaders((DEFAULT,), AT_OWN),
        own_confirmation=study.leaders((DEFAULT,), AT_OWN, "confirmation"),
        default_catboost=study.against(DEFAULT, "CatBoost"),
        default_catboost_auc=study.against(DEFAULT, "CatBoost", "AUC"),
        cpu_default=study.cpu_ratio(DEFAULT, "CatBoost"),
        cpu_best=study.cpu_ratio(BEST, "CatBoost"),
        behind=study.behind(DEFAULT, "CatBoost"),
        fast=study.leaders((FAST,), AT_100),
        tuned=study.leaders((BEST, DEFAULT), (*TUNED, "CatBoost")),
        best_catboost=study.against(BEST, "CatBoost"),
        best_default=study.against(BEST, DEFAULT),
        best_default_outside=study.against(BEST, DEFAULT, group="outside"),
        cpu_best_default=study.cpu_ratio(BEST, DEFAULT),
        parts=parts_table(study),
        n_outside=len(OUTSIDE),
        n_folds_outside=study.folds((DEFAULT, DEEP, DEEP_SUBSETS, FAST, BEST, *AT_OWN), OUTSIDE),
        outside=study.leaders((DEFAULT, DEEP, DEEP_SUBSETS, FAST, BEST), AT_OWN, "outside"),
        outside_deep=study.against(DEFAULT, DEEP, group="outside"),
        outside_best=study.against(BEST, "CatBoost", group="outside"),
        outside_catboost=study.against(DEFAULT, "CatBoost", group="outside"),
        outside_cpu=study.cpu_ratio(DEFAULT, "CatBoost", OUTSIDE, "outside"),
        outside_subsets=study.against(DEEP, DEEP_SUBSETS, group="outside"),
        **categories_text(Results(directory / "categories.csv")),
        full_size=study.full_size(),
        default_chimera=study.against(DEFAULT, CHIMERA),
        cpu_chimera=study.cpu_ratio(DEFAULT, CHIMERA),
        outside_chimera=study.against(DEFAULT, CHIMERA, group="outside"),
        sets=study.by_set("log_loss", (DEFAULT, BEST, FAST, "CatBoost", CHIMERA, "LightGBM", "XGBoost", *TUNED), ALL),
        longer=longer_text(study),
        noisy_sets=", ".join(LABEL_NOISE_SETS),
        noise=noise_table(study),
        short=short_table(study),
        redundancy=redundancy_table(study),
        regression=study.by_set("RMSE", (*own, *TUNED), REGRESSION),
        multiclass=study.by_set("log_loss", (*own, *TUNED), MULTICLASS),
        quantiles=", ".join(map(str, QUANTILES)),
        quantile_table=quantile_table(study),
        loss_table=loss_table(study),
        huber_delta=HUBER_DELTA,
        made="\n".join(
            f"- {results.made_by()}" for results in (*study.results.values(), Results(directory / "categories.csv"))
        ),
    )


def categories_text(results: Results) -> dict[str, object]:
    """Return what the page says about features with many categories."""
    halves = {"": category_study.DEVELOPMENT, "_confirmation": category_study.CONFIRMATION}
    compared = {
        "ordered": category_study.ORDERED,
        "means": category_study.TARGET_MEANS,
        "subset": category_study.SUBSET,
    }
    return {
        "n_category_tables": len(category_study.TABLES),
        "category_rows": category_study.ROW_CAP,
        "category_losses": category_study.losses_table(results),
        "category_catboost": category_study.lower(results, DEFAULT, category_study.TABLES, "CatBoost"),
        "category_chimera": category_study.lower(results, DEFAULT, category_study.TABLES, CHIMERA),
        **{
            f"category_{name}{half}": category_study.lower(results, method, tables)
            for name, method in compared.items()
            for half, tables in halves.items()
        },
    }


def parts_table(study: StudyResults) -> str:
    """Make the table of ablations."""
    rows = []
    pairs = [
        (DEEP, DEFAULT),
        (ALL_FEATURES, DEFAULT),
        *((less, ALL_FEATURES) for less in (NO_PROJECTION, NO_EXPLORATION, PLAIN)),
    ]
    for less, more in pairs:
        cells = []
        for group in GROUPS:
            lost = study.against(more, less, group=group)
            cells.append(f"{study.against(less, more, group=group).interval}, worse on {lost.wins}/{lost.n}")
        rows.append([less, more, *cells, study.against(less, more, "AUC").interval])
    return table(["without", "compared with", *(f"log-loss, {group}" for group in GROUPS), "AUC, all"], rows)


def longer_text(study: StudyResults) -> str:
    """Describe the change of the log-loss with 1,000 rounds against the selected number of rounds."""
    change = study.longer()
    largest = sorted(change, key=lambda name: -change[name])[:3]
    named = ", ".join(f"{name} ({change[name]:+.4f})" for name in largest)
    return (
        f"With `n_estimators=1000` the log-loss changes by {np.mean(list(change.values())):+.4f} on average against\n"
        "the selected number of rounds: from 500 rounds on, the learning rate is cross-validated instead.\n"
        f"Largest increases: {named}."
    )


def noise_table(study: StudyResults) -> str:
    """Make the table of AUC by fraction of flipped labels."""
    rows = []
    for share in NOISE_LEVELS:
        found = study.label_noise(share)
        cells = [f"{average(found, DEFAULT, LABEL_NOISE_SETS):.4f}"]
        for theirs in (PLAIN, "XGBoost"):
            c = compare(found, DEFAULT, theirs, LABEL_NOISE_SETS, 1)
            cells.append(f"{average(found, theirs, LABEL_NOISE_SETS):.4f} ({c.won})")
        rows.append([f"{share:.0%}", *cells])
    return table(["flipped", DEFAULT, PLAIN, "XGBoost"], rows)


def short_table(study: StudyResults) -> str:
    """Make the table of 20 rounds, next to 100 rounds of plain boosting."""
    auc, loss = study.short("AUC"), study.short("log_loss")
    rows = []
    for method in (SHORT, *SHORT_XGB, PLAIN):
        won = "" if method in {SHORT, PLAIN} else compare(auc, SHORT, method, ALL, 1).won
        name = f"{method}, 100 rounds" if method == PLAIN else method
        rows.append([name, f"{average(auc, method, ALL):.4f}", f"{average(loss, method, ALL):.4f}", won])
    return table(["", "AUC", "log-loss", "SCBoost has the higher AUC"], rows)


def redundancy_table(study: StudyResults) -> str:
    """Make the table of log-loss and redundancy on the first fold."""
    columns = {"log_loss": 4, "n_trees": 0, "effective_rank": 1, "redundancy": 3}
    ours = (DEFAULT, *LARGE_RATE_METHODS, FAST)
    rows = []
    for method in (*ours, *REDUNDANCY_PEERS, "CatBoost, 100 rounds", "HistGradientBoosting"):
        cells = [f"{average(study.measured(measure), method, ALL):.{digits}f}" for measure, digits in columns.items()]
        for measure in ("effective_rank", "redundancy"):
            counts = [study.less_redundant(measure, theirs, method)[0] for theirs in REDUNDANCY_PEERS]
            cells.append(", ".join(map(str, counts)) if method in ours else "")
        rows.append([method, *cells])
    header = ["", "log-loss", "trees", "effective rank", "redundancy", "higher rank than", "lower redundancy than"]
    return table(header, rows)


def loss_table(study: StudyResults) -> str:
    """Make the table of mean ranks by loss; empty where a library does not support it."""
    ranks = {loss: study.loss_ranks(loss) for loss in LOSSES}
    rows = [
        [m, *(f"{found[m]:.2f} of {len(found)}" if m in found else "" for found in ranks.values())]
        for m in WITH_QUANTILES
    ]
    return table(["", *LOSSES], rows)


def quantile_table(study: StudyResults) -> str:
    """Make the table of mean ranks and coverage by library."""
    ranks = study.quantile_ranks()
    rows = [
        [m, f"{ranks[m]:.2f}", *(f"{value:.3f}" for value in study.coverage(m).values())]
        for m in sorted(WITH_QUANTILES, key=ranks.__getitem__)
    ]
    return table(["", "mean rank", *REGRESSION], rows)
