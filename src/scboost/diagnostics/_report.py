"""The HTML report of a model: scores, number of trees, redundancy, calibration, features and findings."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scboost._arrays import ArrayLike
from scboost._model.atomic import write_file

if TYPE_CHECKING:
    from scboost.diagnostics._analysis import Analysis


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
        """Return the report as an HTML page."""
        from scboost.diagnostics.html.page import render_page

        return render_page(self.analysis)

    def _repr_html_(self) -> str:
        from scboost.diagnostics.html.page import render_frame

        return render_frame(self.html())

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the report to a single HTML file that needs no network.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced.

        Returns
        -------
        Path
            Absolute path of the file.
        """
        target = Path(path)
        write_file(target, self.html().encode())
        return target.resolve()


def report(
    model: object,
    X: Any,
    y: ArrayLike | None = None,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    name: str | None = None,
    random_state: int = 0,
) -> Report:
    """Evaluate a fitted tree ensemble and describe it in an HTML report.

    The report shows scores with confidence intervals, the loss against the number of trees, the redundancy of the
    trees, calibration, feature importance, and findings such as overfitting. It needs matplotlib (the extra ``plot``).

    Parameters
    ----------
    model : object
        Any ensemble that :func:`scboost.tree_matrix` reads: SCBoost, XGBoost, LightGBM, CatBoost, scikit-learn.
    X : array-like or table of shape (n_samples, n_features)
        Held-out samples, many more than trees. More than 20,000 samples are subsampled.
    y : array-like of shape (n_samples,), optional
        Class labels or values. Without y, only results that need no targets are shown.
    X_train, y_train : array-like, optional
        Training samples, to compare their scores.
    name : str, optional
        Name of the model; its class name by default.
    random_state : int, default=0
        Seed of the bootstrap, of the split for pruning and of the permutations.

    Returns
    -------
    Report
        Displays itself in notebooks; ``.save(path)`` writes the page.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(600, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:300], y[:300])
    >>> found = report(forest, X[300:], y[300:])
    >>> "trees are enough" in found.html()
    True
    """
    from scboost.diagnostics._analysis import analyze
    from scboost.diagnostics._plots import require_matplotlib

    require_matplotlib()
    return Report(analyze(model, X, y, X_train, y_train, name=name, seed=random_state))
