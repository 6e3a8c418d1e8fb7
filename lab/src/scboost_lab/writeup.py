"""The write-up for reviewers, with tables from the committed results: ``scboost-lab writeup``."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from scboost_lab.compress_summary import best
from scboost_lab.default_methods import ALL, AT_OWN, DEFAULT
from scboost_lab.default_page import parts_table
from scboost_lab.default_results import StudyResults
from scboost_lab.models import BASELINES, SCBOOST, SCBOOST_PAPER
from scboost_lab.page import fill, number, table, template, write
from scboost_lab.reproduction_page import why
from scboost_lab.reproduction_tables import at, printed, read, sets_of
from scboost_lab.results import Results

FROM_REPRODUCTION = (
    "n_cells",
    "within_10",
    "shortfall",
    "largest_score",
    "kept",
    "energy_10",
    "energy_50",
    "with_projection",
    "without_projection",
)


def printed_table(reproduction: Path) -> str:
    """Accuracy as printed and as measured, by data set."""
    results = read(reproduction, "table1")
    rows = []
    for dataset in sets_of(results):
        accuracies = {m: results.mean("ACC", **at(dataset, m)) for m in (*BASELINES, SCBOOST_PAPER, SCBOOST)}
        if np.isnan(accuracies[SCBOOST_PAPER]):
            continue
        top = max(BASELINES, key=lambda m: -np.inf if np.isnan(accuracies[m]) else accuracies[m])
        rows.append(
            [
                dataset,
                number(printed("table1", dataset, SCBOOST_PAPER, "ACC"), 3),
                number(accuracies[SCBOOST_PAPER], 3),
                f"{number(accuracies[top], 3)} ({top})",
                number(accuracies[SCBOOST], 3),
            ]
        )
    return table(["data set", "printed", "Algorithm 1, run", "best baseline, run", "this library, 100 rounds"], rows)


def compression_table(folder: Path) -> str:
    """Mean log-loss over the binary sets: teacher, compressed models, and short models of XGBoost."""
    students, peers = Results(folder / "students.csv"), Results(folder / "peers.csv")
    rows = []
    for n_trees in (20, 50):
        setting = f"{n_trees} trees"
        found = []
        for dataset in ALL:
            chosen = students.select(dataset=dataset, setting=setting)
            folds = [int(row["fold"]) for row in chosen]
            if not folds:
                continue
            mean = {
                c: np.mean([float(row[c]) for row in chosen]) for c in ("log_loss", "teacher_log_loss", "agreement")
            }
            short, long = (best(peers, f"XGBoost {n}", dataset, "log_loss", folds) for n in (n_trees, 100))
            found.append([mean["teacher_log_loss"], mean["log_loss"], short, long, mean["agreement"]])
        values = np.array(found)
        values = values[~np.isnan(values).any(axis=1)]
        means = values.mean(axis=0)
        wins = int((values[:, 1] < values[:, 2]).sum())
        cells = [*(f"{value:.4f}" for value in means[:4]), f"{wins} of {len(values)}", f"{means[4]:.1%}"]
        rows.append([str(n_trees), *cells])
    header = [
        "trees",
        "teacher",
        "compressed",
        "XGBoost, as many trees",
        "XGBoost, 100 trees",
        "sets won",
        "label agreement",
    ]
    return table(header, rows)


def page_text(results: Path) -> str:
    """Return the page.

    Parameters
    ----------
    results : Path
        Folder of all result files.
    """
    reproduction, study = results / "reproduction", StudyResults(results / "default")
    found = why(reproduction)
    return fill(
        template("writeup"),
        **{name: found[name] for name in FROM_REPRODUCTION},
        printed=printed_table(reproduction),
        ablation=parts_table(study),
        leaders=study.leaders((DEFAULT,), AT_OWN),
        catboost=study.against(DEFAULT, "CatBoost"),
        rank_wins="{} of {}".format(*study.less_redundant("effective_rank", "XGBoost")),
        redundancy_wins="{} of {}".format(*study.less_redundant("redundancy", "XGBoost")),
        compression=compression_table(results / "compress"),
    )


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab writeup``."""
    parser.add_argument("--results", type=Path, default=Path("results"), help="directory of the result files")
    parser.add_argument("--page", type=Path, default=Path("docs/writeup.md"), help="page to write")


def main(args: argparse.Namespace) -> int:
    """Write the page."""
    write(args.page, page_text(args.results))
    return 0
