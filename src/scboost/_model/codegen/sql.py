"""SQL: one SELECT that needs nothing but CASE, comparisons and ``exp``.

Databases compare in double precision, the model in float32. A threshold is therefore the boundary between the doubles
that float32 rounds to a smaller number and those that it does not: the result is the same for every double, and no cast
can overflow. The steps are materialized: PostgreSQL would otherwise substitute each expression into the next one, and
the query would grow beyond all memory. Trees and sets of several categories are columns of their own: as parts of one
long expression they take DuckDB minutes to plan.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from scboost._model.codegen.program import Label, Leaf, Node, Program, Split, chain, comment_text, splits, write_text

DialectName = Literal["duckdb", "postgresql", "sqlite"]

_MOST_SUMS = 500  # columns for the values of trees; longer expressions take DuckDB minutes to plan
_MOST_SETS = 1000  # which become columns; PostgreSQL has at most 1,664 of them
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
    has_lists : bool
        Whether long lists are searched with ``list_contains``: DuckDB makes a join of every long IN, and needs minutes
        to plan some hundred of them.
    """

    double: str
    text: str
    least: str = "least"
    greatest: str = "greatest"
    has_nan: bool = True
    checks_type: bool = False
    cast: str = ""
    has_lists: bool = False

    def member(self, value: str, texts: Sequence[str], *, inside: bool = True) -> str:
        """Condition that a text is one of some, or none of them; not true for NULL."""
        listed = ", ".join(map(string, texts))
        if not texts:
            return "1 = 0" if inside else f"{value} IS NOT NULL"
        if len(texts) == 1:
            return f"{value} {'=' if inside else '<>'} {listed}"
        if self.has_lists:
            found = f"list_contains([{listed}], {value})"
            return found if inside else f"{value} IS NOT NULL AND NOT {found}"
        return f"{value} {'IN' if inside else 'NOT IN'} ({listed})"

    def number(self, column: str) -> str:
        """Expression for a numeric feature: a double, or NULL if missing."""
        if self.checks_type:
            return f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN CAST({column} AS {self.double}) END"
        value = f"CAST({column} AS {self.double})"
        return f"NULLIF({value}, CAST('NaN' AS {self.double}))" if self.has_nan else value

    def category(self, column: str, known: Sequence[str], *, whole: bool) -> str:
        """Expression for a categorical feature: its text, or NULL if missing or unseen."""
        if not known:
            return f"CAST(NULL AS {self.text})"
        text = f"CAST({column} AS {self.text})"
        if whole:  # 1.0 is the category 1
            text = f"replace(replace({text} || '|', '.0|', ''), '|', '')"
        collate = " COLLATE BINARY" if self.checks_type else ""
        return f"CASE WHEN {self.member(f'{text}{collate}', known)} THEN {text} END"

    def leaf(self, leaf: Leaf) -> str:
        """Value of a leaf."""
        return f"{number(float(leaf.value))}{self.cast}"


