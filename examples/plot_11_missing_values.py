"""
Missing values and categorical features
=======================================

A table with missing values and a categorical feature needs no preparation. The more values are missing, the more the
model relies on the other feature.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from scboost import SCBoostClassifier

rng = np.random.default_rng(0)
n = 3000
city = rng.choice(["Oslo", "Lima", "Pune"], n)
age = rng.normal(45, 15, n)
y = age + 15 * (city == "Lima") + rng.normal(0, 8, n) > 50
shares = [0, 0.2, 0.4, 0.6, 0.8]
scores = []
for share in shares:
    gaps = np.where(rng.random(n) < share, np.nan, age)
    table = pd.DataFrame({"city": pd.Categorical(city), "age": gaps})
    model = SCBoostClassifier(preset="fast", random_state=0).fit(table[:1500], y[:1500])
    scores.append(model.score(table[1500:], y[1500:]))

# %%
figure, ax = plt.subplots(layout="constrained")
ax.plot(shares, scores, "o-")
ax.set(xlabel="share of missing ages", ylabel="accuracy on the test set", title="Accuracy with missing values")
