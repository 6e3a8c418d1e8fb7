"""C99: one header with the nodes of all trees in a table.

The traversal has no branch that depends on the data. Every step of a tree is ``node = child + !(z < threshold)``, ten
trees are walked at once so that the processor overlaps their memory accesses, and leaves lead to themselves until the
deepest tree of the ten is done. Three preparations make every split such a comparison:

- A comparison with NaN is false, so missing values take the second child. Where they must go left, the split is
  written for the negated feature: ``-x < nextafter(-t)`` is ``x >= t``, its children are swapped, and both ``x`` and
  ``-x`` are among the inputs ``z``.
- For each set of categories that splits use, an input is 0 or 1: whether the sample's category is in the set.
- One input is minus infinity; it keeps a leaf, whose value stands in place of the threshold, at itself.

With 20 trees of 64 leaves this takes two thirds of the time of tl2cgen's if-else code, whose branches are
mispredicted (``results/exports/fidelity.json``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from scboost._model.codegen.program import (
    Node,
    Program,
    Split,
    comment_text,
    depth,
    float32_text,
    splits,
    write_text,
)

GROUP = 10
"""Trees that are walked at once: fewer overlap less, more do not fit into registers."""

_Input: TypeAlias = tuple[int, bool]  # feature, negated
_Set: TypeAlias = tuple[int, tuple[int, ...], bool]  # feature, members, whether missing values count as members


@dataclass
class _Table:
    """Nodes of all trees, with children side by side, and the inputs that they compare."""

    program: Program
    inputs: dict[_Input, int] = field(default_factory=dict)
    sets: dict[_Set, int] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for trees in self.program.trees:
            for root in trees:
                self._collect(root)
        self.leaf_input = len(self.inputs) + len(self.sets)

    @property
    def index_type(self) -> str:
        """Smallest type that holds the number of every node and every input."""
        return "unsigned short" if max(len(self.rows), self.leaf_input) < 1 << 16 else "unsigned"

    def _collect(self, root: Node) -> None:
        for split in splits(root):
            if split.threshold is None:
                self.sets.setdefault(_set_of(split), len(self.sets))
            else:
                self.inputs.setdefault((split.feature, split.missing_left), len(self.inputs))

    def add(self, root: Node) -> int:
        """Append a tree and return the place of its root."""
        first = len(self.rows)
        self.rows.append("")
        queue: list[tuple[int, Node]] = [(first, root)]
        for place, node in queue:  # grows while it is read
            if not isinstance(node, Split):
                value = float32_text(node.value)
                self.rows[place] = f"{{{value}f, {self.leaf_input}, {place}}}, /* {place}: leaf */"
                continue
            child = len(self.rows)
            self.rows += ["", ""]
            threshold, number, swapped = self._comparison(node)
            queue += [(child + swapped, node.left), (child + 1 - swapped, node.right)]
            self.rows[place] = (
                f"{{{threshold}, {number}, {child}}}, /* {place}: {self.program.describe(node)} ? {child + swapped} : "
                f"{child + 1 - swapped} */"
            )
        return first

    def _comparison(self, split: Split) -> tuple[str, int, bool]:
        """Threshold and input of ``z < threshold``, and whether the left child is the second one."""
        if split.threshold is None:
            return "0.5f", len(self.inputs) + self.sets[_set_of(split)], False
        number = self.inputs[split.feature, split.missing_left]
        if not split.missing_left:
            return f"{float32_text(split.threshold)}f", number, False
        with np.errstate(all="ignore"):
            negated = np.nextafter(-split.threshold, np.float32(np.inf))
        return ("INFINITY" if np.isinf(negated) else f"{float32_text(negated)}f"), number, True


def _set_of(split: Split) -> _Set:
    return split.feature, split.members, not split.missing_left


def export_c(program: Program, path: str | os.PathLike[str] | None, name: str) -> str:
    """Write a program as a C99 header; see :func:`scboost.export_c`."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"name={name!r} must be a C identifier: letters, digits and underscores, no digit first.")
    table = _Table(program)
    order = sorted(
        ((depth(root), k, root) for k, trees in enumerate(program.trees) for root in trees), key=lambda entry: entry[0]
    )
    roots = [table.add(root) for _, _, root in order]
    outputs = [k for _, k, _ in order]
    if len(roots) % GROUP:
        table.rows.append(f"{{0.0f, {table.leaf_input}, {len(table.rows)}}}, /* {len(table.rows)}: no tree */")
        missing = -len(roots) % GROUP
        roots += [len(table.rows) - 1] * missing
        outputs += [0] * missing
    depths = [max(entry[0] for entry in order[i : i + GROUP]) for i in range(0, len(order), GROUP)]
    lines = [
        *_head(program, name),
        *_names(program, name),
        *_data(program, table, name, roots, outputs, depths),
        *_raw(program, table, name, len(depths)),
        *_prediction(program, name),
        "",
        "#endif",
    ]
    return write_text(path, "\n".join(lines) + "\n")


