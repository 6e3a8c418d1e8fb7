"""The page ``docs/speed.md``, from the results of ``scboost-lab bench``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from scboost._runtime import threads as runtime_threads
from scboost_lab.bench import (
    BASES,
    CORES,
    CV_FITS,
    CV_SHAPE,
    KEY,
    KINDS,
    LITERAL_ROUNDS,
    LITERAL_SIZE,
    MATRIX_SHAPE,
    METHODS,
    N_ROUNDS,
    PARTS,
    PEAK_ROUNDS,
    PEAK_SHAPE,
    PROFILE_KEY,
    SCALE_ROUNDS,
    SCALE_SHAPE,
    SERIAL,
    WIDE,
    WITHOUT,
    Shape,
)
from scboost_lab.page import fill, made_with, number, table, template
from scboost_lab.results import Results


def exponent(x: list[float], seconds: list[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def shapes_of(results: Results) -> list[Shape]:
    """Shapes that were fitted, fewest rows first."""
    return sorted({(int(row["rows"]), int(row["columns"])) for row in results.select(kind="shape")})


def ratios(results: Results, field: str, method: str, base: str, shapes: Sequence[Shape], threads: int) -> list[float]:
    """Medians of a method over those of another, for the shapes that were measured."""
    found = []
    for n, d in shapes:
        key = {"kind": KINDS[field], "rows": n, "columns": d, "threads": threads}
        found.append(results.median(field, method=method, **key) / results.median(field, method=base, **key))
    return [ratio for ratio in found if not np.isnan(ratio)]


def names_of(shapes: Iterable[Shape]) -> list[str]:
    """Shapes as they stand in tables."""
    return [f"{n:,} x {d:,}" for n, d in shapes]


def ratio_table(results: Results, field: str, threads: int) -> str:
    """Each method's median over XGBoost's in the same run, for every shape."""
    shapes = shapes_of(results)
    body = []
    for method in (*METHODS, "literal"):
        cells = []
        for n, d in shapes:
            key = {"kind": KINDS[field], "rows": n, "columns": d, "threads": 1 if method == "literal" else threads}
            own, base = (results.median(field, method=m, **key) for m in (method, "XGBoost"))
            cells.append(number(own / base, 2, "") + (f" ({base:.2f} s)" if method == "XGBoost" else ""))
        if any(cells):
            body.append([method, *cells])
    return table(["", *names_of(shapes)], body)


def doubling(results: Results, method: str) -> float:
    """Time of 800 rounds over time of 400."""
    T800, T400 = (results.median("fit_seconds", kind="rounds", method=method, rounds=T) for T in (800, 400))
    return T800 / T400


def bytes_per_row_and_round(results: Results, method: str) -> float:
    """Peak memory above that of XGBoost with the same trees, by which each round adds to each row."""
    above = [
        results.median("peak_bytes", kind="memory", method=method, rounds=T)
        - results.median("peak_bytes", kind="memory", method=BASES[method], rounds=T)
        for T in (50, 200)
    ]
    return (above[1] - above[0]) / 200_000 / 150


def by_limit(shapes: Sequence[Shape]) -> list[tuple[float, list[Shape]]]:
    """Return the largest allowed ratios to XGBoost, with the shapes that each applies to."""
    limits = {(13_000, 16): 1.25, (4_000, 5): 1.8, CV_SHAPE: 2.0}
    of_shape = {s: limits.get(s, 0.7 if s[1] >= WIDE else 1.1 if s[0] >= 100_000 else 1.4) for s in shapes}
    return [(limit, [s for s in shapes if of_shape[s] == limit]) for limit in sorted(set(of_shape.values()))]


def targets(results: Results, import_time: float) -> str:
    """Put what we ask of ourselves beside what was measured."""
    shapes = shapes_of(results)
    large = [shape for shape in shapes if shape == (100_000, 30)]
    fit, own, paper = "fit_seconds", "predict_seconds", "SCBoost, paper form"
    body = []

    def add(label: str, limit: float, by_threads: list[list[float]], *, at_least: bool = False) -> None:
        if np.isnan([v for values in by_threads for v in values]).any():
            return  # not measured
        cells = []
        for values in by_threads:
            met = all(value >= limit if at_least else value <= limit for value in values)
            cells.append(", ".join(f"{v:.2f}" if v < 10 else f"{v:.0f}" for v in values) + ("" if met else " (missed)"))
        body.append([label, f"at {'least' if at_least else 'most'} {limit:g}", *cells, *[""] * (2 - len(cells))])

    def against(label: str, limit: float, field: str, method: str, chosen: list[Shape]) -> None:
        found = [ratios(results, field, method, "XGBoost", chosen, t) for t in (1, 2)]
        add(f"{label} / XGBoost, {', '.join(names_of(chosen))}", limit, found)

    for limit, chosen in by_limit(shapes):
        against("fit", limit, fit, "SCBoost", chosen)
    cv = [results.median(fit, kind="cv", method=m) for m in ("SCBoost", "XGBoost")]
    add(f"{CV_FITS} fits / XGBoost, {names_of([CV_SHAPE])[0]}", 2.0, [[cv[0] / cv[1]]])
    found = [ratios(results, fit, paper, BASES[paper], shapes, t) for t in (1, 2)]
    add(f"paper form / XGBoost, depth 5, {', '.join(names_of(shapes))}", 1.5, found)
    against("predict", 1.05, own, "SCBoost", shapes)
    with_literal = [shape for shape in shapes if ratios(results, fit, "literal", "SCBoost", [shape], 1)]
    for chosen, limit in ((with_literal, 20), (large, 100)):
        found = [ratios(results, fit, "literal", "SCBoost", chosen, 1)]
        add(f"literal / SCBoost, {', '.join(names_of(chosen))}", limit, found, at_least=True)
    add("800 rounds / 400 rounds", 2.1, [[doubling(results, "SCBoost")]])
    add("paper form: 800 rounds / 400 rounds", 2.5, [[doubling(results, paper)]])
    peaks = [results.median("peak_bytes", kind="memory", method=m, rounds=PEAK_ROUNDS) for m in ("SCBoost", "XGBoost")]
    above = (peaks[0] - peaks[1]) / PEAK_SHAPE[0]
    add(f"bytes per sample above XGBoost's peak, {names_of([PEAK_SHAPE])[0]}", 40, [[above]])
    add("paper form: bytes per sample and round of history", 4, [[bytes_per_row_and_round(results, paper)]])
    add("memory of 5: bytes per sample and round", 0, [[bytes_per_row_and_round(results, "SCBoost")]])
    add("seconds of `import scboost` above `import xgboost`", 0.3, [[import_time]])
    return table(["", "target", "1 thread", "2 threads"], body)


def matrix_table(results: Results) -> str:
    """Write what `tree_matrix` takes, as multiples of the model's own prediction."""
    body = []
    for method in results.distinct("method", kind="trees"):
        cells = []
        for threads in (1, 2):
            key = {"kind": "trees", "method": method, "threads": threads}
            own, matrix = (results.median(field, **key) for field in ("predict_seconds", "matrix_seconds"))
            cells += [f"{own:.3f} s", f"{matrix / own:.2f}"] if results.select(**key) else ["", ""]
        body.append([method, *cells])
    return table(["", "predict, 1 thread", "ratio", "predict, 2 threads", "ratio"], body)


