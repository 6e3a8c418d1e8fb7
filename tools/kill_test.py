"""Fits that are killed at random moments go on from their checkpoint as if nothing had happened, to the bit.

A fit of each of 16 configurations, on each engine, runs in a process of its own, which is killed (SIGKILL) after a
random time, started again, killed again, until it finishes. Each start goes on from the checkpoint if there is one. The
scores of the model that comes out must equal those of a fit that nothing disturbed, and the folder must hold the
checkpoint and nothing else. Then the same where the disk is full, the folder cannot be written, or does not exist:
``make kill-test``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.process
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from figures import described, finish
from scboost import Checkpoint, SCBoostClassifier, SCBoostRegressor
from scboost._engine.native import is_available

ROUNDS = 60
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "two classes": {},
    "two classes, full memory": {"memory": "all"},
    "two classes, all directions": {"memory": "all", "energy_threshold": 1.0},
    "two classes, rows and columns drawn": {"subsample": 0.6, "colsample_bytree": 0.5},
    "two classes, weighted trees": {"weighting": "nonnegative"},
    "two classes, stopped early": {"early_stopping": True, "n_iter_no_change": 50},
    "many classes": {"n_classes": 4},
    "many classes, from zero": {"n_classes": 4, "init": "zero", "class_weight": "balanced"},
    "numbers": {"loss": "squared_error"},
    "numbers, weights": {"loss": "squared_error", "weights": True},
    "numbers, categories": {"loss": "squared_error", "categories": True},
    "numbers, means in the leaves": {"loss": "squared_error", "leaf_rule": "mean", "reg_lambda": 0.0},
    "median": {"loss": "absolute_error"},
    "quantile": {"loss": "quantile", "quantile": 0.8, "projection_strength": 0.5},
    "huber": {"loss": "huber", "exploration": 1.0},
    "counts": {"loss": "poisson", "monotone_constraints": [1, 0, 0, 0, 0]},
}


def problem(name: str, path: Path | None) -> tuple[Any, tuple[Any, ...]]:
    """Return the estimator of a configuration, and what it is fitted to."""
    name, _, engine = name.partition("; ")
    params = {**CONFIGURATIONS[name], "engine": engine or "xgboost"}
    n_classes, weights, categories = (params.pop(key, None) for key in ("n_classes", "weights", "categories"))
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(600, 5))
    signal_ = X[:, 0] + np.sin(2 * X[:, 1]) * X[:, 2] + 0.3 * rng.normal(size=600)
    weight = rng.integers(1, 5, size=600).astype(float) if weights else None
    if categories:
        import pandas as pd

        X = pd.DataFrame(X, columns=list("abcde")).assign(e=np.where(X[:, 4] > 0, "up", "down"))
    callbacks = None if path is None else [Checkpoint(path, every=3)]
    common: dict[str, Any] = {"n_estimators": ROUNDS, "learning_rate": 0.1, "n_jobs": 1, "random_state": 0}
    if "loss" in params:
        y = rng.poisson(np.exp(signal_)).astype(float) if params["loss"] == "poisson" else signal_
        return SCBoostRegressor(**common, **params, callbacks=callbacks), (X, y, weight)
    y = np.searchsorted(np.quantile(signal_, np.arange(1, n_classes or 2) / (n_classes or 2)), signal_)
    return SCBoostClassifier(**common, **params, callbacks=callbacks), (X, y, weight)


def scores(model: Any, X: Any) -> Any:
    """Return the raw scores."""
    return np.asarray(model.decision_function(X) if isinstance(model, SCBoostClassifier) else model.predict(X))


def work(name: str, path: Path, out: Path) -> None:
    """Fit, from the checkpoint if there is one, and write the scores: what a killed process does."""
    model, (X, y, weight) = problem(name, path)
    if path.exists():
        model = Checkpoint(path, every=3).load()
    model.fit(X, y, weight)
    np.save(out, scores(model, X))


def _worker(name: str, path: Path, out: Path) -> multiprocessing.process.BaseProcess:
    # A fork has everything imported: it fits from its first millisecond on.
    worker = multiprocessing.get_context("fork").Process(target=work, args=(name, path, out))
    worker.start()
    return worker


def kill_until_done(name: str, kills: int, rng: np.random.Generator) -> dict[str, Any]:
    """Kill a fit a number of times and let it finish; what was found."""
    model, (X, y, weight) = problem(name, None)
    begin = time.monotonic()
    whole = scores(model.fit(X, y, weight), X)
    took = time.monotonic() - begin
    found: dict[str, int] = {"kills": 0, "kills with a checkpoint": 0, "stray files": 0, "unreadable": 0}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        path, out = Path(folder) / "fit.checkpoint", Path(elsewhere) / "scores.npy"

        def finish() -> bool:
            worker = _worker(name, path, out)
            worker.join()
            found["stray files"] += len([p for p in Path(folder).iterdir() if p != path])
            path.unlink(missing_ok=True)
            return worker.exitcode == 0 and bool(np.array_equal(np.load(out), whole))

        exact, tries = True, 0
        while found["kills"] < kills and tries < 3 * kills:
            tries += 1
            worker = _worker(name, path, out)
            time.sleep(rng.uniform(0, took))
            worker.kill()
            worker.join()
            if worker.exitcode != -signal.SIGKILL:  # it was done before
                path.unlink(missing_ok=True)
                continue
            found["kills"] += 1
            if path.exists():
                found["kills with a checkpoint"] += 1
                try:
                    done = Checkpoint(path, every=3).load().n_estimators_
                except ValueError:
                    found["unreadable"] += 1
                    path.unlink()
                else:
                    if done >= ROUNDS - 6:  # the next start shall have something to do
                        exact = finish() and exact
        exact = finish() and exact
    return {**found, "exact": exact}


def _limit_files() -> None:
    # Writing fails with an error, as on a full disk, in place of a signal.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def _fit_warns(path: Path, out: Path, **options: Any) -> tuple[int, str]:
    command = [sys.executable, __file__, "--work", "two classes, full memory", str(path), str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, env=environment, check=False, text=True, **options)
    return done.returncode, done.stderr


def full_disk() -> dict[str, bool]:
    """Try a disk that is full in the middle of a fit: it goes on and says so, and the last checkpoint stays."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        path, out = Path(folder) / "fit.checkpoint", Path(elsewhere) / "scores.npy"
        model, (X, y, weight) = problem("two classes, full memory", None)
        whole = scores(model.fit(X, y, weight), X)
        code, errors = _fit_warns(path, out, preexec_fn=_limit_files)
        left = [p.name for p in Path(folder).iterdir()]
        return {
            "the fit goes on": code == 0 and bool(np.array_equal(np.load(out), whole)),
            "it warns": "could not be written" in errors,
            "no stray files": set(left) <= {path.name},
            "what is there can be read": not path.exists() or Checkpoint(path).load().n_estimators_ > 0,
        }


