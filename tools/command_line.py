"""Write docs/command_line.md: the commands, and a session that is run as it is printed."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from scboost.cli import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "command_line.md"
MEMORY = ROOT / "results" / "cli_memory.json"

_HEAD = """\
# The command line

`pip install 'scboost[cpu,cli]'` installs the command `scboost`; `python -m scboost` is the same. `scboost COMMAND --help` lists the
arguments of a command, with examples.

## A session

Train on a table, evaluate on held-out rows, predict, compress, export. The data are the breast cancer table that comes with scikit-learn,
the last 169 rows held out.

"""

_REFERENCE = """\
## Commands

```
scboost train    DATA --target COLUMN -o MODEL [--task TASK] [--valid DATA] [--param NAME=VALUE ...]
scboost predict  MODEL DATA -o FILE [--proba] [--interval COVERAGE] [--keep COLUMN ...]
scboost evaluate MODEL DATA [--target COLUMN] [--weight COLUMN] [--json]
scboost compress MODEL DATA [--max-trees N] [--max-bytes N] [--certify DATA] -o MODEL
scboost prune    MODEL DATA --max-trees N -o MODEL
scboost report   MODEL DATA [--target COLUMN] [--train DATA] -o REPORT.html
scboost export   MODEL --to c|js|sql|onnx|treelite -o FILE
scboost check    FILE ...
```

- **Parameters.** `--param` passes any parameter of the estimators: `--param max_depth=4 --param preset=best`. `--threads` sets the number
  of threads.
- **Target.** `evaluate`, `prune` and `report` use the target column of the training table, unless `--target` names another.
- **Scores.** `train` ends with the selected settings and the loss on the validation set (`--valid`) or in cross-validation, next to that
  of a constant prediction.
- **Errors** name the file, the column and the row; in text files the header is row 1, as in a spreadsheet. The exit code is 0 on success,
  1 on failure, 2 for wrong arguments, 130 after an interrupt.
- **Outputs** are checked before the work starts, never replace an input, and appear only when they are complete.

## Tables

| format | file names |
|---|---|
| text | `.csv`, `.tsv`, also compressed (`.gz`, `.bz2`, `.zst`, `.lz4`) |
| Parquet | `.parquet`, `.pq` |
| Arrow, Feather | `.arrow`, `.ipc`, `.feather` |
| models | `.json`, `.ubj`, as written by [save_model](saving.md) |

The separator of a text file is detected in its header (`,`, `;`, tab or `|`). Other conventions are given by options:

```
scboost train customers.csv --target churn -o model.ubj --encoding latin1 --decimal , --missing unknown --ignore customer_id
```

- **Features** are all columns except the target and those that `--ignore` names. Numbers are numeric; strings, including `true` and
  `false`, are categorical. `train` prints the type of each feature; `--categorical` and `--numeric` override it.
- **Dates** are expanded ([which features](guide/dates.md)): date columns of Parquet and Arrow files, and text columns of ISO dates such as
  `2024-12-31`, `2024-12-31T23:59:00` or `2024-12-31T23:59:00Z`.
- **Missing values** are empty fields, `NA`, `NaN` and the values of `--missing`.
- **Warnings.** `train` warns about columns that are constant, look like IDs or row numbers, are numeric except for a few values, or use a
  decimal comma, and names the option that helps.
- **New data.** `predict` and `evaluate` find columns by name, in any order, and take the types from the model. Categories that did not
  occur in training are treated as missing; a warning states their share.

## Tasks

Classification or regression follows from the target: classification if it contains strings or at most 20 distinct integers. `--task`
overrides it.

| task | options of `train` | options of `predict` | scores of `evaluate` |
|---|---|---|---|
| classification | `--target` | `--proba` | log-loss, accuracy, AUC |
| regression | `--target` | `--interval` | RMSE, MAE, R2 |
| several targets | `--target a --target b` | `--proba` | RMSE and R2, or log-loss and AUC, of each |
| ranking | `--target relevance --group query` | | NDCG@10, NDCG |
| survival | `--target time --event event` | `--time`, `--quantile` | concordance, integrated Brier score |
| distribution | `--target y --distribution normal` | `--interval`, `--quantile` | NLL, CRPS, RMSE, MAE, coverage |

```
scboost train clicks.csv --target relevance --group query -o ranker.json
scboost train patients.csv --target days --event died -o survival.json
scboost predict survival.json new.csv --time 30 --time 365 --quantile 0.5 -o predictions.csv
scboost train demand.csv --target units --distribution negative_binomial -o demand.json
```

- **Event column**: 1 or true for an observed event, 0 or false for a censored time.
- **Several targets** are numbers, or labels 0 and 1. A target may be missing in some rows.
- **Column names** of target, event and query are stored in the model file, so `evaluate` needs no further options.
- **Predictions** of a ranking are scores that order the rows of a query; those of a survival model are hazard ratios, or times with
  `--param loss=aft`.
- **Other commands**: `report` supports all tasks with one target; `compress` supports classification, regression, rankings and survival
  models; `prune` supports classification and regression.
"""

_SESSION = (
    "scboost train train.csv --target malignant -o model.json --param random_state=0",
    "scboost evaluate model.json test.csv",
    "scboost predict model.json test.csv -o predicted.csv --proba",
    "head -n 3 predicted.csv",
    "scboost compress model.json train.csv --certify test.csv --max-trees 20 -o small.json",
    "scboost evaluate small.json test.csv",
    "scboost report small.json test.csv -o report.html",
    "scboost export small.json --to sql --table patients --keep id -o small.sql",
    """python -c "import pandas, xgboost
rows = xgboost.DMatrix(pandas.read_csv('test.csv').drop(columns='malignant'))
print(xgboost.Booster(model_file='model.json').predict(rows)[:2].tolist())\"""",
)


def write_data(folder: Path) -> None:
    """Write the two files of the session."""
    table = load_breast_cancer(as_frame=True).frame
    table = table.assign(malignant=table.pop("target").map({0: "yes", 1: "no"})).iloc[:, [0, 1, 2, 3, 20, 21, 27, -1]]
    table[:400].to_csv(folder / "train.csv", index=False)
    table[400:].to_csv(folder / "test.csv", index=False)


def _output_of(command: str) -> str:
    words = shlex.split(command)
    if words[0] != "scboost":
        words[0] = sys.executable if words[0] == "python" else words[0]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout
    with redirect_stdout(io.StringIO()) as shown:
        code = main(words[1:])
    if code:
        raise RuntimeError(f"{command} ended with exit code {code}")
    return shown.getvalue()


def page() -> str:
    """Return the text of the page, with what the commands print."""
    before = Path.cwd()
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        os.chdir(folder)
        try:
            parts = [f"$ {command}\n{_output_of(command)}" for command in _SESSION]
        finally:
            os.chdir(before)
    last = "The last command is plain XGBoost, which reads the same file."
    return f"{_HEAD}```\n{''.join(parts)}```\n\n{last}\n\n{_REFERENCE}\n{_memory()}"


def _memory() -> str:
    result = json.loads(MEMORY.read_text())
    lines = [f"| {r['format']} | {r['rows']:,} | {r['file_MiB']:,} | {r['peak_MiB']:,.0f} |" for r in result["runs"]]
    return "\n".join(
        [
            "## Memory",
            "",
            "`predict` and `evaluate` read a file in chunks: what `predict` needs does not grow with it (`evaluate`",
            f"keeps targets and predictions). Measured by `{result['made_by']}` ({result['model']}, 10 columns,",
            f"`{result['command']}`):",
            "",
            "| format | rows | file, MiB | peak memory, MiB |",
            "|---|---|---|---|",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
