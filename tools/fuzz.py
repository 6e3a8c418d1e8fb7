"""Fuzzing of the model file: mutants of valid files are refused with a ValueError, or are models that predict right.

Every mutant follows from the seed and its number alone. Workers load them one by one under a limit of memory and of
time; one that dies, hangs or raises anything else is counted as a violation, with the number that repeats it:
``python tools/fuzz.py --seed 0 --only 12345``. A run goes on where the figures in its ``--output`` end, if they are of
the same mutants and versions.

What is right? A mutant whose checksum was left alone must predict what the original predicts, to the bit. One that was
resealed, as a forger would, must be a sound model: in every method (predictions, stages, leaves, SHAP values, exports,
diagnostics, report) it says what plain XGBoost says of the same file, and it survives another saving. Raw scores are
compared for every accepted file, the methods in turn. ``fuzz_meaning`` has the
mutants that change what a file means and leave its form intact.
"""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from scipy import sparse

import fuzz_exports
import fuzz_meaning
from figures import arguments, described, earlier_runs, finish, write
from scboost import SCBoostClassifier, SCBoostRegressor, encode_features, tree_matrix
from scboost._estimators import model_file
from scboost._model import file
from scboost._model.document import Document
from scboost.losses import HuberLoss, Loss

KINDS = ("bytes", "values", "structure", "own", "meaning")
MEMORY = 3 << 30  # bytes that a worker may address beyond what it starts with
SECONDS = 30  # that one mutant may compute; it may wait 20 times as long, on a machine that is busy or suspends it
CHUNK = 500
MOST_DENSE = 10_000  # features of dense samples

NUMBERS = [0, 1, -1, 2, 127, 255, 65536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1e-45, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), 0.1]
_FOLLOWED = [
    "left_children",
    "right_children",
    "parents",
    "split_indices",
    "split_type",
    "default_left",
    "split_conditions",
    "categories",
    "categories_nodes",
    "categories_sizes",
    "categories_segments",
]
TEXTS = [
    "",
    "0",
    "-1",
    "1",
    "2147483647",
    "99999999999999999999",
    "nan",
    "[]",
    "[nan]",
    "x" * 300,
    "é",
    "\x00",
    "{}",
    "c",
]


@dataclass(frozen=True)
class Original:
    """A valid file.

    Attributes
    ----------
    name : str
        What kind of model it is.
    model : estimator
        Fitted.
    X : array or table
        Rows to predict.
    scores : ndarray
        Raw scores of these rows.
    copy : bytes
        The content of the file, to make copies of.
    files : tuple of bytes
        It as UBJSON and as JSON.
    loss : Loss or None
        What its reader has to be given.
    """

    name: str
    model: Any
    X: Any
    scores: Any
    copy: bytes
    files: tuple[bytes, bytes]
    loss: Loss | None


class _OwnLoss(HuberLoss):
    """A loss that the library does not know."""


