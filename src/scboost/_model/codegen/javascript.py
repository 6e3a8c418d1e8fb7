"""JavaScript: one ES module with a function per tree, which takes samples as objects or arrays."""

from __future__ import annotations

import json
import os

from scboost._model.codegen.program import (
    Label,
    Leaf,
    Node,
    Program,
    Split,
    chain,
    comment_text,
    splits,
    write_text,
)

_INLINE = 4  # sets of more categories than these become a Set


def export_js(program: Program, path: str | os.PathLike[str] | None) -> str:
    """Write a program as an ES module; see :func:`scboost.export_js`."""
    sets = _large_sets(program)
    lines = [
        f"// SCBoost model: {program.summary}.",
        "//",
        f"//   import {{ predict{'' if program.classes is None else ', predictProba'} }} from './model.mjs';",
        f"//   predict({{ {_key(program)}: ..., ... }})  // or an array in the order of `features`",
        "//",
        "// null, undefined and NaN are missing values; categories are strings.",
        "",
        f"export const features = {_list(program.features)};",
        *_targets(program),
        "",
        *_encoding(program),
        *(f"const set{i} = new Set([{', '.join(map(str, members))}]);" for members, i in sets.items()),
        *[""] * bool(sets),
    ]
    number = 0
    names: list[list[str]] = []
    for trees in program.trees:
        names.append([f"tree{number + i}" for i in range(len(trees))])
        for root in trees:
            lines += [f"function tree{number}(x) {{", *_code(program, root, sets, "  "), "}", ""]
            number += 1
    return write_text(path, "\n".join([*lines, *_raw(program, names), *_prediction(program)]) + "\n")


def _large_sets(program: Program) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for trees in program.trees:
        for root in trees:
            for split in splits(root):
                if len(split.members) > _INLINE:
                    found.setdefault(split.members, len(found))
    return found


def _key(program: Program) -> str:
    name = program.features[0]
    return name if name.isascii() and name.isidentifier() else _string(name)


def _targets(program: Program) -> list[str]:
    if program.classes is not None:
        return [f"export const classes = [{', '.join(map(_label, program.classes))}];"]
    return [f"export const quantiles = {json.dumps(program.quantiles)};"] if program.quantiles else []


def _encoding(program: Program) -> list[str]:
    """Code that turns a sample into float32 numbers: categories into their codes, missing values into NaN."""
    tables = ["null" if known is None else f"codes({_list(known)})" for known in program.categories]
    zero = " || value === 0" if program.zero_is_missing else ""
    return [
        "const codes = (texts) => new Map(texts.map((text, code) => [text, code]));",
        "// Codes of the categories of each feature; null for numeric features.",
        "const categories = [",
        *(f"  {table}, // {comment_text(name)}" for table, name in zip(tables, program.features, strict=True)),
        "];",
        "",
        "// Features as float32 numbers: categories by their codes, NaN if missing or unseen.",
        "function encode(sample) {",
        "  const byIndex = Array.isArray(sample) || ArrayBuffer.isView(sample);",
        "  if (byIndex && sample.length !== features.length) {",
        "    throw new RangeError(`The sample has ${sample.length} features, the model ${features.length}.`);",
        "  }",
        "  return features.map((name, j) => {",
        "    if (!byIndex && !Object.prototype.hasOwnProperty.call(sample, name)) {",
        "      throw new TypeError(`The sample has no feature ${JSON.stringify(name)}; a missing value is null.`);",
        "    }",
        "    const value = sample[byIndex ? j : name];",
        f"    if (value === null || value === undefined || Number.isNaN(value){zero}) return NaN;",
        "    if (categories[j] !== null) {",
        "      const code = categories[j].get(String(value));",
        "      return code === undefined ? NaN : code;",
        "    }",
        "    if (typeof value !== 'number' && typeof value !== 'boolean') {",
        "      throw new TypeError(`Feature ${JSON.stringify(name)} is numeric, got a ${typeof value}.`);",
        "    }",
        "    return Math.fround(value);",
        "  });",
        "}",
        "",
    ]


