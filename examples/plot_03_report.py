"""
A report of any model
=====================

:func:`scboost.report` works for SCBoost, XGBoost, LightGBM, CatBoost and scikit-learn's ensembles. In a notebook it
is displayed as below; ``.save("report.html")`` writes a single offline file.
"""

import matplotlib.pyplot as plt
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification

import scboost

X, y = make_classification(3000, 12, n_informative=6, flip_y=0.1, random_state=0)
model = LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1).fit(X[:1500], y[:1500])
report = scboost.report(model, X[1500:], y[1500:], X_train=X[:1500], y_train=y[:1500])
report

# %%
# ``report.analysis`` holds the results, for figures of your own.

bins = report.analysis.calibration
figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", ls=":")
ax.errorbar(bins.predicted, bins.observed, (bins.observed - bins.low, bins.high - bins.observed), fmt="o-")
ax.set(xlabel="mean predicted probability", ylabel="observed frequency", title="Reliability diagram of LightGBM")