def medians(results: Results, kind: str, method: str) -> tuple[list[int], list[float]]:
    """Sizes (rows or rounds) and the median seconds of a fit at each."""
    sizes = sorted({int(row[kind]) for row in results.select(kind=kind)})
    return sizes, [results.median("fit_seconds", kind=kind, method=method, **{kind: size}) for size in sizes]


def growth_table(results: Results) -> str:
    """Exponents of rows and rounds."""
    body = []
    for method in ("XGBoost", "SCBoost", "SCBoost, paper form"):
        by_rows, by_rounds = (medians(results, kind, method) for kind in ("rows", "rounds"))
        slopes = [exponent(list(map(float, sizes)), seconds) for sizes, seconds in (by_rows, by_rounds)]
        body.append([method, *(f"{v:.2f}" for v in (*slopes, doubling(results, method)))])
    return table(["", "time ~ n^", "time ~ T^", "T = 800 / T = 400"], body)


def memory_table(results: Results) -> str:
    """Peaks of fits."""
    body = []
    for method in (*BASES, *BASES.values()):
        peaks = [results.median("peak_bytes", kind="memory", method=method, rounds=T) for T in (50, 200)]
        above = f"{bytes_per_row_and_round(results, method):.2f}" if method in BASES else ""
        body.append([method, *(f"{peak / 2**20:.0f} MB" for peak in peaks), above])
    return table(["", "peak of a fit, T = 50", "T = 200", "bytes per sample and round above XGBoost"], body)