DIALECTS: dict[str, Dialect] = {
    "duckdb": Dialect("DOUBLE", "VARCHAR", has_lists=True),
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
    sets = _sets(program)
    kept = [f"kept{i}" for i in range(len(keep))]
    source = ".".join(identifier(part) for part in ([table] if isinstance(table, str) else table))
    lines = [
        f"-- SCBoost model: {program.summary}; SQL of {dialect}.",
        "WITH scboost_features AS MATERIALIZED (",
        "  SELECT",
        *_joined([*_kept_inputs(keep), *_features(program, sql)]),
        f"  FROM {source} AS source",
        "),",
        *_set_query(sets, program, sql),
        "scboost_sums AS MATERIALIZED (",
        "  SELECT",
        *_joined([*kept, *_sums(program, sql, sets)]),
        f"  FROM {'scboost_sets' if sets else 'scboost_features'}",
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
    found = []
    for j in program.used:
        column, known = f"source.{identifier(program.features[j])}", program.categories[j]
        value = sql.number(column) if known is None else sql.category(column, known, whole=j in program.whole)
        found.append(f"NULLIF({value}, 0) AS f{j}" if program.zero_is_missing else f"{value} AS f{j}")
    return found or ["1 AS f"]  # a model without splits still needs the rows


_Sets: TypeAlias = dict[tuple[int, tuple[int, ...]], int]  # feature and members: number of the column


def _sets(program: Program) -> _Sets:
    """Give numbers to the sets of several categories that the splits use."""
    found: _Sets = {}
    for trees in program.trees:
        for root in trees:
            for split in splits(root):
                if len(split.members) > 1 and len(found) < _MOST_SETS:
                    found.setdefault((split.feature, split.members), len(found))
    return found


def _set_query(sets: _Sets, program: Program, sql: Dialect) -> list[str]:
    """Columns that are 1 if the category of a sample is in a set, 0 if not, and NULL if it is missing."""
    if not sets:
        return []
    columns = []
    for (j, members), number_of_set in sets.items():
        member = sql.member(f"f{j}", _texts(program, j, members))
        columns.append(f"CASE WHEN {member} THEN 1 WHEN f{j} IS NOT NULL THEN 0 END AS s{number_of_set}")
    return ["scboost_sets AS MATERIALIZED (", "  SELECT", *_joined(["*", *columns]), "  FROM scboost_features", "),"]


def _texts(program: Program, feature: int, members: Sequence[int]) -> list[str]:
    known = program.categories[feature] or ()
    return [known[c] for c in members if c < len(known)]


def _blocks(program: Program, k: int) -> list[tuple[Node, ...]]:
    """Trees of an output that share a column: one each, unless there are more than databases have columns."""
    trees, size = program.trees[k], -(-sum(map(len, program.trees)) // _MOST_SUMS)
    return [trees[i : i + size] for i in range(0, len(trees), size)]


def _sums(program: Program, sql: Dialect, sets: _Sets) -> list[str]:
    """Add up the values of the trees, some trees a column."""
    columns = []
    for k in range(program.n_outputs):
        for b, block in enumerate(_blocks(program, k)):
            trees = [_case(program, sql, sets, root, "      ") for root in block]
            joined = "\n    + ".join(trees)
            columns.append(f"{joined} AS sum{k}_{b}")
    return columns


def _raw(program: Program) -> list[str]:
    found = []
    for k in range(program.n_outputs):
        parts = [f"sum{k}_{b}" for b in range(len(_blocks(program, k)))]
        found.append(f"{' + '.join([number(program.intercept[k]), *parts])} AS raw{k}")
    return found


def _case(program: Program, sql: Dialect, sets: _Sets, node: Node, indent: str) -> str:
    conditions, last = chain(node)
    if not conditions:
        return sql.leaf(last)
    lines = ["CASE"]
    for split, goes_left, inner in conditions:
        condition = _condition(program, sql, sets, split, goes_left=goes_left)
        comment = comment_text(program.features[split.feature])
        lines.append(f"{indent}WHEN {condition} -- {comment}")
        lines.append(f"{indent}THEN {_case(program, sql, sets, inner, f'{indent}  ')}")
    return "\n".join([*lines, f"{indent}ELSE {sql.leaf(last)} END"])


def _condition(program: Program, sql: Dialect, sets: _Sets, split: Split, *, goes_left: bool) -> str:
    """Return the condition for going left or right; comparisons with NULL are not true."""
    column = f"f{split.feature}"
    if split.threshold is not None:
        condition = f"{column} {'<' if goes_left else '>='} {number(boundary(split.threshold))}"
    elif (split.feature, split.members) in sets:
        column = f"s{sets[split.feature, split.members]}"
        condition = f"{column} = {0 if goes_left else 1}"
    else:
        condition = sql.member(column, _texts(program, split.feature, split.members), inside=not goes_left)
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
