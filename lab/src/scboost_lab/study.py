"""The study behind the default: settings, peers, short ensembles, label noise and sizes; ``scboost-lab study``.

Every row of ``results/study/<part>.csv`` is one fold of one method on one data set. A method is a peer's name or
"SCBoost" followed by the settings that differ from `BASE`, such as ``SCBoost gamma=0.5 memory=all``.

The data are capped at `ROW_CAP` rows (stratified, drawn once) so that a fit takes about a second. Category columns are
replaced by the numbers of their sorted categories, the same matrix for every method; missing values stay missing,
except for the methods of `NEEDS_COMPLETE`, which get column medians of the training rows. HistGradientBoosting does not
get columns without any value.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from scboost import SCBoostClassifier
from scboost.estimators.parameters import auto_learning_rate
from scboost.redundancy import tree_matrix
from scboost_lab.datasets import DATA_DIR_VARIABLE, SEED, content_checksum, matrix, require_data_dir
from scboost_lab.models import HGB, SCBOOST, make
from scboost_lab.page import write
from scboost_lab.runner import Experiment, Task, Values
from scboost_lab.scoring import SCORE_COLUMNS, fit_and_score, flip, folds
from scboost_lab.variants import Prototype, Spec

Array = NDArray[np.float64]

# Fixed before any result was seen; small, medium and large sets, categorical, wide and unbalanced ones in both.
CHOOSE = (
    "credit_g",
    "scene",
    "jasmine",
    "sick",
    "sylvine",
    "higgs_7500",
    "elevators",
    "letter_U",
    "covertype_50k_bin",
)
CONFIRM = (
    "qsar_biodeg",
    "kc1",
    "madelon",
    "bioresponse",
    "spambase",
    "phoneme",
    "pol",
    "creditcard",
    "adult_train",
)
ALL = (*CHOOSE, *CONFIRM)
ROW_CAP = 4000
COLUMN_CAP = 200
SIZES = (500, 1000, 2000, 4000, 8000)
SIZE_CAP = 14_000  # rows of which the sizes are drawn
N_FOLDS = 5
COLUMNS = (*SCORE_COLUMNS, "n_trees", "effective_rank", "redundancy", "energy_removed")

BASE: dict[str, Any] = {
    "memory": 5,
    "projection_strength": 0.5,
    "energy_threshold": 0.9,
    "learning_rate": "auto",
    "max_depth": 6,
    "max_leaves": None,
    "min_child_weight": 1.0,
    "reg_lambda": 3.0,
    "colsample_bytree": 1.0,
    "exploration": 0.0,
    "subsample": 1.0,
    "leaf_rule": "newton",
    "n_estimators": 100,
}
NEEDS_COMPLETE = ("ADA", "GBDT", "NGB")

_INTEGERS = {
    "memory": "memory",
    "depth": "max_depth",
    "leaves": "max_leaves",
    "folds": "cv",
    "trees": "n_estimators",
}
_NUMBERS = {
    "gamma": "projection_strength",
    "alpha": "energy_threshold",
    "child": "min_child_weight",
    "l2": "reg_lambda",
    "cols": "colsample_bytree",
    "rows": "subsample",
    "pull": "weight_pull",
    "penalty": "covariance_penalty",
}
_WEIGHTINGS: dict[str, dict[str, Any]] = {
    "simplex": {"weighting": "simplex"},
    "nonnegative": {"weighting": "nonnegative"},
    "out_of_fold": {"weighting": "nonnegative", "weighting_rows": "out_of_fold"},
    "fold_average": {"weighting": "nonnegative", "weighting_rows": "fold_average"},
    "stop": {"early_stopping": True, "n_iter_no_change": 20},
}


# --- methods -------------------------------------------------------------------------------------------------------


def read_settings(text: str) -> Spec:
    """Read the settings that differ from `BASE`.

    Parameters
    ----------
    text : str
        Words ``name=value``: gamma, alpha, memory, depth, leaves, rate (a factor of the automatic rule), eta (a fixed
        rate), cols, rows, l2, child, leaf, crw, pull, penalty, folds, trees, rule, metric. ``leaves``
        alone lifts the limit of the depth.

    Returns
    -------
    Spec

    Examples
    --------
    >>> spec = read_settings("gamma=0.5 memory=all leaves=31")
    >>> spec.params["projection_strength"], spec.params["memory"], spec.params["max_depth"]
    (0.5, 'all', None)
    """
    params, extra = dict(BASE), dict[str, Any]()
    words = dict(word.split("=", 1) for word in text.split())
    if "leaves" in words and "depth" not in words:
        params["max_depth"] = None
    for name, value in words.items():
        if name in _INTEGERS:
            params[_INTEGERS[name]] = value if value == "all" else int(value)
        elif name in _NUMBERS:
            params[_NUMBERS[name]] = float(value)
        elif name == "crw":
            params |= _WEIGHTINGS[value]
        elif name == "leaf":
            params["leaf_rule"] = value
        elif name == "eta":
            params["learning_rate"] = float(value)
        elif name in {"rule", "metric"}:
            extra[name] = value
        elif name == "rate":
            extra[name] = float(value)
        else:
            raise ValueError(f"unknown setting {name!r} in {text!r}")
    return Spec(params, **extra)


def make_method(name: str, n_rows: int, seed: int) -> Any:
    """Make an unfitted model.

    Parameters
    ----------
    name : str
        "SCBoost" with settings, or a peer's name, with ``trees=`` and ``eta=`` where they differ from the default.
    n_rows : int
        Number of training rows, for the automatic learning rate.
    seed : int
        Seed of the model.

    Returns
    -------
    estimator
    """
    kind, _, settings = name.partition(" ")
    if kind == SCBOOST:
        spec = read_settings(settings)
        params = dict(spec.params)
        if spec.rate != 1:
            params["learning_rate"] = spec.rate * auto_learning_rate(n_rows, params["n_estimators"])
        if spec == Spec(spec.params, spec.rate):
            return SCBoostClassifier(**params, random_state=seed, n_jobs=1)
        model = Prototype(**params, random_state=seed, n_jobs=1)
        model.spec = spec
        return model
    words = dict(word.split("=", 1) for word in settings.split())
    changed: dict[str, Any] = {"n_estimators": int(words["trees"])} if "trees" in words else {}
    changed |= {"learning_rate": float(words["eta"])} if "eta" in words else {}
    return make(kind, seed, **changed)


# --- one fold ------------------------------------------------------------------------------------------------------


def diversity(H: Array) -> dict[str, float]:
    """Effective rank and redundancy of the trees' predictions.

    Parameters
    ----------
    H : ndarray of shape (T, n)
        One row a tree.

    Returns
    -------
    dict
        "effective_rank": exp of the entropy of the normalised eigenvalues of the trees' correlation matrix, between 1
        and T; "redundancy": mean absolute correlation of two trees. Constant trees do not count.

    Examples
    --------
    >>> import numpy as np
    >>> found = diversity(np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 2.0, -2.0]]))
    >>> round(found["effective_rank"], 6), round(abs(found["redundancy"]), 6)
    (2.0, 0.0)
    """
    H = H - H.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(H, axis=1)
    H = H[norms > 1e-9] / norms[norms > 1e-9, None]
    T = len(H)
    if T < 2:
        return {"effective_rank": float(T), "redundancy": 0.0}
    C = H @ H.T
    eigenvalues = np.maximum(np.linalg.eigvalsh(C), 0.0) / T
    entropy = float(special.entr(eigenvalues / eigenvalues.sum()).sum())
    return {
        "effective_rank": float(np.exp(entropy)),
        "redundancy": float((np.abs(C).sum() - T) / (T * (T - 1))),
    }


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Fit and score one fold; `params` holds ``column_cap``, and ``noise`` and ``rows`` where they apply."""
    cap = SIZE_CAP if "rows" in params else ROW_CAP
    X, y = matrix(task.dataset, require_data_dir(data_dir), cap, params["column_cap"])
    train, test = folds(y, task.seed, N_FOLDS)[task.fold]
    seed = 100 * task.seed + task.fold
    rng = np.random.default_rng([SEED, seed])
    if "rows" in params:
        train = rng.permutation(train)[: params["rows"]]
    X_train, X_test, y_train = X[train], X[test], y[train]
    if "noise" in params:
        y_train = flip(y_train, params["noise"], rng)
    kind = task.method.split()[0]
    if kind in NEEDS_COMPLETE and np.isnan(X).any():
        medians = np.nan_to_num(np.nanmedian(X_train, axis=0))
        X_train, X_test = (np.where(np.isnan(part), medians, part) for part in (X_train, X_test))
    if kind == HGB:  # it cannot bin a column without any value
        some = ~np.isnan(X_train).all(axis=0)
        X_train, X_test = X_train[:, some], X_test[:, some]
    model = make_method(task.method, len(train), seed)
    values: dict[str, float] = fit_and_score(model, X_train, y_train, X_test, y[test])
    if isinstance(model, SCBoostClassifier):
        H = tree_matrix(model, X_test, dtype=np.float64)
        used = H.column_weights != 0
        values |= {"n_trees": float(used.sum()), **diversity(H.H.T[used])}
        values["energy_removed"] = float(np.mean(model.training_log_["energy_removed"]))
    return values


