"""Compare models compressed to a few trees with their teachers and with short boosted models.

``scboost-lab compress_study PART`` appends to ``results/compress/<part>.csv``; one row is one fold of one method on one
data set, with at most `TRAIN_CAP` training samples. No setting of a compressed model is selected on the test fold
during a run. The ridge of growth and the number of leaves of models of 50 trees were selected on results of
`compress_summary.CHOSEN_ON`, half of the sets; ``summary`` shows both halves. Earlier results on fold 0 influenced the
leaf size.
The learning rate of a short boosted model is selected on the test fold, in its favour, when the rows are summarized:
there is one row for each learning rate.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost import compress, redundancy_report
from scboost_lab.compress_summary import CHOSEN_ON, summary
from scboost_lab.compress_variants import (
    INTERNAL,
    OF_LABELS,
    VARIANTS_20,
    VARIANTS_50,
    by_row,
    changed,
    generator,
    out_of_fold,
)
from scboost_lab.datasets import DATA_DIR_VARIABLE, SEED, require_data_dir
from scboost_lab.default_methods import ALL, MULTICLASS, N_FOLDS, REGRESSION, Method, estimator, task_of
from scboost_lab.default_study import categorical_columns, encoded, fingerprint, load, scores
from scboost_lab.models import SCBOOST
from scboost_lab.runner import Experiment, Task
from scboost_lab.scoring import folds

TRAIN_CAP = 4_000
LEAVES = 64
SIZES = (20, 50)
RATES = (0.1, 0.2, 0.3, 0.5)
LONG_RATES = (0.05, 0.1, 0.2, 0.3)
N_RESAMPLINGS = 200
CERTIFIED = 300  # samples of one certificate
SCORES = ("log_loss", "AUC", "ACC", "RMSE")
TEACHER_COLUMNS = (*(f"teacher_{name}" for name in SCORES), "teacher_seconds", "teacher_trees", "teacher_bytes")
STUDENT_COLUMNS = (
    *SCORES,
    "fidelity",
    "divergence",
    "agreement",
    "agreement_bound",
    "loss_rise_bound",
    "seconds",
    "bytes",
    "n_leaves",
    "redundancy",
)
PEER_COLUMNS = (*SCORES, "seconds", "redundancy")
COVERAGE_COLUMNS = ("agreement", "loss_rise", "covered_agreement", "covered_rise", "covered_divergence")

Array = NDArray[Any]

TEACHERS: dict[str, Method] = {
    "SCBoost": Method(SCBOOST, {"engine": "native"}),
    "SCBoost best": Method(SCBOOST, {"engine": "native", "preset": "best"}),
    "XGBoost 500": Method("XGB", {"n_estimators": 500, "learning_rate": 0.05, "enable_categorical": True}),
    "LightGBM 500": Method("LGBM", {"n_estimators": 500, "learning_rate": 0.05}),
    "CatBoost 1000": Method("CAT", {"n_estimators": 1000}),
    "random forest 500": Method("RF", {"n_estimators": 500, "min_samples_leaf": 2}),
    "MLP": Method("RF"),  # takes numbers, as the forest does; made by `_network`
}
FOREIGN = tuple(name for name in TEACHERS if not name.startswith("SCBoost"))


def _peers() -> dict[str, Method]:
    found = {}
    for rate in RATES:
        step = {"learning_rate": rate}
        grown = {"max_leaves": LEAVES, "max_depth": 0, "grow_policy": "lossguide", "enable_categorical": True}
        found[f"XGBoost 20, rate {rate}"] = Method("XGB", {"n_estimators": 20, **grown, **step}, measured=True)
        found[f"XGBoost 50, rate {rate}"] = Method("XGB", {"n_estimators": 50, **grown, **step}, measured=True)
        found[f"LightGBM 20, rate {rate}"] = Method("LGBM", {"n_estimators": 20, "num_leaves": LEAVES, **step})
        found[f"CatBoost 20, rate {rate}"] = Method("CAT", {"n_estimators": 20, "depth": 6, **step})
    for rate in LONG_RATES:
        step = {"n_estimators": 100, "learning_rate": rate, "enable_categorical": True}
        found[f"XGBoost 100, rate {rate}"] = Method("XGB", step)
    return found


PEERS = _peers()
SYNTHETIC_VARIANTS: dict[str, Mapping[str, Any]] = {
    "default": {},
    "no synthetic samples": {"n_synthetic": 0},
    "4,000 synthetic samples": {"n_synthetic": 4_000},
    "50,000 synthetic samples": {"n_synthetic": 50_000},
    "1 neighbor": {"munge": {"n_neighbors": 1}},
    "5 neighbors": {"munge": {"n_neighbors": 5}},
    "20 neighbors": {"munge": {"n_neighbors": 20}},
    "without noise": {"munge": {"noise": 0.0}},
    "swap 0.3": {"munge": {"swap_probability": 0.3}},
    "without a limit of bytes": {"max_bytes": None},
    "10 trees of 128 leaves": {"max_trees": 10, "max_leaves": 128},
    "40 trees of 32 leaves": {"max_trees": 40, "max_leaves": 32},
    "80 trees of 16 leaves": {"max_trees": 80, "max_leaves": 16},
    "all samples fitted": {"certify_fraction": 0.001},
}


def split(task: Task, data_dir: str | None) -> tuple[Any, Array, Any, Array]:
    """Return training and test samples of a fold; at most `TRAIN_CAP` training samples, drawn once."""
    from sklearn.model_selection import train_test_split

    X, y = load(task.dataset, data_dir)
    stratified = task_of(task.dataset) != "regression"
    train, test = folds(y, SEED, N_FOLDS, stratified=stratified)[task.fold]
    if len(train) > TRAIN_CAP:
        stratify = y[train] if stratified else None
        train = train_test_split(train, train_size=TRAIN_CAP, random_state=task.fold, stratify=stratify)[0]
    return X.iloc[train], y[train], X.iloc[test], y[test]


def _network(X: Any, *, regression: bool, seed: int) -> Any:
    """Make a multilayer perceptron on standardized features."""
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    del X
    network = (MLPRegressor if regression else MLPClassifier)((64, 64), early_stopping=True, random_state=seed)
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), network)


def predict(model: Any, X: Any, kind: str) -> Array:
    """Return probabilities, or values for regression."""
    return np.asarray(model.predict(X) if kind == "regression" else model.predict_proba(X), dtype=np.float64)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the CPU seconds it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn about convergence and feature names
        result = work()
    return result, round(time.process_time() - start, 3)


def file_size(model: Any) -> int:
    """Return the bytes of a model file; 0 for models of other libraries."""
    if not hasattr(model, "__fitted_model__"):
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ubj"
        model.save_model(path)
        return path.stat().st_size


@lru_cache(maxsize=1)
def fitted_teacher(dataset: str, name: str, fold: int, data_dir: str | None) -> tuple[Any, Any, Any, float]:
    """Fit a teacher; return it with its training and test tables and the CPU seconds of the fit."""
    X, y, X_test, _ = split(Task(dataset, name, fold), data_dir)
    kind, method = task_of(dataset), TEACHERS[name]
    names = categorical_columns(X)
    X, X_test = encoded(X, method), encoded(X_test, method)
    if name == "MLP":
        model = _network(X, regression=kind == "regression", seed=fold)
    else:
        model = estimator(method, kind, names, fold)
    _, seconds = timed(lambda: model.fit(X, y))
    return model, X, X_test, seconds


def redundancy(model: Any, X: Any) -> float:
    """Return the mean share of a tree that lies in the span of earlier trees."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # more trees than samples
        return float(redundancy_report(model, X).redundancy)


