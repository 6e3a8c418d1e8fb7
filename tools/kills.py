"""What the tools that kill workers share: the problem, and when a fit has kept what is promised."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from figures import described, finish

ROUNDS, TIMEOUT = 150, 5


def options(text: str | None, arguments: list[str] | None) -> Any:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--output", type=Path)
    return parser.parse_args(arguments)


def problem(rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw rows with few distinct values, and two classes."""
    X = rng.normal(size=(4000, 8)).round(1).astype(np.float32)
    return X, (X[:, 0] - X[:, 1] * X[:, 2] + rng.normal(size=4000) > 0).astype(int)


def finish_kills(command: str, library: dict[str, str], fits: list[dict[str, Any]], output: Path | None) -> int:
    """Print and write what was found, and return the exit code: 1 if a fit has broken a promise or was slow to end."""
    limits = {"SIGKILL": 10.0, "SIGSTOP": TIMEOUT + 10.0}
    wrong = [
        fit
        for fit in fits
        if any(value is None or value is False for value in fit.values())
        or not fit["seconds to the error"] <= limits[fit["signal"]]
    ]
    return finish(described(command, {"violations": len(wrong), **library, "timeout": TIMEOUT, "fits": fits}), output)
