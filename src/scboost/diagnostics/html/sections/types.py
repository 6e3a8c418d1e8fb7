"""Types of the tabs."""

from __future__ import annotations

from typing import Any

Section = dict[str, Any]
"""Values of a template."""
