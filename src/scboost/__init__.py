"""Boosting that does not repeat itself.

Estimators, and tools that show and remove the redundancy of any tree ensemble.
"""

from .estimators.base import SCBoostClassifier, SCBoostRegressor
from .estimators.callbacks import Checkpoint
from .plotting import (
    plot_correlation,
    plot_energy,
    plot_innovation,
    plot_report,
    plot_spectrum,
    plot_trees_kept,
    plot_weights,
)
from .redundancy.measures import (
    RedundancyReport,
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
    redundancy_report,
    singular_spectrum,
    tree_correlation,
    tree_covariance,
    truncation_path,
    vote_correlation,
)
from .redundancy.reweight import Reweighted, WeightedTrees, prune, reweight
from .redundancy.tree_matrix import TreeMatrix, iter_tree_matrix, tree_matrix
from .weighting import Weights, nonnegative_weights, simplex_weights

__version__ = "0.2.0.dev0"

__all__ = [
    "Checkpoint",
    "RedundancyReport",
    "Reweighted",
    "SCBoostClassifier",
    "SCBoostRegressor",
    "TreeMatrix",
    "WeightedTrees",
    "Weights",
    "ambiguity",
    "correct_votes",
    "double_fault",
    "effective_rank",
    "energy_by_component",
    "innovation",
    "iter_tree_matrix",
    "mean_of_pairs",
    "nonnegative_weights",
    "pairwise_disagreement",
    "plot_correlation",
    "plot_energy",
    "plot_innovation",
    "plot_report",
    "plot_spectrum",
    "plot_trees_kept",
    "plot_weights",
    "prune",
    "q_statistic",
    "redundancy_ratio",
    "redundancy_report",
    "reweight",
    "simplex_weights",
    "singular_spectrum",
    "tree_correlation",
    "tree_covariance",
    "tree_matrix",
    "truncation_path",
    "vote_correlation",
]
