"""Run exported C, JavaScript and SQL on hostile samples and compare with the model: results/exports/fidelity.json.

Every model is exported to all languages. The samples hold values at, next to and half-way between the thresholds of the
trees in float32 and in float64, signed zeros, subnormals, infinities, NaN, values outside of float32, unseen
categories, empty strings, quotes and Unicode; names of features, categories and classes try to break out of strings
and comments. The expected value is the sum in float64 of the leaves that XGBoost itself finds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from scipy import special

import scboost

RESULT = Path(__file__).parents[1] / "results" / "exports" / "fidelity.json"

HOSTILE = (
    'a"b',
    "it's",
    "x; DROP TABLE samples; --",
    "*/ evil(); /*",
    "</script><script>",
    "naïve 漢字 \U0001f600",
    "new\nline",
    "back\\slash\\",
    "`${1}`",
    "__proto__",
    "select",
    "%s ? :x $1",
    "??/ trigraph",
    "\u202eright to left",
)
"""Names that end strings or comments somewhere, or mean something else."""


@dataclass(frozen=True)
class Case:
    """A fitted model and the table that it was fitted on."""

    name: str
    model: Any
    X: pd.DataFrame


def hostile_names(names: list[str]) -> dict[str, str]:
    """Give every column one of the hostile names."""
    return {name: HOSTILE[i] if i < len(HOSTILE) else f"{HOSTILE[i % len(HOSTILE)]}{i}" for i, name in enumerate(names)}


def make_data(n: int, seed: int, *, categories: bool = True) -> tuple[pd.DataFrame, Any]:
    """Make a table of numbers, whole numbers and categories with missing values, and a raw target."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{j}": rng.normal(size=n) * 10.0 ** (j - 2) for j in range(5)})
    X["count"] = rng.integers(0, 20, size=n).astype(float)
    score = X["x2"] + X["x1"] * X["x3"] + 0.1 * X["count"]
    if categories:
        labels = np.array([*HOSTILE, "", " ", "red", "Red", "NaN"])
        codes = rng.integers(len(labels), size=n)
        X["colour"] = pd.Categorical(labels[codes], categories=labels)
        X["zip"] = pd.Categorical(rng.integers(1000, 1030, size=n))
        score = score + np.sin(codes) + (X["zip"].cat.codes % 3 == 0)
        X.loc[rng.random(n) < 0.1, "colour"] = np.nan
        X.loc[rng.random(n) < 0.1, "zip"] = np.nan
    X.loc[rng.random(n) < 0.1, "x2"] = np.nan
    X.loc[rng.random(n) < 0.3, "x1"] = 0.0
    return X, (score + 0.3 * rng.normal(size=n)).to_numpy()


def make_cases(n: int = 1500, n_estimators: int = 20) -> Iterator[Case]:
    """Fit one model of every kind."""
    common: dict[str, Any] = {
        "n_estimators": n_estimators,
        "learning_rate": 0.3,
        "max_leaves": 64,
        "max_depth": None,
        "n_jobs": 1,
        "random_state": 0,
    }
    X, score = make_data(n, 0)
    X = X.rename(columns=hostile_names(list(X)))
    plain, plain_score = make_data(n, 1, categories=False)
    third = pd.cut(score, [-np.inf, -1, 1, np.inf], labels=False)
    labels = np.array(HOSTILE[:3])

    def classifier(**given: Any) -> Any:
        return scboost.SCBoostClassifier(**{**common, **given})

    def regressor(**given: Any) -> Any:
        return scboost.SCBoostRegressor(**{**common, **given})

    yield Case("binary", classifier().fit(X, np.array(HOSTILE[3:5])[(score > 0).astype(int)]), X)
    yield Case("one-vs-rest", classifier(categorical_splits="one-vs-rest").fit(X, score > 0), X)
    yield Case("subset", regressor(categorical_splits="subset").fit(X, score), X)
    yield Case("three classes", classifier().fit(X, labels[third]), X)
    many = pd.qcut(plain_score, 12, labels=False)
    yield Case("twelve classes", classifier(n_estimators=4, max_leaves=16).fit(plain, many), plain)
    yield Case("regression", regressor().fit(plain, plain_score), plain)
    yield Case("far from zero", regressor().fit(plain, plain_score + 1e6), plain)
    yield Case("poisson", regressor(loss="poisson").fit(X, np.exp(np.clip(score, -3, 3)).round()), X)
    yield Case("gamma", regressor(loss="gamma").fit(plain, np.exp(np.clip(plain_score, -3, 3))), plain)
    yield Case("quantiles", regressor(loss="quantile", quantile=[0.1, 0.5, 0.9]).fit(X, score), X)
    yield Case(
        "weights", classifier(weighting="nonnegative", covariance_penalty=0.3).fit(plain, plain_score > 0), plain
    )
    yield Case("one leaf", regressor(n_estimators=3, min_child_weight=1e9).fit(plain, plain_score), plain)
    yield Case("many trees", classifier(n_estimators=160, max_leaves=8).fit(plain, plain_score > 0), plain)


