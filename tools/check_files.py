"""How ``scboost.check_model`` does on real model files of other libraries, and on mutants of them.

``python tools/check_files.py make FOLDER PYTHON...`` has every interpreter train and save the models of
``foreign_models`` with its own XGBoost or LightGBM. ``sound FOLDER`` checks them all: each finding is a false refusal.
``mutants FOLDER --library xgboost PYTHON...`` changes files in structure and meaning, checks every mutant, and has the
version that made the original load it and predict, in a process with limits. A mutant that crashes or hangs the library
but passes the check is a violation. A run goes on where the figures in its ``--output`` end.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

import foreign_models
from figures import described, finish, write
from fuzz import FLOATS, NUMBERS, change_structure, change_value, mutate_bytes
from scboost import check_model
from scboost._model import ubjson
from scboost._model.check import check_bytes
from scboost._model.document import Document
from scboost._model.json_text import convert_lists, read_text, write_json

LIBRARIES = {"xgboost": foreign_models.XGBOOST, "lightgbm": foreign_models.LIGHTGBM}
BAD = frozenset({"crashes", "hangs", "no memory"})
SECONDS, SHARED_SECONDS = 4.0, 0.2  # CPU time of a file in a process of its own, and of one that the check has refused
ENDINGS = {"xgboost": ("*.json", "*.ubj"), "lightgbm": ("*.txt",)}

# A process that has imported the library and forks workers. A worker uses one file after the other until one ends it,
# by a crash or a limit, or until a new one is asked for. There is one answer for each file: how it went.
SERVER = """
import os, resource, signal, struct, sys
for name in ("pandas", "sklearn", "pyarrow", "dask", "matplotlib"):
    sys.modules[name] = None  # optional, and not used here: a fork of a small process is fast
import numpy as np
library = sys.argv[1]
if library == "xgboost":
    import xgboost as xgb
else:
    import lightgbm as lgb
quiet = os.open(os.devnull, os.O_RDWR)
source, answer = os.fdopen(os.dup(0), "rb"), os.dup(1)
for stream in range(3):
    os.dup2(quiet, stream)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

def use(data):
    rng = np.random.RandomState(0)
    if library == "xgboost":
        booster = xgb.Booster({"nthread": 1, "verbosity": 0})
        booster.load_model(bytearray(data))
        d = booster.num_features()
    else:
        booster = lgb.Booster(model_str=data.decode(errors="replace"))
        d = booster.num_feature()
    d = d if 0 < d <= 1000 else 7
    X = np.where(rng.rand(12, d) < 0.5, rng.randint(-1, 9, size=(12, d)), rng.normal(size=(12, d)))
    X[rng.rand(12, d) < 0.1] = np.nan
    if library == "xgboost":
        matrix = xgb.DMatrix(X, nthread=1)
        for more in ({}, {"pred_leaf": True}, {"pred_contribs": True}):
            try:
                booster.predict(matrix, validate_features=False, **more)
            except xgb.core.XGBoostError:
                pass
    else:
        for more in ({}, {"pred_leaf": True}, {"pred_contrib": True}):
            try:
                booster.predict(X, num_threads=1, **more)
            except lgb.basic.LightGBMError:
                pass

def work(files, answers):
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 30), used + (4 << 30)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        head = files.read(16)
        if len(head) < 16:
            os._exit(0)
        size, seconds = struct.unpack("<qd", head)
        data = files.read(size)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # the default action ends the process, which is seen
        signal.alarm(60)  # waiting is not computing
        code = 0
        try:
            use(data)
        except MemoryError:
            os._exit(2)
        except Exception:
            code = 1
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(answers, bytes([code]))