def originals() -> list[Original]:
    """Make small models of every kind."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    table = pd.DataFrame(
        {
            "x": np.where(X[:, 3] > 1, np.nan, X[:, 0]),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], size=120)),
            "code": pd.Categorical(rng.choice([10, 2, 30], size=120)),
        }
    )
    small: dict[str, Any] = {"n_estimators": 2, "max_depth": 2, "max_leaves": None, "n_jobs": 1, "random_state": 0}
    weighing: dict[str, Any] = {"weighting": "nonnegative", "covariance_penalty": 0.5}
    made = {
        "binary": (SCBoostClassifier(**small), X, y > 0),
        "classes": (SCBoostClassifier(**small), X, np.array(["a", "b", "c"])[np.digitize(y, [-1, 1])]),
        "categories": (SCBoostClassifier(**small), table, (X[:, 0] > 0) ^ (table["colour"] == "red")),
        "regression": (SCBoostRegressor(**small, loss="huber", **weighing), X, y + 100),
        "own loss": (SCBoostRegressor(**small, loss=_OwnLoss(0.5)), X, y),
        "counts": (SCBoostRegressor(**small, loss="poisson"), X, np.abs(y)),
        "quantiles": (SCBoostRegressor(**small, loss="quantile", quantile=[0.1, 0.9]), X, y + 1000),
        "sparse": (SCBoostRegressor(**small), sparse.csr_matrix(np.where(X > 0.5, X, 0)), y - 1e6),
        "names": (SCBoostRegressor(**small), pd.DataFrame(X, columns=["a", "b", "c", "d"]), y),
        "dropped": (SCBoostClassifier(**{**small, "n_estimators": 4}, early_stopping=True), X, rng.random(120) > 0.5),
    }
    found = []
    for name, (model, rows, target) in made.items():
        model.fit(rows, target)
        document = _document(model)
        files = document.encode(), document.encode_json()
        own = model.__fitted_model__().loss
        loss = own if isinstance(own, _OwnLoss) else None
        scores = raw_scores(model, rows)
        found.append(Original(name, model, rows, scores, pickle.dumps(document.content), files, loss))
    return found


def _document(model: Any) -> Document:
    return model_file.to_document(model.__fitted_model__(), model.get_params(deep=False))


def raw_scores(model: Any, X: Any) -> Any:
    """Raw scores, of shape (n, K)."""
    return model._raw_scores(X).T  # noqa: SLF001


# --- mutation --------------------------------------------------------------------------------------------------------


def mutate(
    rng: np.random.Generator, known: list[Original], kind: str | None = None
) -> tuple[str, Original, bytes, bool]:
    """Return the kind of a mutant, what it was made from, its bytes, and whether its checksum was made to fit."""
    original = known[rng.integers(len(known))]
    as_json = int(rng.integers(2))
    drawn = KINDS[rng.choice(5, p=[0.1, 0.15, 0.15, 0.2, 0.4])]
    kind = kind or drawn
    if kind == "bytes":
        other = known[rng.integers(len(known))].files[as_json]
        return kind, original, mutate_bytes(rng, original.files[as_json], other), False
    document = Document(pickle.loads(original.copy))  # noqa: S301 - our own, and faster than copy.deepcopy
    if kind == "meaning":
        donor = Document(pickle.loads(known[rng.integers(len(known))].copy))  # noqa: S301 - our own
        return kind, original, fuzz_meaning.mutate(rng, document, donor, as_json=bool(as_json)), True
    change = {"values": change_value, "structure": change_structure, "own": _change_own}[kind]
    for _ in range(1 + rng.geometric(0.6)):
        change(rng, document)
    sealed = bool(rng.random() < 0.85)
    try:
        if sealed:
            document.attributes["scboost_checksum"] = file.checksum(document)
        return kind, original, document.encode_json() if as_json else document.encode(), sealed
    except Exception:  # noqa: BLE001 - what cannot be written is no mutant: take the bytes of its original
        return "bytes", original, mutate_bytes(rng, original.files[as_json], b"{}"), False


def mutate_bytes(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Flip, insert, delete, repeat or splice bytes."""
    changed = bytearray(data)
    for _ in range(1 + rng.geometric(0.5)):
        at = int(rng.integers(max(len(changed), 1)))
        size = int(rng.geometric(0.1))
        match int(rng.integers(8)):
            case 0 | 1:
                if changed:
                    changed[at % len(changed)] ^= 1 << int(rng.integers(8))
            case 2:
                changed[at : at + size] = rng.bytes(size)
            case 3:
                del changed[at : at + size]
            case 4:
                changed[at:at] = changed[at : at + size]
            case 5:
                changed[at:at] = rng.bytes(size)
            case 6:
                del changed[at:]
            case _:
                start = int(rng.integers(max(len(other), 1)))
                changed[at : at + size] = other[start : start + size]
    return bytes(changed)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything in nested dictionaries and lists."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, (*path, name))
    elif isinstance(value, list):
        for i, item in enumerate(value[:50]):
            yield from _places(item, (*path, i))