def scale_table(results: Results) -> str:
    """Fits of the largest shape: seconds on the wall, and peaks."""
    body = []
    for method in results.distinct("method", kind="scale"):
        seconds, peak = (results.median(c, kind="scale", method=method) for c in ("fit_seconds", "peak_bytes"))
        base = results.median("fit_seconds", kind="scale", method="XGBoost")
        body.append([method, f"{seconds:.1f} s", f"{seconds / base:.2f}", f"{peak / 2**20:,.0f} MB"])
    return table(["", "fit", "ratio", "peak memory"], body)


def profiled_shapes(profiles: Results) -> list[Shape]:
    """Shapes that were profiled, fewest rows first."""
    return sorted({(int(row["rows"]), int(row["columns"])) for row in profiles.rows})


def cpu_ratio(profiles: Results, shape: Shape, method: str = "SCBoost") -> float:
    """CPU time of a fit over that of XGBoost with the same shape of trees, one thread."""
    where = {"rows": shape[0], "columns": shape[1]}
    own, base = (profiles.median("seconds", method=m, **where) for m in (method, BASES[method.removesuffix(WITHOUT)]))
    return own / base


def cpu_targets(profiles: Results) -> str:
    """Put what we ask of the CPU time of fits beside what was measured."""
    paper = "SCBoost, paper form"
    shapes = profiled_shapes(profiles)
    groups = [("fit", "SCBoost", limit, chosen) for limit, chosen in by_limit(shapes)]
    groups.append(("paper form", paper, 1.5, [s for s in shapes if s not in (CV_SHAPE, (4_000, 5))]))
    body = []
    for label, method, limit, chosen in groups:
        found = [cpu_ratio(profiles, shape, method) for shape in chosen]
        met = "" if all(ratio <= limit for ratio in found) else " (missed)"
        asked = f"at most {limit:g}"
        body.append(
            [f"{label} / XGBoost, {', '.join(names_of(chosen))}", asked, ", ".join(f"{r:.2f}" for r in found) + met]
        )
    if PEAK_SHAPE in shapes:
        share, seconds = many_cores(profiles, PEAK_SHAPE)
        ours, base = seconds[16]
        for label, limit, value, unit in (
            (f"serial share of a round, {names_of([PEAK_SHAPE])[0]}", 5, 100 * share, " %"),
            (f"predicted at 16 cores / XGBoost, {names_of([PEAK_SHAPE])[0]}", 1.25, ours / base, ""),
        ):
            measured = f"{value:.3g}{unit}" + ("" if value <= limit else " (missed)")
            body.append([label, f"at most {limit:g}{unit}", measured])
    return table(["", "target", "measured"], body)


def profile_table(profiles: Results) -> str:
    """Where the time goes: medians, and the ratio to XGBoost with the same shape of trees."""
    columns = ("seconds", *PARTS, "the rest")
    body = []
    for shape in profiled_shapes(profiles):
        where = {"rows": shape[0], "columns": shape[1]}
        for method in profiles.distinct("method", **where):
            values = {c: profiles.median(c, method=method, **where) for c in ("leaves", *columns)}
            ours = method.removesuffix(WITHOUT) in BASES
            ratio = f"{cpu_ratio(profiles, shape, method):.2f}" if ours else "1"
            body.append(
                [*names_of([shape]), method, f"{values['leaves']:.1f}", ratio, *(f"{values[c]:.3g}" for c in columns)]
            )
    shown = [c.replace("row blocks", "sample blocks") for c in columns]
    return table(["", "", "leaves per tree", "ratio", *shown], body)