def ensemble_of(model: Any) -> Any:
    """Return the trees of an estimator."""
    return model.__fitted_model__().trees("tools/exports.py")


def thresholds_by_feature(model: Any) -> list[Any]:
    """Distinct thresholds of the numeric splits of each feature, as float32."""
    document = ensemble_of(model).centred_document()
    found: list[list[Any]] = [[] for _ in range(document.n_features)]
    for tree in document.trees:
        inner = (tree["left_children"] != -1) & (tree["split_type"] == 0)
        for feature, threshold in zip(tree["split_indices"][inner], tree["split_conditions"][inner], strict=True):
            found[feature].append(threshold)
    return [np.unique(np.array(own, dtype=np.float32)) for own in found]


def hostile_numbers(thresholds: Any, usual: Any) -> Any:
    """Return numbers at which float32 and float64, missing and infinite could be confused."""
    largest, smallest = np.finfo(np.float32).max, np.float32(1e-45)
    special_values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e39, -1e39, 1e308, -1e308, 1e-50, -1e-50, 5e-324, -5e-324]
    special_values += [float(largest), -float(largest), float(smallest), -float(smallest), 2.0**24 + 1, 2.0**53 + 1]
    special_values += [2.0**128 - 2.0**103, np.nextafter(2.0**128 - 2.0**103, 0), -(2.0**128 - 2.0**103)]
    t = thresholds.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        down = np.nextafter(thresholds, np.float32(-np.inf)).astype(np.float64)
        up = np.nextafter(thresholds, np.float32(np.inf)).astype(np.float64)
        near = np.concatenate([t, down, up, (t + down) / 2, (t + up) / 2])
        near = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
    return np.concatenate([special_values, near, usual[~np.isnan(usual)][:50]])


def hostile_samples(case: Case, n: int, seed: int) -> pd.DataFrame:
    """Draw samples of hostile values, one feature independent of the other."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for (name, column), thresholds in zip(case.X.items(), thresholds_by_feature(case.model), strict=True):
        if isinstance(column.dtype, pd.CategoricalDtype):
            known = [str(value) for value in column.cat.categories]
            values = np.array(
                [*known * 3, "unseen", "RED", "red ", "1e3", "1000.5", "10|00", "-1", "0", "漢", "'", '"', None, None]
            )
            columns[name] = rng.choice(values, size=n)
        else:
            columns[name] = rng.choice(hostile_numbers(thresholds, column.to_numpy(dtype=float)), size=n)
    return pd.DataFrame(columns)


def encoded(case: Case, samples: pd.DataFrame) -> Any:
    """Return samples as float32; infinities, which a DMatrix refuses, become the largest numbers."""
    numeric = [isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in case.X.dtypes]
    zeros = dict.fromkeys(samples.columns[numeric], 0.0)
    matrix = np.array(scboost.encode_features(case.model, samples.assign(**zeros)))
    largest = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        matrix[:, numeric] = np.clip(samples.loc[:, numeric].to_numpy(dtype=np.float32), -largest, largest)
    return matrix


def expected(case: Case, samples: pd.DataFrame) -> tuple[Any, Any]:
    """Return raw scores (n, K) and predictions: float64 sums of the leaves that XGBoost finds, behind SciPy's links."""
    model = case.model
    ensemble = ensemble_of(model)
    document = ensemble.centred_document()
    matrix = encoded(case, samples)
    types = document.learner["feature_types"] or None
    rows = xgboost.DMatrix(matrix, feature_types=types, enable_categorical=types is not None)
    booster = document.without_tables().with_learner(feature_names=[]).booster()
    leaves = booster.predict(rows, pred_leaf=True, validate_features=False).reshape(len(samples), -1).astype(int)
    raw = np.tile(np.asarray(ensemble.intercept, dtype=np.float64), (len(samples), 1))
    for i, (tree, output) in enumerate(zip(document.trees, document.outputs, strict=True)):
        raw[:, output] += tree["split_conditions"][leaves[:, i]].astype(np.float64)
    if hasattr(model, "classes_"):
        p = special.expit(raw[:, 0]) if len(model.classes_) == 2 else None
        return raw, special.softmax(raw, axis=1) if p is None else np.stack([1 - p, p], axis=1)
    if raw.shape[1] > 1:
        return raw, np.sort(raw, axis=1)
    return raw, np.exp(raw) if document.objective == "count:poisson" else raw