def _pick(rng: np.random.Generator, content: Any) -> tuple[Any, Any]:
    """Choose a container and a key in it."""
    places = list(_places(content))
    *above, last = places[rng.integers(len(places))]
    for key in above:
        content = content[key]
    return content, last


def _hostile(rng: np.random.Generator, old: Any) -> Any:
    if isinstance(old, np.ndarray) and rng.random() < 0.85:
        return _hostile_array(rng, old)
    choices: list[list[Any]] = [NUMBERS, FLOATS, TEXTS, [None, True, False, [], {}, [[]], [0], ["a"], {"a": 1}]]
    if isinstance(old, str) and rng.random() < 0.6:
        choices = [TEXTS]
    elif isinstance(old, int | float) and rng.random() < 0.6:
        choices = [NUMBERS, FLOATS]
    group = choices[rng.integers(len(choices))]
    return copy.deepcopy(group[rng.integers(len(group))])


def _hostile_array(rng: np.random.Generator, old: Any) -> Any:
    array = old.copy()
    n = len(array)
    match int(rng.integers(7)):
        case 0:
            return array[: int(rng.integers(n + 1))]
        case 1:
            return np.concatenate([array, array[: int(rng.integers(n + 1))]])
        case 2:
            with np.errstate(all="ignore"):
                return array.astype(rng.choice(["i1", "u1", "i2", "i4", "i8", "f4", "f8"]))
        case 3:
            return array[rng.permutation(n)]
        case _ if n:
            values = FLOATS if array.dtype.kind == "f" else [0, 1, 2, 3, -1, -2, n, n - 1, 2**31 - 1, -(2**31), 100]
            with np.errstate(all="ignore"):
                value = np.array(values[rng.integers(len(values))])
                array[rng.integers(n)] = value.astype(array.dtype)
            return array
        case _:
            return np.zeros(3, array.dtype)


def change_value(rng: np.random.Generator, document: Document) -> None:
    """Replace one value of a document by a hostile one."""
    content, key = _pick(rng, document.content)
    if key != "scboost":  # its content has a kind of mutants of its own
        content[key] = _hostile(rng, content[key])


def change_structure(rng: np.random.Generator, document: Document) -> None:
    """Change the nodes of a tree, or the trees of the model."""
    try:
        trees = document.trees
        _change_tree(rng, trees, trees[rng.integers(len(trees))])
    except Exception:  # noqa: BLE001 - an earlier change has taken the trees away: change what is left
        content, key = _pick(rng, document.content)
        _restructure(rng, content, key)


def _change_tree(rng: np.random.Generator, trees: list[Any], tree: Any) -> None:
    n = len(tree["left_children"])
    name = _FOLLOWED[rng.integers(len(_FOLLOWED))]
    match int(rng.integers(6)):
        case 0 | 1 if len(tree[name]):
            tree[name][rng.integers(len(tree[name]))] = rng.integers(-2, n + 2)
        case 2 if len(tree[name]) > 1:
            a, b = rng.integers(len(tree[name]), size=2)
            tree[name][[a, b]] = tree[name][[b, a]]
        case 3:
            trees[rng.integers(len(trees))] = copy.deepcopy(tree)
        case 4:
            a, b = rng.integers(len(trees), size=2)
            trees[a], trees[b] = trees[b], trees[a]
        case _:
            trees.insert(int(rng.integers(len(trees) + 1)), copy.deepcopy(tree))


def _restructure(rng: np.random.Generator, content: Any, key: Any) -> None:
    match int(rng.integers(4)):
        case 0:
            del content[key]
        case 1:
            content[key] = {"a": content[key]}
        case 2:
            content[key] = [content[key]]
        case _:
            content[f"{key}_" if isinstance(content, dict) else slice(0, 0)] = [copy.deepcopy(content[key])]


