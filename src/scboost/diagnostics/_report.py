"""The report of a model: what :func:`scboost.report` returns."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scboost._arrays import ArrayLike
from scboost._model.atomic import write_file
from scboost._runtime.threads import single_threaded_blas

if TYPE_CHECKING:
    from scboost.diagnostics._analysis import Analysis


REPORT_ENDINGS = (".html", ".htm", ".json", ".md")
"""Endings of the files that a report can be saved as."""


class Report:
    """Report of a model; displays itself in notebooks and can be saved as a file. See :func:`scboost.report`.

    Parameters
    ----------
    analysis : Analysis
        All results as numbers.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis

    def __repr__(self) -> str:
        facts = self.analysis.facts
        scores = ", ".join(f"{score.name} {score.value:.4g}" for score in self.analysis.scores)
        return f"<Report: {facts.name}, {facts.n_trees} trees, {scores or 'no targets'}; save it with .save(path)>"

    def html(self) -> str:
        """Return the report as an HTML page; requires the extra ``plot``."""
        from scboost.diagnostics._plots import require
        from scboost.diagnostics.html.page import render_page

        require("matplotlib", "jinja2")
        return render_page(self.analysis)

    def _repr_html_(self) -> str:
        from scboost.diagnostics.html.page import render_frame

        return render_frame(self.html())

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as dictionaries, lists, strings and numbers; undefined numbers are None."""
        from scboost.diagnostics._export import to_dict

        return to_dict(self.analysis)

    def markdown(self) -> str:
        """Return a short model card in Markdown: scores, checks, features and settings."""
        from scboost.diagnostics._export import to_markdown

        return to_markdown(self.analysis)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the report to a single file.

        Parameters
        ----------
        path : str or path-like
            Its ending tells the format: ``.html`` is the page, which needs no network; ``.json`` all numbers; ``.md`` a
            model card. An existing file is replaced.

        Returns
        -------
        Path
            Absolute path of the file.
        """
        target = Path(path)
        write_file(target, self._content(target.suffix.lower()).encode())
        return target.resolve()

    def _content(self, suffix: str) -> str:
        if suffix in {".html", ".htm"}:
            return self.html()
        if suffix == ".md":
            return self.markdown()
        if suffix == ".json":
            from scboost.diagnostics._export import to_json

            return to_json(self.analysis)
        raise ValueError(f"path must end in one of {', '.join(REPORT_ENDINGS)}, got {suffix!r}.")


@single_threaded_blas()
def report(
    model: object,
    X: Any,
    y: ArrayLike | None = None,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    compare: object = None,
    name: str | None = None,
    measure_speed: bool = True,
    random_state: int = 0,
    qid: ArrayLike | None = None,
    qid_train: ArrayLike | None = None,
) -> Report:
    """Evaluate a fitted tree ensemble and describe it in an HTML report.

    The report shows scores with confidence intervals beside those of a constant prediction, ROC and precision-recall
    curves or residuals, the samples and segments with the largest errors, calibration, the coverage of prediction
    intervals, label sets and predicted distributions (models of scboost), feature importance, partial dependence,
    explanations of single predictions, a summary of the data, learning curves, the redundancy of the trees, and checks
    such as that for overfitting. The HTML page requires the extra ``plot``.

    Parameters
    ----------
    model : object
        Any ensemble that :func:`scboost.tree_matrix` reads: SCBoost, XGBoost, LightGBM, CatBoost, scikit-learn; or a
        scikit-learn pipeline, search or calibrated classifier that contains one.
    X : array-like or table of shape (n_samples, n_features)
        Held-out samples, many more than trees. More than 20,000 samples (3,000 with survival times) are subsampled.
    y : array-like of shape (n_samples,), optional
        Class labels or values. Without y, only results that need no targets are shown. For a ranking, relevances, with
        ``qid``; for a :class:`SCBoostSurvival`, times in one of its formats. Their reports show NDCG, MAP and MRR, or
        concordance, integrated Brier score and calibration at the median event time, and leave out sections that need
        a loss per sample.
    X_train, y_train : array-like, optional
        Training samples, to compare their scores and to find features whose distribution has changed.
    compare : object, optional
        A second fitted model, of any kind, to be scored on the same samples.
    name : str, optional
        Name of the model; its class name by default.
    measure_speed : bool, default=True
        Whether to measure the time of predictions. Without it, reports of the same model and data are identical.
    random_state : int, default=0
        Seed of the bootstrap, of the split for pruning and of the permutations.
    qid, qid_train : array-like of shape (n_samples,), optional
        Queries of the documents in X and X_train, for rankings. The bootstrap resamples whole queries.

    Returns
    -------
    Report
        Displays itself in notebooks; ``.save(path)`` writes an HTML page, JSON or a Markdown model card. The HTML
        page requires the extra ``plot``, the others do not.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(600, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:300], y[:300])
    >>> found = report(forest, X[300:], y[300:])
    >>> "Permutation importance" in found.html()
    True
    """
    from scboost.diagnostics._analysis import Options, analyze

    options = Options(
        name=name, compare=compare, measure_speed=measure_speed, seed=random_state, qid=qid, qid_train=qid_train
    )
    return Report(analyze(model, X, y, X_train, y_train, options))
