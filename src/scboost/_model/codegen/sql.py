"""SQL: one SELECT that needs nothing but CASE, comparisons and ``exp``.

Databases compare in double precision, the model in float32. A threshold is therefore the boundary between the doubles
that float32 rounds to a smaller number and those that it does not: the result is the same for every double, and no cast
can overflow. The steps are materialized: PostgreSQL would otherwise substitute each expression into the next one, and
the query would grow beyond all memory. Every tree is a column, and sets of categories are strings of bits: DuckDB
takes minutes to plan long expressions with lists of constants.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scboost._model.codegen.program import Label, Leaf, Node, Program, Split, chain, comment_text, write_text

DialectName = Literal["duckdb", "postgresql", "sqlite"]

_MOST_SUMS = 500  # columns for the values of trees; longer expressions take DuckDB minutes to plan
_LARGEST_EXPONENT = 700.0  # PostgreSQL refuses exp() of what over- or underflows


@dataclass(frozen=True)
class Dialect:
    """What differs between databases.

    Attributes
    ----------
    double, text : str
        Types of numbers and strings.
    least, greatest : str
        Functions of several arguments.
    has_nan : bool
        Whether NaN is a value of its own, larger than all others; SQLite stores NULL.
    checks_type : bool
        Whether any column can hold any type, so that texts must be told from numbers.
    cast : str
        Follows the value of a leaf, where a literal is not a double by itself.
    """

    double: str
    text: str
    least: str = "least"
    greatest: str = "greatest"
    has_nan: bool = True
    checks_type: bool = False
    cast: str = ""

    def number(self, column: str) -> str:
        """Expression for a numeric feature: a double, or NULL if missing."""
        if self.checks_type:
            return f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN CAST({column} AS {self.double}) END"
        value = f"CAST({column} AS {self.double})"
        return f"NULLIF({value}, CAST('NaN' AS {self.double}))" if self.has_nan else value

    def category(self, column: str, *, whole: bool) -> str:
        """Expression for the text of a categorical feature."""
        text = f"CAST({column} AS {self.text})"
        if whole:  # a column of floats holds the category 1 as 1.0
            text = f"CASE WHEN {text} LIKE '%.0' THEN substr({text}, 1, length({text}) - 2) ELSE {text} END"
        return f"{text} COLLATE BINARY" if self.checks_type else text

    def leaf(self, leaf: Leaf) -> str:
        """Value of a leaf."""
        return f"{number(float(leaf.value))}{self.cast}"


DIALECTS: dict[str, Dialect] = {
    "duckdb": Dialect("DOUBLE", "VARCHAR"),
    "postgresql": Dialect("double precision", "text", cast="::float8"),
    "sqlite": Dialect("REAL", "TEXT", least="min", greatest="max", has_nan=False, checks_type=True),
}


def export_sql(
    program: Program,
    path: str | os.PathLike[str] | None,
    table: str | Sequence[str],
    dialect: str,
    keep: Sequence[str],
) -> str:
    """Write a program as a SELECT; see :func:`scboost.export_sql`."""
    if dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r} is not supported; allowed: {', '.join(map(repr, DIALECTS))}.")
    sql = DIALECTS[dialect]
    kept = [f"kept{i}" for i in range(len(keep))]
    source = ".".join(identifier(part) for part in ([table] if isinstance(table, str) else table))
    lines = [
        f"-- SCBoost model: {program.summary}; SQL of {dialect}.",
        "WITH scboost_features AS MATERIALIZED (",
        "  SELECT",
        *_joined([*_kept_inputs(keep), *_features(program, sql)]),
        f"  FROM {source} AS source",
        "),",
        "scboost_sums AS MATERIALIZED (",
        "  SELECT",
        *_joined([*kept, *_sums(program, sql)]),
        "  FROM scboost_features",
        "),",
        "scboost_raw AS MATERIALIZED (",
        "  SELECT",
        *_joined([*kept, *_raw(program)]),
        "  FROM scboost_sums",
        ")",
        *_prediction(program, sql, keep),
    ]
    return write_text(path, "\n".join(lines) + ";\n")


def _joined(items: Sequence[str]) -> list[str]:
    return [f"    {item}{',' * (i < len(items) - 1)}" for i, item in enumerate(items)]


def _kept_inputs(keep: Sequence[str]) -> list[str]:
    return [f"source.{identifier(name)} AS kept{i}" for i, name in enumerate(keep)]


def _features(program: Program, sql: Dialect) -> list[str]:
    """Features as numbers; categories as their codes from 1, NULL if missing or unseen."""
    found = []
    for j in program.used:
        column, known = f"source.{identifier(program.features[j])}", program.categories[j]
        if known is not None:
            codes = " ".join(f"WHEN {string(text)} THEN {code}" for code, text in enumerate(known, 1))
            value = f"CASE {sql.category(column, whole=j in program.whole)} {codes} END" if known else "NULL"
        else:
            value = f"NULLIF({sql.number(column)}, 0)" if program.zero_is_missing else sql.number(column)
        found.append(f"{value} AS f{j}")
    return found or ["1 AS f"]  # a model without splits still needs the rows


def _blocks(program: Program, k: int) -> list[tuple[Node, ...]]:
    """Trees of an output that share a column: one each, unless there are more than databases have columns."""
    trees, size = program.trees[k], -(-sum(map(len, program.trees)) // _MOST_SUMS)
    return [trees[i : i + size] for i in range(0, len(trees), size)]


def _sums(program: Program, sql: Dialect) -> list[str]:
    """Add up the values of the trees, some trees a column."""
    columns = []
    for k in range(program.n_outputs):
        for b, block in enumerate(_blocks(program, k)):
            trees = [_case(program, sql, root, "      ") for root in block]
            joined = "\n    + ".join(trees)
            columns.append(f"{joined} AS sum{k}_{b}")
    return columns


def _raw(program: Program) -> list[str]:
    found = []
    for k in range(program.n_outputs):
        parts = [f"sum{k}_{b}" for b in range(len(_blocks(program, k)))]
        found.append(f"{' + '.join([number(program.intercept[k]), *parts])} AS raw{k}")
    return found


def _case(program: Program, sql: Dialect, node: Node, indent: str) -> str:
    conditions, last = chain(node)
    if not conditions:
        return sql.leaf(last)
    lines = ["CASE"]
    for split, goes_left, inner in conditions:
        condition = _condition(program, split, goes_left=goes_left)
        comment = _comment(program, split)
        lines.append(f"{indent}WHEN {condition} -- {comment}")
        lines.append(f"{indent}THEN {_case(program, sql, inner, f'{indent}  ')}")
    return "\n".join([*lines, f"{indent}ELSE {sql.leaf(last)} END"])


def _comment(program: Program, split: Split) -> str:
    name = comment_text(program.features[split.feature])
    known = program.categories[split.feature]
    return f"{name}: {comment_text(known[split.members[0]])}" if known and len(split.members) == 1 else name


def _condition(program: Program, split: Split, *, goes_left: bool) -> str:
    """Return the condition for going left or right; comparisons with NULL are not true."""
    column = f"f{split.feature}"
    if split.threshold is not None:
        # Codes start at 1 here and at 0 in the model.
        code = column if program.categories[split.feature] is None else f"{column} - 1"
        condition = f"{code} {'<' if goes_left else '>='} {number(boundary(split.threshold))}"
    elif len(split.members) == 1:
        condition = f"{column} {'<>' if goes_left else '='} {split.members[0] + 1}"
    else:
        n = len(program.categories[split.feature] or ())
        bits = "".join("1" if code in split.members else "0" for code in range(n))
        condition = f"substr('{bits}', {column}, 1) = '{0 if goes_left else 1}'"
    return f"{condition} OR {column} IS NULL" if split.missing_left == goes_left else condition


def boundary(threshold: np.float32) -> float:
    """Return the double b such that ``x < b`` is ``float32(x) < threshold`` for every double x."""
    t = float(threshold)
    with np.errstate(all="ignore"):
        below = np.nextafter(threshold, np.float32(-np.inf))
        middle = (t + (-(2.0**128) if np.isinf(below) else float(below))) / 2
        # The middle itself is rounded to the neighbour with an even last bit.
        return middle if np.float32(middle) >= threshold else float(np.nextafter(middle, np.inf))


def _prediction(program: Program, sql: Dialect, keep: Sequence[str]) -> list[str]:
    K = program.n_outputs
    kept = [f"kept{i}" for i in range(len(keep))]
    outer = [f"kept{i} AS {identifier(name)}" for i, name in enumerate(keep)]
    classes = program.classes or ()
    if program.link == "logistic":
        no, yes = classes
        p = f"1 / (1 + {sql_exp('-raw0', sql)})"
        columns = [
            f"CASE WHEN raw0 > 0 THEN {literal(yes, sql)} ELSE {literal(no, sql)} END AS prediction",
            f"1 - {p} AS {identifier(f'probability_{no}')}",
            f"{p} AS {identifier(f'probability_{yes}')}",
        ]
        return ["SELECT", *_joined([*outer, *columns]), "FROM scboost_raw"]
    if program.link == "softmax":
        cases = " ".join(f"WHEN raw{k} = largest THEN {literal(label, sql)}" for k, label in enumerate(classes))
        parts = [f"{sql_exp(f'raw{k} - largest', sql)} AS part{k}" for k in range(K)]
        columns = [
            "prediction",
            *(f"part{k} / total AS {identifier(f'probability_{label}')}" for k, label in enumerate(classes)),
        ]
        scores = [f"raw{k}" for k in range(K)]
        return [
            ", scboost_largest AS MATERIALIZED (",
            "  SELECT",
            *_joined(["*", f"{_nested(sql.greatest, scores)} AS largest"]),
            "  FROM scboost_raw",
            "), scboost_parts AS MATERIALIZED (",
            "  SELECT",
            *_joined([*kept, f"CASE {cases} END AS prediction", *parts]),
            "  FROM scboost_largest",
            "), scboost_total AS MATERIALIZED (",
            "  SELECT",
            *_joined(["*", f"{' + '.join(f'part{k}' for k in range(K))} AS total"]),
            "  FROM scboost_parts",
            ")",
            "SELECT",
            *_joined([*outer, *columns]),
            "FROM scboost_total",
        ]
    if program.link == "sorted":
        return _sorted(program, sql, kept, outer)
    value = sql_exp("raw0", sql) if program.link == "exp" else "raw0"
    return ["SELECT", *_joined([*outer, f"{value} AS prediction"]), "FROM scboost_raw"]


def _sorted(program: Program, sql: Dialect, kept: list[str], outer: list[str]) -> list[str]:
    """Sort the quantiles by odd-even transpositions, one query for each."""
    K, lines, source = program.n_outputs, [], "scboost_raw"
    for stage in range(K):
        columns = [f"raw{k}" for k in range(K)]
        for k in range(stage % 2, K - 1, 2):
            columns[k] = f"{sql.least}(raw{k}, raw{k + 1}) AS raw{k}"
            columns[k + 1] = f"{sql.greatest}(raw{k}, raw{k + 1}) AS raw{k + 1}"
        lines += [
            f", scboost_sorted{stage} AS MATERIALIZED (",
            "  SELECT",
            *_joined([*kept, *columns]),
            f"  FROM {source}",
            ")",
        ]
        source = f"scboost_sorted{stage}"
    names = [f"raw{k} AS {identifier(f'quantile_{q}')}" for k, q in enumerate(program.quantiles)]
    return [*lines, "SELECT", *_joined([*outer, *names]), f"FROM {source}"]


def _nested(function: str, items: list[str]) -> str:
    """Apply a function to any number of arguments, at most 50 at once."""
    while len(items) > 1:
        items = [
            f"{function}({', '.join(items[i : i + 50])})" if len(items[i : i + 50]) > 1 else items[i]
            for i in range(0, len(items), 50)
        ]
    return items[0]


def sql_exp(value: str, sql: Dialect) -> str:
    """Exponential of a value within the range that every database accepts."""
    bound = number(_LARGEST_EXPONENT)
    return f"exp({sql.least}({sql.greatest}({value}, -{bound}), {bound}))"


def number(value: float) -> str:
    """Double literal; the exponent keeps DuckDB from reading a decimal type."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def literal(label: Label, sql: Dialect) -> str:
    """Class label."""
    if isinstance(label, bool):
        return ("1" if label else "0") if sql.checks_type else str(label).upper()
    return string(label) if isinstance(label, str) else number(label) if isinstance(label, float) else str(label)


def string(text: str) -> str:
    """Quoted string."""
    _check(text)
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Quoted name of a table or column."""
    _check(name)
    return '"' + name.replace('"', '""') + '"'


def _check(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"export_sql: {text!r} contains a NUL character, which SQL cannot hold; rename it.")