def trees_alone(profiles: Results) -> str:
    """Return the ratios to XGBoost of binning and tree growth alone, for narrow shapes."""
    found = []
    for n, d in profiled_shapes(profiles):
        if d < WIDE:
            own, base = (
                sum(profiles.median(part, method=m, rows=n, columns=d) for part in ("binning", "tree growth"))
                for m in ("SCBoost", BASES["SCBoost"])
            )
            found.append(f"{own / base:.2f} at {names_of([(n, d)])[0]}")
    return ", ".join(found)


def many_cores(profiles: Results, shape: Shape) -> tuple[float, dict[int, tuple[float, float]]]:
    """Return the serial share of a round, and predicted seconds of our fit and of XGBoost's by the number of cores.

    Serial is everything but trees, bins and blocks of many rows.
    """
    parts = {}
    for method in ("SCBoost", BASES["SCBoost"]):
        where = {"method": method, "rows": shape[0], "columns": shape[1]}
        on_one = SERIAL if shape[0] >= runtime_threads._THREADED else (*SERIAL, "row blocks")  # noqa: SLF001
        serial = sum(profiles.median(name, **where) for name in on_one)
        parts[method] = serial, profiles.median("seconds", **where) - serial
    (serial, parallel), (base_serial, base_parallel) = parts.values()
    binning = profiles.median("binning", method="SCBoost", rows=shape[0], columns=shape[1])
    seconds = {cores: (serial + parallel / cores, base_serial + base_parallel / cores) for cores in CORES}
    return serial / (serial + parallel - binning), seconds


def cores_table(profiles: Results) -> str:
    """Write what :func:`many_cores` predicts."""
    body = []
    for shape in profiled_shapes(profiles):
        share, seconds = many_cores(profiles, shape)
        cells = [f"{ours:.2f} s, {ours / base:.2f}" for ours, base in seconds.values()]
        body.append([*names_of([shape]), f"{100 * share:.1f} %", *cells])
    return table(["", "serial share of a round", *(f"{c} core{'s' * (c > 1)}" for c in CORES)], body)


def page_text(output: Path) -> str:
    """Write the page from the result files in a folder."""
    results, profiles = Results(output / "bench.csv", KEY), Results(output / "profile.csv", PROFILE_KEY)
    made = results.runs[-1]
    blocks = [
        f"## {what}, {t} thread{'s' * (t > 1)}\n\n{ratio_table(results, field, t)}"
        for t in sorted(map(int, results.distinct("threads", kind="shape")))
        for what, field in (("Fit", "fit_seconds"), ("Predict", "predict_seconds"))
    ]
    return fill(
        template("speed"),
        versions=made_with(results, profiles),
        made=results.made_by(),
        machine=made["machine"],
        rounds=N_ROUNDS,
        literal_size=LITERAL_SIZE,
        literal_rounds=LITERAL_ROUNDS,
        targets=targets(results, made["import_seconds"]),
        ratios="\n\n".join(blocks),
        growth=growth_table(results),
        memory=memory_table(results),
        scale_shape=names_of([SCALE_SHAPE])[0],
        scale_rounds=SCALE_ROUNDS,
        scale=scale_table(results),
        matrix_shape=names_of([MATRIX_SHAPE])[0],
        matrix=matrix_table(results),
        profile=profile_table(profiles),
        trees_alone=trees_alone(profiles),
        cores=cores_table(profiles),
        cpu_targets=cpu_targets(profiles),
        profile_made=profiles.made_by(),
        profile_machine=profiles.runs[-1]["machine"] if profiles.runs else "",
    )


def draw_growth(results: Results, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, kind, label in zip(axes, ("rows", "rounds"), ("rows (50 rounds)", "rounds (10,000 rows)"), strict=True):
        for method in ("XGBoost", "SCBoost", "SCBoost, paper form"):
            sizes, seconds = medians(results, kind, method)
            ax.loglog(sizes, seconds, marker="o", label=method)
        ax.set(xlabel=label, ylabel="fit, seconds")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
