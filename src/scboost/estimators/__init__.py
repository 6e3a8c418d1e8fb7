"""The scikit-learn estimators: intake -> rows; parameters -> plan; plan and rows -> training -> weighting -> model."""

from scboost.estimators.classifier import SCBoostClassifier
from scboost.estimators.regressor import SCBoostRegressor

__all__ = ["SCBoostClassifier", "SCBoostRegressor"]
