"""Exports and report of a model read from a mutant: each predicts what plain XGBoost predicts, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from scipy import sparse

import exports
import scboost


class Wanted:
    """What plain XGBoost predicts for samples of a file.

    Parameters
    ----------
    model : estimator
        Read from the file; encodes the samples.
    samples : DataFrame
        Numbers, and categories as strings.
    native : xgboost.Booster
        The file as XGBoost reads it.
    size : float
        Largest raw score that the native model could have, which float32 is relative to.
    """

    def __init__(self, model: Any, samples: pd.DataFrame, native: Any, size: float) -> None:
        self.model, self.samples, self.size = model, samples, size
        fitted = model.__fitted_model__()
        rows = sparse.csr_matrix(samples.to_numpy()) if fitted.encoder.sparse else samples
        self.rows = rows
        self.X = scboost.encode_features(model, rows)
        margin = native.predict(xgboost.DMatrix(self.X, nthread=1), output_margin=True, validate_features=False)
        self.margin = margin.reshape(len(samples), -1).astype(float)
        self.predictions = np.asarray(fitted.means(self.margin.T)).reshape(len(samples), -1)

    @property
    def case(self) -> exports.Case:
        """The model as the runners of exported code take it."""
        frame = self.samples.astype({name: "category" for name in self.samples if self.samples[name].dtype == object})
        return exports.Case("mutant", self.model, frame)

    def compare(self, found: Any, what: str) -> None:
        """Compare predictions with XGBoost's, up to what float32 sums round."""
        found = np.asarray(found, dtype=float).reshape(self.predictions.shape)
        is_classifier = hasattr(self.model, "classes_")
        size = 1.0 if is_classifier else max(self.size, float(np.abs(self.predictions).max()))
        close = np.allclose(found, self.predictions, rtol=0, atol=2e-5 * size * max(1.0, self.size * is_classifier))
        assert close, f"{what}: XGBoost reads another model"  # noqa: S101


def samples_of(rows: Any) -> pd.DataFrame:
    """Return the rows of an original as a table with categories as strings."""
    if bool(sparse.issparse(rows)):
        return pd.DataFrame(rows.toarray())
    if not isinstance(rows, pd.DataFrame):
        return pd.DataFrame(rows)
    texts = {
        name: [None if pd.isna(value) else str(value) for value in column]
        for name, column in rows.items()
        if isinstance(column.dtype, pd.CategoricalDtype)
    }
    return rows.assign(**{name: pd.Series(values, dtype=object) for name, values in texts.items()})


def judge_onnx(wanted: Wanted) -> None:
    """Run the ONNX graph."""
    import onnxruntime  # type: ignore[import-untyped]

    graph = scboost.to_onnx(wanted.model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, ["CPUExecutionProvider"])
    X = wanted.X.toarray() if bool(sparse.issparse(wanted.X)) else wanted.X
    wanted.compare(session.run(None, {"X": np.ascontiguousarray(X, dtype=np.float32)})[-1], "ONNX")


def judge_sql(wanted: Wanted) -> None:
    """Run the query in SQLite."""
    wanted.compare(exports.run_sqlite(wanted.case, wanted.samples)[0], "SQL")


def judge_c(wanted: Wanted) -> None:
    """Compile and run the header."""
    wanted.compare(exports.run_c(wanted.case, wanted.samples)[1], "C")


def judge_js(wanted: Wanted) -> None:
    """Run the module."""
    wanted.compare(exports.run_js(wanted.case, wanted.samples)[1], "JavaScript")


def judge_report(wanted: Wanted) -> None:
    """Compare the scores that the report shows with those of XGBoost's predictions, and render the page."""
    model, P = wanted.model, wanted.predictions
    rng = np.random.default_rng(0)
    if hasattr(model, "classes_"):
        codes = rng.integers(len(model.classes_), size=len(P))
        y = model.classes_[codes]
        name, value = "log-loss", -np.log(np.clip(P[np.arange(len(P)), codes], 1e-15, None)).mean()
        size = 1.0 + wanted.size
    elif P.shape[1] > 1:
        assert "</html>" in scboost.report(model, wanted.rows).html(), "the report has no end"  # noqa: S101
        return
    else:
        y = P[:, 0] + rng.normal(size=len(P))
        name, value, size = "MAE", np.abs(y - P[:, 0]).mean(), max(wanted.size, np.abs(P).max())
    report = scboost.report(model, wanted.rows, y)
    shown = {score.name: score.value for score in report.analysis.scores}
    assert abs(shown[name] - value) <= 1e-4 * size, f"report: {name} {shown[name]}, XGBoost {value}"  # noqa: S101
    assert "</html>" in report.html(), "the report has no end"  # noqa: S101


def _sql(model: Any) -> str:
    return scboost.export_sql(model, table="samples", dialect="sqlite", keep=["key"])


JUDGES: dict[str, tuple[int, Callable[[Any], Any], Callable[[Wanted], None]]] = {
    "ONNX": (20, scboost.to_onnx, judge_onnx),
    "SQL": (20, _sql, judge_sql),
    "C": (1000, scboost.export_c, judge_c),
    "JavaScript": (1000, scboost.export_js, judge_js),
    "report": (4000, lambda _: None, judge_report),
}
"""Every how many mutants, the export, and the comparison: programs and pages take as long as hundreds of files."""


def judge(number: int, model: Any, rows: Any, native: Any, size: float) -> Iterator[str]:
    """Judge the exports whose turn it is for a mutant of this number; yield the names of those that were compared."""
    due = [(name, export, check) for name, (every, export, check) in JUDGES.items() if number % every == 0]
    if not due:
        return
    wanted = Wanted(model, samples_of(rows), native, size)
    for name, export, check in due:
        try:
            export(model)
        except (ValueError, NotImplementedError):  # it may decline a model
            continue
        check(wanted)
        yield name