# --- parts of the study ----------------------------------------------------------------------------------------------

# What the choice was made from: the strength of projection with and without column sampling, the folds cut twice.
GAMMA_SWEEP: tuple[str, ...] = (
    "",
    "gamma=0",
    "gamma=0.7",
    "gamma=1",
    "cols=0.8",
    "gamma=0 cols=0.8",
    "gamma=0.7 cols=0.8",
)
# Before it, with column sampling: leaf-wise growth, more columns left out, a larger rate.
SHAPE_SWEEP: tuple[str, ...] = (
    "leaves=31 gamma=0 cols=0.8",
    "leaves=31 gamma=0.7 cols=0.8",
    "leaves=31 cols=0.8",
    "leaves=31 gamma=0.85 cols=0.8",
    "leaves=31 gamma=0.3 cols=0.8",
    "leaves=31 gamma=1 cols=0.8",
    "leaves=31 gamma=0.7 cols=0.5",
    "leaves=31 gamma=0 cols=0.5",
    "leaves=31 gamma=0.7",
    "leaves=31 gamma=0",
    "rate=1.3 gamma=0.7 cols=0.8",
    "gamma=0.85 cols=0.8",
)
# After it, one setting at a time on three of the five folds, to describe the neighbourhood of the choice.
MORE_SETTINGS: tuple[str, ...] = (
    "leaves=31",
    "depth=5",
    "depth=7",
    "memory=1",
    "memory=2",
    "memory=10",
    "memory=20",
    "memory=all",
    "rate=0.7",
    "rate=1.3",
    "metric=equal",
    "crw=nonnegative",
    "crw=fold_average",
    "crw=out_of_fold",
    "crw=simplex",
    "crw=stop trees=200",
    "l2=1",
    "l2=10",
    "rows=0.8",
    "alpha=0.5",
    "alpha=0.99",
    "rule=share",
    "rule=falling",
    "rule=rising",
    "child=0.3",
    "child=3",
    "crw=fold_average pull=1000000",
    "leaf=mean",
)


