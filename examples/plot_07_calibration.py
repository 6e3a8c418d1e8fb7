"""
Calibrated probabilities
========================

Too many rounds at a large learning rate make a boosted model over-confident; selecting the rounds avoids it.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from xgboost import XGBClassifier

from scboost import SCBoostClassifier

X, y = make_classification(4000, 12, n_informative=6, flip_y=0.15, random_state=0)
models = {
    "SCBoost, defaults": SCBoostClassifier(random_state=0, n_jobs=1),
    "XGBoost, 200 trees": XGBClassifier(n_estimators=200, n_jobs=1),
}
figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, model in models.items():
    p = model.fit(X[:1500], y[:1500]).predict_proba(X[1500:])[:, 1]
    CalibrationDisplay.from_predictions(y[1500:], p, n_bins=10, strategy="quantile", name=name, ax=ax)
    print(f"{name:<20} log-loss {log_loss(y[1500:], p):.3f}")
ax.set(title="Reliability diagram")
