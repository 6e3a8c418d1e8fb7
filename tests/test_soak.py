"""A short run of the soak and of the kill test, and proof that they would see what they are there to see."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import reliability_page
import soak
from scboost._core.losses import SquaredLoss
from scboost._engine.xgboost.ensemble import TreeEnsemble


def test_adversarial_fits_are_correct_or_rejected():
    figures = soak.run(seed=7, cases=80, minutes=5)
    assert figures["violations"] == 0, figures["first violations"]
    assert figures["outcomes"]["held"] > 50
    assert set(figures["checks"]) == set(soak.CHECKS)


def test_soak_cases_are_reproducible():
    first, second = (soak.make_case(0, 3) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    assert first.params == second.params


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return soak.Case(
        "numbers", X, X[:, 0] + 0.3 * rng.normal(size=40), rng.integers(0, 4, size=40).astype(float), {"max_leaves": 7}
    )


def test_scores_that_are_not_finite_are_found_and_shrunk_to_a_script(case, capsys):
    original = TreeEnsemble.scores

    def broken(self, X, *others):  # large values in the last column break it
        return original(self, X, *others) + np.where(np.nan_to_num(X[:, -1]) > 1, np.inf, 0.0)

    with mock.patch.object(TreeEnsemble, "scores", broken):
        assert soak.judge(case, ["finite"])[:2] == ("violation", "finite")
        small = soak.shrink(case, "finite")
        assert small.X.shape[0] <= 3
        assert small.weight is None
        assert "max_leaves" not in small.params
        namespace = {}
        with pytest.raises(soak.Violation, match="not finite"):
            exec(small.script("finite"), namespace)  # noqa: S102 - the script that a user would run
    np.testing.assert_array_equal(namespace["case"].X, small.X)


def test_soak_detects_ignored_weights(case):
    case = replace(case, params={"n_estimators": 1, "max_leaves": 2, "exploration": 0.0})
    once = mock.patch.object(SquaredLoss, "initial_score", lambda self, y, sample_weight: np.array([np.mean(y)]))
    with once:
        assert soak.judge(case, ["repetition"])[:2] == ("violation", "repetition")
    assert soak.judge(case, ["repetition"])[0] == "held"


def test_rounding_of_exponentials_of_tiny_scores_is_no_violation():
    params = {"init": "zero", "loss": "poisson", "min_child_weight": 0.5, "n_estimators": 3}
    case = soak.Case("numbers", np.arange(30.0)[:, None], np.full(30, 84.0), np.full(30, 5e-11), params)
    assert 0 < np.log(case.fit().predict(case.X)).max() < 1e-6
    assert soak.judge(case, ["sums"])[0] == "held"


def test_rounding_of_hundreds_of_similar_trees_is_no_violation():
    y = np.array([2.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 1.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 1.0, 1.0])
    params = {"n_estimators": "auto", "init": "zero", "loss": "absolute_error"}
    case = soak.Case("numbers", np.arange(20.0)[:, None], y, params=params)
    assert case.fit().n_estimators_ > 500
    assert soak.judge(case, ["sums"])[0] == "held"


def test_rounding_of_balanced_log_odds_is_no_violation():
    weight = np.array([3.2e-05, 0.15, 5.2, 1.7e-4, 61039.7, 5.3e-4, 22193.2])
    y = np.array([-4, -4, -4, -4, -4, -4, -1])
    params = {"n_estimators": 1, "class_weight": "balanced"}
    case = soak.Case("classes", np.full((7, 1), np.nan), y, weight, params)
    assert soak.judge(case, ["order"])[0] == "held"


def test_rejections_name_the_problem_and_come_before_the_first_tree(case):
    assert soak.judge(replace(case, params={"cv": 1}), ["finite"])[0] == "refused"
    vague = mock.patch("scboost._estimators.fitting.check_parameters", side_effect=ValueError("something is wrong"))
    with vague:
        assert "names no parameter" in soak.judge(case, ["finite"])[2]
    late = mock.patch("scboost._estimators.fitting._fitted_model", side_effect=ValueError("cv is wrong"))
    with late:
        assert "refused after 3 trees" in soak.judge(case, ["finite"])[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits on files and /proc are Linux's")
def test_killed_fit_resumes_bit_identically_and_disk_errors_do_not_end_it(tmp_path):
    tool = Path(soak.__file__).with_name("kill_test.py")
    command = [sys.executable, tool, "--kills", "2", "--only", "two classes, full memory", "--output"]
    # In a process of its own: forking is not safe beside the threads of other tests.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([*command, tmp_path / "figures.json"], env=environment, capture_output=True, check=False)  # noqa: S603
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert done.returncode == figures["violations"] == 0, figures
    assert figures["kills"] == 2 * figures["configurations"]
    assert set(figures["disks"]) == {"full disk", "missing folder", "unwritable folder"}


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_figures_on_record():
    assert reliability_page.PAGE.read_text() == reliability_page.page(), "run tools/reliability_page.py"


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`((?:lab/tests/)?test_\w+\.py)::(\w+)`", reliability_page.TEMPLATE.read_text()))
    assert len(named) >= 8
    missing = []
    for file, test in named:
        path = reliability_page.ROOT / (file if "/" in file else f"tests/{file}")
        if not re.search(rf"^def {test}\(", path.read_text(), re.MULTILINE):
            missing.append((file, test))
    assert not missing


@pytest.mark.parametrize("weight", [None, np.r_[0.0, np.ones(59)]])
def test_categories_that_no_training_sample_has_may_change_in_a_warm_start(weight):
    X = np.c_[np.full(60, np.nan), np.arange(60.0)]
    X[59 if weight is None else 0, 0] = 28.0  # in the validation set, or without weight
    y = np.arange(60) % 3 > 0
    case = soak.Case("classes", X, y, weight, {"n_estimators": 1}, (0,), 15 if weight is None else 0)
    assert soak.judge(case, ["categories"])[0] == "held"
