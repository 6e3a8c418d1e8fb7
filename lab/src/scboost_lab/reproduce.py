"""Run the paper's tables and figures again: ``scboost-lab reproduce``. Rows go to ``<out>/<experiment>.csv``."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from scboost_lab.datasets import DATA_DIR_VARIABLE, REGISTRY, SEED, DataError, info, prepared, resolve_data_dir
from scboost_lab.experiments import EXPERIMENTS, SCBOOSTS
from scboost_lab.models import METHODS, make
from scboost_lab.results import Row
from scboost_lab.runner import Experiment, NothingToDoError, Task
from scboost_lab.scoring import N_FOLDS

QUICK_DATASETS = ("QSAR", "Jasmine", "Creditcard")
QUICK_FOLDS = 3


def run(
    name: str,
    out: Path,
    *,
    data_dir: str | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_folds: int = N_FOLDS,
    trials: int = 50,
    jobs: int = 1,
    again: bool = False,
    command: str = "",
) -> list[Row]:
    """Run an experiment, or what is left of it, and return its rows.

    Parameters
    ----------
    name : str
        A key of `EXPERIMENTS`.
    out : Path
        Directory of the result files.
    data_dir : str, optional
        Directory of Parquet files; OpenML otherwise.
    datasets, methods : sequence of str, optional
        Only these.
    n_folds : int
        Only the first folds.
    trials : int
        Optuna trials of each cell of Table 2.
    jobs : int
        Processes.
    again : bool
        Run also what is done (not for Table 2, whose trials build on each other).
    command : str
        Noted in the JSON file beside the rows.

    Returns
    -------
    list of dict
    """
    experiment, path = EXPERIMENTS[name], out / f"{name}.csv"
    tasks = experiment.tasks(datasets, methods, n_folds)
    sources = partial(_sources, sorted({t.dataset for t in tasks}), data_dir)
    with experiment.file(path).recorded(command, data=sources, jobs=jobs, **_settings(tasks)):
        if name == "table2":
            return _tune(experiment, path, tasks, data_dir=data_dir, trials=trials, jobs=jobs)
        return experiment.run(path, tasks, data_dir, jobs=jobs, again=again)


def _tune(
    experiment: Experiment, path: Path, tasks: Sequence[Task], *, data_dir: str | None, trials: int, jobs: int
) -> list[Row]:
    """Go trial by trial over all cells, so that a run cut short leaves all cells about equally far."""
    cells = dict.fromkeys((task.dataset, task.method) for task in tasks)
    rows: list[Row] = []
    for trial in range(trials):
        history: dict[tuple[str, str], list[Row]] = {}
        for row in sorted(experiment.file(path).rows(), key=lambda r: int(r["fold"])):
            if row["status"] == "ok" and int(row["fold"]) < trial:
                history.setdefault((row["dataset"], row["method"]), []).append(row)
        batch = [Task(dataset, method, trial) for dataset, method in cells]
        rows += replace(experiment, settings={"": {"history": history}}).run(path, batch, data_dir, jobs=jobs)
    return rows


def _sources(datasets: Sequence[str], data_dir: str | None) -> dict[str, str]:
    found = {}
    for name in datasets:
        if name not in REGISTRY:
            found[name] = "made up by scikit-learn's make_classification"
            continue
        try:
            dataset = prepared(name, data_dir)
        except DataError as error:
            found[name] = f"not available: {error}"
        else:
            found[name] = f"{dataset.source} sha256:{dataset.checksum} {dataset.X.shape[0]} x {dataset.X.shape[1]}"
    return found


def _settings(tasks: Sequence[Task]) -> dict[str, Any]:
    """Parameters of the SCBoost columns, so that the choices the paper leaves open are on record."""
    return {
        method: {name: _plain(value) for name, value in make(method, SEED).get_params(deep=False).items()}
        for method in SCBOOSTS
        if any(task.method == method for task in tasks)
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab reproduce``."""
    parser.description = "Run the paper's tables and figures. A run that is stopped goes on where it was."
    parser.epilog = "experiments:\n" + "\n".join(
        f"  {name:<20}{title}"
        for name, title in (
            *((name, experiment.title) for name, experiment in EXPERIMENTS.items()),
            ("timing", "Wall-clock table: the fit times of table1"),
            ("all", "all of them, then the page"),
            ("page", "only render the page from the result files"),
        )
    )
    parser.add_argument("names", nargs="+", metavar="EXPERIMENT", help="see below")
    parser.add_argument("--quick", action="store_true", help="three small sets, three folds, three trials: minutes")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE}, else OpenML)")
    parser.add_argument("--out", type=Path, default=Path("scboost-reproduction"), help="directory of the result files")
    parser.add_argument("--page", type=Path, help="where the page goes (default: <out>/reproduction.md)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--again", action="store_true", help="run the chosen folds again and replace their rows")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these methods")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="only the first folds")
    parser.add_argument("--trials", type=int, default=50, help="Optuna trials of each cell of table2")