class Worker:
    def __init__(self):
        read_files, write_files = os.pipe()
        read_answers, write_answers = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(write_files)
            os.close(read_answers)
            try:
                work(os.fdopen(read_files, "rb"), write_answers)
            finally:
                os._exit(3)
        os.close(read_files)
        os.close(write_answers)
        self.files, self.answers = os.fdopen(write_files, "wb", buffering=0), read_answers

    def use(self, message):
        try:
            sent = memoryview(message)
            while len(sent):
                sent = sent[self.files.write(sent):]
            code = os.read(self.answers, 1)
        except BrokenPipeError:  # it is dead already
            code = b""
        return code[0] if code else None

    def end(self):
        self.files.close()
        os.close(self.answers)
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])

os.write(answer, b"ready")
worker = None
while True:
    head = source.read(16)
    if len(head) < 16:
        break
    size = struct.unpack("<qd", head)[0]
    if size < 0:
        if worker:
            worker.end()
            worker = None
        continue
    worker = worker or Worker()
    code = worker.use(head + source.read(size))
    if code is None:
        code, worker = worker.end(), None
    os.write(answer, struct.pack("<q", code))
"""


def versions(pythons: list[str], library: str) -> dict[str, str]:
    """Interpreters by the version of the library that they have."""
    found = {}
    for python in pythons:
        command = [python, "-c", f"import {library}; print({library}.__version__)"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found[done.stdout.strip()] = python
    return found


def make(folder: Path, pythons: list[str]) -> None:
    """Train and save the models of every interpreter, in one folder for each version."""
    for library, script in LIBRARIES.items():
        for version, python in versions(pythons, library).items():
            command = [python, "-W", "ignore", "-c", script, str(folder / f"{library}-{version}")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            print(f"{library} {version}: {len(done.stdout.splitlines())} models", flush=True)


def files(folder: Path, library: str) -> list[Path]:
    """All model files of a library."""
    return sorted(path for of in folder.glob(f"{library}-*") for ending in ENDINGS[library] for path in of.glob(ending))


def sound(folder: Path) -> dict[str, Any]:
    """Check all files; every finding is a false refusal."""
    found: dict[str, Any] = {}
    refused = []
    for library in LIBRARIES:
        for path in files(folder, library):
            row = found.setdefault(path.parent.name, {"models": set(), "files": 0, "findings": 0})
            row["models"].add(path.stem)
            row["files"] += 1
            findings = check_model(path)
            if findings:
                row["findings"] += 1
                refused.append(f"{path.parent.name}/{path.name}: {findings[0]}")
    for row in found.values():
        row["models"] = len(row["models"])
    return {
        "models": sum(row["models"] for row in found.values()),
        "files": sum(row["files"] for row in found.values()),
        "violations": len(refused),
        "false refusals": refused[:20],
        "by version": found,
    }


# --- mutants ---------------------------------------------------------------------------------------------------------


def mutate(rng: np.random.Generator, data: bytes, other: bytes) -> tuple[str, bytes]:
    """Return the kind of a mutant and its bytes."""
    kind = ("bytes", "values", "structure")[rng.choice(3, p=[0.2, 0.35, 0.45])]
    if kind == "bytes":
        return kind, mutate_bytes(rng, data, other)
    if data.startswith(b"tree\n"):
        return kind, _mutate_text(rng, data.decode(), other.decode(), kind).encode()
    binary = data.startswith(b"{L")
    content = ubjson.decode(data) if binary else read_text(data)
    if "trees" in json.dumps(list(_keys(content))) and not binary:
        content = convert_lists(content)
    document = Document(content)
    change = change_value if kind == "values" else change_structure
    for _ in range(1 + rng.geometric(0.6)):
        if document.content:  # an earlier change may have taken everything away
            change(rng, document)
    try:
        return kind, document.encode() if binary else write_json(document.content)
    except Exception:  # noqa: BLE001 - what cannot be written is no mutant: take the bytes of its original
        return "bytes", mutate_bytes(rng, data, other)


def _keys(content: Any) -> Iterator[str]:
    for key, item in content.items() if isinstance(content, dict) else ():
        yield key
        yield from _keys(item)


def _mutate_text(rng: np.random.Generator, text: str, other: str, kind: str) -> str:
    """Change lines of a LightGBM file; mostly with sizes of the trees that fit, as a forger would."""
    end = text.find("end of trees")
    lines, rest = text[:end].split("\n"), text[end:]
    for _ in range(1 + rng.geometric(0.6)):
        at = int(rng.choice([i for i, line in enumerate(lines) if line]))
        if kind == "values":
            lines[at] = _change_line(rng, lines[at])
        else:
            _change_lines(rng, lines, at, other.split("\n"))
    text = "\n".join(lines) + rest
    if rng.random() < 0.85:
        blocks = re.split(r"(?=^Tree=)", text[: text.find("end of trees")], flags=re.MULTILINE)[1:]
        sizes = " ".join(str(len(block.encode())) for block in blocks)
        text = re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", text, count=1, flags=re.MULTILINE)
    return text


def _change_line(rng: np.random.Generator, line: str) -> str:
    key, equals, value = line.partition("=")
    words = value.split(" ")
    at = int(rng.integers(len(words)))
    match int(rng.integers(8)):
        case 0 | 1 | 2:
            words[at] = str(rng.choice([-3, -2, -1, 0, 1, 2, 3, 5, len(words), len(words) + 1, -len(words) - 2]))
        case 3:
            words[at] = str([*NUMBERS, *FLOATS][rng.integers(len(NUMBERS) + len(FLOATS))])
        case 4:
            del words[at]
        case 5:
            words.insert(at, words[int(rng.integers(len(words)))])
        case 6:
            a, b = rng.integers(len(words), size=2)
            words[a], words[b] = words[b], words[a]
        case _:
            words = words[: int(rng.integers(len(words) + 1))]
    return f"{key}{equals}{' '.join(words)}"


def _change_lines(rng: np.random.Generator, lines: list[str], at: int, other: list[str]) -> None:
    same = [line for line in [*lines, *other] if line.partition("=")[0] == lines[at].partition("=")[0]]
    match int(rng.integers(5)):
        case 0:
            del lines[at]
        case 1:
            lines.insert(int(rng.integers(len(lines))), lines[at])
        case 2 | 3:
            lines[at] = same[rng.integers(len(same))]
        case _:
            lines.insert(at, same[rng.integers(len(same))])


# --- running ---------------------------------------------------------------------------------------------------------


class Server:
    """A process with one version of a library that tells how it does on a file.

    Parameters
    ----------
    python : str
        The interpreter.
    library : {"xgboost", "lightgbm"}
        The library, which the interpreter has.
    most : int, default=500
        Files in a row that one worker may use.
    """

    def __init__(self, python: str, library: str, most: int = 500) -> None:
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-c", SERVER, library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        )
        self._most, self._used = most, 0  # files that the present worker has used
        if _pipe(self._process.stdout).read(5) != b"ready":
            raise RuntimeError(f"{python} does not start")

    def outcome(self, data: bytes, *, alone: bool = True) -> str:
        """Load the file and predict: "predicts", "refuses", "no memory", "hangs" or "crashes".

        Parameters
        ----------
        data : bytes
            The file.
        alone : bool, default=True
            Whether to use it in a new process, with more time. Otherwise, only a crash is repeated in a new process:
            an earlier file may have damaged the memory of this one.
        """
        if self._used and (alone or self._used >= self._most):
            self._send(-1)
            self._used = 0
        shared = self._used > 0
        outcome = self._use(data, SECONDS if alone else SHARED_SECONDS)
        return self._use(data, SECONDS) if shared and outcome in {"crashes", "no memory"} else outcome

    def _use(self, data: bytes, seconds: float) -> str:
        self._send(len(data), seconds, data)
        code = int.from_bytes(_pipe(self._process.stdout).read(8), "little", signed=True)
        self._used = self._used + 1 if code in {0, 1} else 0
        hangs = dict.fromkeys((-signal.SIGPROF, -signal.SIGALRM, -signal.SIGKILL), "hangs")
        return {0: "predicts", 1: "refuses", 2: "no memory", **hangs}.get(code, "crashes")

    def _send(self, size: int, seconds: float = 0.0, data: bytes = b"") -> None:
        source = _pipe(self._process.stdin)
        source.write(struct.pack("<qd", size, seconds) + data)
        source.flush()

    def close(self) -> None:
        """End the process."""
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("the process has no pipe")
    return stream


def run_mutants(folder: Path, library: str, pythons: list[str], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Check mutants and have the library load them; yield the figures so far, now and then."""
    known = [(path.parent.name.partition("-")[2], path.read_bytes()) for path in files(folder, library)]
    servers = {version: Server(python, library) for version, python in versions(pythons, library).items()}
    known = [(version, data) for version, data in known if version in servers]
    done = given.done or {"mutants": 0, "outcomes": {}, "first violations": [], "minutes": 0.0}
    counts = Counter({(seen, name): n for seen, row in done["outcomes"].items() for name, n in row.items()})
    violations = list(done["first violations"])
    n_violations = done.get("violations", 0)
    begin = time.monotonic()
    for number in range(done["mutants"], given.mutants):
        rng = np.random.default_rng([given.seed, number])
        version, data = known[rng.integers(len(known))]
        kind, mutant = mutate(rng, data, known[rng.integers(len(known))][1])
        findings = check_bytes(mutant)
        seen = findings[0].severity if findings else "same file" if mutant == data else "no finding"
        outcome = servers[version].outcome(mutant, alone=not findings)  # a violation is judged by a new process
        counts[seen, outcome] += 1
        if outcome in BAD and not findings and mutant != data:
            n_violations += 1
            violations.append({"number": number, "version": version, "kind": kind, "check": seen, "library": outcome})
        if (number + 1) % 200 == 0 or number + 1 == given.mutants or time.monotonic() - begin > 60 * given.minutes:
            outcomes: dict[str, dict[str, int]] = {}
            for (row, name), n in sorted(counts.items()):
                outcomes.setdefault(row, {})[name] = n
            yield {
                "mutants": number + 1,
                "violations": n_violations,
                "crashed or hung the library": sum(n for (_, name), n in counts.items() if name in BAD),
                "outcomes": outcomes,
                "first violations": violations[:20],
                "minutes": round(done["minutes"] + (time.monotonic() - begin) / 60, 1),
            }
            if time.monotonic() - begin > 60 * given.minutes:
                break
    for server in servers.values():
        server.close()


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["make", "sound", "mutants"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("pythons", nargs="*", help="interpreters, each with one XGBoost or LightGBM")
    parser.add_argument("--library", choices=LIBRARIES, default="xgboost")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--output", type=Path, help="where to write the figures")
    parser.add_argument("--only", type=Path, help="write the mutant of number --mutants here, and do no more")
    given = parser.parse_intermixed_args()
    if given.action == "make":
        make(given.folder, given.pythons)
        return 0
    if given.action == "sound":
        return finish(described("python tools/check_files.py sound FOLDER", sound(given.folder)), given.output)
    command = f"python tools/check_files.py mutants FOLDER PYTHON... --library {given.library} --seed {given.seed}"
    figures: dict[str, Any] = {"violations": 0}
    given.done = None
    if given.output is not None and given.output.exists():
        given.done = json.loads(given.output.read_text())
    if given.only is not None:
        known = files(given.folder, given.library)
        rng = np.random.default_rng([given.seed, given.mutants])
        data = known[rng.integers(len(known))].read_bytes()
        given.only.write_bytes(mutate(rng, data, known[rng.integers(len(known))].read_bytes())[1])
        return 0
    for found in run_mutants(given.folder, given.library, given.pythons, given):
        figures = described(command, found)
        write(figures, given.output)
    return finish(figures, given.output)


if __name__ == "__main__":
    sys.exit(main())