def predicted(case: Case, samples: pd.DataFrame) -> Any:
    """Predictions of the estimator, of shape (n, columns)."""
    model = case.model
    found = model.predict_proba(samples) if hasattr(model, "classes_") else model.predict(samples)
    return np.asarray(found).reshape(len(samples), -1)


# Both programs read samples in this form: for each value "d" and a double, or "s" and a text that ends with NUL.
_DRIVER_C = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
int main(void) {
  static char text[100000];
  double x[MODEL_N_FEATURES], out[%(n_out)d], raw[MODEL_N_OUTPUTS], label;
  int kind, j, length;
  for (;;) {
    for (j = 0; j < MODEL_N_FEATURES; ++j) {
      kind = getchar();
      if (kind == EOF) return 0;
      if (kind == 'd') { if (fread(&x[j], 8, 1, stdin) != 1) return 1; continue; }
      for (length = 0; (kind = getchar()) > 0; ++length) text[length] = (char)kind;
      text[length] = 0;
      x[j] = %(category)s;
    }
    model_raw(x, raw);
    %(predict)s
    fwrite(raw, 8, MODEL_N_OUTPUTS, stdout);
    fwrite(out, 8, %(n_out)d, stdout);
    fwrite(&label, 8, 1, stdout);
  }
}
"""

_DRIVER_JS = """
import { readFileSync, writeFileSync } from 'node:fs';
import * as model from './model.mjs';
const bytes = readFileSync('samples.bin');
const out = [];
let at = 0;
let byName = true;
while (at < bytes.length) {
  const values = model.features.map(() => {
    if (bytes[at] === 100) { const value = bytes.readDoubleLE(at + 1); at += 9; return value; }
    const end = bytes.indexOf(0, at);
    const text = bytes.toString('utf8', at + 1, end);
    at = end + 1;
    return text;
  });
  const sample = byName ? Object.fromEntries(model.features.map((name, j) => [name, values[j]])) : values;
  byName = !byName;
  out.push(...model.rawScores(sample));
  const prediction = model.predict(sample);
  if (model.classes) out.push(...model.predictProba(sample), model.classes.indexOf(prediction));
  else out.push(...[prediction].flat(), 0);
}
writeFileSync('out.bin', new Float64Array(out));
"""


def packed(samples: pd.DataFrame, path: Path) -> None:
    """Write the samples for the two programs."""
    columns = [column.tolist() for _, column in samples.items()]
    with path.open("wb") as stream:
        for values in zip(*columns, strict=True):
            for value in values:
                if isinstance(value, str):
                    stream.write(b"s" + value.encode() + b"\0")
                else:
                    stream.write(b"d" + struct.pack("<d", math.nan if value is None else value))


def _split(case: Case, flat: Any, n: int) -> tuple[Any, Any, Any]:
    K = ensemble_of(case.model).n_outputs
    table = flat.reshape(n, -1)
    return table[:, :K], table[:, K:-1], table[:, -1].astype(int)


def run_c(case: Case, samples: pd.DataFrame, *flags: str, compiler: str = "gcc") -> tuple[Any, Any, Any]:
    """Compile and run; return raw scores, predictions and class numbers."""
    K = ensemble_of(case.model).n_outputs
    classes = getattr(case.model, "classes_", None)
    has_categories = any(isinstance(dtype, pd.CategoricalDtype) for dtype in case.X.dtypes)
    if classes is not None:
        predict, n_out = "model_predict_proba(x, out); label = model_predict(x);", len(classes)
    else:
        predict = "model_predict(x, out); label = 0;" if K > 1 else "out[0] = model_predict(x); label = 0;"
        n_out = K
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scboost.export_c(case.model, folder / "model.h")
        category = "model_category(j, text)" if has_categories else "text[0] + NAN"
        (folder / "main.c").write_text(_DRIVER_C % {"n_out": n_out, "predict": predict, "category": category})
        strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"]
        subprocess.run([compiler, *strict, *flags, "-o", "main", "main.c", "-lm"], cwd=folder, check=True)
        packed(samples, folder / "samples.bin")
        with (folder / "samples.bin").open("rb") as stream:
            done = subprocess.run(["./main"], cwd=folder, stdin=stream, stdout=subprocess.PIPE, check=True)
    return _split(case, np.frombuffer(done.stdout), len(samples))


def run_js(case: Case, samples: pd.DataFrame) -> tuple[Any, Any, Any]:
    """Run with node; return raw scores, predictions and class numbers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scboost.export_js(case.model, folder / "model.mjs")
        (folder / "main.mjs").write_text(_DRIVER_JS)
        packed(samples, folder / "samples.bin")
        subprocess.run([shutil.which("node") or "node", "main.mjs"], cwd=folder, check=True)
        return _split(case, np.fromfile(folder / "out.bin"), len(samples))


