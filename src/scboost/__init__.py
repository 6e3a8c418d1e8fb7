"""Boosting that does not repeat itself."""

from ._estimators import SCBoostClassifier

__version__ = "0.1.0"

__all__ = ["SCBoostClassifier"]
