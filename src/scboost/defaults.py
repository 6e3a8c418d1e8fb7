"""Defaults of earlier versions, so that a program can keep them when scboost is upgraded."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["parameters", "versions"]


@cache
def _frozen() -> dict[str, dict[str, dict[str, Any]]]:
    """Defaults by version and class; `tools/release.py prepare` adds those of a release, which then never change."""
    text = (files("scboost") / "frozen_defaults.json").read_text(encoding="utf-8")
    frozen: dict[str, dict[str, dict[str, Any]]] = json.loads(text)
    return frozen


def versions() -> list[str]:
    """Return the versions whose defaults are known.

    Examples
    --------
    >>> from scboost import defaults
    >>> "0.2" in defaults.versions()
    True
    """
    return list(_frozen())


def parameters(version: str, estimator: type[Any] | str) -> dict[str, Any]:
    """Return the default parameters of an estimator in a version.

    A later version that changes what a value such as "auto" means keeps the old meaning under a name of its own, and
    returns that name here.

    Parameters
    ----------
    version : str
        Minor version, such as "0.2".
    estimator : class or str
        The estimator, such as :class:`scboost.SCBoostClassifier`, or its name.

    Returns
    -------
    dict
        Parameters of the constructor.

    Examples
    --------
    >>> from scboost import SCBoostClassifier, defaults
    >>> model = SCBoostClassifier(**defaults.parameters("0.2", SCBoostClassifier))
    >>> model.get_params()["n_estimators"]
    'auto'
    """
    name = estimator if isinstance(estimator, str) else estimator.__name__
    if version not in _frozen():
        raise ValueError(f"version must be one of {versions()}, got {version!r}.")
    known = _frozen()[version]
    if name not in known:
        raise ValueError(f"estimator must be one of {list(known)} in version {version}, got {name!r}.")
    return dict(known[name])
