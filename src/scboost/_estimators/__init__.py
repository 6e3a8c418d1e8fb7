"""The scikit-learn estimators: intake and parameters -> specification -> training -> weighting -> model."""

from scboost._estimators.classifier import SCBoostClassifier
from scboost._estimators.distribution import SCBoostDistribution
from scboost._estimators.ranker import SCBoostRanker
from scboost._estimators.regressor import SCBoostRegressor
from scboost._estimators.survival import SCBoostSurvival

__all__ = ["SCBoostClassifier", "SCBoostDistribution", "SCBoostRanker", "SCBoostRegressor", "SCBoostSurvival"]
