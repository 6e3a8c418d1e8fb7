"""
Redundancy of four libraries
============================

Four libraries at the same learning rate and number of rounds. Redundancy depends strongly on both, so compare models
only at equal values.
"""

import matplotlib.pyplot as plt
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from xgboost import XGBClassifier

from scboost import SCBoostClassifier, redundancy_report

X, y = make_classification(5000, 20, n_informative=8, flip_y=0.05, random_state=0)
T, rate = 100, 0.1
models = {
    "SCBoost": SCBoostClassifier(n_estimators=T, learning_rate=rate, random_state=0, n_jobs=1),
    "XGBoost": XGBClassifier(n_estimators=T, learning_rate=rate, n_jobs=1),
    "LightGBM": LGBMClassifier(n_estimators=T, learning_rate=rate, n_jobs=1, verbose=-1),
    "CatBoost": CatBoostClassifier(
        iterations=T, learning_rate=rate, thread_count=1, verbose=0, allow_writing_files=False
    ),
}
figure, axes = plt.subplots(1, 4, figsize=(14, 3.8), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X[:2500], y[:2500])
    report = redundancy_report(model, X[2500:], y[2500:])
    image = ax.imshow(report.correlations, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set(title=f"{name}: redundancy {report.redundancy:.2f}", xlabel="round")
    print(f"{name:<10} redundancy {report.redundancy:.3f}, accuracy {report.ensemble_score:.3f}")
figure.colorbar(image, ax=axes, label="correlation of two trees", shrink=0.8)
