"""Soak test: adversarial data and random valid parameters. A fit is correct, or rejected before the first tree.

What is checked of a fit: finite predictions, inputs left unchanged, and the same raw scores with two threads instead of
one (also beside a process that keeps a core busy), from a table instead of an array, with renamed categories, from a
sparse matrix with unsummed duplicates, after saving and loading, after pickling, after a checkpoint and a resumed fit,
by staged prediction, by XGBoost, and as the sum of the tree matrix; up to rounding also with the samples or the
validation set in another order, with repeated instead of weighted samples, and in another unit of y. Ctrl-C at a random
moment keeps finished rounds or the old model; checkpoints and tables of another fit are rejected. Both engines take
turns. A case is determined by the seed and its number. A violation is shrunk and printed as a script: ``make soak
MINUTES=10 SEED=1``. With ``--output``, a run is resumed where the figures there end.
"""

from __future__ import annotations

import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import xgboost
from scipy import sparse

from figures import arguments, described, earlier_runs, finish, write
from pressing import pressed
from scboost import Checkpoint, load_model, tree_matrix
from scboost._engine.native.engine import NativeEngine
from scboost._engine.xgboost.engine import XGBoostEngine
from scboost._estimators.sharing import resumed_estimator
from soak_cases import AMOUNTS, Case, make_case

Array = npt.NDArray[Any]

ROUNDING = 1e-3
"""Largest difference of scores, in units of their spread, that counts as rounding."""
NUDGE = 1e-6
"""Relative change of the weights under which an ill-conditioned fit becomes another model."""
LARGEST = 1e38
"""Numbers beyond are for the check of infinity only."""
WORDS = (
    "X",
    "y",
    "Sample weights",
    "sample_weight",
    "sample_weight_val",
    "X_val",
    "y_val",
    "classes",
    "label",
    "Column",
)


class Violation(AssertionError):  # noqa: N818 - it is what is looked for, not an error of this program
    """A guarantee that does not hold."""


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """The library rejected the data or parameters, as it may."""


# --- what is promised ------------------------------------------------------------------------------------------------


@contextmanager
def _grown() -> Iterator[list[bool]]:
    """Count the trees grown."""
    grown: list[bool] = []
    with ExitStack() as patches:
        for engine, name in product((XGBoostEngine, NativeEngine), ("grow", "finish_round")):
            original = getattr(engine, name)

            def step(self: Any, *args: Any, original: Any = original) -> Any:
                grown.append(True)
                return original(self, *args)

            patches.enter_context(mock.patch.object(engine, name, step))
        yield grown


def start(case: Case) -> Any:
    """Fit, or raise Refused if the refusal is clear and comes before the first tree."""
    before = case.X.copy(), case.y.copy(), None if case.weight is None else case.weight.copy()
    with _grown() as grown:
        try:
            model = case.fit()
        except (ValueError, TypeError) as error:
            names = re.compile(rf"\b({'|'.join([*WORDS, *case.model().get_params()])})\b")
            if grown:
                raise Violation(f"refused after {len(grown)} trees: {error}") from error
            if not names.search(str(error)):
                raise Violation(f"the error names no parameter: {error}") from error
            raise Refused(str(error)) from error
    for old, new in zip(before, (case.X, case.y, case.weight), strict=True):
        if old is not None and new is not None and not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            raise Violation("fit has changed its input")
    return model


def _scores(case: Case, model: Any, *, kind: str = "", X: Array | None = None) -> Array:
    """Return the raw scores of all samples."""
    rows = case.rows(X, kind=kind)
    return np.asarray(model.decision_function(rows) if case.task == "classes" else _raw(model, rows))


def _raw(model: Any, rows: Any) -> Array:
    return np.asarray(model._raw_scores(rows)[0])  # noqa: SLF001 - predictions of counts hide it behind the exponential


def _new_rows(case: Case) -> Array:
    """Rows that were not in the fit: other values, missing ones, infinite ones, unknown categories."""
    rng = np.random.default_rng(0)
    X = rng.permuted(case.X, axis=0)[:20] * rng.choice([1.0, 1.5, -1.0], size=case.X.shape[1])
    X[rng.random(X.shape) < 0.1] = np.nan
    numeric = [j for j in range(X.shape[1]) if j not in case.categorical]
    if numeric:
        X[0, numeric] = np.inf
        X[-1, numeric] = -np.inf
    return np.asarray(X)


