"""The tool that has libraries use damaged files: one outcome for each file, whatever the files before it did."""

import sys

import numpy as np
import pytest
import xgboost as xgb

import check_files


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(check_files, "SHARED_SECONDS", 0.2)
    hostile = """
real = use
def use(data):
    if data == b"crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif data == b"hang":
        while True:
            pass
    elif data == b"no memory":
        raise MemoryError
    elif data == b"late crash":  # the next file finds a damaged process
        globals()["real"] = lambda data: os.kill(os.getpid(), signal.SIGSEGV)
    else:
        real(data)

def work("""
    monkeypatch.setattr(check_files, "SERVER", check_files.SERVER.replace("def work(", hostile.lstrip()))
    server = check_files.Server(sys.executable, "xgboost", most=4)
    yield server
    server.close()


@pytest.fixture
def file():
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = xgb.train({"max_depth": 2, "nthread": 1}, xgb.DMatrix(X, X[:, 0]), 2)
    return bytes(model.save_raw("json"))


@pytest.mark.parametrize("alone", [True, False])
def test_every_file_has_its_own_outcome(server, file, alone):
    files = [file, b"{}", b"crash", file, b"hang", b"{}", b"no memory", file, file, file, file, file, b"{}"]
    names = {file: "predicts", b"{}": "refuses", b"crash": "crashes", b"hang": "hangs", b"no memory": "no memory"}
    assert [server.outcome(data, alone=alone) for data in files] == [names[data] for data in files]


def test_a_crash_is_not_blamed_on_the_file_after_the_one_that_did_the_damage(server, file):
    assert server.outcome(b"late crash", alone=False) == "predicts"
    assert server.outcome(file + b" " * 200_000, alone=False) == "predicts"
    assert server.outcome(b"crash", alone=False) == "crashes"
    assert server.outcome(file, alone=False) == "predicts"


class _First:
    """A generator whose every choice is the first: changes of structure delete the first key."""

    def choice(self, n, p=None):
        return 2

    def integers(self, low, high=None, size=None):
        if high is None and low <= 0:
            raise ValueError("high <= 0")
        return 0 if size is None else np.zeros(size, dtype=int)

    def geometric(self, p):
        return 5

    def random(self):
        return 0.0


def test_a_file_can_be_mutated_until_nothing_is_left():
    assert check_files.mutate(_First(), b'{"learner": 1, "version": 2}', b"{}") == ("structure", b"{}")
