"""The page ``docs/reproduction.md``: its introduction, its tables and its figures."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from scboost_lab.datasets import REGISTRY
from scboost_lab.experiments import (
    ALL_ROWS,
    DISTINCT,
    DISTINCT_OVER,
    DISTINCT_SMOTE,
    DRAWN,
    DRAWN_ORDINARY,
    EXPERIMENTS,
    ORDINARY,
    OVER,
    SIGN,
    SMOTE,
    SMOTE_INSIDE,
    TEST_WEIGHTS,
    TRAINING_ROWS,
    TRAINING_SIGN,
    UNDER,
)
from scboost_lab.models import METHODS, SCBOOST, SCBOOST_PAPER
from scboost_lab.page import fill, made_with, number, sections, table, template, write
from scboost_lab.reproduction_figures import FIGURES, draw
from scboost_lab.reproduction_tables import (
    METRICS,
    SECTIONS,
    at,
    cells_of,
    gaps_to_paper,
    printed,
    read,
    section,
    sets_of,
)
from scboost_lab.results import Results, storage


def page_text(out: Path) -> str:
    """Write the page from the result files in a directory."""
    values = {**_introduction(out), **why(out), "versions": made_with(*(read(out, name) for name in EXPERIMENTS))}
    parts = [fill(sections(template("reproduction"))[""], **values)]
    for name in SECTIONS:
        text = section(name, out)
        parts.append(text)
        if name in FIGURES and read(out, name).rows:
            title = text.splitlines()[0].removeprefix("## ")
            parts.append(f"![{title}](figures/reproduction_{name}.png)\n")
    return "\n".join(parts)


def write_page(out: Path, page: Path) -> None:
    """Write the page, and its figures to ``figures`` beside it.

    Parameters
    ----------
    out : Path
        Directory of the result files.
    page : Path
        Of the Markdown file.
    """
    write(page, page_text(out))
    with storage(page, "the result files are complete"):
        for name in FIGURES:
            draw(name, out, page.parent / "figures" / f"reproduction_{name}.png")


def _introduction(out: Path) -> dict[str, object]:
    results = read(out, "table1")
    settings: dict[str, Any] = {}
    for run in results.runs:
        settings = run.get(SCBOOST_PAPER, settings)
    unavailable = {row["dataset"] for row in results.failed if row["status"].startswith("no data")}
    missing = [name for name in REGISTRY if name in unavailable]
    availability = "all ten sets."
    if missing:
        availability = f"**not available here: {', '.join(missing)}**; the rows say so and nothing stands in for it."
    return {
        "learning_rate": settings.get("learning_rate", "-"),
        "covariance_penalty": settings.get("covariance_penalty", "-"),
        "availability": availability,
        "notes": "".join(f"- {name}: {entry.note}.\n" for name, entry in REGISTRY.items() if entry.note),
    }


def why(out: Path) -> dict[str, object]:
    """Explain the difference of the SCBoost column: what was shown, and what is conjecture."""
    honest, other, literal = read(out, "table1"), read(out, "protocols"), read(out, "collapse")
    votes, ablation = read(out, "table3"), read(out, "table4")
    gaps = {dataset: gaps_to_paper(honest, dataset) for dataset in sets_of(honest)}
    cells = [gap for of_set in gaps.values() for gap in of_set]
    shortfall = [
        printed("table1", dataset, SCBOOST_PAPER, "ACC") - honest.mean("ACC", **at(dataset, SCBOOST_PAPER))
        for dataset in sets_of(honest)
    ]
    energy = {cell[0]: literal.vectors("energy_kept", **at(*cell)).mean(axis=0) for cell in cells_of(literal)}

    def compared(dataset: str, method: str, metric: str, setting: str, digits: int) -> list[str]:
        theirs = printed("table1", dataset, method, metric)
        ours = honest.mean(metric, **at(dataset, method)), other.mean(metric, **at(dataset, method, setting))
        return [number(value, digits) for value in (theirs, *ours)]

    def nearness(results: Results, dataset: str, setting: str) -> str:
        found = gaps_to_paper(results, dataset, setting, ("ACC",))
        return f"{np.mean(found):.3f} ({sum(gap <= 0.01 for gap in found)} of {len(found)})" if found else "-"

    schemes = (UNDER, OVER, DRAWN, SMOTE, SMOTE_INSIDE, DISTINCT, DISTINCT_OVER, DISTINCT_SMOTE)
    balanced = [dataset for dataset in ("QSAR", "Scene", "Creditcard") if dataset in sets_of(other)]
    resampled = [["honest protocol", *(nearness(honest, dataset, "") for dataset in balanced)]]
    resampled += [[scheme, *(nearness(other, dataset, scheme) for dataset in balanced)] for scheme in schemes]
    leaks = [
        [dataset, method, *compared(dataset, method, "ACC", TRAINING_ROWS, 3)]
        for dataset, method in product(sets_of(other), (SCBOOST_PAPER, SCBOOST, "RF", "LGBM"))
        if other.select(**at(dataset, method, TRAINING_ROWS))
    ]
    ways = (TEST_WEIGHTS, ALL_ROWS, SIGN, TRAINING_SIGN)
    seen = [dataset for dataset in sets_of(other) if other.select(**at(dataset, SCBOOST_PAPER, ALL_ROWS))]
    labels_seen = [
        [
            dataset,
            *compared(dataset, SCBOOST_PAPER, "ACC", ways[0], 3),
            *(number(other.mean("ACC", **at(dataset, SCBOOST_PAPER, way)), 3) for way in ways[1:]),
        ]
        for dataset in seen
    ]
    away = {
        f"{dataset}, {way}": abs(
            other.mean("ACC", **at(dataset, SCBOOST_PAPER, way)) - printed("table1", dataset, SCBOOST_PAPER, "ACC")
        )
        for dataset, way in product(seen, ways)
        if other.select(**at(dataset, SCBOOST_PAPER, way))
    }
    nearest = min(away, key=away.__getitem__, default="(not run)")
    ordinary = [
        [dataset, metric, *compared(dataset, "NGB", metric, ORDINARY, 4)]
        for dataset, metric in product(sets_of(other), METRICS)
        if other.select(**at(dataset, "NGB", ORDINARY))
    ]
    twice = {name: 2 * REGISTRY[name].n_positive for name in ("QSAR", "Scene")}  # in both the smaller class

    def disagreements(methods: Sequence[str], column: str) -> list[tuple[str, float, float]]:
        found = [
            (f"{d} {m}", printed("table3", d, m, "Dis"), votes.mean(column, **at(d, m)))
            for d, m in product(sets_of(votes), methods)
        ]
        return [each for each in found if not np.isnan(each[1:]).any()]

    values = disagreements(("RF", "ADA", SCBOOST_PAPER), "differ")
    stages = disagreements(("CAT", "NGB"), "staged_differ")
    scene = (("drawn", DRAWN), ("drawn and without natural gradients", DRAWN_ORDINARY))
    return {
        "n_cells": len(cells),
        "within_1": sum(gap <= 0.001 for gap in cells),
        "within_5": sum(gap <= 0.005 for gap in cells),
        "within_10": sum(gap <= 0.01 for gap in cells),
        "near": ", ".join(d for d, g in gaps.items() if g and np.median(g) <= 0.005) or "no set",
        "far": ", ".join(d for d, g in gaps.items() if g and np.median(g) > 0.005) or "no set",
        "shortfall": _range(shortfall),
        "largest_score": number(max(literal.values("F_largest"), default=np.nan), 2),
        "kept": _kept(literal.values("trees_kept_0.1")),
        "energy_10": _shares(energy, 9),
        "energy_50": _shares(energy, 49),
        "with_projection": _range([ablation.mean("ACC", **at(d, SCBOOST_PAPER, "SRP")) for d in sets_of(ablation)]),
        "without_projection": _range(
            [ablation.mean("ACC", **at(d, SCBOOST_PAPER, "neither")) for d in sets_of(ablation)]
        ),
        "leaks": _indented(["dataset", "method", "printed", "honest protocol", TRAINING_ROWS], leaks),
        "balanced_rows": " and ".join(map(str, twice.values())),
        "balanced_distance": number(max(_from_whole(name, n) for name, n in twice.items()), 2),
        "whole_distance": number(max(_from_whole(name, REGISTRY[name].n_rows) for name in twice), 2),
        "external_distance": number(_from_whole("QSAR", 1725), 2),
        "labels_seen": _indented(["dataset", "printed", "honest protocol", *ways], labels_seen),
        "nearest": nearest,
        "nearest_gap": number(away.get(nearest, np.nan), 3),
        "resampled": _indented(["protocol", *balanced], resampled if balanced else []),
        "scene_ngb": ", ".join(
            f"{name} {number(other.mean('ACC', **at('Scene', 'NGB', setting)), 3)}" for name, setting in scene
        )
        + f", printed {number(printed('table1', 'Scene', 'NGB', 'ACC'), 3)}",
        "ordinary": _indented(["dataset", "metric", "printed", "default", ORDINARY], ordinary),
        "values_gap": number(max((abs(ours - theirs) for _, theirs, ours in values), default=np.nan))
        + f" ({len(values)} cells)",
        "stages": ", ".join(f"{cell} {theirs:.4f} and {ours:.4f}" for cell, theirs, ours in stages) or "(not run)",
    }


def _indented(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table inside a numbered item."""
    return "".join(f"   {line}\n" for line in table(header, rows).splitlines()) if rows else "   (not run)\n"


def _from_whole(dataset: str, n: int) -> float:
    """Largest distance of a printed accuracy times n from a whole number."""
    counts = n * np.array([printed("table1", dataset, method, "ACC") for method in METHODS])
    return float(np.nanmax(np.abs(counts - np.round(counts))))


def _range(values: Sequence[float]) -> str:
    found = [v for v in values if not np.isnan(v)]
    return f"{min(found):.3f} to {max(found):.3f}" if found else "(not run)"


def _kept(kept: Sequence[float]) -> str:
    if not kept:
        return "(not run)"
    one = sum(v == 1 for v in kept)
    return f"one tree has all the weight in {one} of {len(kept)} folds, and never more than {max(kept):.0f} have any"


def _shares(energy: Mapping[str, Any], t: int) -> str:
    return ", ".join(f"{100 * e[t]:.0f} % ({name})" for name, e in energy.items()) or "(not run)"
