"""Types that users of the library see under a strict type checker."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

SNIPPET = """
from scboost import SCBoostClassifier, SCBoostRegressor, load_model

reveal_type(SCBoostClassifier(n_estimators=5).fit([[1.0]], [0]))
reveal_type(SCBoostRegressor().fit([[1.0]], [0]).predict([[1.0]]))
reveal_type(SCBoostRegressor().set_params(n_estimators=5))
reveal_type(load_model("model.ubj"))
SCBoostClassifier().fit([[1.0]], [0], weights=[1.0])
"""


def test_fit_and_load_model_keep_their_types(tmp_path):
    (tmp_path / "snippet.py").write_text(SNIPPET)
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    command = [sys.executable, "-m", "mypy", *options, "snippet.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    lines = [line.partition(": ")[2].replace("scboost.", "") for line in done.stdout.splitlines()]
    types = [line.rpartition(" is ")[2].strip('"').split(".")[-1] for line in lines if "Revealed" in line]
    assert types[0] == "SCBoostClassifier"
    assert types[1].startswith("floating")
    assert types[2] == "SCBoostRegressor"
    assert "SCBoostClassifier | " in lines[3]
    assert "SCBoostRegressor" in lines[3]
    assert 'Unexpected keyword argument "weights" for "fit"' in done.stdout
