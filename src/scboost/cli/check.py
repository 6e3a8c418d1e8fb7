"""``scboost check``."""

from __future__ import annotations

import argparse

from scboost import check_model
from scboost.cli.console import say

SUMMARY = "check model files of XGBoost, LightGBM and scboost without loading them"
EXAMPLES = (
    "scboost check model.json",
    "scboost check models/*.ubj models/*.txt && echo sound",
)
ERROR, NOT_COVERED = 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="XGBoost's .json or .ubj, or LightGBM's text")
    parser.add_argument(
        "--max-bytes", type=int, default=1 << 30, metavar="N", help="do not read larger files (default: 1 GiB)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 0 if there are none, 1 if there are errors, 2 if a file is not covered."""
    severities = set()
    for file in arguments.files:
        try:
            findings = check_model(file, max_bytes=arguments.max_bytes)
        except OSError as error:
            say(f"{file}: not covered: {error.strerror or error}")
            severities.add("not covered")
            continue
        severities |= {finding.severity for finding in findings}
        for text in [str(finding) for finding in findings] or ["ok"]:
            say(f"{file}: {text}")
    return ERROR if "error" in severities else NOT_COVERED if severities else 0
