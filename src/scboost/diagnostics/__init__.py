"""Diagnostics of tree ensembles of any library: redundancy of the trees, re-weighting, pruning and an HTML report.

:func:`tree_matrix` reads the trees of a model, :func:`redundancy_report` measures their redundancy, :func:`reweight`
learns new tree weights, :func:`prune` selects a small subset of trees and :func:`report` writes an HTML report. Models
of other libraries are supported through :func:`register_reader`.
"""

from scboost.diagnostics._frontier import Frontier, FrontierCurve, FrontierTask, frontier
from scboost.diagnostics._measures import (
    Ambiguity,
    ambiguity,
    correct_votes,
    double_fault,
    effective_rank,
    energy_by_component,
    innovation,
    mean_of_pairs,
    pairwise_disagreement,
    q_statistic,
    redundancy_ratio,
    singular_spectrum,
    tree_correlation,
    tree_covariance,
    truncation_path,
    vote_correlation,
    vote_gram,
)
from scboost.diagnostics._prune import prune
from scboost.diagnostics._redundancy import RedundancyReport, redundancy_report
from scboost.diagnostics._registry import Reader, read_ensemble, register_reader
from scboost.diagnostics._report import Report, report
from scboost.diagnostics._reweight import Reweighted, reweight
from scboost.diagnostics._tree_matrix import EnsembleReader, TreeMatrix, iter_tree_matrix, tree_matrix
from scboost.diagnostics.readers import BUILT_IN
from scboost.diagnostics.readers.sklearn import WeightedTrees

__all__ = [
    "Ambiguity",
    "EnsembleReader",
    "Frontier",
    "FrontierCurve",
    "FrontierTask",
    "Reader",
    "RedundancyReport",
    "Report",
    "Reweighted",
    "TreeMatrix",
    "WeightedTrees",
    "ambiguity",
    "correct_votes",
    "double_fault",
    "effective_rank",
    "energy_by_component",
    "frontier",
    "innovation",
    "iter_tree_matrix",
    "mean_of_pairs",
    "pairwise_disagreement",
    "prune",
    "q_statistic",
    "read_ensemble",
    "redundancy_ratio",
    "redundancy_report",
    "register_reader",
    "report",
    "reweight",
    "singular_spectrum",
    "tree_correlation",
    "tree_covariance",
    "tree_matrix",
    "truncation_path",
    "vote_correlation",
    "vote_gram",
]

for _reader in BUILT_IN:
    register_reader(_reader)
