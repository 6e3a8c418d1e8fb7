"""Write docs/reliability.md from its template and from the figures of the last long runs."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TEMPLATE = Path(__file__).with_suffix(".md")
FIGURES = ROOT / "results" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"


def _read(name: str) -> Any:
    path = FIGURES / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _run(name: str, figures: dict[str, Any] | None, said: str) -> str:
    if figures is None:
        return f"| `make {name}` | no run is on record | | |"
    versions = ", ".join(f"{library} {version}" for library, version in figures.get("versions", {}).items())
    return f"| `make {name}` | {said} | {figures.get('date', '')} | {versions} |"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def _matrix(compat: dict[str, Any]) -> str:
    """Say what passed in which environment."""
    environments = compat["environments"]
    failed = sum(row["failed"] + row["error"] for row in environments)
    found = "; ".join(
        f"{row['environment']}: Python {row['python']}, XGBoost {row['versions']['xgboost-cpu']}, scikit-learn "
        f"{row['versions']['scikit-learn']}, NumPy {row['versions']['numpy']}, {row['passed']:,} passed"
        + (f", {row['failed'] + row['error']} failed" if row["not passed"] else "")
        for row in environments
    )
    missing = ", ".join(compat["Python versions not found"])
    return (
        f"**{len(environments)} environments, {failed} failed tests** ({found})"
        + (f"; not installed here: Python {missing}" if missing else "")
        + f": `{compat['command']}`"
    )


def page() -> str:
    """Return the text of the page."""
    soak, kill, fuzz, compat = (_read(name) for name in ("soak", "kill", "fuzz", "compat"))
    rows = ["| run | found | date | versions |", "|---|---|---|---|"]
    said = ""
    if soak is not None:
        runs = [*soak["earlier runs"], soak]
        cases, violations = (sum(run[name] for run in runs) for name in ("cases", "violations"))
        clean = list(takewhile(lambda run: not run["violations"], reversed(runs)))
        longest = max((run for run in runs if not run["violations"]), key=lambda run: run["cases"], default=None)
        said = (
            f"**{cases:,} cases in {len(runs)} runs found {violations} violations, the last "
            f"{sum(run['cases'] for run in clean):,} cases none**. "
            + (f"The longest run without any: {longest['cases']:,} cases, `{longest['command']}`. " if longest else "")
            + f"The last run, {soak['minutes']:g} "
            f"minutes, `{soak['command']}`: {_counts(soak['outcomes'])}; checks: {_counts(soak['checks'])}"
        )
    rows.append(_run("soak", soak, said))
    if kill is not None:
        disks = ", ".join(
            f"{name}: {'held' if all(found.values()) else 'broken'}" for name, found in kill["disks"].items()
        )
        said = (
            f"**{kill['kills']:,} kills over {kill['configurations']} configurations, {len(kill['lost'])} lost**, "
            f"{kill['kills with a checkpoint']:,} of them with a checkpoint on disk, {kill['stray files']} stray "
            f"files; {disks}; {kill['minutes']:g} minutes: `{kill['command']}`"
        )
    rows.append(_run("kill-test", kill, said))
    if fuzz is not None:
        said = f"**{fuzz['mutants']:,} mutants of model files, {fuzz['violations']} violations**: `{fuzz['command']}`"
    rows.append(_run("fuzz", fuzz, said))
    if compat is not None:
        compat["date"] = max(row["date"] for row in compat["environments"])
        said = _matrix(compat)
    rows.append(_run("compat", compat, said))
    return TEMPLATE.read_text().replace("{figures}", "\n".join(rows))


if __name__ == "__main__":
    PAGE.write_text(page())
