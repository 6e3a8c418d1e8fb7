"""Build the compiled kernels in place, or test them under sanitizers.

``python tools/native.py build [--optional]`` or ``python tools/native.py test [arguments of pytest]``. An optional
build that fails says so in one line, and is no error: the library works without its kernels.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "scboost" / "_engine" / "native"


def build(folder: Path, output: Path, *options: str) -> None:
    """Configure and build with CMake; the module is put into a folder."""
    tools = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    cmake = shutil.which("cmake", path=environment["PATH"]) or "cmake"
    generator = ["-G", "Ninja"] if shutil.which("ninja", path=environment["PATH"]) else []
    configure = [
        cmake,
        *("-S", str(ROOT), "-B", str(folder)),
        *generator,
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DSCBOOST_OUTPUT={output}",
        *options,
    ]
    for command in (configure, [cmake, "--build", str(folder)]):
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")


def test(arguments: list[str]) -> int:
    """Run the tests of the kernels on a copy of the library that is built with sanitizers."""
    folder = ROOT / "build" / "sanitized"
    copy = folder / "src"
    shutil.rmtree(copy, ignore_errors=True)
    binaries = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "src", copy, ignore=binaries)
    build(folder / "cmake", copy / PACKAGE.relative_to(ROOT / "src"), "-DSCBOOST_SANITIZE=ON")
    runtimes = [
        subprocess.run(["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()  # noqa: S607 - the compiler on the path
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": ":".join(runtimes),
        # Python itself never frees some memory; a failed allocation is an exception, as without sanitizers.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONPATH": os.pathsep.join([str(copy), str(ROOT / "lab" / "src")]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or ["tests/native"])]
    return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode


def main() -> int:
    """Run what the command line asks for."""
    if sys.argv[1:2] == ["build"]:
        try:
            build(ROOT / "build" / "native", PACKAGE)
        except (OSError, RuntimeError) as error:
            if "--optional" not in sys.argv:
                print(error)
                return 1
            print("The compiled kernels were not built (`make native` says why): the engine is XGBoost.")
        return 0
    if sys.argv[1:2] == ["test"]:
        return test(sys.argv[2:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
