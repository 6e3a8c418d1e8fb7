"""Every table and figure of the paper as an experiment: the folds to run and the function that runs one."""

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from scboost.diagnostics import (
    TreeMatrix,
    ambiguity,
    correct_votes,
    mean_of_pairs,
    pairwise_disagreement,
    q_statistic,
    redundancy_ratio,
    tree_covariance,
    tree_matrix,
)
from scboost_lab.datasets import (
    oversample,
    prepared,
    smote,
    undersample,
    whole,
)
from scboost_lab.models import BASELINES, METHODS, SCBOOST, SCBOOST_PAPER, SCORED_METHODS, make
from scboost_lab.runner import Experiment, NotInstalledError, Task, Values
from scboost_lab.scoring import N_FOLDS, SCORE_COLUMNS, SCORES, fit_and_score, flip, folds, scores

Array = NDArray[np.float64]

CHEAP_FIRST = (
    "QSAR",
    "Jasmine",
    "Creditcard",
    "Scene",
    "Madelon",
    "Letter",
    "Pol",
    "Elevators",
    "Bioresponse",
    "OVA_Uterus",
)
THREE = ("Jasmine", "Madelon", "Bioresponse")
SCBOOSTS = (SCBOOST_PAPER, SCBOOST)
LITERAL: dict[str, Any] = {
    "learning_rate": 0.1,
    "energy_threshold": 0.9,
    "covariance_penalty": 0.1,
    "max_depth": 5,
}
COLLAPSE_PENALTIES = (0.0, 0.1, 10.0)


def _fold(task: Task, data_dir: str | None) -> tuple[Array, NDArray[np.int64], Array, NDArray[np.int64]]:
    dataset = prepared(task.dataset, data_dir, task.seed)
    train, test = folds(dataset.y, task.seed)[task.fold]
    return dataset.X[train], dataset.y[train], dataset.X[test], dataset.y[test]


def _model(task: Task, params: Mapping[str, Any]) -> Any:
    # The paper switches NGBoost's natural gradient off where the Fisher matrix is singular.
    if task.method == "NGB" and task.dataset == "OVA_Uterus":
        params = {"natural_gradient": False, **params}
    return make(task.method, task.seed, **params)