def ours(*settings: str) -> tuple[str, ...]:
    """Names of our method with these settings."""
    return tuple(" ".join([SCBOOST, *words.split()]) for words in settings)


CHOSEN = ""
"""Settings of the default, where they differ from `BASE`."""
PLAIN = f"{CHOSEN} gamma=0".strip()
"""Plain Newton boosting of the same shape."""
RIVALS = ("CAT", "LGBM", "XGB", HGB, "RF", "GBDT", "ADA", "NGB")
SHORT_SETTINGS = ("trees=20", "trees=20 rate=1.4", "trees=20 rate=1.8")
SHORT_RATES = ("0.3", "0.5", "0.7")
NOISY_SETS = ("sylvine", "elevators", "covertype_50k_bin", "spambase", "phoneme", "pol")
LARGE_SETS = ("covertype_50k_bin", "letter_U", "elevators", "adult_train", "creditcard")


def part(
    title: str,
    methods: Sequence[str],
    sets: Sequence[str] = ALL,
    *,
    folds: int = N_FOLDS,
    repeats: int = 1,
    column_cap: int = COLUMN_CAP,
    conditions: Mapping[str, Mapping[str, Any]] | None = None,
) -> Experiment:
    """Make one part of the study: some of the five folds, cut anew for each repeat, under some conditions."""
    settings = {name: {"column_cap": column_cap, **params} for name, params in (conditions or {"": {}}).items()}
    return Experiment(title, run_fold, COLUMNS, tuple(sets), tuple(methods), settings, folds, tuple(range(repeats)))