def _finite(X: Array) -> Array:
    return np.asarray(np.where(np.abs(X) < LARGEST, X, np.nan))


def _same(a: Array, b: Array, what: str) -> None:
    if not np.array_equal(a, b):
        raise Violation(f"{what}: scores differ by {np.abs(a - b).max():.3g} of {_spread(b):.3g}")


def _spread(scores: Array) -> float:
    return float(np.abs(scores - scores.mean(axis=0)).max()) if len(scores) else 0.0


def _near(a: Array, b: Array, share: float = 1e-5, size: float = 0.0) -> bool:
    """Whether scores are equal up to a share of their spread, and what float32 leaves of their parts' size."""
    size = max(size, float(np.abs(a).max(initial=0)), float(np.abs(b).max(initial=0)))
    return bool(np.abs(a - b).max(initial=0) <= share * max(_spread(a), _spread(b)) + 2e-7 * size)


def check_finite(case: Case, model: Any) -> None:
    """Promise that predictions are finite, for training samples and others."""
    X = np.vstack([case.X, _new_rows(case)])
    if not np.isfinite(_scores(case, model, X=X)).all():
        raise Violation("a score is not finite")
    rows = case.rows(X)
    answers = model.predict_proba(rows) if case.task == "classes" else model.predict(rows)
    if not np.isfinite(answers).all():
        raise Violation("a prediction is not finite")
    if case.task == "classes" and not np.allclose(answers.sum(axis=1), 1):
        raise Violation("probabilities do not add up to 1")


def check_threads(case: Case, model: Any) -> None:
    """Promise that two threads give the same model as one."""
    _same(_scores(case, case.fit(n_jobs=2)), _scores(case, model), "two threads")


def check_again(case: Case, model: Any) -> None:
    """Promise that a second fit gives the same model."""
    _same(_scores(case, case.fit()), _scores(case, model), "a second fit")


def check_tables(case: Case, model: Any) -> None:
    """Promise that a table of polars gives the same model as an array, or as a table of pandas."""
    _same(_scores(case, case.fit(kind="polars"), kind="polars"), _scores(case, model), "a table")


def check_files(case: Case, model: Any) -> None:
    """Promise that a saved and loaded model, and a pickled one, are the same model."""
    new = _new_rows(case)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.{'ubj' if len(case.y) % 4 else 'json'}"
        model.save_model(path)
        _same(_scores(case, load_model(path), X=new), _scores(case, model, X=new), "a loaded file")
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301 - written in the same line
    _same(_scores(case, copied, X=new), _scores(case, model, X=new), "a pickled model")


