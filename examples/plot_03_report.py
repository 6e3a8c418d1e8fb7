"""
A report of any model
=====================

:func:`scboost.report` works for SCBoost, XGBoost, LightGBM, CatBoost and scikit-learn's ensembles. In a notebook it
is displayed as below; ``.save("report.html")`` writes a single offline file.
"""

from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification

import scboost

X, y = make_classification(4000, 12, n_informative=6, flip_y=0.1, random_state=0)
model = LGBMClassifier(n_estimators=150, n_jobs=1, verbose=-1).fit(X[:1500], y[:1500])
scboost.report(model, X[1500:], y[1500:], X_train=X[:1500], y_train=y[:1500])