_SHORT = (
    *ours(*(f"{CHOSEN} {words}" for words in SHORT_SETTINGS), f"{PLAIN} trees=20"),
    *(f"XGB trees=20 eta={eta}" for eta in SHORT_RATES),
)
PARTS: dict[str, Experiment] = {
    "gamma": part(
        "the strength of projection, with and without column sampling, on the choosing half",
        ours(*GAMMA_SWEEP),
        CHOOSE,
        repeats=2,
        column_cap=50,
    ),
    "shapes": part("the shape of the trees, on the choosing half", ours(*SHAPE_SWEEP), CHOOSE, column_cap=50),
    "more": part("the other settings, on the choosing half", ours(*MORE_SETTINGS), CHOOSE, folds=3, column_cap=50),
    "peers": part("the default, plain boosting of its shape and eight peers", (*ours(CHOSEN, PLAIN), *RIVALS)),
    "short": part("20 trees against XGBoost's 20, whose learning rate is chosen for it on each set", _SHORT),
    "noise": part(
        "training labels flipped",
        (*ours(CHOSEN, PLAIN), "XGB", "LGBM", "CAT"),
        NOISY_SETS,
        folds=3,
        conditions={f"noise={share}": {"noise": share} for share in (0.1, 0.2, 0.3)},
    ),
    "sizes": part(
        "training rows from hundreds to thousands",
        ours(CHOSEN, PLAIN, "rule=rows"),
        LARGE_SETS,
        folds=3,
        conditions={f"rows={n}": {"rows": n} for n in SIZES},
    ),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab study``."""
    parser.description = "Run a part of the study; a part that was stopped goes on where it was."
    parts = "; ".join(f"{name}: {experiment.title}" for name, experiment in PARTS.items())
    parser.add_argument("part", choices=[*PARTS, "all", "page"], help=f"{parts}; page: only write the page")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/study"), help="directory of the result files")
    parser.add_argument("--page", type=Path, default=Path("docs/projection.md"), help="where the page goes")
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=ALL, help=f"only these of {', '.join(ALL)}")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these methods")
    parser.add_argument("--jobs", type=int, default=1, help="processes; each fit uses one thread")


def main(args: argparse.Namespace) -> int:
    """Run the parts asked for, and write the page once all are there."""
    from scboost_lab.study_page import page_text

    known = {method for experiment in PARTS.values() for method in experiment.methods}
    for method in args.methods or ():
        if method not in known:
            raise ValueError(f"unknown method {method!r}; known: {', '.join(sorted(known))}")
    if args.part != "page":
        directory = require_data_dir(args.data_dir)
        for name in PARTS if args.part == "all" else (args.part,):
            run(name, args.out, directory, sets=args.sets, methods=args.methods, jobs=args.jobs)
    if args.part in {"all", "page"}:
        write(args.page, page_text(args.out))
        print(f"wrote {args.page}")
    return 0


def run(
    name: str,
    out: Path,
    data_dir: str,
    *,
    sets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    jobs: int = 1,
) -> None:
    """Run a part of the study, or what is left of it, on all or some of its sets and methods."""
    experiment = PARTS[name]
    column_cap = next(iter(experiment.settings.values()))["column_cap"]
    experiment.run_recorded(
        out / f"{name}.csv",
        experiment.tasks(sets, methods),
        data_dir,
        command=f"scboost-lab study {name}",
        fingerprint=partial(_fingerprint, data_dir=data_dir, column_cap=column_cap),
        jobs=jobs,
        row_cap=ROW_CAP,
        column_cap=column_cap,
        folds=experiment.n_folds,
        repeats=list(experiment.seeds),
    )


def _fingerprint(name: str, data_dir: str, column_cap: int) -> str:
    X, y = matrix(name, data_dir, ROW_CAP, column_cap)
    return f"parquet:{name}, {X.shape[0]} x {X.shape[1]} after the caps, {content_checksum([], X, y)}"
