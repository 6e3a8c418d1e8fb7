"""A page about a model: how well it predicts, which of its trees do the work, and what to watch out for."""

from __future__ import annotations

from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from scboost._arrays import ArrayLike
from scboost.diagnostics._analysis import Measured, measure
from scboost.diagnostics.html.page import page

__all__ = ["Report", "report"]


class Report:
    """What :func:`scboost.report` found: shows itself in notebooks, and can be saved as a file.

    Parameters
    ----------
    measured : Measured
        The numbers, for whoever wants them without the page.
    """

    def __init__(self, measured: Measured) -> None:
        self.measured = measured

    def __repr__(self) -> str:
        facts = self.measured.facts
        scores = ", ".join(f"{score.name} {score.value:.4g}" for score in self.measured.scores)
        return f"<Report: {facts.name}, {facts.n_trees} trees, {scores or 'no targets'}; save it with .save(path)>"

    def html(self) -> str:
        """Return the page."""
        return page(self.measured)

    def _repr_html_(self) -> str:
        # A frame keeps the page's style and names apart from those of the notebook.
        return (
            f'<iframe srcdoc="{escape(self.html())}" sandbox="allow-scripts" title="Report of a model" '
            'style="width:100%;height:760px;border:0"></iframe>'
        )

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to one HTML file that needs no other file and no network.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced.

        Returns
        -------
        Path
            Where it is now, as an absolute path.
        """
        target = Path(path)
        target.write_text(self.html(), encoding="utf-8")
        return target.resolve()


def report(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    name: str | None = None,
    random_state: int = 0,
) -> Report:
    """Measure a fitted tree ensemble and show it on one page.

    The page tells what the model is, its scores with their uncertainty, how many trees do the work, how much the
    trees repeat each other, whether probabilities come true, which columns matter, and what to be careful about.

    Parameters
    ----------
    model : object
        An ensemble of SCBoost, XGBoost, LightGBM, CatBoost or scikit-learn: any that :func:`scboost.tree_matrix` reads.
    X : array-like or data frame of shape (n, d)
        Rows that the model was not fitted on, many more than trees. Of more than 20,000 a sample is used.
    y : array-like of shape (n,), optional
        Their labels or values. Without, only what needs no targets is shown.
    X_train, y_train : array-like, optional
        The rows of the fit, for a comparison of the scores.
    name : str, optional
        How to call the model; its class otherwise.
    random_state : int, default=0
        Seed of the resampled rows, of the split for pruning and of the shuffled columns.

    Returns
    -------
    Report
        Renders in notebooks; ``.save(path)`` writes the page.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(600, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:300], y[:300])
    >>> found = report(forest, X[300:], y[300:])
    >>> "trees do the work" in found.html()
    True
    """
    return Report(measure(model, X, y, X_train, y_train, name=name, seed=random_state))