def _change_own(rng: np.random.Generator, document: Document) -> None:
    own = json.loads(document.attributes["scboost"])
    content, key = _pick(rng, own)
    if rng.random() < 0.6:
        content[key] = _hostile(rng, content[key])
    else:
        _restructure(rng, content, key)
    document.attributes["scboost"] = json.dumps(own)


# --- judgement -------------------------------------------------------------------------------------------------------


class Reading:
    """A mutant as scboost and as plain XGBoost read it.

    Parameters
    ----------
    model : estimator
        Read by scboost.
    data : bytes
        The file.
    rows : array or table
        Samples as the model takes them; None if it has other features than the original.
    loss : Loss or None
        What the reader has to be given.
    """

    def __init__(self, model: Any, data: bytes, rows: Any, loss: Loss | None) -> None:
        self.model, self.fitted, self.rows, self.loss = model, model.__fitted_model__(), rows, loss
        self.native = xgboost.Booster({"nthread": 1})
        self.native.load_model(bytearray(data))
        document = Document.decode(data)
        if rows is None:
            self.X = _random_samples(document)
        else:
            self.X = encode_features(model, rows)
        self._matrix = xgboost.DMatrix(self.X, nthread=1)
        self.margin = self.natively(output_margin=True)
        # In Python's floats: a tolerance that overflows float32 would accept anything.
        leaves = [float(np.abs(tree["split_conditions"][tree["left_children"] == -1]).max()) for tree in document.trees]
        # Largest raw score on the way, which float32 is relative to.
        self.size = 1e-6 + float(np.abs(self.margin).max()) + 2 * sum(leaves)

    def natively(self, **options: Any) -> Any:
        """Predict with plain XGBoost."""
        return self.native.predict(self._matrix, validate_features=False, **options)

    def close(self, found: Any, wanted: Any, what: str, size: float | None = None) -> None:
        """Require equality up to what float32 sums round."""
        found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
        tolerance = 1e-5 * (self.size if size is None else size)
        same = np.allclose(found, wanted.reshape(found.shape), rtol=0, atol=tolerance, equal_nan=True)
        assert same, f"{what}: XGBoost reads another model"  # noqa: S101


def _random_samples(document: Document) -> Any:
    """Return samples of a model's own width; sparse ones where dense ones would not fit into memory."""
    rng = np.random.default_rng(1)
    if document.n_features <= MOST_DENSE:
        return rng.normal(size=(20, document.n_features)).astype(np.float32)
    used = np.unique(np.concatenate([tree["split_indices"] for tree in document.trees]))
    entries = rng.normal(size=20 * len(used)).astype(np.float32), np.tile(used, 20), np.arange(21) * len(used)
    return sparse.csr_matrix(entries, shape=(20, document.n_features))


def _judge_scores(reading: Reading) -> None:
    scores = reading.fitted.ensemble.scores(reading.X).T
    assert np.isfinite(scores).all(), "scores are not finite"  # noqa: S101
    reading.close(scores, reading.margin, "scores")


def _judge_predictions(reading: Reading) -> None:
    model, rows, size = reading.model, reading.rows, reading.size
    wanted = reading.fitted.means(reading.margin.reshape(len(reading.margin), -1).T.astype(float))
    found = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)
    spread = 1.0 if hasattr(model, "predict_proba") else size * max(1.0, np.abs(wanted).max() / size)
    reading.close(found, wanted, "predictions", spread)


def _judge_stages(reading: Reading) -> None:
    stages = list(reading.fitted.staged_raw_scores(reading.rows, 1))
    assert np.isfinite(stages).all(), "a stage is not finite"  # noqa: S101
    if stages:
        reading.close(stages[-1].T, reading.margin, "stages")


def _judge_leaves(reading: Reading) -> None:
    if reading.fitted.ensemble.kept.size:
        leaves = reading.natively(pred_leaf=True).reshape(len(reading.margin), -1)
        assert np.array_equal(reading.model.apply(reading.rows), leaves), "other leaves"  # noqa: S101