def _head(program: Program, name: str) -> list[str]:
    upper = name.upper()
    first = comment_text(program.features[0])
    lines = [
        f"/* SCBoost model: {program.summary}.",
        " *",
        " * Include this file and link with -lm. Compile without -ffast-math, which breaks missing values.",
        " *",
        f" *   double x[{upper}_N_FEATURES];",
        f" *   x[0] = ...;  {name}_features[0], {first}; NAN for a missing value",
    ]
    categorical = next((j for j, known in enumerate(program.categories) if known is not None), None)
    if categorical is not None:
        lines.append(
            f' *   x[{categorical}] = {name}_category({categorical}, "...");  a category by its text, NAN if unseen'
        )
    if program.classes is not None:
        lines += [
            f" *   double p[{upper}_N_CLASSES];",
            f" *   {name}_predict_proba(x, p);  probabilities in the order of {name}_classes",
            f" *   {name}_classes[{name}_predict(x)]  the predicted label",
        ]
    elif program.n_outputs > 1:
        lines += [f" *   double q[{upper}_N_OUTPUTS];", f" *   {name}_predict(x, q);  ascending quantiles"]
    else:
        lines.append(f" *   double y = {name}_predict(x);")
    return [
        *lines,
        " */",
        f"#ifndef SCBOOST_{upper}_H",
        f"#define SCBOOST_{upper}_H",
        "",
        "#include <math.h>",
        "#include <string.h>",
        "",
    ]


def _names(program: Program, name: str) -> list[str]:
    upper = name.upper()
    classes = "" if program.classes is None else f", {upper}_N_CLASSES = {len(program.classes)}"
    lines = [
        f"enum {{ {upper}_N_FEATURES = {len(program.features)}, {upper}_N_OUTPUTS = {program.n_outputs}{classes} }};",
        "",
        *_strings(f"{name}_features", program.features),
    ]
    if program.classes is not None:
        lines += _strings(f"{name}_classes", [str(label) for label in program.classes])
    if program.quantiles:
        lines += [f"static const double {name}_quantiles[] = {{{', '.join(map(repr, program.quantiles))}}};", ""]
    known = {j: texts for j, texts in enumerate(program.categories) if texts is not None}
    if not known:
        return lines
    for j, texts in known.items():  # a feature may have no category: C has no empty arrays
        lines += _strings(f"{name}_categories_{j}", texts or [""])
    cases = [
        f"    case {j}: texts = {name}_categories_{j}; high = {len(texts)}; break; "
        f"/* {comment_text(program.features[j])} */"
        for j, texts in known.items()
    ]
    return [
        *lines,
        "/* Code of a category (UTF-8) of a categorical feature; NAN if it was not seen in training. */",
        f"static inline double {name}_category(int feature, const char *text) {{",
        "  const char *const *texts;",
        "  int low = 0, high, middle, order;",
        "  switch (feature) {",
        *cases,
        "    default: return NAN;",
        "  }",
        "  while (low < high) { /* sorted by their bytes */",
        "    middle = (low + high) / 2;",
        "    order = strcmp(text, texts[middle]);",
        "    if (order == 0) return middle;",
        "    if (order < 0) high = middle; else low = middle + 1;",
        "  }",
        "  return NAN;",
        "}",
        "",
    ]


