"""
The training log
================

For every round, the training log records the share of the gradient that lies in the span of the latest trees: what
projection removes.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from scboost import SCBoostClassifier

X, y = load_digits(return_X_y=True)
y = y >= 5
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for rate in (0.05, 0.1, 0.3):
    model = SCBoostClassifier(n_estimators=100, learning_rate=rate, random_state=0).fit(X, y)
    log = model.training_log_
    axes[0].plot(log["round"], log["loss"], label=f"learning rate {rate}")
    axes[1].plot(log["round"], log["energy_removed"], label=f"learning rate {rate}")
axes[0].set(xlabel="round", ylabel="training log-loss", yscale="log", title="Loss")
axes[1].set(xlabel="round", ylabel="share of the gradient", title="Historical component")
axes[1].legend(frameon=False)
