"""Write docs/coming_from.md: the arguments of other libraries and what does the same here.

The table is that of the error messages, :data:`scboost._core.foreign_arguments.FOREIGN`.
"""

from __future__ import annotations

from pathlib import Path

from scboost._core.foreign_arguments import FOREIGN, LIBRARIES, Foreign

PAGE = Path(__file__).parents[1] / "docs" / "coming_from.md"

_HEAD = """\
# Coming from XGBoost, LightGBM, CatBoost, NGBoost or scikit-learn

Change the name of the class; an argument that is unknown here is answered with what to write instead, in the words of
the table below.

```python
# from xgboost import XGBClassifier
# model = XGBClassifier(n_estimators=500, max_depth=6, early_stopping_rounds=50, random_state=0)
# model.fit(X, y, eval_set=[(X_val, y_val)])
from scboost import SCBoostClassifier

model = SCBoostClassifier(n_estimators=500, max_depth=6, early_stopping=True, n_iter_no_change=50, random_state=0)
model.fit(X, y, X_val=X_val, y_val=y_val)
```

What differs most:

- `n_estimators="auto"` and `learning_rate="auto"`, the defaults, need no tuning: the data choose the number of rounds.
  `n_estimators=500` is 500 rounds, unless `early_stopping=True` asks for fewer.
- Validation rows are `X_val`, `y_val`: one set, whose loss after each round is `training_log_["validation_loss"]`. That
  log is what other libraries call `evals_result_`. The rounds in use are `n_estimators_`; `best_iteration_` is the
  number of the last of them, from 0.
- `n_jobs=None` means all threads, as in XGBoost and unlike scikit-learn. The result does not depend on it.
- The labels of a classifier may be of any type, and categorical columns are those that the table says are categorical.
- `NGBRegressor(Dist=Normal)` of NGBoost is `SCBoostDistribution(distribution="normal")`, and `pred_dist(X)` is
  `predict_distribution(X)`, with `quantile(q)`, `interval(coverage)`, `logpdf(y)` and `sample(n_samples)`.
- `model.get_booster()` is a native XGBoost model, and `model.to_xgboost()` one of XGBoost's scikit-learn classes.

"""


def page() -> str:
    """Return the text of the page."""
    lines = [
        "| argument | of | here |",
        "|---|---|---|",
        *(
            f"| {', '.join(f'`{name}`' for name in foreign.names)} | {_libraries(foreign)} | {foreign.here} |"
            for foreign in FOREIGN
        ),
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _libraries(foreign: Foreign) -> str:
    return ", ".join(LIBRARIES[letter] for letter in foreign.libraries)


if __name__ == "__main__":
    PAGE.write_text(page())