def _data(
    program: Program, table: _Table, name: str, roots: list[int], outputs: list[int], depths: list[int]
) -> list[str]:
    index = table.index_type
    inputs = [f"{{{j}, {'-1' if negated else '1'}}}" for j, negated in table.inputs] or ["{0, 1}"]
    lines = [
        "/* Inputs of the comparisons: features, negated where missing values go left. */",
        f"static const struct {{ int feature, sign; }} {name}_inputs[] = {{",
        *_wrapped(inputs),
        "};",
        "",
    ]
    if table.sets:
        lines += _set_data(program, table, name)
    return [
        *lines,
        "/* z[input] < threshold ? child : child + 1. A leaf has its value as threshold and itself as child.",
        " * Comments: node: condition ? node if true : node if false. */",
        f"typedef struct {{ float threshold; {index} input, child; }} {name}_node;",
        f"static const {name}_node {name}_nodes[] = {{",
        *(f"  {row}" for row in table.rows),
        "};",
        "",
        f"/* Roots of the trees, by depth; their outputs; and the depth of each {GROUP} trees. */",
        f"static const {index} {name}_roots[] = {{",
        *_wrapped(map(str, roots or [0])),
        "};",
        f"static const unsigned short {name}_outputs[] = {{",
        *_wrapped(map(str, outputs or [0])),
        "};",
        f"static const unsigned short {name}_depths[] = {{{', '.join(map(str, depths or [0]))}}};",
        f"static const double {name}_intercept[] = {{{', '.join(repr(float(v)) for v in program.intercept)}}};",
        "",
    ]


