"""Write docs/distributed.md from its template and from the figures in results/distributed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TEMPLATE = Path(__file__).with_suffix(".md")
FIGURES = ROOT / "results" / "distributed"
PAGE = ROOT / "docs" / "distributed.md"

_NONE = "No run is on record."


def _read(name: str) -> Any:
    path = FIGURES / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _origin(figures: dict[str, Any]) -> str:
    versions = ", ".join(f"{library} {version}" for library, version in figures["versions"].items())
    return f"`{figures['command']}`, {figures['date']}, {versions}."


def _traffic(scaling: Any) -> tuple[str, str]:
    if scaling is None:
        return _NONE, ""
    m = scaling["measured"]
    size = f"{m['rows']:,} x {m['columns']}"
    in_calls = m["collective seconds of a fit"] / m["scboost, seconds"]
    waiting = m["milliseconds a call, waiting included"]
    rows = [
        ["collective calls a round", f"{m['calls a round']:g}"],
        ["bytes a round", f"{m['bytes a round']:,.0f}"],
        ["milliseconds a call on loopback, waiting for the other worker included", f"{waiting:.2f}"],
        ["share of the fit's time that is spent in them", f"{in_calls:.1%}"],
    ]
    fits = []
    for said, unit in (("seconds on the clock", "seconds"), ("CPU seconds", "CPU seconds")):
        plain, ours = m[f"XGBoost, {unit}"], m[f"scboost, {unit}"]
        fits.append([said, f"{plain:.2f}", f"{ours:.2f}", f"{ours / plain:.2f}"])
    text = (
        f"{size}, {m['rounds']} rounds of depth 6, two processes of one thread each, shortest of "
        f"{len(scaling['fits']) // 2} fits in turn (load of the machine before: "
        f"{scaling['load when it began']:.1f}):\n\n"
    )
    compared = _table(["", "xgboost.dask", "scboost.dask", "ratio"], fits)
    return _table(["", size], rows), f"{text}{compared}\n\n{_origin(scaling)}"


def _kills() -> str:
    parts = []
    for engine in ("dask", "spark"):
        found = _read(f"kill_{engine}")
        if found is None:
            parts.append(f"**{engine.capitalize()}**: no run is on record.")
            continue
        killed = [fit for fit in found["fits"] if fit["signal"] == "SIGKILL"]
        stopped = [fit for fit in found["fits"] if fit["signal"] == "SIGSTOP"]
        slowest = max(fit["seconds to the error"] for fit in killed)
        rounds = ", ".join(str(fit["round"]) for fit in killed)
        said = (
            f"**{engine.capitalize()}**: {len(killed)} fits lost a worker (SIGKILL) in rounds {rounds}. "
            f"{sum(fit['resumed to the bit'] for fit in killed)} of them were resumed to the bit; the error came after "
            f"{slowest:.1f} s at most."
        )
        if stopped:
            said += (
                f" A worker that was stopped (SIGSTOP) ended the fit after {stopped[0]['seconds to the error']:.1f} s, "
                f"with a timeout of {found['timeout']} s."
            )
        parts.append(f"{said} {_origin(found)}")
    return "\n\n".join(parts)


def _scaling(scaling: Any) -> str:
    kinds = [name for name in scaling if "scaling," in name]
    columns = ("XGBoost", "scboost", "ratio")
    rows = [
        [parts[0]["workers"], *(f"{part[column]:.3g}" for part in parts for column in columns)]
        for parts in zip(*(scaling[kind] for kind in kinds), strict=True)
    ]
    units = ("XGBoost, s a round", "scboost, s a round", "ratio")
    heads = [f"{kind.partition(', ')[2]}: {unit}" for kind in kinds for unit in units]
    return _table(["workers", *heads], rows)


def page() -> str:
    """Return the text of the page."""
    scaling = _read("scaling")
    traffic, fits = _traffic(scaling)
    network = {"latency, seconds": 0.0, "bandwidth, bytes a second": 0.0} if scaling is None else scaling["network"]
    parts = {
        "traffic": traffic,
        "fits": fits,
        "kills": _kills(),
        "scaling": _NONE if scaling is None else _scaling(scaling),
        "latency": f"{network['latency, seconds'] * 1e6:g} microseconds",
        "bandwidth": f"{network['bandwidth, bytes a second'] / 1e9:g} GB a second",
    }
    text = TEMPLATE.read_text()
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
