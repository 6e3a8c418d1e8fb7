"""The printed algorithm with the held-out rows of its published figures."""

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from scboost import SCBoostClassifier


class PrintedSCBoost(SCBoostClassifier):
    """SCBoost that holds rows out by their number, class by class, where the library does so by their content."""

    def fit(self, X: Any, y: Any, **given: Any) -> "PrintedSCBoost":  # type: ignore[override] # y is needed here
        """Fit; rows to weigh the learners on are held out unless they are given."""
        if self.weighting is not None and "X_val" not in given:
            kept, held_out = train_test_split(
                np.arange(len(y)), test_size=self.validation_fraction, stratify=y, random_state=self.random_state
            )
            X, y, given = X[kept], y[kept], {**given, "X_val": X[held_out], "y_val": y[held_out]}
        super().fit(X, y, **given)
        return self
