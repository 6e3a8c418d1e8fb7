"""Fixtures that more than one suite uses."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from scboost._engine.native import is_available

# The same examples every time: a run that fails can be run again.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Modules that are an extra: without it their examples cannot be collected.
collect_ignore = [
    f"src/scboost/{name}"
    for name, needed in {"dask.py": "dask", "spark": "pyspark"}.items()
    if find_spec(needed) is None
]
collect_ignore.append("tests/typing/user_script.py")  # run by tests/test_typing.py in its own folder
if find_spec("autogluon") is None:
    collect_ignore.append("lab/src/scboost_lab/autogluon_model.py")
if not is_available():
    collect_ignore += ["src/scboost/_engine/native/trees.py", "tests/native_oracle.py", "tests/symmetric_reference.py"]


@pytest.fixture(scope="session")
def shared_data():
    """Folder of the real data sets, which a clone of the repository alone does not have."""
    folder = Path(__file__).parents[1] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside the repository")
    return folder
