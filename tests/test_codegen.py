"""Exported C, JavaScript and SQL: equal to the trees on hostile samples, and safe against hostile names."""

import dataclasses
import functools
import shutil
import sqlite3
import subprocess

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

import exports
from data_makers import real_target, two_classes
from exports import HOSTILE, Case, expected, hostile_samples, largest_error, predicted
from scboost import SCBoostClassifier, SCBoostRegressor, export_c, export_js, export_sql
from scboost._model.codegen import sql
from scboost._model.codegen.program import Leaf, Program, Split, chain, comment_text, read_tree
from scboost._model.codegen.sql import boundary
from scboost.losses import IdentityLink

pytestmark = pytest.mark.filterwarnings("ignore:The model has no trees")
NAMES = [
    "binary",
    "one-vs-rest",
    "subset",
    "three classes",
    "twelve classes",
    "regression",
    "far from zero",
    "poisson",
    "gamma",
    "quantiles",
    "weights",
    "one leaf",
    "many trees",
]
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
FAST = {"n_estimators": 8, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0}


@functools.cache
def cases():
    return {case.name: case for case in exports.make_cases(n=400, n_estimators=8)}


@functools.cache
def answers(name):
    case = cases()[name]
    samples = hostile_samples(case, 300, seed=7)
    raw, predictions = expected(case, samples)
    return case, samples, raw, predictions


def test_all_cases_are_listed():
    assert list(cases()) == NAMES


def check(name, predictions, labels, raw=None):
    """Equal to float64 sums of the leaves to rounding, and to the estimator to float32."""
    case, samples, wanted_raw, wanted = answers(name)
    if raw is not None:
        assert largest_error(raw, wanted_raw) < 1e-14
    assert largest_error(predictions, wanted) < 1e-14
    assert largest_error(predictions, predicted(case, samples)) < 2e-6
    if hasattr(case.model, "classes_"):
        winners = wanted_raw[:, 0] > 0 if wanted_raw.shape[1] == 1 else wanted_raw.argmax(axis=1)
        np.testing.assert_array_equal(labels, winners)


@pytest.mark.parametrize("name", NAMES)
@needs_gcc
def test_c_code_predicts_the_same(name):
    case, samples, _, _ = answers(name)
    raw, predictions, labels = exports.run_c(case, samples)  # compiled with -Wall -Wextra -pedantic -Werror
    check(name, predictions, labels, raw)


@pytest.mark.parametrize("name", NAMES)
@needs_node
def test_javascript_predicts_the_same(name):
    case, samples, _, _ = answers(name)
    raw, predictions, labels = exports.run_js(case, samples)
    check(name, predictions, labels, raw)


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_predicts_the_same(name):
    pytest.importorskip("duckdb")
    case, samples, _, _ = answers(name)
    check(name, *exports.run_duckdb(case, samples))


@pytest.mark.parametrize("name", NAMES)
def test_sqlite_predicts_the_same(name):
    case, samples, _, _ = answers(name)
    check(name, *exports.run_sqlite(case, samples))


