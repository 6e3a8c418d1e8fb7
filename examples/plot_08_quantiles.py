"""
Prediction intervals from quantiles
===================================

Several quantiles of one model give an interval that is wide where the data are noisy.
"""

import matplotlib.pyplot as plt
import numpy as np

from scboost import SCBoostRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 1500))
y = np.sin(x) + rng.normal(scale=0.05 + 0.06 * x)
grid = np.linspace(0, 10, 300)[:, None]
model = SCBoostRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], n_estimators=80, max_leaves=8, random_state=0)
low, middle, high = model.fit(x[:, None], y).predict(grid).T

# %%
figure, ax = plt.subplots(layout="constrained")
ax.scatter(x, y, s=4, color="0.7", label="samples")
ax.fill_between(grid[:, 0], low, high, alpha=0.35, label="10 % to 90 %")
ax.plot(grid[:, 0], middle, label="median")
ax.set(xlabel="x", ylabel="y", title="Three quantiles")
ax.legend(frameon=False)
