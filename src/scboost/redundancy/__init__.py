"""How redundant the trees of any ensemble are, and what to do about it.

:func:`tree_matrix` reads the trees of a model, :func:`redundancy_report` measures them, :func:`reweight` gives them
other weights and :func:`prune` drops those that are not needed.
"""

from scboost.redundancy import catboost, lightgbm, sklearn, xgboost
from scboost.redundancy.libraries import Library, read_ensemble, register_library
from scboost.redundancy.measures import (
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
from scboost.redundancy.prune import prune
from scboost.redundancy.report import RedundancyReport, redundancy_report
from scboost.redundancy.reweight import Reweighted, reweight
from scboost.redundancy.sklearn import WeightedTrees
from scboost.redundancy.tree_matrix import EnsembleReader, TreeMatrix, iter_tree_matrix, tree_matrix

__all__ = [
    "Ambiguity",
    "EnsembleReader",
    "Library",
    "RedundancyReport",
    "Reweighted",
    "TreeMatrix",
    "WeightedTrees",
    "ambiguity",
    "correct_votes",
    "double_fault",
    "effective_rank",
    "energy_by_component",
    "innovation",
    "iter_tree_matrix",
    "mean_of_pairs",
    "pairwise_disagreement",
    "prune",
    "q_statistic",
    "read_ensemble",
    "redundancy_ratio",
    "redundancy_report",
    "register_library",
    "reweight",
    "singular_spectrum",
    "tree_correlation",
    "tree_covariance",
    "tree_matrix",
    "truncation_path",
    "vote_correlation",
    "vote_gram",
]

for _library in (sklearn, catboost, lightgbm, xgboost):
    register_library(_library.LIBRARY)
