"""The package: what importing it loads, its public names, and its import order."""

import importlib.resources
import importlib.util
import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

import architecture
import import_graph
import scboost
import scboost.losses
import scboost.plotting
from scboost._engine.native import is_available


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
    assert not added & {
        "jinja2",
        "matplotlib",
        "pandas",
        "polars",
        "pyarrow",
        "xgboost",
        "lightgbm",
        "catboost",
        "scboost_lab",
        "dask",
        "distributed",
        "pyspark",
    }


def test_the_package_imports_where_optional_libraries_are_not_installed():
    done = run("""
import sys
sys.modules.update(dict.fromkeys(["pandas", "matplotlib", "jinja2", "polars", "pyarrow"]))
import scboost
""")
    assert done.returncode == 0, done.stderr


WITHOUT_XGBOOST = """
import sys
sys.modules["xgboost"] = None
from scboost import SCBoostClassifier
{}
"""


WITHOUT_KERNELS = """
from scboost._engine import factory
factory.is_available = lambda: False
"""


@pytest.mark.parametrize("kernels", ["", WITHOUT_KERNELS])
def test_without_xgboost_an_error_names_the_extras(kernels):
    engine = "auto" if kernels else "xgboost"
    code = f"{kernels}\nSCBoostClassifier(engine={engine!r}).fit([[0.0], [1.0]] * 5, [0, 1] * 5)"
    last = run(WITHOUT_XGBOOST.format(code)).stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert "scboost[cpu]" in last
    assert "scboost[gpu]" in last
    assert ("make native" in last) == bool(kernels)  # either fix


EVERYTHING_WITHOUT_XGBOOST = """
import numpy as np, pathlib, scboost, tempfile
from scboost import Checkpoint, SCBoostRegressor, load_model
from scboost.diagnostics import prune, redundancy_report
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
folder = pathlib.Path(tempfile.mkdtemp())
for cls, y in [(SCBoostClassifier, (X[:, 0] > 0).astype(int)), (SCBoostClassifier, np.digitize(X[:, 0], [-.5, .5])),
               (SCBoostRegressor, X[:, 0] * X[:, 1])]:
    checkpoint = Checkpoint(folder / "checkpoint", every=4)
    given = {"learning_rate": 0.3, "random_state": 0, "n_jobs": 1}
    model = cls(n_estimators=8, callbacks=[checkpoint], **given).fit(X, y)
    assert model.engine_ == "native"
    for name in ("model.ubj", "model.json"):
        model.save_model(folder / name)
        assert np.array_equal(load_model(folder / name).predict(X), model.predict(X))
    assert np.array_equal(checkpoint.load().fit(X, y).predict(X), model.predict(X))
    cls(n_estimators=3, **given).fit(X, y, init_model=model)
    raw = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    np.testing.assert_allclose(model.shap_values(X).sum(axis=-1), raw, atol=1e-5)
    redundancy_report(model, X)
    prune(model, X, y, max_trees=4)
    model.compress(X, max_trees=4)
    model.apply(X), model.feature_importances_, list(model.staged_predict(X))
    scboost.export_c(model)
cls(n_iter_no_change=4, cv=3, **given).fit(X, y)
assert "xgboost" not in [name for name, module in sys.modules.items() if module is not None]
"""


@pytest.mark.skipif(not is_available(), reason="needs the compiled kernels")
def test_one_machine_does_not_need_xgboost():
    done = run(WITHOUT_XGBOOST.format(EVERYTHING_WITHOUT_XGBOOST))
    assert done.returncode == 0, done.stderr


def test_another_learner_does_not_need_xgboost():
    code = """
from sklearn.tree import DecisionTreeRegressor
model = SCBoostClassifier.from_paper(estimator=DecisionTreeRegressor(max_depth=1), n_estimators=2)
rows = [[label + i / 100] for i in range(20) for label in (0, 1)]
assert model.fit(rows, [0, 1] * 20).score([[0.0], [1.0]], [0, 1]) == 1
"""
    done = run(WITHOUT_XGBOOST.format(code))
    assert done.returncode == 0, done.stderr