def main(args: argparse.Namespace) -> int:
    """Run the experiments asked for, and write the page."""
    from scboost_lab.reproduction_page import write_page

    names = _checked_names(args)
    directory = resolve_data_dir(args.data_dir)
    out = args.out / "quick" if args.quick else args.out
    for name in names:
        try:
            _run_and_print(args, name, out, None if directory is None else str(directory))
        except NothingToDoError as error:
            if "all" not in args.names:
                raise
            print(f"skipped: {error}", file=sys.stderr)
    if set(args.names) & {"all", "page"}:
        page = args.page or out / "reproduction.md"
        write_page(out, page)
        print(f"wrote {page}")
    return 0


def _run_and_print(args: argparse.Namespace, name: str, out: Path, data_dir: str | None) -> None:
    from scboost_lab.reproduction_tables import section

    # The wall-clock table is made of the fit times of Table 1.
    source = "table1" if name == "timing" else name
    run(
        source,
        out,
        data_dir=data_dir,
        datasets=_chosen_datasets(args, EXPERIMENTS[source]),
        methods=args.methods,
        n_folds=min(args.folds, QUICK_FOLDS) if args.quick else args.folds,
        trials=min(args.trials, QUICK_FOLDS) if args.quick else args.trials,
        jobs=args.jobs,
        again=args.again and name != "timing",
        command=_command_text(args, name),
    )
    print(section(name, out))


def _checked_names(args: argparse.Namespace) -> list[str]:
    """Return the experiments to run; whatever is wrong with the arguments is said before any work."""
    known = [*EXPERIMENTS, "timing"]
    for name in args.names:
        if name not in (*known, "all", "page"):
            raise ValueError(f"unknown experiment {name!r}; known: {', '.join((*known, 'all', 'page'))}")
    for method in args.methods or ():
        if method not in (*METHODS, "literal"):
            raise ValueError(f"unknown method {method!r}; known: {', '.join((*METHODS, 'literal'))}")
    if not 1 <= args.folds <= N_FOLDS:
        raise ValueError(f"--folds must be between 1 and {N_FOLDS}, got {args.folds}")
    for option in ("jobs", "trials"):
        if getattr(args, option) < 1:
            raise ValueError(f"--{option} must be at least 1, got {getattr(args, option)}")
    for name in args.datasets or ():
        info(name)
    return known if "all" in args.names else [name for name in args.names if name != "page"]


def _chosen_datasets(args: argparse.Namespace, experiment: Experiment) -> list[str] | None:
    if args.datasets:
        return [info(name).name for name in args.datasets]
    if args.quick:
        return [name for name in experiment.datasets if name in (*QUICK_DATASETS, "synthetic")]
    return None


def _command_text(args: argparse.Namespace, name: str) -> str:
    """Spell the command of one experiment, without the directories of the machine it ran on."""
    words = ["scboost-lab", "reproduce", name]
    if args.quick:
        words.append("--quick")
    for option in ("datasets", "methods"):
        if getattr(args, option):
            words += [f"--{option}", *getattr(args, option)]
    for option, default in (("folds", N_FOLDS), ("trials", 50), ("jobs", 1)):
        if getattr(args, option) != default:
            words += [f"--{option}", str(getattr(args, option))]
    return " ".join(words)
