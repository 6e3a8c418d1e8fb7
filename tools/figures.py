"""What the figures of a long run say of themselves, and how they are written."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import xgboost

import scboost


def arguments(doc: str | None, counted: str, **more: dict[str, Any]) -> argparse.Namespace:
    """Read the command line of a long run of cases, which are counted by a name and numbered from 0; add options."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(f"--{counted}", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--only", type=int, help=f"run the one of this number, of all {counted}, here and now")
    parser.add_argument("--output", type=Path, help="where to write the figures")
    parser.add_argument("--anew", action="store_true", help="start at 0, not where the figures in the output end")
    for name, options in more.items():
        parser.add_argument(f"--{name}", **options)
    return parser.parse_args()


def described(command: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return figures with the command, the date and the versions that they belong to."""
    versions = {"numpy": np, "scikit-learn": sklearn, "xgboost": xgboost, "scboost": scboost}
    return {
        "command": command,
        "date": dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
        "versions": {"python": platform.python_version(), **{name: m.__version__ for name, m in versions.items()}},
        **found,
    }


def write(figures: dict[str, Any], output: Path | None) -> str:
    """Return figures as text, and write them to a file if one is given."""
    text = json.dumps(figures, indent=2)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n")
    return text


def earlier_runs(
    output: Path | None, now: dict[str, Any], counted: str, *, anew: bool = False
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Read the figures to go on from, if those on record are of the same run, and what the runs before it found.

    A run that starts anew goes on from no figures: those on record are of an earlier run.
    """
    if output is None or not output.exists():
        return None, []
    last = json.loads(output.read_text())
    before = last.get("earlier runs", [])
    if not anew and all(last.get(name) == value for name, value in now.items() if name != "date"):
        return last, before
    return None, [*before, {name: last[name] for name in ("command", "date", counted, "violations")}]


def finish(figures: dict[str, Any], output: Path | None) -> int:
    """Print figures, write them to a file if one is given, and return the exit code: 1 if there are violations."""
    print(write(figures, output))
    return int(figures["violations"] > 0)
