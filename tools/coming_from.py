"""Write docs/coming_from.md: the arguments of other libraries and their equivalents here.

The table is that of the error messages, :data:`scboost._core.foreign_arguments.FOREIGN`.
"""

from __future__ import annotations

import re
from pathlib import Path

from scboost._core.foreign_arguments import FOREIGN, LIBRARIES, Foreign

PAGE = Path(__file__).parents[1] / "docs" / "coming_from.md"

_HEAD = """\
# Coming from XGBoost, LightGBM, CatBoost, NGBoost or scikit-learn

Change the name of the class. If an argument has another name here, the error message names the equivalent, as in the
table below.

```python
# from xgboost import XGBClassifier
# model = XGBClassifier(
#     n_estimators=500, max_depth=6, early_stopping_rounds=50
# )
# model.fit(X, y, eval_set=[(X_val, y_val)])
from scboost import SCBoostClassifier

model = SCBoostClassifier(
    n_estimators=500, max_depth=6, early_stopping=True, n_iter_no_change=50
)
model.fit(X, y, X_val=X_val, y_val=y_val)
```

Main differences:

- `n_estimators="auto"` and `learning_rate="auto"`, the defaults, need no tuning: the number of rounds is selected by
  cross-validation. `n_estimators=500` is 500 rounds, or fewer with `early_stopping=True`.
- The validation set is `X_val`, `y_val`. Its loss after each round is `training_log_["validation_loss"]`; other
  libraries call this log `evals_result_`. The number of rounds in use is `n_estimators_`; `best_iteration_` is the
  index of the last of them, from 0.
- `n_jobs=None` means one thread for small training sets and all cores otherwise, unlike scikit-learn. Results do not
  depend on it.
- Class labels may be of any type. String and categorical columns of a table are categorical features.
- `NGBRegressor(Dist=Normal)` of NGBoost is `SCBoostDistribution(distribution="normal")`, and `pred_dist(X)` is
  `predict_distribution(X)`, with `quantile(q)`, `interval(coverage)`, `logpdf(y)` and `sample(n_samples)`.
- `model.get_booster()` is a native XGBoost model, and `model.to_xgboost()` one of XGBoost's scikit-learn classes.

"""


def page() -> str:
    """Return the text of the page."""
    lines = [
        "{.stack}",
        "| argument | of | here |",
        "|---|---|---|",
        *(
            f"| {', '.join(f'`{name}`' for name in foreign.names)} | {_libraries(foreign)} | {_advice(foreign)} |"
            for foreign in FOREIGN
        ),
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _advice(foreign: Foreign) -> str:
    """Return the advice as a sentence, with names and values as code."""
    text = re.sub(
        r"[\w.]+=(?:'\w+'|\{[^}]*\}|\w+)|'\w+'|\b\w+=|\b[A-Za-z]+_\w+(?:\['\w+'\])?|\bSCBoost\w+",
        r"`\g<0>`",
        foreign.here,
    )
    text = re.sub(r"^use (\w+)(?=[ .,])", r"use `\1`", text)
    text = re.sub(r"(?<=see )(subsample|exploration|engine|init)\b", r"`\1`", text)
    return f"{text[0].upper()}{text[1:]}"


def _libraries(foreign: Foreign) -> str:
    return ", ".join(LIBRARIES[letter] for letter in foreign.libraries)


if __name__ == "__main__":
    PAGE.write_text(page())
