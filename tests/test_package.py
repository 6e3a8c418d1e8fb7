"""The package as a whole: what importing it loads, what it offers, and what it must not know."""

import ast
import importlib.resources
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import scboost

SOURCES = sorted(Path(scboost.__file__).parent.rglob("*.py"))


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our code


def test_importing_the_package_imports_nothing_heavy():
    # scikit-learn itself imports pandas where it is installed: what counts is what this package adds to it.
    done = run("""
import sys
import numpy, scipy.linalg, scipy.special, sklearn.model_selection, threadpoolctl
before = set(sys.modules)
import scboost
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
""")
    assert done.returncode == 0, done.stderr
    added = set(done.stdout.split())
    assert "scboost" in added
    assert not added & {"matplotlib", "pandas", "polars", "pyarrow", "xgboost", "lightgbm", "catboost", "scboost_bench"}


def test_the_package_imports_where_pandas_and_matplotlib_are_not_installed():
    done = run(
        "import sys; sys.modules.update(pandas=None, matplotlib=None, polars=None, pyarrow=None); import scboost"
    )
    assert done.returncode == 0, done.stderr


WITHOUT_XGBOOST = """
import sys
sys.modules["xgboost"] = None
from scboost import SCBoostClassifier
{}
"""


def test_without_xgboost_the_error_names_the_extras():
    done = run(WITHOUT_XGBOOST.format("SCBoostClassifier().fit([[0.0], [1.0]] * 5, [0, 1] * 5)"))
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert "scboost[cpu]" in last
    assert "scboost[gpu]" in last


def test_another_learner_does_not_need_xgboost():
    code = """
from sklearn.tree import DecisionTreeRegressor
model = SCBoostClassifier.from_paper(estimator=DecisionTreeRegressor(max_depth=1), n_estimators=2)
assert model.fit([[0.0], [1.0]] * 20, [0, 1] * 20).score([[0.0], [1.0]], [0, 1]) == 1
"""
    done = run(WITHOUT_XGBOOST.format(code))
    assert done.returncode == 0, done.stderr


def test_public_names():
    assert scboost.__all__ == [
        "Checkpoint",
        "RedundancyReport",
        "Reweighted",
        "SCBoostClassifier",
        "SCBoostRegressor",
        "TreeMatrix",
        "WeightedTrees",
        "Weights",
        "ambiguity",
        "correct_votes",
        "double_fault",
        "effective_rank",
        "energy_by_component",
        "innovation",
        "iter_tree_matrix",
        "mean_of_pairs",
        "nonnegative_weights",
        "pairwise_disagreement",
        "plot_correlation",
        "plot_energy",
        "plot_innovation",
        "plot_report",
        "plot_spectrum",
        "plot_trees_kept",
        "plot_weights",
        "prune",
        "q_statistic",
        "redundancy_ratio",
        "redundancy_report",
        "reweight",
        "simplex_weights",
        "singular_spectrum",
        "tree_correlation",
        "tree_covariance",
        "tree_matrix",
        "truncation_path",
        "vote_correlation",
    ]
    assert scboost.__version__ == "0.2.0.dev0"


def test_public_methods_of_the_classifier():
    names = {
        name
        for name, _ in inspect.getmembers(scboost.SCBoostClassifier)
        if not name.startswith("_") and not hasattr(sys.modules["sklearn.base"].BaseEstimator, name)
    }
    # Made by scikit-learn, of which newer versions have callbacks of their own.
    names -= {"set_fit_request", "set_score_request", "set_callbacks"}
    assert names == {
        "decision_function",
        "estimators_",
        "feature_importances_",
        "fit",
        "from_paper",
        "get_booster",
        "intercept_",
        "predict",
        "predict_proba",
        "score",
        "shap_values",
        "staged_predict",
        "staged_predict_proba",
        "weights_",
    }


def test_parameters_are_keyword_only_documented_and_constrained():
    cls = scboost.SCBoostClassifier
    parameters = inspect.signature(cls).parameters
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    assert set(cls._parameter_constraints) == set(parameters)
    for name in parameters:
        assert f"\n    {name} : " in cls.__doc__, name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_library_does_not_know_the_experiments(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    assert not [name for name in imported if name.partition(".")[0] == "scboost_bench"]


def test_the_package_is_typed():
    assert (importlib.resources.files("scboost") / "py.typed").is_file()