def _set_data(program: Program, table: _Table, name: str) -> list[str]:
    """Write the sets of categories as bits, eight categories in a byte."""
    rows: list[str] = []
    bits: list[int] = []
    for feature, members, missing in table.sets:
        known = program.categories[feature] or ()
        n = max(len(known), *(c + 1 for c in members))
        own = bytearray((n + 7) // 8)
        for c in members:
            own[c // 8] |= 1 << c % 8
        rows.append(f"{{{feature}, {n}, {len(bits)}, {int(missing)}}}")
        bits += list(own)
    return [
        "/* Sets of categories: feature, number of its categories, first byte, whether missing values are members. */",
        f"static const struct {{ int feature, n, start, missing; }} {name}_sets[] = {{",
        *_wrapped(rows),
        "};",
        f"static const unsigned char {name}_bits[] = {{",
        *_wrapped(map(str, bits)),
        "};",
        "",
    ]


def _raw(program: Program, table: _Table, name: str, n_groups: int) -> list[str]:
    value = f"x[{name}_inputs[i].feature]"
    if program.zero_is_missing:
        value = f"({value} == 0 ? NAN : {value})"
    lines = [
        "/* Raw scores: intercept plus the values of the leaves. */",
        f"static inline void {name}_raw(const double *x, double *raw) {{",
        f"  float z[{table.leaf_input + 1}];",
        f"  const {table.index_type} *root = {name}_roots;",
        f"  const unsigned short *output = {name}_outputs;",
        "  int i, k;",
        f"  for (i = 0; i < {len(table.inputs)}; ++i) z[i] = (float){name}_inputs[i].sign * (float){value};",
    ]
    if table.sets:
        lines += [
            f"  for (i = 0; i < {len(table.sets)}; ++i) {{",
            f"    double code = x[{name}_sets[i].feature];",
            f"    int known = code >= 0 && code < {name}_sets[i].n, c = known ? (int)code : 0;",
            f"    z[{len(table.inputs)} + i] = known ? (float)({name}_bits[{name}_sets[i].start + c / 8] >> c % 8 & 1)",
            f"                     : (float){name}_sets[i].missing;",
            "  }",
        ]
    each = " ".join(f"DO({i})" for i in range(GROUP))
    node = f"{name}_nodes[n##t]"
    return [
        *lines,
        f"  z[{table.leaf_input}] = -INFINITY;",
        f"  for (k = 0; k < {program.n_outputs}; ++k) raw[k] = {name}_intercept[k];",
        f"#define SCBOOST_EACH(DO) {each}",
        "#define SCBOOST_START(t) unsigned n##t = root[t];",
        f"#define SCBOOST_STEP(t) n##t = {node}.child + !(z[{node}.input] < {node}.threshold);",
        f"#define SCBOOST_ADD(t) raw[output[t]] += {node}.threshold;",
        f"  for (i = 0; i < {n_groups}; ++i, root += {GROUP}, output += {GROUP}) {{",
        "    SCBOOST_EACH(SCBOOST_START)",
        f"    for (k = {name}_depths[i]; k > 0; --k) {{ SCBOOST_EACH(SCBOOST_STEP) }}",
        "    SCBOOST_EACH(SCBOOST_ADD)",
        "  }",
        "#undef SCBOOST_EACH",
        "#undef SCBOOST_START",
        "#undef SCBOOST_STEP",
        "#undef SCBOOST_ADD",
        "}",
        "",
    ]


def _prediction(program: Program, name: str) -> list[str]:
    K = program.n_outputs
    if program.link == "logistic":
        return [
            f"static inline void {name}_predict_proba(const double *x, double *p) {{",
            "  double raw;",
            f"  {name}_raw(x, &raw);",
            "  p[1] = 1 / (1 + exp(-raw));",
            "  p[0] = 1 - p[1];",
            "}",
            "",
            f"/* Index into {name}_classes. */",
            f"static inline int {name}_predict(const double *x) {{",
            "  double raw;",
            f"  {name}_raw(x, &raw);",
            "  return raw > 0;",
            "}",
        ]
    if program.link == "softmax":
        return [
            f"static inline void {name}_predict_proba(const double *x, double *p) {{",
            "  double largest, sum = 0;",
            "  int k;",
            f"  {name}_raw(x, p);",
            "  largest = p[0];",
            f"  for (k = 1; k < {K}; ++k) if (p[k] > largest) largest = p[k];",
            f"  for (k = 0; k < {K}; ++k) sum += p[k] = exp(p[k] - largest);",
            f"  for (k = 0; k < {K}; ++k) p[k] /= sum;",
            "}",
            "",
            f"/* Index into {name}_classes. */",
            f"static inline int {name}_predict(const double *x) {{",
            f"  double raw[{K}];",
            "  int k, best = 0;",
            f"  {name}_raw(x, raw);",
            f"  for (k = 1; k < {K}; ++k) if (raw[k] > raw[best]) best = k;",
            "  return best;",
            "}",
        ]
    if program.link == "sorted":
        return [
            f"static inline void {name}_predict(const double *x, double *q) {{",
            "  int i, k;",
            f"  {name}_raw(x, q);",
            f"  for (k = 1; k < {K}; ++k) {{ /* quantiles must not cross */",
            "    double value = q[k];",
            "    for (i = k; i > 0 && q[i - 1] > value; --i) q[i] = q[i - 1];",
            "    q[i] = value;",
            "  }",
            "}",
        ]
    return [
        f"static inline double {name}_predict(const double *x) {{",
        "  double raw;",
        f"  {name}_raw(x, &raw);",
        f"  return {'exp(raw)' if program.link == 'exp' else 'raw'};",
        "}",
    ]


def _strings(name: str, texts: tuple[str, ...] | list[str]) -> list[str]:
    rows = [f"  {_literal(text)}, /* {i} */" for i, text in enumerate(texts)]
    return [f"static const char *const {name}[] = {{", *rows, "};", ""]


def _literal(text: str) -> str:
    """C string in UTF-8: what is not printable, quotes, backslashes and trigraphs are escaped."""
    if "\0" in text:
        raise ValueError(f"export_c: {text!r} contains a NUL character, which ends a C string; rename it.")
    parts = []
    for c in text:
        if c in '"\\?':
            parts.append(f"\\{c}")
        elif c.isprintable():
            parts.append(c)
        else:
            parts += [f"\\{byte:03o}" for byte in c.encode()]
    return f'"{"".join(parts)}"'


def _wrapped(items: Iterator[str] | list[str]) -> list[str]:
    """Items of an array in lines of about 100 characters."""
    lines, line = [], " "
    for item in items:
        if len(line) + len(item) > 100:
            lines.append(line)
            line = " "
        line += f" {item},"
    return [*lines, line]
