"""
Feature importance
==================

Permutation importance on the test set, and the partial dependence of the most important feature.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.model_selection import train_test_split

from scboost import SCBoostRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = SCBoostRegressor(n_estimators=80, random_state=0).fit(X_train, y_train)
importance = permutation_importance(model, X_test, y_test, n_repeats=10, random_state=0)
order = np.argsort(importance.importances_mean)

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
axes[0].barh(X.columns[order], importance.importances_mean[order], xerr=importance.importances_std[order], color="C0")
axes[0].set(xlabel="decrease in R2 when the feature is permuted", title="Permutation importance")
PartialDependenceDisplay.from_estimator(model, X_test, ["bmi"], ax=axes[1], kind="both", subsample=40, random_state=0)
axes[1].set_title("Effect of bmi")
