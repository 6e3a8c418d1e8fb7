"""
What projection does
====================

Two models with the same trees, learning rate and number of rounds, with and without projection. Projection chooses the
structure of a tree on the part of the gradient that the latest trees do not span, which makes the trees less redundant.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from scboost import SCBoostClassifier, redundancy_report
from scboost.plotting import plot_spectrum

X, y = make_classification(4000, 20, n_informative=8, flip_y=0.05, random_state=0)
common = {"n_estimators": 100, "learning_rate": 0.1, "exploration": 0, "random_state": 0}
with_projection = SCBoostClassifier(projection_strength=0.5, **common).fit(X[:2000], y[:2000])
without = SCBoostClassifier(projection_strength=0, **common).fit(X[:2000], y[:2000])
reports = [redundancy_report(model, X[2000:], y[2000:]) for model in (with_projection, without)]
for name, report in zip(("with", "without"), reports, strict=True):
    print(f"{name:<8} redundancy {report.redundancy:.3f}, accuracy {report.ensemble_score:.3f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot_spectrum(*reports, labels=["with projection", "without"], ax=axes[0])
for report, name in zip(reports, ("with projection", "without"), strict=True):
    axes[1].plot(range(1, 101), report.redundancy_ratio, label=name)
axes[1].set(xlabel="round", ylabel="share in the span of earlier trees", ylim=(0, 1), title="Redundancy by round")
axes[1].legend(frameon=False)