def _from_rows(case: Case, rows: list[tuple[Any, ...]]) -> tuple[Any, Any]:
    """Sort by the key; return predictions and class numbers."""
    rows = sorted(rows)
    if not hasattr(case.model, "classes_"):
        return np.array([row[1:] for row in rows], dtype=np.float64), np.zeros(len(rows), dtype=int)
    number = {str(label): k for k, label in enumerate(case.model.classes_)}
    labels = [str(bool(row[1])) if "True" in number else str(row[1]) for row in rows]
    return np.array([row[2:] for row in rows], dtype=np.float64), np.array([number[label] for label in labels])


def run_duckdb(case: Case, samples: pd.DataFrame) -> tuple[Any, Any]:
    """Run in DuckDB; return predictions and class numbers."""
    import duckdb

    query = scboost.export_sql(case.model, table='sam"ples', dialect="duckdb", keep=["key"])
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("given", samples.assign(key=np.arange(len(samples))))
        connection.execute('CREATE TABLE "sam""ples" AS SELECT * FROM given')
        return _from_rows(case, connection.execute(query).fetchall())


def run_sqlite(case: Case, samples: pd.DataFrame) -> tuple[Any, Any]:
    """Run in SQLite; return predictions and class numbers."""
    from scboost._model.codegen.sql import identifier

    query = scboost.export_sql(case.model, table='sam"ples', dialect="sqlite", keep=["key"])
    columns = ", ".join(identifier(str(name)) for name in [*samples.columns, "key"])
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f'CREATE TABLE "sam""ples" ({columns})')
        values = zip(*(column.tolist() for _, column in samples.items()), range(len(samples)), strict=True)
        holes = ", ".join("?" * (samples.shape[1] + 1))
        connection.executemany(f'INSERT INTO "sam""ples" VALUES ({holes})', values)  # noqa: S608
        return _from_rows(case, connection.execute(query).fetchall())