def _code(program: Program, node: Node, sets: dict[tuple[int, ...], int], indent: str) -> list[str]:
    conditions, last = chain(node)
    lines = []
    for split, goes_left, inner in conditions:
        comment = comment_text(program.features[split.feature])
        condition = _condition(split, sets, goes_left=goes_left)
        if isinstance(inner, Leaf):
            lines.append(f"{indent}if ({condition}) return {float(inner.value)!r}; // {comment}")
        else:
            lines += [
                f"{indent}if ({condition}) {{ // {comment}",
                *_code(program, inner, sets, f"{indent}  "),
                f"{indent}}}",
            ]
    return [*lines, f"{indent}return {float(last.value)!r};"]


def _condition(split: Split, sets: dict[tuple[int, ...], int], *, goes_left: bool) -> str:
    """Return the condition for going left or right; comparisons with NaN are false."""
    x = f"x[{split.feature}]"
    takes_missing = split.missing_left == goes_left
    if split.threshold is not None:
        threshold = repr(float(split.threshold))
        if takes_missing:
            return f"!({x} {'>=' if goes_left else '<'} {threshold})"
        return f"{x} {'<' if goes_left else '>='} {threshold}"
    if split.members in sets:
        member = f"set{sets[split.members]}.has({x})"
    else:
        member = " || ".join(f"{x} === {c}" for c in split.members) or "false"
    if goes_left:
        return f"!({member})" if takes_missing else f"{x} >= 0 && !({member})"
    return f"!({x} >= 0) || {member}" if takes_missing else member


def _raw(program: Program, names: list[list[str]]) -> list[str]:
    return [
        "// Trees of each output.",
        "const trees = [",
        *(f"  [{', '.join(own)}]," for own in names),
        "];",
        f"const intercept = {json.dumps([float(value) for value in program.intercept])};",
        "",
        "// Raw scores: intercept plus the values of the leaves.",
        "export function rawScores(sample) {",
        "  const x = encode(sample);",
        "  return trees.map((own, k) => own.reduce((sum, tree) => sum + tree(x), intercept[k]));",
        "}",
        "",
    ]


def _prediction(program: Program) -> list[str]:
    if program.link == "logistic":
        probabilities = [
            "  const p = 1 / (1 + Math.exp(-rawScores(sample)[0]));",
            "  return [1 - p, p];",
        ]
        label = ["  return classes[rawScores(sample)[0] > 0 ? 1 : 0];"]
    elif program.link == "softmax":
        probabilities = [
            "  const raw = rawScores(sample);",
            "  const largest = raw.reduce((a, b) => Math.max(a, b));",
            "  const parts = raw.map((value) => Math.exp(value - largest));",
            "  const sum = parts.reduce((a, b) => a + b);",
            "  return parts.map((part) => part / sum);",
        ]
        label = [
            "  const raw = rawScores(sample);",
            "  return classes[raw.indexOf(raw.reduce((a, b) => Math.max(a, b)))];",
        ]
    else:
        value = {
            "sorted": "rawScores(sample).sort((a, b) => a - b)",
            "exp": "Math.exp(rawScores(sample)[0])",
            "identity": "rawScores(sample)[0]",
        }[program.link]
        return ["export function predict(sample) {", f"  return {value};", "}"]
    return [
        "// Probabilities in the order of `classes`.",
        "export function predictProba(sample) {",
        *probabilities,
        "}",
        "",
        "// Most probable class.",
        "export function predict(sample) {",
        *label,
        "}",
    ]


def _list(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_string, texts))}]"


def _label(label: Label) -> str:
    return _string(label) if isinstance(label, str) else json.dumps(label)


def _string(text: str) -> str:
    """JavaScript string; what is not printable is escaped, and what would end a script element in HTML."""
    written = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(text, ensure_ascii=False))
    return written.replace("</", "<\\/").replace("<!", "<\\u0021")