def _judge_shap(reading: Reading) -> None:
    reading.close(reading.model.shap_values(reading.rows), reading.natively(pred_contribs=True), "SHAP")
    assert np.isfinite(reading.model.feature_importances_).all(), "an importance is not finite"  # noqa: S101


def _judge_to_xgboost(reading: Reading) -> None:
    exported = reading.model.to_xgboost().get_booster()
    margin = exported.predict(xgboost.DMatrix(reading.X, nthread=1), output_margin=True, validate_features=False)
    reading.close(margin, reading.margin, "export")


def _judge_saving(reading: Reading) -> None:
    again = model_file.from_document(file.parse(_document(reading.model).encode()), reading.loss)
    before, after = (fitted.ensemble.scores(reading.X) for fitted in (reading.fitted, again.__fitted_model__()))
    assert np.array_equal(before, after), "saving changes the model"  # noqa: S101


def _judge_diagnostics(reading: Reading) -> None:
    """Compare the sum of the single trees, which reports are made from."""
    found = tree_matrix(reading.model, reading.rows)
    trees = (found.H * found.column_weights).reshape(len(reading.margin), -1, found.n_outputs)
    reading.close(trees.sum(axis=1) + found.intercepts, reading.margin, "diagnostics")


METHODS: dict[str, Callable[[Reading], None]] = {
    "predictions": _judge_predictions,
    "stages": _judge_stages,
    "leaves": _judge_leaves,
    "SHAP": _judge_shap,
    "to_xgboost": _judge_to_xgboost,
    "saving": _judge_saving,
    "diagnostics": _judge_diagnostics,
}


def judge(
    original: Original, data: bytes, *, sealed: bool, number: int | None = None, compared: Counter[str] | None = None
) -> str:
    """Load a mutant: "refused", "same" or "sound"; anything else is an AssertionError or another exception.

    Raw scores are always compared; with a ``number``, one of the methods in turn and every so often the exports, else
    all methods. Names of the comparisons are added to ``compared``.
    """
    try:
        model = model_file.from_document(file.parse(data), original.loss)
    except ValueError:
        return "refused"
    model.n_jobs = 1
    if not sealed:
        scores = raw_scores(model, original.X)
        assert np.array_equal(scores, original.scores), "a damaged file is another model"  # noqa: S101
        return "same"
    compared = Counter() if compared is None else compared
    try:
        reading = Reading(model, data, original.X, original.loss)
    except ValueError:  # other features than those of the original
        reading = Reading(model, data, None, original.loss)
    _judge_scores(reading)
    if reading.rows is None:
        due = ["saving"]
    else:
        due = list(METHODS) if number is None else [list(METHODS)[number % len(METHODS)]]
    for name in due:
        METHODS[name](reading)
        compared[name] += 1
    if reading.rows is not None and number is not None:
        compared.update(fuzz_exports.judge(number, model, reading.rows, reading.native, reading.size))
    return "sound"


def one(
    seed: int, number: int, known: list[Original], kind: str | None = None, compared: Counter[str] | None = None
) -> tuple[str, str]:
    """Make and judge one mutant, of any kind or of the one given; return its kind and the outcome."""
    kind, original, data, sealed = mutate(np.random.default_rng([seed, number]), known, kind)
    label = f"{kind}, resealed" if sealed else kind
    try:
        return label, judge(original, data, sealed=sealed, number=number, compared=compared)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is a violation
        last = traceback.extract_tb(error.__traceback__)[-1]
        return label, f"violation: {type(error).__name__}: {error!s:.200} ({Path(last.filename).name}:{last.lineno})"


# --- running ---------------------------------------------------------------------------------------------------------


