"""Write docs/reliability.md from its template and from the figures of the last long runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TEMPLATE = Path(__file__).with_suffix(".md")
FIGURES = ROOT / "results" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"


def _read(name: str) -> Any:
    return json.loads((FIGURES / f"{name}.json").read_text())


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def _row(title: str, figures: dict[str, Any], found: str) -> str:
    return f"| {title} | {found} | `{figures['command']}`, {figures['date']} |"


def _soak(soak: dict[str, Any]) -> str:
    return (
        f"**{soak['cases']:,} cases, {soak['violations']} violations** ({_counts(soak['outcomes'])}); checks: "
        f"{_counts(soak['checks'])}"
    )


def _kill(kill: dict[str, Any]) -> str:
    disks = ", ".join(f"{name} {'held' if all(found.values()) else 'broken'}" for name, found in kill["disks"].items())
    return (
        f"**{kill['kills']:,} kills, {len(kill['lost'])} lost**: {kill['configurations']} configurations, "
        f"{kill['kills with a checkpoint']:,} kills with a checkpoint on disk, {kill['stray files']} stray files; "
        f"{disks}"
    )


def _fuzz(fuzz: dict[str, Any]) -> str:
    refused, sound, same = (
        sum(found.get(name, 0) for found in fuzz["outcomes"].values()) for name in ("refused", "sound", "same")
    )
    violations = f"{fuzz['violations']} violation{'s' if fuzz['violations'] != 1 else ''}"
    return (
        f"**{fuzz['mutants']:,} mutants, {violations}**: {refused:,} rejected, {sound:,} accepted "
        f"as other valid models, {same:,} with the predictions of the original; methods compared: "
        f"{_counts(fuzz['comparisons'])}"
    )


def _mutants(figures: dict[str, Any]) -> str:
    crashes = {
        seen: sum(n for name, n in found.items() if name in _CRASHES) for seen, found in figures["outcomes"].items()
    }
    reported = crashes.get("error", 0), crashes.get("not covered", 0)
    return (
        f"{figures['mutants']:,} mutants; {sum(crashes.values()):,} crash or hang the library, **{sum(reported):,} of "
        f"these are reported** ({reported[0]:,} as errors, {reported[1]:,} as not covered)"
    )


_CRASHES = {"crashes", "hangs", "no memory"}


def _matrix(compat: dict[str, Any]) -> str:
    environments = compat["environments"]
    failed = sum(row["failed"] + row["error"] for row in environments)
    by_name = {row["environment"]: row for row in environments}
    ends = [
        f"{name}: Python {row['python']}, XGBoost {row['versions']['xgboost-cpu']}, scikit-learn "
        f"{row['versions']['scikit-learn']}, NumPy {row['versions']['numpy']}"
        for name, row in ((name, by_name[name]) for name in ("lowest", "newest"))
    ]
    return f"**{len(environments)} environments, {failed} failed tests** ({'; '.join(ends)})"


def figures() -> str:
    """Return the table of the longest runs."""
    soak, kill, fuzz, compat = (_read(name) for name in ("soak", "kill", "fuzz", "compat"))
    compat["date"] = max(row["date"] for row in compat["environments"])
    sound, files = _read("check_sound"), _read("compat_files")
    checked = f"**{sound['models']:,} models, {len(sound['false refusals'])} valid models rejected**"
    versions = (
        f"**{files['files']} files in {len(files['by version'])} versions: {files['same']} give the same "
        f"predictions, {files['refused']} raise an error, {files['violations']} give wrong predictions**"
    )
    rows = [
        "| run | result | command, date |",
        "|---|---|---|",
        _row("soak", soak, _soak(soak)),
        _row("kills", kill, _kill(kill)),
        _row("mutants of model files", fuzz, _fuzz(fuzz)),
        _row("`scboost check`, valid files of XGBoost and LightGBM", sound, checked),
        *(
            _row(f"`scboost check`, mutants of {library} files", found, _mutants(found))
            for library, found in (
                ("XGBoost", _read("check_mutants_xgboost")),
                ("LightGBM", _read("check_mutants_lightgbm")),
            )
        ),
        _row("scboost files in other versions of XGBoost", files, versions),
        _row("supported versions", compat, _matrix(compat)),
    ]
    return "\n".join(rows)


def history() -> str:
    """Return what earlier runs of the soak and the fuzzer found."""
    lines = []
    for name, counted in (("soak", "cases"), ("fuzz", "mutants")):
        runs = [run for run in _read(name)["earlier runs"] if run[counted]]
        total, violations = (sum(run[key] for run in runs) for key in (counted, "violations"))
        earlier = (
            f"{len(runs)} earlier {'run' if len(runs) == 1 else 'runs'}, {total:,} {counted}, {violations} violations"
        )
        lines.append(f"- `make {name}`: {earlier if runs else 'no earlier runs'}.")
        lines += [f"  - {run['date']}: {run['found']}" for run in runs if "found" in run]
    return "\n".join(lines)


def page() -> str:
    """Return the text of the page."""
    return TEMPLATE.read_text().replace("{figures}", figures()).replace("{history}", history())


if __name__ == "__main__":
    PAGE.write_text(page())
