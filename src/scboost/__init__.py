"""Boosting that does not repeat itself."""

from ._diagnostics import RedundancyReport, redundancy_report
from ._estimators import SCBoostClassifier
from ._treematrix import TreeMatrix, tree_matrix

__version__ = "0.1.0"

__all__ = ["RedundancyReport", "SCBoostClassifier", "TreeMatrix", "redundancy_report", "tree_matrix"]