@contextmanager
def postgres() -> Iterator[Callable[[str], str]]:
    """Start a server in a temporary folder; yield a function that runs a script through psql."""
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to be root
    found = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
    if found is None:
        raise FileNotFoundError("initdb")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)
        run: dict[str, Any] = {
            "cwd": folder,
            "user": user,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        subprocess.run([found, "-D", folder / "data", "-A", "trust", "-U", "tester", "-E", "UTF8"], check=True, **run)
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off -c statement_timeout=300s"
        control = str(Path(found).with_name("pg_ctl"))
        subprocess.run(
            [control, "-D", folder / "data", "-w", "-o", options, "-l", folder / "log", "start"], check=True, **run
        )

        def execute(script: str) -> str:
            (folder / "script.sql").write_text(script)
            psql = [
                "psql",
                "-h",
                str(folder),
                "-U",
                "tester",
                "-d",
                "postgres",
                "-v",
                "ON_ERROR_STOP=1",
                "-qAt",
                "-F",
                "\t",
            ]
            done = subprocess.run([*psql, "-f", folder / "script.sql"], capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            return done.stdout

        try:
            yield execute
        finally:
            subprocess.run([control, "-D", folder / "data", "-m", "immediate", "stop"], check=True, **run)


def run_postgres(case: Case, samples: pd.DataFrame, execute: Callable[[str], str]) -> tuple[Any, Any]:
    """Run in PostgreSQL; return predictions and class numbers."""
    from scboost._model.codegen.sql import identifier

    query = scboost.export_sql(case.model, table='sam"ples', dialect="postgresql", keep=["key"])
    kinds = ["double precision" if dtype.kind == "f" else "text" for dtype in samples.dtypes]
    names = [identifier(str(name)) for name in samples.columns]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    execute(f'DROP TABLE IF EXISTS "sam""ples"; CREATE TABLE "sam""ples" ({columns}, key integer);')
    # Doubles as texts that PostgreSQL reads back to the same bits; NaN stays NaN, None is NULL.
    texts = {
        name: [None if v is None else repr(v) if isinstance(v, float) else v for v in column.tolist()]
        for name, column in samples.items()
    }
    rows = pd.DataFrame(texts, dtype=object).assign(key=np.arange(len(samples)))
    data = rows.to_csv(header=False, index=False, na_rep="\\N", quoting=2)
    copy = f'COPY "sam""ples" FROM STDIN WITH (FORMAT csv, NULL \'\\N\', FORCE_NULL ({", ".join(names)}));'
    execute(f"{copy}\n{data}\\.\n")
    lines = execute(f"SELECT to_json(q) FROM ({query.rstrip().rstrip(';')}) AS q;")  # noqa: S608
    return _from_rows(case, [tuple(json.loads(line).values()) for line in lines.splitlines()])


def largest_error(found: Any, wanted: Any) -> float:
    """Largest difference relative to the larger of 1 and the value."""
    return float((np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted))).max(initial=0.0))


