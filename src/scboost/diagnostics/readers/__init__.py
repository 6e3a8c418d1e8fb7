"""Readers of tree ensembles, one module per library."""

from scboost.diagnostics.readers import catboost, lightgbm, sklearn, xgboost

BUILT_IN = (sklearn.READER, catboost.READER, lightgbm.READER, xgboost.READER)