def test_public_names():
    assert scboost.__all__ == [
        "Batches",
        "Checkpoint",
        "SCBoostClassifier",
        "SCBoostDistribution",
        "SCBoostRanker",
        "SCBoostRegressor",
        "SCBoostSurvival",
        "check_model",
        "compress",
        "encode_features",
        "export_c",
        "export_js",
        "export_sql",
        "load_model",
        "prune",
        "redundancy_report",
        "report",
        "reweight",
        "to_onnx",
        "to_treelite",
        "tree_matrix",
    ]
    assert scboost.weighting.__all__ == [
        "LOGISTIC",
        "SQUARED_ERROR",
        "MarginLoss",
        "Weights",
        "learn_scale",
        "learn_weights",
        "nonnegative_weights",
        "simplex_weights",
    ]
    assert scboost.diagnostics.__all__ == [
        "Ambiguity",
        "EnsembleReader",
        "Frontier",
        "FrontierCurve",
        "FrontierTask",
        "Reader",
        "RedundancyReport",
        "Report",
        "Reweighted",
        "TreeMatrix",
        "WeightedTrees",
        "ambiguity",
        "correct_votes",
        "double_fault",
        "effective_rank",
        "energy_by_component",
        "frontier",
        "innovation",
        "iter_tree_matrix",
        "mean_of_pairs",
        "pairwise_disagreement",
        "prune",
        "q_statistic",
        "read_ensemble",
        "redundancy_ratio",
        "redundancy_report",
        "register_reader",
        "report",
        "reweight",
        "singular_spectrum",
        "tree_correlation",
        "tree_covariance",
        "tree_matrix",
        "truncation_path",
        "vote_correlation",
        "vote_gram",
    ]
    assert scboost.losses.__all__ == [
        "CoxLoss",
        "EfronCoxLoss",
        "ExpectileLoss",
        "ExtremeAFTLoss",
        "GammaDistributionLoss",
        "GammaLoss",
        "HazardLink",
        "HuberLoss",
        "IdentityLink",
        "LambdaRankLoss",
        "Link",
        "LogLink",
        "LogMeanLink",
        "LogNormalLoss",
        "LogNormalMeanLink",
        "LogisticAFTLoss",
        "LogisticLoss",
        "LogitLink",
        "Loss",
        "MeanLink",
        "NegativeBinomialLoss",
        "NormalAFTLoss",
        "NormalLoss",
        "PairwiseLoss",
        "PairwiseRankLink",
        "PoissonLoss",
        "QuantileLink",
        "QuantileLoss",
        "QuantilesLoss",
        "RankLink",
        "SoftmaxLink",
        "SoftmaxLoss",
        "SortedQuantilesLink",
        "SquaredLoss",
        "StudentLoss",
        "TimeLink",
        "TweedieLoss",
        "XENDCGLoss",
    ]
    assert scboost.plotting.__all__ == [
        "plot_correlation",
        "plot_energy",
        "plot_frontier",
        "plot_importance",
        "plot_innovation",
        "plot_report",
        "plot_spectrum",
        "plot_trees_kept",
        "plot_weights",
        "shap_explanation",
    ]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", scboost.__version__)


def test_public_methods_of_the_classifier():
    names = {
        name
        for name, _ in inspect.getmembers(scboost.SCBoostClassifier)
        if not name.startswith("_") and not hasattr(sys.modules["sklearn.base"].BaseEstimator, name)
    }
    # Made by scikit-learn, of which newer versions have callbacks of their own.
    names -= {"set_fit_request", "set_score_request", "set_callbacks"}
    attributes = {name for name in names if name.endswith("_")}
    assert names - attributes == {
        "apply",
        "calibrate",
        "compress",
        "decision_function",
        "fit",
        "from_paper",
        "get_booster",
        "predict",
        "predict_proba",
        "predict_set",
        "prediction_uncertainty",
        "save_model",
        "score",
        "shap_values",
        "staged_predict",
        "staged_predict_proba",
        "target_model",
        "to_xgboost",
    }
    assert attributes == {
        "best_iteration_",
        "categorical_splits_",
        "classes_",
        "engine_",
        "estimators_",
        "feature_importances_",
        "feature_names_in_",
        "intercept_",
        "learning_rate_",
        "max_depth_",
        "model_feature_names_",
        "multi_strategy_",
        "n_classes_",
        "n_estimators_",
        "n_features_in_",
        "projection_strength_",
        "selected_features_",
        "selection_log_",
        "stop_reason_",
        "target_name_",
        "training_log_",
        "tree_shape_",
        "weighting_result_",
        "weights_",
    }


def test_parameters_are_keyword_only_documented_and_constrained():
    cls = scboost.SCBoostClassifier
    parameters = inspect.signature(cls).parameters
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    assert set(cls._parameter_constraints) == set(parameters)
    for name in parameters:
        assert f"\n{name} : " in cls.__doc__, name
    assert "<shared" not in cls.__doc__