def run_student(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit a teacher and compress it; score both on the test fold.

    Parameters
    ----------
    task : Task
        Its method is a key of `TEACHERS`.
    params : mapping
        Arguments of ``compress``; "munge" has parameters of the generator of synthetic samples, "out_of_fold" makes the
        teacher's scores of training samples those of models fitted without them, and `changed` has the others.
    data_dir : str or None
        Directory of the Parquet files.

    Returns
    -------
    dict
        Values of `TEACHER_COLUMNS` and `STUDENT_COLUMNS`.
    """
    kind = task_of(task.dataset)
    _, y, _, y_test = split(task, data_dir)
    model, X, X_test, seconds = fitted_teacher(task.dataset, task.method, task.fold, data_dir)
    arguments = {name: value for name, value in params.items() if name not in INTERNAL}
    munge = arguments.pop("munge", None)
    if munge is not None:
        arguments["X_synthetic"] = generator(X, munge)
    teacher, before = model, 0.0
    if arguments.pop("out_of_fold", False):
        (teacher, link), before = timed(lambda: out_of_fold(model, X, y, kind, task.fold))
        arguments |= {"link": link, "max_bytes": max(file_size(model) // 10, 10_000)}
    with changed(params, lambda: by_row(X, model.__fitted_model__().encoder, y)):
        small, spent = timed(lambda: compress(teacher, X, y, random_state=task.fold, **arguments))
    p, q = (predict(m, X_test, kind) for m in (small.model, model))
    values = {f"teacher_{name}": value for name, value in _scores(kind, y_test, q).items()}
    values |= _scores(kind, y_test, p)
    values |= {
        "teacher_seconds": seconds,
        "teacher_trees": float(getattr(model, "n_estimators_", 0)),
        "teacher_bytes": float(file_size(model)),
        "fidelity": small.fidelity,
        "divergence": _divergence(kind, p, q),
        "seconds": round(before + spent, 3),
        "bytes": float(file_size(small.model)),
        "n_leaves": float(small.n_leaves),
    }
    if kind != "regression":
        values["agreement"] = float(np.mean(p.argmax(axis=1) == q.argmax(axis=1)))
        values["agreement_bound"] = float(small.certificate.agreement_bound or 0.0)
    values["loss_rise_bound"] = float(small.certificate.loss_rise_bound or 0.0)
    if kind != "multiclass" and task.fold == 0:
        values["redundancy"] = redundancy(small.model, X_test)
    return values


def _scores(kind: str, y: Array, prediction: Array) -> dict[str, float]:
    return {name: value for name, value in scores(kind, y, prediction).items() if name in SCORES}


def _divergence(kind: str, p: Array, q: Array) -> float:
    if kind == "regression":
        return float(np.mean((p - q) ** 2) / 2)
    p, q = (np.clip(v, 1e-9, 1) for v in (p, q))
    return float(np.mean((q * np.log(q / p)).sum(axis=1)))


def run_peer(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit a short boosted model and score it on the test fold; values of `PEER_COLUMNS`."""
    del params
    kind, method = task_of(task.dataset), PEERS[task.method]
    X, y, X_test, y_test = split(task, data_dir)
    names = categorical_columns(X)
    X, X_test = encoded(X, method), encoded(X_test, method)
    model = estimator(method, kind, names, task.fold)
    _, seconds = timed(lambda: model.fit(X, y))
    values = {**_scores(kind, y_test, predict(model, X_test, kind)), "seconds": seconds}
    if method.measured and kind != "multiclass" and task.fold == 0:
        values["redundancy"] = redundancy(model, X_test)
    return values


def run_coverage(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Return how often certificates from resampled fresh samples hold for all of them.

    The test fold stands for the population. Each of `N_RESAMPLINGS` certificates is computed from `CERTIFIED` samples
    drawn from it with replacement, and compared with the values on the whole test fold.
    """
    from scboost._compress.certificate import certify

    del params
    y_test = split(task, data_dir)[3]
    model, X, X_test, _ = fitted_teacher(task.dataset, task.method, task.fold, data_dir)
    small = compress(model, X, max_trees=20, random_state=task.fold, n_synthetic=5_000).model
    p, q = (np.clip(m.predict_proba(X_test), 1e-9, 1) for m in (small, model))
    same = p.argmax(axis=1) == q.argmax(axis=1)
    divergence = (q * np.log(q / p)).sum(axis=1)
    rows = np.arange(len(y_test))
    rise = np.log(q[rows, y_test]) - np.log(p[rows, y_test])
    rng = np.random.default_rng([SEED, task.fold])
    p_seen, q_seen = (np.clip(m.predict_proba(X), 1e-9, 1) for m in (small, model))
    by_label, by_label_seen = np.log(q / p).max(axis=1), float(np.log(q_seen / p_seen).max())
    worst_seen = float((q_seen * np.log(q_seen / p_seen)).sum(axis=1).max())
    covered = np.zeros(3)
    for _ in range(N_RESAMPLINGS):
        drawn = rng.integers(len(rows), size=CERTIFIED)
        worst = (max(worst_seen, float(divergence[drawn].max())), max(by_label_seen, float(by_label[drawn].max())))
        found = certify(same[drawn], divergence[drawn], rise[drawn], 0.95, worst)
        covered += [
            found.agreement_bound is not None and found.agreement_bound <= same.mean(),
            found.loss_rise_bound is not None and found.loss_rise_bound >= rise.mean(),
            found.divergence_bound >= divergence.mean(),
        ]
    shares = covered / N_RESAMPLINGS
    return {
        "agreement": float(same.mean()),
        "loss_rise": float(rise.mean()),
        "covered_agreement": float(shares[0]),
        "covered_rise": float(shares[1]),
        "covered_divergence": float(shares[2]),
    }


SIZE_SETTINGS: dict[str, Mapping[str, Any]] = {f"{size} trees": {"max_trees": size} for size in SIZES}
STUDENTS = (*TEACHER_COLUMNS, *STUDENT_COLUMNS)
PARTS: dict[str, Experiment] = {
    "peers": Experiment(
        "short boosted models of XGBoost, LightGBM and CatBoost",
        run_peer,
        PEER_COLUMNS,
        (*ALL, *REGRESSION),
        tuple(PEERS),
        n_folds=N_FOLDS,
        wanted=lambda dataset, method, setting: dataset in ALL or method.startswith("XGBoost"),  # noqa: ARG005
    ),
    "students": Experiment(
        "the default compressed to 20 and 50 trees",
        run_student,
        STUDENTS,
        (*ALL, *REGRESSION, *MULTICLASS),
        ("SCBoost",),
        SIZE_SETTINGS,
        n_folds=N_FOLDS,
    ),
    "foreign": Experiment(
        "teachers of other libraries compressed to 50 trees",
        run_student,
        STUDENTS,
        ALL,
        FOREIGN,
        {"50 trees": {"max_trees": 50}},
        n_folds=N_FOLDS,
    ),
    "synthetic": Experiment(
        "alternatives of synthetic samples and tree sizes, 20 trees",
        run_student,
        STUDENTS,
        ALL,
        ("SCBoost",),
        SYNTHETIC_VARIANTS,
        n_folds=N_FOLDS,
    ),
    **{
        f"variants_{size}": Experiment(
            f"alternatives of the method, {size} trees, on the sets that selected its settings",
            run_student,
            STUDENTS,
            CHOSEN_ON,
            ("SCBoost",),
            {name: {"max_trees": size, **variant} for name, variant in variants.items()},
            n_folds=N_FOLDS,
            wanted=lambda dataset, method, setting: dataset in ALL or setting not in OF_LABELS,  # noqa: ARG005
        )
        for size, variants in ((20, VARIANTS_20), (50, VARIANTS_50))
    },
    "backfitting": Experiment(
        "backfitted classifiers, 20 trees, on the sets that did not select it",
        run_student,
        STUDENTS,
        tuple(name for name in ALL if name not in CHOSEN_ON),
        ("SCBoost",),
        {"20 trees": {"max_trees": 20, "backfitted": 20}},
        n_folds=N_FOLDS,
    ),
    "best": Experiment(
        'preset="best" as the teacher',
        run_student,
        STUDENTS,
        ALL,
        ("SCBoost best",),
        SIZE_SETTINGS,
        n_folds=N_FOLDS,
    ),
    "coverage": Experiment(
        "coverage of certificates", run_coverage, COVERAGE_COLUMNS, ALL, ("SCBoost",), n_folds=N_FOLDS
    ),
}


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Sort tasks by fold: an interrupted study has the same folds of every set."""
    return sorted(tasks, key=lambda task: task.fold)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab compress_study``."""
    parser.description = "Run parts of the study. An interrupted run is resumed."
    parts = "; ".join(f"{name}: {experiment.title}" for name, experiment in PARTS.items())
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "summary"], help=f"{parts}; summary: print the targets")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/compress"), help="directory of the result files")
    parser.add_argument("--folds", type=int, default=3, metavar="N", help="number of folds to run, of five")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these methods")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, one thread each")


def main(args: argparse.Namespace) -> int:
    """Run the given parts."""
    for name in args.parts:
        if name == "summary":
            print(summary(args.out))
            continue
        directory = require_data_dir(args.data_dir)
        experiment = PARTS[name]
        experiment.run_recorded(
            args.out / f"{name}.csv",
            in_order(experiment.tasks(args.sets, args.methods, args.folds)),
            directory,
            command=f"scboost-lab compress_study {name} --folds {args.folds}",
            fingerprint=partial(fingerprint, data_dir=directory),
            jobs=args.jobs,
            train_cap=TRAIN_CAP,
        )
    return 0
