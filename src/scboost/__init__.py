"""Boosting that does not repeat itself."""

__version__ = "0.1.0"
