"""
A first model
=============

Fit with the defaults, inspect what was selected, and plot the loss on the test set.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from scboost import SCBoostClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = SCBoostClassifier(random_state=0).fit(X_train, y_train)
print(f"{model.n_estimators_} rounds at learning rate {model.learning_rate_:.3f}")
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# The number of rounds minimizes the cross-validated loss. The fold models use a larger learning rate than the final
# model, so their curve reaches its minimum earlier. The test set was not used.

losses = [log_loss(y_test, p[:, 1]) for p in model.staged_predict_proba(X_test)]
figure, ax = plt.subplots(layout="constrained")
ax.plot(range(1, len(losses) + 1), losses, label="test set")
log = model.selection_log_
ax.plot(log["round"], log["validation_loss"], ls="--", label="out of fold, during selection")
ax.set(xlabel="rounds", ylabel="log-loss", title="Loss by number of rounds")
ax.legend(frameon=False)