MODULES, IMPORTS = import_graph.read(Path(scboost.__file__).parent)


def test_every_module_has_a_place_in_the_import_order():
    unknown = {name for name in MODULES if name and import_graph.layer_of(name) not in import_graph.LAYERS}
    assert not unknown, "add them to LAYERS in tools/import_graph.py, where they belong in the order"


def test_no_module_imports_a_layer_above_its_own():
    wrong = import_graph.violations(IMPORTS)
    assert not wrong, "; ".join(map(str, wrong))


def test_the_picture_shows_every_layer_in_the_import_order():
    layers = [layer for _, layers, _ in architecture.TIERS for layer in layers]
    assert sorted(layers) == sorted(import_graph.LAYERS)
    order = [max(map(import_graph.LAYERS.index, layers)) for _, layers, _ in architecture.TIERS]
    assert order == sorted(order, reverse=True)
    assert architecture.PICTURE.read_text() == architecture.picture(), "run tools/architecture.py"


def test_the_names_in_the_architecture_page_exist():
    layers = "|".join(map(re.escape, import_graph.LAYERS))
    names = re.findall(rf"`((?:{layers})\.[\w.]+)`", architecture.PAGE.read_text())
    assert len(names) > 15
    for name in names:
        module = max((known for known in MODULES if f"{name}.".startswith(f"{known}.")), key=len)
        attributes = name.removeprefix(module).lstrip(".")
        if attributes:
            operator.attrgetter(attributes)(importlib.import_module(f"scboost.{module}"))


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        # Returning a booster is a matter of types only; the redundancy tools read documents.
        ("xgboost", ("_xgboost", "_engine.xgboost")),
        ("sklearn", ("_data", "_compress", "diagnostics", "_estimators", "dask", "spark", "cli")),
        ("scboost_lab", ()),
    ],
)
def test_only_these_modules_import_the_package(package, allowed):
    wrong = [
        found
        for found in IMPORTS
        if found.imported.partition(".")[0] == package
        and not found.for_types
        and not any(found.importer == name or found.importer.startswith(f"{name}.") for name in allowed)
    ]
    assert not wrong, "; ".join(map(str, wrong))


def test_the_import_order_is_read_from_all_forms_of_import(tmp_path):
    (tmp_path / "_core").mkdir()
    (tmp_path / "_core" / "__init__.py").write_text("from .loop import x")
    (tmp_path / "_core" / "loop.py").write_text(
        """
from typing import TYPE_CHECKING
from .. import _arrays
from . import losses
from .._estimators.base import SCBoost
if TYPE_CHECKING:
    from scboost import SCBoostClassifier
else:
    import scboost.plotting as p
class A:
    def f(self):
        try:
            from scboost import dask
        finally:
            import numpy.linalg
"""
    )
    (tmp_path / "_core" / "losses.py").write_text("")
    (tmp_path / "_arrays.py").write_text("")
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask" / "__init__.py").write_text("")
    modules, imports = import_graph.read(tmp_path)
    assert set(modules) == {"_arrays", "_core", "_core.loop", "_core.losses", "dask"}
    assert [(i.imported, i.for_types) for i in imports] == [
        ("scboost._core.loop", False),
        ("typing", False),
        ("scboost._arrays", False),
        ("scboost._core.losses", False),
        ("scboost._estimators.base", False),
        ("scboost", True),
        ("scboost.plotting", False),
        ("scboost.dask", False),
        ("numpy.linalg", False),
    ]
    upward = [i.imported for i in import_graph.violations(imports)]
    assert upward == ["scboost._estimators.base", "scboost", "scboost.plotting", "scboost.dask"]
    assert import_graph.layer_edges(imports) == [
        ("_core", "_arrays"),
        ("_core", "plotting"),
        ("_core", "_estimators"),
        ("_core", "dask"),
    ]


def test_trees_as_data_are_a_layer_below_the_engines():
    assert import_graph.layer_of("_model.document") == "_model.format"
    assert import_graph.layer_of("_model.fitted") == "_model"


def test_the_package_is_typed():
    assert (importlib.resources.files("scboost") / "py.typed").is_file()


def test_the_html_of_an_estimator_leads_to_its_page():
    for cls in (scboost.SCBoostClassifier, scboost.SCBoostRegressor):
        page = f"https://scboost.github.io/scboost/api/generated/scboost.{cls.__name__}.html"
        assert f'href="{page}"' in cls()._repr_html_()
        assert cls.__name__ in (Path(__file__).parents[1] / "docs" / "api.md").read_text()