def check_resuming(case: Case, model: Any) -> None:
    """Promise that a fit resumed from a checkpoint gives the model of an uninterrupted fit."""
    chosen = model.n_estimators == "auto" and model.preset == "default"
    if model.preset == "best" or (model.weighting is not None and (chosen or model.weighting_data != "holdout")):
        return
    with tempfile.TemporaryDirectory() as folder:
        every = max(1, model.n_estimators_ // 2)
        checkpoint = Checkpoint(Path(folder) / "fit.checkpoint", every=every)
        _same(_scores(case, case.fit(callbacks=[checkpoint])), _scores(case, model), "a checkpoint is written")
        if not checkpoint.path.exists():  # no tree was grown
            return
        resumed = case.fit(model=checkpoint.load())
        _same(_scores(case, resumed), _scores(case, model), "a resumed fit")


def check_sums(case: Case, model: Any) -> None:
    """Promise that the tree matrix, the last stage and plain XGBoost give the scores of the model."""
    if not model.weights_.any():  # the model is constant
        return
    new = _finite(_new_rows(case))
    scores = _scores(case, model, X=new)
    rows = case.rows(new)
    trees = tree_matrix(model, rows)
    parts = float(np.abs(trees.H * trees.column_weights).sum(axis=1).max() + np.abs(trees.intercepts).max())
    # XGBoost adds up in float32, tree after tree: trees that are alike are rounded alike, by half a unit of the last
    # digit each.
    rounding = parts * max(5.0, 0.3 * trees.n_trees)
    if not _near(trees.margin(), scores, size=rounding):
        raise Violation("the tree matrix adds up to another score")
    stages = list(model.staged_predict_proba(rows) if case.task == "classes" else model.staged_predict(rows))
    last = model.predict_proba(rows) if case.task == "classes" else model.predict(rows)
    stage = stages[-1]
    if case.params.get("loss") in AMOUNTS:  # rounding is that of the scores
        stage, last = np.log(stage), np.log(last)
        rounding = max(rounding, 1e-8)  # the exponential of a tiny score is 1 with 16 digits
    if not _near(stage, last, size=rounding):
        raise Violation("the last stage is another prediction")
    if not case.categorical:
        margin = model.get_booster().predict(xgboost.DMatrix(new), output_margin=True)
        if not _near(margin.reshape(scores.shape), scores, 1e-4, rounding):
            raise Violation("the native model has another margin")


def check_order(case: Case, model: Any) -> None:
    """Promise that the order of the samples does not matter, up to rounding."""
    if _bins_are_estimates(case, model):
        return
    order = np.random.default_rng(1).permutation(len(case.y) - case.n_validation)
    _equal_but_for_rounding(case, model, case.fit(order=order), "samples in another order")


def check_repetition(case: Case, model: Any) -> None:
    """Promise that a whole-number weight is equivalent to that many copies of the sample, up to rounding."""
    n = len(case.y) - case.n_validation
    if case.weight is None or not np.array_equal(case.weight, np.rint(case.weight)) or case.weight.sum() > 2000:
        return
    if _bins_are_estimates(case, model):
        return
    order = np.repeat(np.arange(n), case.weight[:n].astype(int))
    plain = replace(case, weight=None)
    if case.n_validation:
        held_out = np.repeat(np.arange(n, len(case.y)), case.weight[n:].astype(int))
        rows = np.concatenate([order, held_out])
        plain = replace(plain, X=case.X[rows], y=case.y[rows], n_validation=len(held_out))
        order = np.arange(len(order))
    _equal_but_for_rounding(case, model, plain.fit(order=order), "repeated samples")


def _selects(case: Case) -> bool:
    """Whether held-out data affect the model."""
    return (
        bool({"early_stopping", "weighting", "preset"} & set(case.params)) or case.params.get("n_estimators") == "auto"
    )


def check_validation(case: Case, model: Any) -> None:
    """Promise that a validation set only selects, and that the order of its samples does not matter."""
    n = len(case.y) - case.n_validation
    if not _selects(case):
        without = replace(case, X=case.X[:n], y=case.y[:n], weight=_head(case, n), n_validation=0)
        _same(_scores(case, without.fit()), _scores(case, model), "no validation set")
    elif case.n_validation:
        rows = np.r_[np.arange(n), n + np.random.default_rng(1).permutation(case.n_validation)]
        weight = None if case.weight is None else case.weight[rows]
        other = replace(case, X=case.X[rows], y=case.y[rows], weight=weight).fit()
        _equal_but_for_rounding(case, model, other, "validation samples in another order")


def _head(case: Case, n: int) -> Array | None:
    return None if case.weight is None else case.weight[:n]


UNIT = 1024.0


def check_units(case: Case, model: Any) -> None:
    """Promise that a regression in another unit of y predicts in that unit.

    Penalties and ``tol`` are in the unit of y, and so is ``huber_delta``; Poisson and Tweedie losses are not invariant,
    nor are means of signs: the leaf values of absolute error and quantiles with ``leaf_rule="mean"``.
    """
    loss = case.params.get("loss", "squared_error")
    if case.task == "classes" or loss in {"poisson", "tweedie"} or {"reg_alpha", "min_split_loss"} & set(case.params):
        return
    if loss in {"absolute_error", "quantile"} and case.params.get("leaf_rule") == "mean":
        return
    if _selects(case) or np.ptp(case.y) * UNIT > 1e15 or (loss == "gamma" and case.params.get("init") == "zero"):
        return
    delta = {"huber_delta": case.params["huber_delta"] * UNIT} if "huber_delta" in case.params else {}
    other = replace(case, y=case.y * UNIT, params=case.params | delta).fit()
    shift, unit = (np.log(UNIT), 1.0) if loss == "gamma" else (0.0, UNIT)
    _equal_but_for_rounding(case, model, other, "another unit of y", lambda scores: (scores - shift) / unit)


def check_columns(case: Case, model: Any) -> None:
    """Promise that a table with the columns in another order is rejected, as is one with another name."""
    if case.X.shape[1] < 2:
        return
    fitted = case.fit(kind="pandas")
    _same(_scores(case, fitted, kind="pandas"), _scores(case, model), "a table of pandas")
    table = case.rows(kind="pandas")
    for other in (table[table.columns[::-1]], table.rename(columns={"x0": "z0"})):
        try:
            fitted.predict(other)
        except ValueError:
            continue
        raise Violation("a table with other columns was accepted")


def check_categories(case: Case, model: Any) -> None:
    """Promise that names of categories do not matter, and that a warm start with other names is rejected."""
    if not case.categorical:
        return
    renamed = replace(case, prefix="category ")
    _same(_scores(renamed, renamed.fit()), _scores(case, model), "renamed categories")
    if _selects(case):
        return
    rounds = case.params.get("n_estimators", 3)
    started = case.fit(warm_start=True)
    counts = np.arange(len(case.X)) < len(case.X) - case.n_validation
    learned = case.X[counts if case.weight is None else counts & (case.weight > 0)]
    if started.n_estimators_ < rounds or all(np.isnan(learned[:, j]).all() for j in case.categorical):
        return
    try:
        renamed.fit(model=started.set_params(n_estimators=rounds + 1))
    except ValueError:
        return
    raise Violation("a warm start with other categories was accepted")


def check_sparse(case: Case, model: Any) -> None:
    """Promise that unsummed duplicates of a sparse matrix are summed, and that the matrix is left as it was."""
    del model
    if case.categorical or not np.isfinite(case.X).all() or np.abs(case.X).max() > 1e30:
        return
    summed = sparse.csr_matrix(case.X)
    half = sparse.csr_matrix(
        (np.repeat(summed.data / 2, 2), np.repeat(summed.indices, 2), 2 * summed.indptr), shape=summed.shape
    )
    if not np.array_equal(half.toarray(), case.X):  # half of a subnormal number is rounded
        return
    scores = []
    for rows in (summed, half):
        given = replace(case, matrix=rows)
        scores.append(_scores(given, given.fit()))
    _same(scores[1], scores[0], "unsummed duplicates")
    if half.nnz != 2 * summed.nnz:
        raise Violation("fit has summed the duplicates of its input")


def check_interrupts(case: Case, model: Any) -> None:
    """Promise that Ctrl-C at any moment keeps finished rounds, which predict finite scores, or the old model."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pressed(0) as press:
            case.fit()
        old = _scores(case, model)
        refitted = pickle.loads(pickle.dumps(model))  # noqa: S301 - written in the same line
        at = int(np.random.default_rng(len(case.y)).integers(1, max(press.n_calls, 2)))
        with pressed(at) as press:
            try:
                case.fit(model=refitted)
            except KeyboardInterrupt as interrupt:
                kept = "keeps" in str(interrupt)
            else:
                return  # it was pressed in code that ignores it, such as a finalizer
        scores = _scores(case, refitted)
        if kept and not np.isfinite(scores).all():
            raise Violation(f"interrupted in {press.where}: scores of the kept rounds are not finite")
        if not kept and not np.array_equal(scores, old):
            raise Violation(f"interrupted in {press.where}: the old model is gone")
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)


def check_load(case: Case, model: Any) -> None:
    """Promise that two threads give the same model beside a process that keeps a core busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            check_threads(case, model)
        finally:
            busy.kill()


def check_changed(case: Case, model: Any) -> None:
    """Promise that workers resume the fit of the same estimator bit-identically, and reject other estimators."""
    if _selects(case) or case.n_validation or model.n_estimators_ < 2:
        return
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "fit.checkpoint", every=max(1, model.n_estimators_ // 2))
        case.fit(callbacks=[checkpoint])
        content = checkpoint.path.read_bytes()
    resumed = case.fit(model=resumed_estimator(case.model(), content))
    _same(_scores(case, resumed), _scores(case, model), "resumed as a worker does")
    changes: list[dict[str, Any]] = [{"learning_rate": 0.12345}, {"random_state": 7777}, {"reg_lambda": 3.21}]
    for change in changes:
        try:
            case.fit(model=resumed_estimator(case.model(**change), content))
        except ValueError:
            continue
        raise Violation(f"resumed with {change}")
    other = replace(case, task="numbers" if case.task == "classes" else "classes", params={"n_estimators": 3})
    try:
        resumed_estimator(other.model(), content)
    except ValueError:
        return
    raise Violation("resumed as another class")


def _bins_are_estimates(case: Case, model: Any) -> bool:
    """Whether a column has more values than bins: XGBoost then cuts at quantiles that it estimates row by row."""
    bins = 64 if model.max_bin == "auto" else model.max_bin  # the fewest that "auto" takes
    return any(len(np.unique(column)) > bins for column in case.X.T)


class IllConditioned(Exception):  # noqa: N818 - an answer, not a failure
    """Rounding decides between two models."""


def _equal_but_for_rounding(
    case: Case, model: Any, other: Any, what: str, convert: Callable[[Array], Array] = lambda scores: scores
) -> None:
    """Compare, and let a difference pass if weights that change by a millionth make one, too: ties between splits.

    Only training samples are compared: two features that split these alike may split others differently.
    """
    weight = np.ones(len(case.y)) if case.weight is None else case.weight
    X = case.X[np.flatnonzero(weight[: len(case.y) - case.n_validation])]
    scores, changed = _scores(case, model, X=X), convert(_scores(case, other, X=X))
    size = float(np.abs(model.intercept_).max())
    if case.task == "classes":
        size = max(size, 1e-8)  # log-odds of balanced classes are the logarithm of a rounded 1
    if _near(changed, scores, ROUNDING, size):
        return
    rng = np.random.default_rng(2)
    for _ in range(6):
        nudged = replace(case, weight=weight * (1 + NUDGE * rng.uniform(-1, 1, size=len(weight))))
        if not _near(_scores(case, nudged.fit(), X=X), scores, ROUNDING, size):
            raise IllConditioned
    raise Violation(f"{what}: scores differ by {np.abs(changed - scores).max():.3g} of {_spread(scores):.3g}")


_CHECKS: dict[str, Callable[[Case, Any], None]] = {
    "finite": check_finite,
    "again": check_again,
    "threads": check_threads,
    "tables": check_tables,
    "files": check_files,
    "resuming": check_resuming,
    "sums": check_sums,
    "order": check_order,
    "repetition": check_repetition,
    "validation": check_validation,
    "units": check_units,
    "columns": check_columns,
    "categories": check_categories,
    "sparse": check_sparse,
    "interrupts": check_interrupts,
    "load": check_load,
    "changed estimators": check_changed,
}
CHECKS: dict[str, Callable[[Case], None]] = {
    name: (lambda case, check=check: check(case, start(case)))  # type: ignore[misc]
    for name, check in _CHECKS.items()
}
"""What is promised, by name: each takes a case and raises Violation if it does not hold."""


def checks_of(number: int) -> list[str]:
    """Return which promises are checked for a case: whether predictions are finite, and one of the others in turn."""
    others = [name for name in CHECKS if name != "finite"]
    return ["finite", others[number % len(others)]]


# --- running ---------------------------------------------------------------------------------------------------------


def judge(case: Case, checks: list[str]) -> tuple[str, str, str]:
    """Return what became of a case ("held", "refused", "ill-conditioned", "violation"), the check and the message."""
    outcome = "held"
    check = checks[0]
    try:
        model = start(case)
        for check in checks:
            try:
                _CHECKS[check](case, model)
            except IllConditioned:
                outcome = "ill-conditioned"
    except Refused as refused:
        return "refused", "", str(refused)
    except Violation as violation:
        return "violation", check, str(violation)
    except Exception as error:  # noqa: BLE001 - any other error is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "violation", check, f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    return outcome, "", ""


def shrink(case: Case, check: str, most: int = 300, seconds: float = 60.0) -> Case:
    """Return a smaller case that fails the same check: fewer samples and features, and default parameters."""
    tries, end = iter(range(most)), time.monotonic() + seconds

    def fails(smaller: Case) -> bool:
        in_time = next(tries, None) is not None and time.monotonic() < end
        return in_time and judge(smaller, [check])[0] == "violation"

    changed = True
    while changed:
        changed = False
        for smaller in _smaller(case):
            if fails(smaller):
                case, changed = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for name in list(case.params):
        if name not in {"n_estimators", "loss", "quantile", "expectile"}:
            yield replace(case, params={key: value for key, value in case.params.items() if key != name})
    if case.weight is not None:
        yield replace(case, weight=None)
    if case.n_validation:
        n = len(case.y) - case.n_validation
        weight = None if case.weight is None else case.weight[:n]
        yield replace(case, X=case.X[:n], y=case.y[:n], weight=weight, n_validation=0)
    for j in range(case.X.shape[1] if case.X.shape[1] > 1 and "monotone_constraints" not in case.params else 0):
        kept = [i for i in range(case.X.shape[1]) if i != j]
        categorical = tuple(kept.index(i) for i in case.categorical if i != j)
        yield replace(case, X=case.X[:, kept], categorical=categorical)
    rounds = case.params.get("n_estimators", 3)
    if isinstance(rounds, int) and rounds > 1:
        for fewer in {rounds // 2, rounds - 1}:
            yield replace(case, params={**case.params, "n_estimators": fewer})
    n = len(case.y) - case.n_validation
    size = n // 2
    while size >= 1 and not case.n_validation:
        for first in range(0, n, size):
            kept_rows = np.delete(np.arange(n), slice(first, first + size))
            weight = None if case.weight is None else case.weight[kept_rows]
            if len(kept_rows) >= 2:
                yield replace(case, X=case.X[kept_rows], y=case.y[kept_rows], weight=weight)
        size //= 2


def run(
    seed: int,
    cases: int,
    minutes: float,
    report: Callable[[dict[str, Any]], None] = lambda _: None,
    done: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Run cases 0, 1, 2, ... until all are done or the time is over; continue from the figures of an earlier run."""
    done = done or {"cases": 0, "outcomes": {}, "checks": {}, "first violations": [], "minutes": 0.0}
    outcomes: Counter[str] = Counter(done["outcomes"])
    checked: Counter[str] = Counter(done["checks"])
    violations: list[dict[str, Any]] = list(done["first violations"])
    begin = time.monotonic()
    number = done["cases"]

    def figures() -> dict[str, Any]:
        return {
            "cases": number,
            "violations": outcomes["violation"],
            "outcomes": dict(sorted(outcomes.items())),
            "checks": dict(sorted(checked.items())),
            "first violations": violations[:20],
            "minutes": round(done["minutes"] + (time.monotonic() - begin) / 60, 1),
        }

    while number < cases and time.monotonic() - begin < 60 * minutes:
        checks = checks_of(number)
        case = make_case(seed, number)
        outcome, check, message = judge(case, checks)
        outcomes[outcome] += 1
        if outcome != "refused":
            checked.update(checks)
        if outcome == "violation":
            violations.append({"number": number, "check": check, "message": message})
            print(f"\n# violation in case {number} of seed {seed}: {check}: {message}", flush=True)
            if len(violations) <= 20:
                print(shrink(case, check).script(check), flush=True)
        number += 1
        if number % 200 == 0:
            report(figures())
    return figures()


def main() -> int:
    """Run from the command line."""
    given = arguments(__doc__, "cases")
    if given.only is not None:
        case = make_case(given.seed, given.only)
        outcome, check, message = judge(case, checks_of(given.only))
        print(outcome, check, message)
        if outcome == "violation":
            print(shrink(case, check).script(check))
        return int(outcome == "violation")

    command = f"python tools/soak.py --seed {given.seed} --cases {given.cases}"
    done, earlier = earlier_runs(given.output, described(command, {}), "cases", anew=given.anew)

    def report(figures: dict[str, Any]) -> None:
        print(f"{figures['cases']} cases, {figures['violations']} violations", flush=True)
        write(described(command, figures) | {"earlier runs": earlier}, given.output)

    print(f"seed {given.seed}", flush=True)
    figures = described(command, run(given.seed, given.cases, given.minutes, report, done))
    return finish(figures | {"earlier runs": earlier}, given.output)


if __name__ == "__main__":
    sys.exit(main())