def _work(seed: int, numbers: range, kind: str | None, current: Any, answer: Connection) -> None:
    for cls in (SCBoostClassifier, SCBoostRegressor):  # scikit-learn reads their signatures again for every model
        names = cls._get_param_names()
        cls._get_param_names = staticmethod(lambda names=names: names)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    counts: Counter[tuple[str, str]] = Counter()
    compared: Counter[str] = Counter()
    violations = []
    for number in numbers:
        current.value = number
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # the default action ends the process, which is seen
        signal.alarm(20 * SECONDS)
        label, outcome = one(seed, number, _KNOWN, kind, compared)
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if outcome.startswith("violation"):
            violations.append({"number": number, "kind": label, "outcome": outcome})
            outcome = "violation"
        counts[label, outcome] += 1
    answer.send((counts, compared, violations))


_KNOWN: list[Original] = []


def run(
    seed: int, n_mutants: int, minutes: float, done: dict[str, Any] | None = None, kind: str | None = None
) -> Iterator[dict[str, Any]]:
    """Run mutants 0, 1, 2, ... in worker processes until all are done or the time is over; yield the figures so far.

    Parameters
    ----------
    seed, n_mutants : int
        Which mutants.
    minutes : float
        The time.
    done : dict, optional
        Figures of an earlier run, to go on from.
    kind : str, optional
        The only kind of mutants; all kinds by default.
    """
    _KNOWN[:] = originals()
    context = multiprocessing.get_context("fork")
    done = done or {"mutants": 0, "outcomes": {}, "comparisons": {}, "first violations": [], "minutes": 0.0}
    compared = Counter(done["comparisons"])
    counts = Counter({(label, name): n for label, found in done["outcomes"].items() for name, n in found.items()})
    violations: list[dict[str, Any]] = list(done["first violations"])
    begin, start = time.monotonic(), done["mutants"]
    while start < n_mutants and time.monotonic() - begin < 60 * minutes:
        numbers = range(start, min(start + CHUNK, n_mutants))
        current = context.Value("q", start)
        receive, send = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(seed, numbers, kind, current, send))
        worker.start()
        send.close()
        try:
            found, exported, wrong = receive.recv()
            counts += found
            compared += exported
            violations += wrong
            start = numbers.stop
        except EOFError:  # the worker died, and the outcomes of its chunk with it: go on after the mutant that did it
            worker.join()
            dead = current.value
            violations.append({"number": dead, "kind": "", "outcome": f"violation: exit code {worker.exitcode}"})
            counts["unknown", "violation"] += 1
            start = dead + 1
        worker.join()
        outcomes: dict[str, dict[str, int]] = {}
        for (label, outcome), n in sorted(counts.items()):
            outcomes.setdefault(label, {})[outcome] = n
        yield {
            "mutants": start,
            "violations": len(violations),
            "outcomes": outcomes,
            "comparisons": dict(sorted(compared.items())),
            "first violations": violations[:20],
            "minutes": round(done["minutes"] + (time.monotonic() - begin) / 60, 1),
        }


def main() -> int:
    """Run from the command line."""
    given = arguments(__doc__, "mutants", kind={"choices": KINDS, "help": "make mutants of this kind only"})
    if given.only is not None:
        print(*one(given.seed, given.only, originals(), given.kind))
        return 0

    command = f"python tools/fuzz.py --seed {given.seed} --mutants {given.mutants}"
    command += f" --kind {given.kind}" if given.kind else ""
    about = {"schema": file.SCHEMA}
    done, earlier = earlier_runs(given.output, described(command, about), "mutants", anew=given.anew)
    figures = done or described(command, {**about, "violations": 0, "earlier runs": earlier})
    for i, found in enumerate(run(given.seed, given.mutants, given.minutes, done, given.kind)):
        figures = described(command, {**about, **found, "earlier runs": earlier})
        if i % 20 == 0:
            print(f"{found['mutants']} mutants, {found['violations']} violations", flush=True)
            write(figures, given.output)
    return finish(figures, given.output)


if __name__ == "__main__":
    sys.exit(main())
