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

`pip install 'scboost[cpu,cli]'` installs the command `scboost`; `python -m scboost` is the same.

```
scboost train    DATA --target COLUMN -o MODEL [--task TASK] [--valid DATA] [--param NAME=VALUE ...]
scboost predict  MODEL DATA -o FILE [--proba] [--interval COVERAGE] [--keep COLUMN ...]
scboost evaluate MODEL DATA [--target COLUMN] [--weight COLUMN] [--json]
scboost prune    MODEL DATA --max-trees N -o MODEL
scboost compress MODEL DATA [--max-trees N] [--max-bytes N] [--certify DATA] -o MODEL
scboost report   MODEL DATA [--target COLUMN] [--train DATA] -o REPORT.html
scboost export   MODEL --to c|js|sql|onnx|treelite -o FILE
scboost check    FILE ...
```

`scboost COMMAND --help` lists all arguments, with examples.

- **Tables.** CSV and TSV (also compressed: `.gz`, `.bz2`, `.zst`, `.lz4`), Parquet (`.parquet`, `.pq`), Arrow and
  Feather (`.feather`, `.arrow`, `.ipc`). `--sep`, `--decimal` and `--encoding` describe other text files, `--missing`
  what else is a missing value. A model file is one of [save_model](saving.md), `.json` or `.ubj`.
- **Features.** All columns but the target are features, unless `--ignore` names them. Strings are categorical, also
  `true` and `false`; numbers are numeric. [Dates](guide/dates.md) are expanded: those of Parquet and Arrow files, and
  text columns of ISO dates (`2024-12-31`, also with a time of day, `2024-12-31T23:59:00` or `...Z`). The kinds are
  printed; `--categorical` and `--numeric` override them.
  `predict` and `evaluate` find columns by name, in any order, and take the kinds from the model. Empty fields, `NA`
  and `NaN` are missing values. Categories that were not seen in training count as missing, and a warning states their
  share. `train` warns about columns that are constant, look like IDs or row numbers, or are nearly numeric.
- **Tasks.** Classification or regression follows from the target unless `--task` is given; the [table below](#tasks)
  lists the others.
- **Parameters.** `--param` takes those of the estimators: `--param max_depth=4 --param preset=best`. `--threads` sets
  the number of threads.
- **Target.** `evaluate`, `prune` and `report` use the target column of the training table, unless `--target` names
  another.
- **Scores.** `train` ends with the selected settings and the loss on the validation set (`--valid`) or in
  cross-validation, beside that of a constant prediction.
- **Errors** name the file, the column and the row; in text files the header is row 1, as in a spreadsheet. The exit
  code is 0 on success, 1 on failure, 2 for wrong arguments, 130 after an interrupt. Outputs are checked before the
  work starts, never replace an input, and appear only when they are complete.

## Tasks

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

The event column holds 1 or true for an observed event and 0 or false for a censored time. Several targets are values,
or labels 0 and 1; a target may be missing in some rows. The model file keeps the names of these columns, so `evaluate`
needs no further options. Predictions of a ranking are scores to sort the rows of a query by; those of a survival model
are hazard ratios, or times with `--param loss=aft`. `report` supports all tasks with one target; `compress`
classification, regression, rankings and survival models; `prune` classification and regression.

## A session

The data are the breast cancer table that comes with scikit-learn, the last 169 rows held out.

"""

_SESSION = (
    "scboost train train.csv --target malignant -o model.json --quiet --param random_state=0",
    "scboost evaluate model.json test.csv",
    "scboost predict model.json test.csv -o predicted.csv --proba",
    "head -n 3 predicted.csv",
    "scboost prune model.json test.csv --max-trees 20 -o small.json",
    "scboost export small.json --to sql --table patients --keep id -o small.sql",
    "scboost export small.json --to c -o small.h",
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
    return f"{_HEAD}```\n{''.join(parts)}```\n\n{last}\n\n{_memory()}"


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
