"""
A smaller forest
================

The trees of a random forest are grown independently and many are alike. A weighted subset is often enough.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from scboost import prune
from scboost.plotting import plot_weights

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=0.4, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
forest = RandomForestClassifier(60, random_state=0, n_jobs=1).fit(X_train, y_train)
small = prune(forest, X_val, y_val, max_trees=15)
first = RandomForestClassifier(15, random_state=0, n_jobs=1).fit(X_train, y_train)
print(f"60 trees          {forest.score(X_test, y_test):.3f}")
print(f"15 of them        {small.model.score(X_test, y_test):.3f}")
print(f"a forest of 15    {first.score(X_test, y_test):.3f}")

# %%
figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
plot_weights(small.factors, ax=ax)
