"""Summary of the evaluated samples, and their drift against the training samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from scboost._arrays import FloatArray
from scboost.diagnostics._columns import Feature, read_feature

MAX_FEATURES = 100
"""Features of a summary at most."""
_LEVEL = 0.01  # of the test for drift, over all features
_LEAST_DRIFT = 0.1


@dataclass(frozen=True)
class Drift:
    """Difference between the distributions of a feature in two samples.

    Attributes
    ----------
    distance : float
        Kolmogorov-Smirnov distance of numeric features, total variation distance of categorical ones: both are the
        largest difference of a probability. Missing values count as a category.
    p_value : float
        Of the hypothesis that both samples have the same distribution.
    unseen : float
        Share of the evaluated samples with a category that the training samples do not have.
    """

    distance: float
    p_value: float
    unseen: float


@dataclass(frozen=True)
class FeatureSummary:
    """Summary of a feature.

    Attributes
    ----------
    name, kind : str
        Name; "numeric", "categorical" or "other".
    missing : float
        Share of missing values.
    n_distinct : int
        Distinct values.
    low, median, high : float
        Smallest, median and largest value; NaN for categorical features.
    top, top_share
        Most frequent category and its share; empty and NaN for numeric features.
    drift : Drift or None
        None without training samples.
    """

    name: str
    kind: str
    missing: float
    n_distinct: int
    low: float
    median: float
    high: float
    top: str
    top_share: float
    drift: Drift | None


@dataclass(frozen=True)
class DataSummary:
    """Summary of the samples.

    Attributes
    ----------
    features : list of FeatureSummary
        At most 100 of them, in the order of X.
    n_features : int
        All features.
    """

    features: list[FeatureSummary]
    n_features: int

    @property
    def drifted(self) -> list[FeatureSummary]:
        """Features with significant drift (1 % level over all features, distance above 0.1), the largest first."""
        n = max(1, len(self.features))
        found = [f for f in self.features if f.drift is not None and f.drift.distance > _LEAST_DRIFT]
        found = [f for f in found if f.drift is not None and f.drift.p_value < _LEVEL / n]
        return sorted(found, key=lambda f: -f.drift.distance if f.drift else 0.0)

    @property
    def constant(self) -> list[str]:
        """Names of the features with a single value."""
        return [f.name for f in self.features if f.kind != "other" and f.n_distinct <= 1 and f.missing in {0.0, 1.0}]


def summarize_data(X: Any, names: list[str], X_train: Any | None) -> DataSummary:
    """Summarize the samples, and compare them with training samples if there are any."""
    features = []
    for j, name in enumerate(names[:MAX_FEATURES]):
        feature = read_feature(X, j)
        drift = None if X_train is None or feature.kind == "other" else measure_drift(read_feature(X_train, j), feature)
        features.append(_summary(name, feature, drift))
    return DataSummary(features, len(names))


def _summary(name: str, feature: Feature, drift: Drift | None) -> FeatureSummary:
    present = feature.data[~np.isnan(feature.data)]
    nan = float("nan")
    low = median = high = top_share = nan
    top = ""
    if feature.categories and len(present):
        counts = np.bincount(present.astype(np.intp))
        top, top_share = feature.categories[int(counts.argmax())], float(counts.max() / len(feature.data))
    elif len(present):
        low, median, high = (float(v) for v in (present.min(), np.median(present), present.max()))
    missing = 0.0 if feature.kind == "other" else 1 - len(present) / len(feature.data)
    n_distinct = len(np.unique(present))
    return FeatureSummary(name, feature.kind, missing, n_distinct, low, median, high, top, top_share, drift)


def measure_drift(training: Feature, evaluated: Feature) -> Drift | None:
    """Compare a feature in two samples; None if it is numeric in one and categorical in the other."""
    if training.kind != evaluated.kind:
        return None
    a, b = training.data, evaluated.data
    if training.kind == "categorical":
        texts = {text: k for k, text in enumerate(dict.fromkeys([*training.categories, *evaluated.categories]))}
        a, b = (_codes(feature, texts) for feature in (training, evaluated))
        return _categorical_drift(a, b)
    present_a, present_b = a[~np.isnan(a)], b[~np.isnan(b)]
    missing = _categorical_drift(np.isnan(a).astype(float), np.isnan(b).astype(float))
    if not len(present_a) or not len(present_b):
        return missing
    found = stats.ks_2samp(present_a, present_b, method="asymp")
    numeric = Drift(float(found.statistic), float(found.pvalue), 0.0)
    return missing if missing.distance > numeric.distance else numeric


def _codes(feature: Feature, texts: dict[str, int]) -> FloatArray:
    """Return common codes of the categories; missing values are the last one."""
    table = np.array([texts[text] for text in feature.categories] + [len(texts)], np.float64)
    return table[np.where(np.isnan(feature.data), len(feature.categories), feature.data).astype(np.intp)]


def _categorical_drift(a: FloatArray, b: FloatArray) -> Drift:
    codes, places = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = np.stack([np.bincount(part, minlength=len(codes)) for part in (places[: len(a)], places[len(a) :])])
    shares = counts / counts.sum(axis=1, keepdims=True)
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    p_value = float(stats.chi2_contingency(counts)[1]) if len(codes) > 1 else 1.0
    return Drift(distance, p_value, float(shares[1][counts[0] == 0].sum()))