def test_postgresql_predicts_the_same():
    try:
        with exports.postgres() as execute:
            for name in NAMES:
                case, samples, _, _ = answers(name)
                check(name, *exports.run_postgres(case, samples, execute))
    except (FileNotFoundError, PermissionError, KeyError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no PostgreSQL server can be started here: {error}")


@needs_gcc
def test_c_reads_and_writes_within_its_bounds():
    case, samples, raw, _ = answers("subset")
    try:
        found = exports.run_c(case, samples, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")[0]
    except subprocess.CalledProcessError as error:
        if "gcc" in error.cmd[0]:
            pytest.skip("gcc has no sanitizers here")
        raise
    assert largest_error(found, raw) < 1e-14


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_header_is_also_valid_cpp(tmp_path):
    for name in ("binary", "quantiles", "three classes"):
        export_c(cases()[name].model, tmp_path / "model.h")
        (tmp_path / "main.cpp").write_text('#include "model.h"\nint main() { return 0; }\n')
        options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", "main", "main.cpp"]
        subprocess.run([shutil.which("g++"), *options], cwd=tmp_path, check=True)  # noqa: S603


@needs_gcc
def test_two_models_live_in_one_program(tmp_path):
    X, y = real_target()
    model = SCBoostRegressor(**FAST).fit(X, y)
    for name in ("first", "second"):
        export_c(model, tmp_path / f"{name}.h", name=name)
    (tmp_path / "main.c").write_text(
        '#include "first.h"\n#include "second.h"\n'
        "int main(void) { double x[FIRST_N_FEATURES] = {0}; return first_predict(x) != second_predict(x); }\n"
    )
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Werror", "-o", "main", "main.c", "-lm"], cwd=tmp_path, check=True)  # noqa: S607
    subprocess.run(["./main"], cwd=tmp_path, check=True)


def sparse_case():
    X, y = two_classes()
    X = np.where(np.abs(X) < 0.7, 0, X).astype(np.float32)
    model = SCBoostClassifier(**FAST).fit(sparse.csr_matrix(X), y)
    return model, X


@needs_gcc
@needs_node
def test_zeros_are_missing_for_a_model_of_sparse_data():
    model, X = sparse_case()
    case = Case("sparse", model, pd.DataFrame(X.astype(float)))
    wanted = model.predict_proba(sparse.csr_matrix(X))
    assert largest_error(exports.run_c(case, case.X)[1], wanted) < 2e-6
    assert largest_error(exports.run_js(case, case.X)[1], wanted) < 2e-6


@pytest.mark.parametrize(
    "threshold", [0.1, 0.0, -0.0, 1.0, -2.5, 3.4028235e38, -3.4028235e38, 1e-45, -1e-45, 16777216.0, 1.1754944e-38]
)
def test_the_boundary_in_float64_is_the_threshold_in_float32(threshold):
    t = np.float32(threshold)
    values = exports.hostile_numbers(np.array([t]), np.array([1.0]))
    values = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(values < boundary(t), values.astype(np.float32) < t)


def test_nested_code_is_no_deeper_than_the_logarithm_of_the_leaves():
    """A tree that is one long chain, on either side, becomes a flat list of conditions."""

    def nesting(node):
        conditions, _ = chain(node)
        return max((1 + nesting(inner) for _, _, inner in conditions), default=0)

    X = np.arange(2000.0)[:, None]
    model = SCBoostRegressor(n_estimators=3, max_leaves=300, max_depth=None, min_child_weight=0, learning_rate=1.0)
    model.fit(X, np.exp(X[:, 0] / 100))
    for tree in exports.ensemble_of(model).document().trees:
        root = read_tree(tree)
        assert nesting(root) <= np.log2(root.n_leaves) + 1


@pytest.mark.parametrize("name", HOSTILE)
def test_comments_cannot_be_left(name):
    text = comment_text(name * 5)
    assert text.isprintable()
    assert not any(sign in text for sign in ("*/", "/*", "</", "\n", "\\", "??"))
    assert len(text) <= 40


def test_injected_sql_is_not_executed():
    """Names that try to end a string or an identifier and to drop the table."""
    evil = "x'); DROP TABLE samples; --"
    X = pd.DataFrame({evil: ["a'; DROP TABLE samples; --", "b"] * 50, 'y" FROM samples; DROP TABLE samples; --': 1.0})
    model = SCBoostClassifier(**FAST).fit(X, np.array(["'; DROP TABLE samples; --", "no"] * 50))
    with sqlite3.connect(":memory:") as connection:
        X.to_sql("samples", connection, index=False)
        query = export_sql(model, table="samples", dialect="sqlite")
        rows = connection.execute(query).fetchall()  # one statement only: sqlite3 refuses several
        assert [row[0] for row in rows] == model.predict(X).tolist()
        assert connection.execute("SELECT count(*) FROM samples").fetchone() == (100,)


@needs_node
def test_a_threshold_on_the_codes_of_a_categorical_feature_is_that_of_the_model():
    # No library writes such a split, but a file may have it, and XGBoost compares the code of the category.
    leaves = [Leaf(np.float32(value)) for value in (1.0, 2.0)]
    split = Split(0, np.float32(0.5), (), missing_left=True, left=leaves[0], right=leaves[1], n_leaves=2)
    known = (("a", "b", "c"),)
    program = Program(((split,),), np.zeros(1), "identity", ("x",), known, frozenset(), None, (), zero_is_missing=False)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("a",), ("b",), ("c",), (None,)])
        found = connection.execute(sql.export_sql(program, None, "t", "sqlite", [])).fetchall()
    assert [value for (value,) in found] == [1, 2, 2, 1]


