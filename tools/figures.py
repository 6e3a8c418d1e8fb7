"""What the figures of a long run say of themselves, and how they are written."""

from __future__ import annotations

import datetime as dt
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import xgboost

import scboost


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


def finish(figures: dict[str, Any], output: Path | None) -> int:
    """Print figures, write them to a file if one is given, and return the exit code: 1 if there are violations."""
    print(write(figures, output))
    return int(figures["violations"] > 0)
