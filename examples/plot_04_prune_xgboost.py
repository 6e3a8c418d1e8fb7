"""
Prune an XGBoost model
======================

Many trees of a boosted model can be dropped if the others are re-weighted. Select them on a validation set,
and evaluate the result on a separate test set.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from xgboost import XGBClassifier

from scboost import prune

X, y = make_classification(6000, 20, n_informative=8, flip_y=0.05, random_state=0)
model = XGBClassifier(n_estimators=150, learning_rate=0.05, n_jobs=1).fit(X[:2000], y[:2000])
sizes = [5, 10, 20, 40, 80, 150]
pruned, cut = [], []
for size in sizes:
    small = prune(model, X[2000:4000], y[2000:4000], max_trees=size).model
    pruned.append(log_loss(y[4000:], small.predict_proba(X[4000:])))
    cut.append(log_loss(y[4000:], model.predict_proba(X[4000:], iteration_range=(0, size))))

# %%
figure, ax = plt.subplots(layout="constrained")
ax.plot(sizes, cut, "o--", label="the first trees")
ax.plot(sizes, pruned, "o-", label="pruned")
ax.axhline(log_loss(y[4000:], model.predict_proba(X[4000:])), color="0.4", ls=":", label="all trees")
ax.set(xscale="log", xlabel="trees kept", ylabel="log-loss on the test set", title="Fewer trees of an XGBoost model")
ax.set_xticks(sizes, [str(size) for size in sizes])
ax.minorticks_off()
ax.legend(frameon=False)