def defaults(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Fit with `params` on the training fold and score the test fold."""
    model = _model(task, params)
    return fit_and_score(model, *_fold(task, data_dir))


def label_noise(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Flip a fraction of the training labels, the same ones for every method; test labels stay."""
    X, y, X_test, y_test = _fold(task, data_dir)
    noisy = flip(y, params["noise"], np.random.default_rng([task.seed, task.fold]))
    return fit_and_score(_model(task, {}), X, noisy, X_test, y_test)


def leaky(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Score under a protocol other than the honest one, to see which figures it gives."""
    seed = task.seed + task.fold if params.get("anew") else task.seed
    dataset = whole(task.dataset, data_dir) if "resample" in params else prepared(task.dataset, data_dir, task.seed)
    X, y = dataset.X, dataset.y
    if params.get("distinct"):
        rows = np.sort(np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1])
        X, y = X[rows], y[rows]
    if "resample" in params:
        rows = params["resample"](y, seed)
        X, y = X[rows], y[rows]
    if params.get("smote") == "before":
        X, y = smote(X, y, seed)
    train, test = folds(y, task.seed)[task.fold]
    if "residual_sign" in params:
        # With scores of zero the residual is y - 1/2, and its sign is the label.
        sign = np.sign(y - 0.5)
        if params["residual_sign"] == "training rows":
            sign[test] = np.nan
        X = np.column_stack([X, sign])
    if params.get("train_on_test"):
        train = np.arange(len(y))
    X_train, y_train = smote(X[train], y[train], seed) if params.get("smote") == "inside" else (X[train], y[train])
    if params.get("score_all"):
        test = np.arange(len(y))
    given = {"X_val": X[test], "y_val": y[test]} if params.get("weights_from_test") else {}
    return fit_and_score(_model(task, params.get("model", {})), X_train, y_train, X[test], y[test], **given)


def _with_all_learners(task: Task, params: Mapping[str, Any]) -> Any:
    """Make a model that still knows its learners of weight 0, which the exported XGBoost model leaves out."""
    if task.method == SCBOOST_PAPER:
        from sklearn.tree import DecisionTreeRegressor

        params = {"estimator": DecisionTreeRegressor(max_depth=params.get("max_depth", 5)), **params}
    return _model(task, params)


def learners(model: Any, X: Array) -> TreeMatrix:
    """Read what each learner predicts for each row; NGBoost, which scboost does not read, is read here."""
    if type(model).__name__ != "NGBClassifier":
        return tree_matrix(model, X, dtype=np.float64)
    stages = zip(model.base_models, model.col_idxs, strict=True)
    H = np.column_stack([-learner.predict(X[:, columns]) for (learner,), columns in stages])
    return TreeMatrix(
        H=H,
        column_weights=model.learning_rate * np.asarray(model.scalings, dtype=np.float64),
        intercepts=np.asarray(model.init_params, dtype=np.float64),
        centers=np.zeros(H.shape[1]),
        library="ngboost",
        link="logit",
        classes=np.array([0, 1]),
        n_outputs=1,
        average=False,
    )


def diversity(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Disagreement, Q-statistic and ambiguity of the learners on the test fold; see also `values_that_differ`."""
    X, y, X_test, y_test = _fold(task, data_dir)
    trees = learners(_with_all_learners(task, params).fit(X, y), X_test)
    staged = np.cumsum(trees.H * trees.column_weights, axis=1) + trees.intercepts
    return {
        "Dis": mean_of_pairs(pairwise_disagreement(trees.votes())),
        "Q-s": mean_of_pairs(q_statistic(correct_votes(trees, y_test))),
        "Amb": ambiguity(trees.H, trees.column_weights, float(trees.intercepts[0])).ambiguity,
        "learners": trees.n_trees,
        "weighted": int(np.sum(trees.column_weights > 1e-6 * trees.column_weights.max())),
        "differ": values_that_differ(trees.H),
        "staged_differ": "" if trees.average else values_that_differ(staged > 0),
    }


def values_that_differ(H: NDArray[Any]) -> float:
    """Share of pairs of columns, a column with itself included, whose values differ; the mean over the rows."""
    equal = [np.sum(np.unique(row, return_counts=True)[1] ** 2) for row in H]
    return float(1 - np.mean(equal) / H.shape[1] ** 2)


def spectrum(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Singular values of the learners' training predictions, divided by the largest."""
    X, y, _, _ = _fold(task, data_dir)
    trees = learners(_with_all_learners(task, params).fit(X, y), X)
    s = np.linalg.svd(trees.H, compute_uv=False)
    return {"singular_values": " ".join(f"{v:.4g}" for v in s / s[0])}


def depth(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Score, and the mean redundancy ratio of the learners' training predictions."""
    X, y, X_test, y_test = _fold(task, data_dir)
    model = _with_all_learners(task, params)
    values = fit_and_score(model, X, y, X_test, y_test)
    return {**values, "redundancy": float(redundancy_ratio(tree_covariance(learners(model, X).H)).mean())}


def collapse(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """Run the literal Algorithm 1 and say what its weights and its targets became."""
    from scipy.special import expit
    from sklearn.model_selection import train_test_split

    from scboost_lab.literal import fit_literal, simplex_weights

    X, y, X_test, y_test = _fold(task, data_dir)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, stratify=y, random_state=task.seed)
    literal = fit_literal(X_train, y_train, X_val, y_val, random_state=task.seed, **params)
    H = np.column_stack([tree.predict(X_test) for tree in literal.trees])
    F = H @ literal.weights
    plain = scores(y_test, expit(params["learning_rate"] * H.sum(axis=1)))
    r, q, h = literal.residuals, literal.projected_residuals, literal.H.T
    kept = (q**2).sum(axis=1) / (r**2).sum(axis=1)
    cosine = (r * h).sum(axis=1) / np.sqrt((r**2).sum(axis=1) * (h**2).sum(axis=1))
    counts = {
        f"trees_kept_{penalty:g}": int(np.sum(simplex_weights(literal.H_val, y_val, penalty)[0] > 1e-6))
        for penalty in COLLAPSE_PENALTIES
    }
    return {
        **scores(y_test, expit(F)),
        **counts,
        "gap": literal.gap,
        "F_largest": float(np.abs(F).max()),
        "ACC_unweighted": plain["ACC"],
        "AUC_unweighted": plain["AUC"],
        "energy_kept": " ".join(f"{v:.3f}" for v in kept),
        "cosine": " ".join(f"{v:.3f}" for v in cosine),
    }


def complexity(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:  # noqa: ARG001 - one signature
    """Time a fit on made-up data of given rows and rounds; for the literal method also its SVDs alone."""
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    from scboost_lab.literal import fit_literal, project_out

    X, y = make_classification(params["n"], 10, n_informative=8, flip_y=0.1, random_state=task.fold)
    if task.method != "literal":
        model = make(task.method, task.seed, n_estimators=params["T"])
        start = time.perf_counter()
        model.fit(X, y)
        return {"fit_seconds": time.perf_counter() - start}
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, stratify=y, random_state=task.seed)
    start = time.perf_counter()
    literal = fit_literal(X_train, y_train, X_val, y_val, random_state=task.seed, n_estimators=params["T"], **LITERAL)
    fitted = time.perf_counter()
    for t in range(1, params["T"]):
        project_out(literal.H[:, :t], literal.residuals[t], 0.9)
    return {"fit_seconds": fitted - start, "svd_seconds": time.perf_counter() - fitted}


SPACES: dict[str, tuple[str, ...]] = {
    "RF": ("n_estimators", "max_depth"),
    "ADA": ("n_estimators", "learning_rate"),
    "GBDT": ("n_estimators", "max_depth", "learning_rate"),
    "XGB": ("n_estimators", "max_depth", "learning_rate"),
    "LGBM": ("n_estimators", "max_depth", "learning_rate"),
    "CAT": ("n_estimators", "max_depth", "learning_rate"),
    "NGB": ("n_estimators", "learning_rate"),
}


def _distributions(method: str) -> dict[str, Any]:
    from optuna.distributions import FloatDistribution, IntDistribution

    known = {
        "n_estimators": IntDistribution(50, 200),
        "max_depth": IntDistribution(3, 8),
        "learning_rate": FloatDistribution(1e-3, 1.0, log=True),
    }
    return {name: known[name] for name in SPACES[method]}


def without_zeros(X: Array) -> Any:
    """Return a table that is mostly zeros as a sparse matrix, any other as it is.

    NGBoost's trees then sort the other values alone, which takes less time for the same predictions.
    """
    return csr_matrix(X) if np.count_nonzero(X) < X.size / 4 else X


def tuned(task: Task, params: Mapping[str, Any], data_dir: str | None) -> Values:
    """One Optuna trial (number `task.fold`): means and fold values of the parameters it proposes.

    The sampler is seeded by the trial's number and told the trials in the file, so a run that was stopped
    proposes what an uninterrupted one would. As in the paper, the folds that choose are the folds reported. Optuna's
    Wilcoxon pruner stops a trial that is significantly worse than the best one on the same folds; the sampler is
    then told the mean so far, which is below the best as well.
    """
    try:
        import optuna
    except ImportError as error:
        raise NotInstalledError("the tuned table needs the package optuna") from error

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = _distributions(task.method)
    sampler = optuna.samplers.TPESampler(seed=task.seed + task.fold)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # it is as old as 3.6
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=0.1)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    for row in params["history"].get((task.dataset, task.method), []):
        folds = dict(enumerate(map(float, row["ACC_folds"].split())))
        proposed = {"params": json.loads(row["params"]), "distributions": distributions}
        study.add_trial(optuna.trial.create_trial(**proposed, value=float(row["ACC"]), intermediate_values=folds))
    trial = study.ask(distributions)
    extra = {"natural_gradient": False} if task.method == "NGB" else {}
    outcomes: list[Mapping[str, float]] = []
    while len(outcomes) < N_FOLDS and not trial.should_prune():
        X, y, X_test, y_test = _fold(Task(task.dataset, task.method, len(outcomes)), data_dir)
        if task.method == "NGB":
            X, X_test = without_zeros(X), without_zeros(X_test)
        model = make(task.method, task.seed, **trial.params, **extra)
        outcomes.append(fit_and_score(model, X, y, X_test, y_test))
        trial.report(outcomes[-1]["ACC"], len(outcomes) - 1)
    means: dict[str, float | str] = {c: float(np.mean([o[c] for o in outcomes])) for c in SCORE_COLUMNS}
    for metric in ("ACC", "F1", "AUC"):
        means[f"{metric}_folds"] = " ".join(f"{o[metric]:.5f}" for o in outcomes)
    stopped = int(len(outcomes) < N_FOLDS)
    return {**means, "params": json.dumps(trial.params), "folds_run": len(outcomes), "stopped": stopped}


TRAINING_ROWS = "scored on training rows"
OVER, UNDER = "over-sampled before the split", "under-sampled before the split"
DRAWN = "both classes drawn with replacement"
ORDINARY = "without natural gradients"
DRAWN_ORDINARY = f"{DRAWN}, {ORDINARY}"
SMOTE, SMOTE_INSIDE = "SMOTE before the split", "SMOTE in the training fold"
DISTINCT = "equal rows removed"
DISTINCT_OVER, DISTINCT_SMOTE = f"{DISTINCT}, {OVER}", f"{DISTINCT}, {SMOTE}"
TEST_WEIGHTS = "weights learnt on the test fold"
ALL_ROWS = "scored on training and test rows"
SIGN, TRAINING_SIGN = "sign of the residual as a column", "sign of the residual as a column, test rows without it"
PROTOCOLS: dict[str, dict[str, Any]] = {
    TRAINING_ROWS: {"train_on_test": True},
    OVER: {"resample": oversample},
    UNDER: {"resample": undersample},
    # Which rows are drawn moves a figure by some 0.01: a new draw for each fold takes the mean over ten.
    DRAWN: {"resample": partial(undersample, replace=True), "anew": True},
    ORDINARY: {"model": {"natural_gradient": False}},
    SMOTE: {"smote": "before"},
    SMOTE_INSIDE: {"smote": "inside"},
    DISTINCT: {"distinct": True},
    TEST_WEIGHTS: {"weights_from_test": True},
    ALL_ROWS: {"score_all": True},
    SIGN: {"residual_sign": "all rows"},
    TRAINING_SIGN: {"residual_sign": "training rows"},
}
PROTOCOLS[DRAWN_ORDINARY] = PROTOCOLS[DRAWN] | PROTOCOLS[ORDINARY]
PROTOCOLS[DISTINCT_OVER] = PROTOCOLS[DISTINCT] | PROTOCOLS[OVER]
PROTOCOLS[DISTINCT_SMOTE] = PROTOCOLS[DISTINCT] | PROTOCOLS[SMOTE]


_FOUR = ("RF", "LGBM", *SCBOOSTS)
_SIX = ("QSAR", "Jasmine", "Scene", "Madelon", "Elevators", "Bioresponse")
_LEAKS: dict[str, dict[str, Sequence[str]]] = {  # the methods that are run on each set
    TRAINING_ROWS: dict.fromkeys(_SIX, _FOUR),
    OVER: {"QSAR": METHODS, "Scene": ("XGB", *_FOUR)},
    UNDER: dict.fromkeys(("QSAR", "Scene"), METHODS),
    DRAWN: dict.fromkeys(("QSAR", "Creditcard", "Scene"), METHODS),
    ORDINARY: dict.fromkeys(("Letter", "Pol"), ("NGB",)),
    DRAWN_ORDINARY: dict.fromkeys(("QSAR", "Scene"), ("NGB",)),
    **{each: {"QSAR": BASELINES} for each in (SMOTE, SMOTE_INSIDE, DISTINCT, DISTINCT_OVER, DISTINCT_SMOTE)},
    **{each: dict.fromkeys((*_SIX, "Creditcard"), (SCBOOST_PAPER,)) for each in (TEST_WEIGHTS, ALL_ROWS)},
    **{each: dict.fromkeys(("QSAR", "Jasmine"), (SCBOOST_PAPER,)) for each in (SIGN, TRAINING_SIGN)},
}


_GRID = [(n, 100) for n in (1000, 2000, 4000, 8000, 16000)] + [(4000, T) for T in (25, 50, 200)]

EXPERIMENTS: dict[str, Experiment] = {
    "table1": Experiment("Table 1: out-of-the-box performance", defaults, SCORE_COLUMNS, CHEAP_FIRST, SCORED_METHODS),
    "table2": Experiment(
        "Table 2: tuned baselines",
        tuned,
        columns=(*SCORE_COLUMNS, "ACC_folds", "F1_folds", "AUC_folds", "params", "folds_run", "stopped"),
        datasets=("QSAR", *THREE, "Creditcard", "OVA_Uterus"),
        methods=BASELINES,
    ),
    "table3": Experiment(
        "Table 3: diversity of the learners",
        diversity,
        columns=("Dis", "Q-s", "Amb", "learners", "weighted", "differ", "staged_differ"),
        datasets=THREE,
        methods=METHODS,
    ),
    "table4": Experiment(
        "Table 4: ablation",
        defaults,
        columns=SCORE_COLUMNS,
        datasets=THREE,
        methods=(SCBOOST_PAPER,),
        settings={
            "SRP+CRW": {},
            "SRP": {"weighting": None},
            "CRW": {"projection_strength": 0.0},
            "neither": {"projection_strength": 0.0, "weighting": None},
        },
    ),
    "noise": Experiment(
        "Figures 2 and 3: label noise",
        label_noise,
        columns=SCORE_COLUMNS,
        datasets=("Jasmine", "Madelon"),
        methods=METHODS,
        settings={f"noise={v}": {"noise": v} for v in (0.1, 0.2, 0.3)},
    ),
    "learning_rate": Experiment(
        "Learning-rate sensitivity",
        defaults,
        columns=SCORE_COLUMNS,
        datasets=THREE,
        methods=SCBOOSTS,
        settings={f"learning_rate={v}": {"learning_rate": v} for v in (0.001, 0.01, 0.05, 0.1, 0.5)},
    ),
    "covariance_penalty": Experiment(
        "Sensitivity to the covariance penalty, which the paper does not state",
        defaults,
        columns=SCORE_COLUMNS,
        datasets=("QSAR", *THREE),
        methods=(SCBOOST_PAPER,),
        settings={f"covariance_penalty={v}": {"covariance_penalty": v} for v in (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)},
    ),
    "spectrum": Experiment(
        "Singular spectrum of the learners' predictions",
        spectrum,
        columns=("singular_values",),
        datasets=("Jasmine",),
        methods=("GBDT", *SCBOOSTS),
    ),
    "depth": Experiment(
        "Tree depth, accuracy and redundancy",
        depth,
        columns=(*SCORE_COLUMNS, "redundancy"),
        datasets=("Jasmine",),
        methods=(SCBOOST_PAPER,),
        settings={f"max_depth={v}": {"max_depth": v} for v in range(1, 9)},
    ),
    "complexity": Experiment(
        "Complexity: exponents in rows and rounds",
        complexity,
        columns=("fit_seconds", "svd_seconds"),
        datasets=("synthetic",),
        methods=("literal", *SCBOOSTS),
        settings={f"n={n} T={T}": {"n": n, "T": T} for n, T in _GRID},
        n_folds=3,
    ),
    "collapse": Experiment(
        "What the literal algorithm's weights and targets become",
        collapse,
        columns=(
            *SCORES,
            *(f"trees_kept_{penalty:g}" for penalty in COLLAPSE_PENALTIES),
            "gap",
            "F_largest",
            "ACC_unweighted",
            "AUC_unweighted",
            "energy_kept",
            "cosine",
        ),
        datasets=("QSAR", "Jasmine", "Madelon", "Elevators"),
        methods=("literal",),
        settings={"": {**LITERAL, "n_estimators": 100}},
    ),
    "protocols": Experiment(
        "Other protocols and the figures they give",
        leaky,
        columns=SCORE_COLUMNS,
        datasets=("QSAR", "Jasmine", "Creditcard", "Scene", "Letter", "Pol", "Madelon", "Elevators", "Bioresponse"),
        methods=METHODS,
        settings=PROTOCOLS,
        wanted=lambda dataset, method, setting: method in _LEAKS[setting].get(dataset, ()),
    ),
}