def test_javascript_rejects_invalid_samples(tmp_path):
    X = pd.DataFrame({"age": np.arange(60.0), "colour": ["red", "blue", "green"] * 20})
    export_js(SCBoostRegressor(**FAST).fit(X, X["age"]), tmp_path / "model.mjs")

    def run(sample):
        code = f"import {{ predict }} from './model.mjs'; console.log(predict({sample}));"
        return subprocess.run(["node", "--input-type=module", "-e", code], cwd=tmp_path, capture_output=True, text=True)  # noqa: PLW1510, S603, S607

    assert 'The sample has no feature \\"colour\\"' in run("{age: 3}").stderr.replace('"colour"', '\\"colour\\"')
    assert "is numeric, got a string" in run("{age: 'three', colour: 'red'}").stderr
    assert "The sample has 3 features, the model 2" in run("[1, 2, 3]").stderr
    assert run("{age: null, colour: undefined}").stdout == run("[NaN, 'unseen']").stdout != ""


def test_models_that_cannot_be_exported_are_rejected(tmp_path):
    X, y = real_target()
    model = SCBoostRegressor(**FAST).fit(X, y)
    with pytest.raises(ValueError, match="fitted without feature names"):
        export_sql(model, table="t")
    named = SCBoostRegressor(**FAST).fit(pd.DataFrame(X).add_prefix("x"), y)
    with pytest.raises(ValueError, match="dialect='oracle' is not supported; allowed: 'duckdb'"):
        export_sql(named, table="t", dialect="oracle")
    with pytest.raises(ValueError, match="must be a C identifier"):
        export_c(model, name="a b")
    with pytest.raises(TypeError, match="takes a fitted SCBoostClassifier or SCBoostRegressor, got list"):
        export_js([])
    other = SCBoostRegressor(estimator=DecisionTreeRegressor(max_depth=2), **FAST).fit(X, y)
    with pytest.raises(AttributeError, match="export_c"):
        export_c(other)
    nul = SCBoostRegressor(**FAST).fit(pd.DataFrame({"a\0b": y, "c": y}), y)
    for export in (export_c, functools.partial(export_sql, table="t")):
        with pytest.raises(ValueError, match="NUL"):
            export(nul)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        export_c(model, tmp_path / "no" / "model.h")


def test_a_loss_with_its_own_link_is_refused():
    fitted = cases()["regression"].model.__fitted_model__()

    class Doubled(IdentityLink):
        def inverse(self, raw):
            return 2 * raw[0]

    class OwnLink(type(fitted.loss)):
        link = Doubled()

    class Model:
        def __fitted_model__(self):
            return dataclasses.replace(fitted, loss=OwnLink())

    with pytest.raises(ValueError, match="OwnLink, which has another one"):
        export_c(Model())


def test_the_written_file_is_the_returned_text(tmp_path):
    model = cases()["binary"].model
    assert (tmp_path / "m.h").write_text("old")
    assert export_c(model, tmp_path / "m.h") == (tmp_path / "m.h").read_text()
    assert export_js(model, str(tmp_path / "m.mjs")) == (tmp_path / "m.mjs").read_text()
    query = export_sql(model, tmp_path / "m.sql", table=("main", "t"), dialect="postgresql", keep=["id"])
    assert query == (tmp_path / "m.sql").read_text()
    assert 'FROM "main"."t" AS source' in query


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "VARCHAR"])
def test_integer_categories_may_be_stored_as_integers_floats_or_strings(kind):
    duckdb = pytest.importorskip("duckdb")
    X = pd.DataFrame({"zip": pd.Categorical(np.arange(300) % 6 + 1000), "x": np.arange(300.0)})
    model = SCBoostRegressor(**FAST).fit(X, X["zip"].astype(int) % 4 + X["x"] / 300)
    query = export_sql(model, table="t", keep=["x"])
    with duckdb.connect() as connection:
        connection.register("given", X.astype({"zip": int}))
        connection.execute(f"CREATE TABLE t AS SELECT CAST(zip AS {kind}) AS zip, x FROM given")  # noqa: S608
        found = dict(connection.execute(query).fetchall())
    np.testing.assert_allclose([found[x] for x in X["x"]], model.predict(X), rtol=1e-6)