def missing_folder() -> dict[str, bool]:
    """Try a folder that does not exist: refused before the first round."""
    with tempfile.TemporaryDirectory() as folder:
        code, errors = _fit_warns(Path(folder) / "nowhere" / "fit.checkpoint", Path(folder) / "scores.npy")
        return {"refused before the first round": code != 0 and "does not exist" in errors}


def unwritable_folder() -> dict[str, bool]:
    """Try a folder that cannot be written to: the fit goes on and says so."""
    if os.geteuid() == 0:
        target = Path("/proc/self")  # where not even the administrator may make a file
        with tempfile.TemporaryDirectory() as elsewhere:
            code, errors = _fit_warns(target / "fit.checkpoint", Path(elsewhere) / "scores.npy")
            return {"the fit goes on": code == 0, "it warns": "could not be written" in errors}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        Path(folder).chmod(0o500)
        code, errors = _fit_warns(Path(folder) / "fit.checkpoint", Path(elsewhere) / "scores.npy")
        Path(folder).chmod(0o700)
        return {"the fit goes on": code == 0, "it warns": "could not be written" in errors}


def run(seed: int, kills: int, names: list[str]) -> dict[str, Any]:
    """Kill fits of all configurations, and try the disks."""
    rng = np.random.default_rng(seed)
    begin = time.monotonic()
    found = {}
    for name in names:
        found[name] = kill_until_done(name, kills, rng)
        print(name, found[name], flush=True)
    disks = {"full disk": full_disk(), "missing folder": missing_folder(), "unwritable folder": unwritable_folder()}
    lost = [name for name, result in found.items() if not result["exact"] or result["unreadable"]]
    broken = [name for name, result in disks.items() if not all(result.values())]
    return {
        "configurations": len(found),
        "kills": sum(result["kills"] for result in found.values()),
        "kills with a checkpoint": sum(result["kills with a checkpoint"] for result in found.values()),
        "stray files": sum(result["stray files"] for result in found.values()),
        "lost": lost,
        "disks": disks,
        "violations": len(lost) + len(broken) + sum(result["stray files"] > 0 for result in found.values()),
        "by configuration": found,
        "minutes": round((time.monotonic() - begin) / 60, 1),
    }


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=7, help="of each configuration")
    parser.add_argument("--only", choices=CONFIGURATIONS, nargs="+", help="these configurations")
    parser.add_argument("--output", type=Path, help="where to write the figures")
    parser.add_argument("--work", nargs=3, metavar=("NAME", "CHECKPOINT", "SCORES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        name, path, out = given.work
        work(name, Path(path), Path(out))
        return 0
    command = f"python tools/kill_test.py --seed {given.seed} --kills {given.kills}"
    engines = ["xgboost", *(["native"] if is_available() else [])]
    names = [f"{name}; {engine}" for name in given.only or CONFIGURATIONS for engine in engines]
    return finish(described(command, run(given.seed, given.kills, names)), given.output)


if __name__ == "__main__":
    sys.exit(main())
