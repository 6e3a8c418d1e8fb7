"""Gradient boosting with strong defaults, and tools that compress and inspect any tree ensemble.

More names are in the packages :mod:`scboost.diagnostics` (measures, re-weighting, readers of other libraries),
:mod:`scboost.plotting` and :mod:`scboost.weighting`.
"""

from scboost._data.batches import Batches
from scboost._estimators import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival
from scboost._estimators.checkpoint import Checkpoint
from scboost._estimators.compression import compress
from scboost._estimators.model_file import load_model
from scboost._model.check import check_model
from scboost._model.codegen import export_c, export_js, export_sql
from scboost._model.exports import encode_features, to_onnx, to_treelite
from scboost._version import __version__ as __version__
from scboost.diagnostics import prune, redundancy_report, report, reweight, tree_matrix

__all__ = [
    "Batches",
    "Checkpoint",
    "SCBoostClassifier",
    "SCBoostDistribution",
    "SCBoostRanker",
    "SCBoostRegressor",
    "SCBoostSurvival",
    "check_model",
    "compress",
    "encode_features",
    "export_c",
    "export_js",
    "export_sql",
    "load_model",
    "prune",
    "redundancy_report",
    "report",
    "reweight",
    "to_onnx",
    "to_treelite",
    "tree_matrix",
]