# One sample after the other, as a service would ask; NaN is turned into tl2cgen's union as its own library does it.
_SPEED_C = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "ours/model.h"
#include "theirs/header.h"
static double ours(const double *x) { double raw[MODEL_N_OUTPUTS]; model_raw(x, raw); return raw[0]; }
static double theirs(const double *x) {
  union Entry e[MODEL_N_FEATURES];
  float out[MAX_N_CLASS] = {0};
  int j;
  for (j = 0; j < MODEL_N_FEATURES; ++j) { if (x[j] != x[j]) e[j].missing = -1; else e[j].fvalue = (float)x[j]; }
  predict(e, 1, out);
  return out[0];
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
int main(void) {
  enum { N = %(n)d, D = MODEL_N_FEATURES };
  static double x[N * D];
  double (*both[])(const double *) = {ours, theirs};
  int k, i, repeat;
  if (fread(x, 8, N * D, stdin) != N * D) return 1;
  for (k = 0; k < 2; ++k) {
    double best = 1e30, sum = 0;
    for (repeat = 0; repeat < 200; ++repeat) {
      double start = now();
      for (i = 0; i < N; ++i) sum += both[k](x + i * D);
      start = (now() - start) / N;
      if (start < best) best = start;
    }
    printf("%%.1f %%.9g\\n", best, sum / 200 / N);
  }
  return 0;
}
"""


def speed() -> dict[str, Any]:
    """Time one prediction of a model of 20 trees with 64 leaves, beside the same trees compiled by tl2cgen."""
    import tl2cgen

    n = 4000
    rng = np.random.default_rng(0)
    X, score = make_data(4000, 5, categories=False)
    model = scboost.SCBoostClassifier(
        n_estimators=20, learning_rate=0.3, max_leaves=64, max_depth=None, n_jobs=1, random_state=0
    ).fit(X, score > 0)
    leaves = [int((tree["left_children"] == -1).sum()) for tree in ensemble_of(model).document().trees]
    samples = make_data(n, 6, categories=False)[0].to_numpy()
    rng.shuffle(samples)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ours").mkdir()
        scboost.export_c(model, folder / "ours" / "model.h")
        tl2cgen.generate_c_code(scboost.to_treelite(model), dirpath=str(folder / "theirs"), params={})
        (folder / "main.c").write_text(_SPEED_C % {"n": n})
        sources = ["main.c", "theirs/main.c"]
        options = ["-O2", "-std=c99", "-D_POSIX_C_SOURCE=200809L"]
        subprocess.run(["gcc", *options, "-o", "main", *sources, "-lm"], cwd=folder, check=True)  # noqa: S607
        given = samples.astype(np.float64).tobytes()
        done = subprocess.run(["./main"], cwd=folder, input=given, stdout=subprocess.PIPE, check=True)
        (ours, _), (theirs, _) = (map(float, line.split()) for line in done.stdout.splitlines())
        size = sum(path.stat().st_size for path in (folder / "theirs").glob("*.[ch]"))
        return {
            "trees": len(leaves),
            "leaves": sum(leaves),
            "ns_per_sample": ours,
            "tl2cgen_ns_per_sample": theirs,
            "header_bytes": (folder / "ours" / "model.h").stat().st_size,
            "tl2cgen_source_bytes": size,
            "compiler": "gcc -O2",
        }


def measure(n_rows: dict[str, int]) -> dict[str, Any]:
    """Run every model in every language; return the largest errors."""
    cases = list(make_cases())
    found: dict[str, Any] = {}
    with postgres() as execute:
        runners: dict[str, Callable[[Case, pd.DataFrame], Any]] = {
            "c": lambda case, samples: run_c(case, samples)[1:],
            "javascript": lambda case, samples: run_js(case, samples)[1:],
            "duckdb": run_duckdb,
            "sqlite": run_sqlite,
            "postgresql": lambda case, samples: run_postgres(case, samples, execute),
        }
        for seed, (language, run) in enumerate(runners.items()):
            start = time.monotonic()
            rows, worst, worst_model, wrong = 0, 0.0, 0.0, 0
            for case in cases:
                samples = hostile_samples(case, -(-n_rows[language] // len(cases)), seed + 1)
                raw, wanted = expected(case, samples)
                predictions, labels = run(case, samples)
                rows += len(samples)
                worst = max(worst, largest_error(predictions, wanted))
                worst_model = max(worst_model, largest_error(predictions, predicted(case, samples)))
                if hasattr(case.model, "classes_"):
                    wrong += int((labels != (raw[:, 0] > 0 if raw.shape[1] == 1 else raw.argmax(axis=1))).sum())
            found[language] = {
                "rows": rows,
                "largest_error": worst,
                "largest_difference_from_the_estimator": worst_model,
                "wrong_labels": wrong,
                "seconds": round(time.monotonic() - start, 1),
            }
            print(language, found[language], flush=True)
    return {"models": [case.name for case in cases], "languages": found, "file_bytes": file_sizes(cases)}


def file_sizes(cases: list[Case]) -> dict[str, dict[str, int]]:
    """Sizes of the exported files."""
    return {
        case.name: {
            "c": len(scboost.export_c(case.model).encode()),
            "javascript": len(scboost.export_js(case.model).encode()),
            "sql": len(scboost.export_sql(case.model, table="samples").encode()),
        }
        for case in cases
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="samples in all languages together")
    total = parser.parse_args().rows
    shares = {"c": 0.4, "javascript": 0.3, "duckdb": 0.2, "sqlite": 0.06, "postgresql": 0.04}
    result = measure({language: int(share * total) for language, share in shares.items()})
    tools = {"gcc": ["gcc", "--version"], "node": ["node", "--version"], "postgresql": ["postgres", "--version"]}
    versions = {
        name: subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        for name, command in tools.items()
    }
    import duckdb

    versions |= {"duckdb": duckdb.__version__, "sqlite": sqlite3.sqlite_version, "python": platform.python_version()}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(
        json.dumps(
            {
                "made_by": "python tools/exports.py",
                "scboost": scboost.__version__,
                "versions": versions,
                **result,
                "speed": speed(),
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
