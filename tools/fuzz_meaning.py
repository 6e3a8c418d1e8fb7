"""Mutants of model files that change their meaning: swapped, scaled, renamed, retyped, duplicated and spliced parts.

All are written in a valid form and with the right checksum, as someone would who knows the format. Some change both
parts of a file consistently, and must then be read as plain XGBoost reads them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from scboost._model import file
from scboost._model.document import Document
from scboost._model.packing import pack, unpack

Own = dict[str, Any]
Change = Callable[[np.random.Generator, Document, Own, Document], None]
FACTORS = (-1.0, 0.0, 0.5, 0.999999, 1.000001, 2.0, 1e-30, 1e30, 1e300)
SHIFTS = (1e-7, -1e-3, 1.0, 99.0, -1e6, 1e30)


def mutate(rng: np.random.Generator, document: Document, donor: Document, *, as_json: bool) -> bytes:
    """Return a mutant of a document, which is changed; the donor gives parts to splice in."""
    own = json.loads(document.attributes["scboost"])
    for _ in range(int(rng.geometric(0.7))):
        change = CHANGES[rng.integers(len(CHANGES))]
        try:
            change(rng, document, own, donor)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            continue  # an earlier change has taken away what this one is about
    text = json.dumps(own)
    if rng.random() < 0.03:
        text = _with_repeated_key(rng, text)
    document = document.with_learner(attributes={"scboost": text})
    checksum = file.checksum(document)
    document = document.with_learner(attributes={**document.attributes, "scboost_checksum": checksum})
    return document.encode_json() if as_json else document.encode()


def _with_repeated_key(rng: np.random.Generator, text: str) -> str:
    keys = list(json.loads(text))
    key = keys[rng.integers(len(keys))]
    return f'{{"{key}": {json.dumps(json.loads(text)[keys[rng.integers(len(keys))]])}, {text[1:]}'


def _choice(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _arrays(own: Own, name: str, change: Callable[[Any], Any]) -> None:
    own[name] = pack(change(unpack(own[name])))


# --- trees -----------------------------------------------------------------------------------------------------------


def _swap_trees(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Exchange two trees, with ids that fit."""
    del own, donor
    trees = document.trees
    a, b = rng.integers(len(trees), size=2)
    trees[a], trees[b] = {**trees[b], "id": int(a)}, {**trees[a], "id": int(b)}


def _swap_ids(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del own, donor
    a, b = rng.integers(len(document.trees), size=2)
    document.trees[a]["id"], document.trees[b]["id"] = document.trees[b]["id"], document.trees[a]["id"]


def _swap_children(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Exchange the children of a node: in its links, or with their content, or both."""
    del own, donor
    tree = _choice(rng, document.trees)
    node = _choice(rng, np.flatnonzero(tree["left_children"] != -1))
    a, b = int(tree["left_children"][node]), int(tree["right_children"][node])
    if rng.random() < 0.7:
        tree["left_children"][node], tree["right_children"][node] = b, a
    if rng.random() < 0.7:
        for name in (
            "base_weights",
            "loss_changes",
            "sum_hessian",
            "split_conditions",
            "split_indices",
            "default_left",
        ):
            tree[name][[a, b]] = tree[name][[b, a]]


def _edit_nodes(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Change a number of a node that a sound tree may have."""
    del own, donor
    tree = _choice(rng, document.trees)
    node = int(rng.integers(len(tree["left_children"])))
    match int(rng.integers(5)):
        case 0:
            tree["default_left"][node] ^= 1
        case 1:
            tree["split_indices"][node] = rng.integers(document.n_features)
        case 2:
            tree["split_conditions"][node] *= _choice(rng, FACTORS[:6])
        case 3:
            tree["sum_hessian"][node] *= _choice(rng, FACTORS[:6])
        case _:
            tree["split_type"][node] ^= 1


def _edit_categories(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del own, donor
    tree = _choice(rng, [tree for tree in document.trees if len(tree["categories"])])
    tree["categories"][rng.integers(len(tree["categories"]))] = rng.integers(0, 5)


def _splice_tree(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del own
    at = int(rng.integers(len(document.trees)))
    document.trees[at] = {**_choice(rng, donor.trees), "id": at}


# --- both parts, consistently ----------------------------------------------------------------------------------------


def _scale_consistently(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Scale a later round's weights, and the native leaves with them: another model, but a sound one."""
    del donor
    factor = float(_choice(rng, [0.5, 2.0, -1.0, 4.0]))
    weights = unpack(own["weights"])
    kept = np.flatnonzero(weights.any(axis=1))
    t = int(rng.integers(1, len(kept)))
    weights[kept[t]] *= factor
    own["weights"] = pack(weights)
    K = weights.shape[1]
    for tree in document.trees[t * K : (t + 1) * K]:
        leaf = tree["left_children"] == -1
        tree["split_conditions"][leaf] *= np.float32(factor)
        tree["base_weights"][leaf] *= np.float32(factor)


def _move_scale(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Move a factor from the weights to the leaf values: the same native model."""
    del document, donor
    factor = float(_choice(rng, [2.0, 0.5, -4.0, 2.0**-100, 2.0**100]))
    _arrays(own, "weights", lambda w: w * factor)
    _arrays(own, "leaf_values", lambda v: (v / np.float32(factor)).astype(np.float32))


def _duplicate_round(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Repeat the last round in all places that know it, or in all but one."""
    del donor
    weights = unpack(own["weights"])
    K = weights.shape[1]
    trees = document.trees
    new = [copy.deepcopy(tree) for tree in trees[-K:]]
    sizes = [int((tree["left_children"] == -1).sum()) for tree in trees]
    n_last = sum(sizes[-K:])
    skipped = int(rng.integers(6))
    if skipped != 0:
        own["weights"] = pack(np.vstack([weights, weights[-1:]]))
    if skipped != 1:
        _arrays(own, "leaf_values", lambda v: np.concatenate([v, v[len(v) - n_last :]]))
    if skipped != 2:
        own["fitted"]["n_estimators_"] += 1
    model = document.model
    outputs = [int(k) for k in model["tree_info"]]
    model["trees"] = [{**tree, "id": i} for i, tree in enumerate([*trees, *new])]
    model["tree_info"] = [*outputs, *outputs[-K:]]
    model["iteration_indptr"] = list(range(0, len(model["trees"]) + 1, K))
    model["gbtree_model_param"] = {**model["gbtree_model_param"], "num_trees": str(len(model["trees"]))}


# --- scboost's own part ----------------------------------------------------------------------------------------------


def _scale_own(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del document, donor
    name, factor = _choice(rng, ["weights", "leaf_values", "intercept"]), _choice(rng, FACTORS)
    with np.errstate(all="ignore"):
        _arrays(own, name, lambda v: (v * factor).astype(v.dtype))


def _shift_own(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Shift the intercept, and sometimes the leaf values of the first round against it."""
    del donor
    shift = float(_choice(rng, SHIFTS))
    _arrays(own, "intercept", lambda b: b + shift)
    if rng.random() < 0.5:
        weights = unpack(own["weights"])
        first = weights[np.flatnonzero(weights.any(axis=1))[0], 0]
        n = sum(int((tree["left_children"] == -1).sum()) for tree in document.trees[: weights.shape[1]])
        moved = unpack(own["leaf_values"])
        moved[:n] -= np.float32(shift / first)
        own["leaf_values"] = pack(moved)


def _swap_in_array(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del document, donor
    name = _choice(rng, ["weights", "leaf_values", "intercept"])

    def swap(values: Any) -> Any:
        a, b = rng.integers(len(values), size=2)
        values[[a, b]] = values[[b, a]]
        return values

    _arrays(own, name, swap)


def _change_fitted(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del document
    other = json.loads(donor.attributes["scboost"])["fitted"]
    name = _choice(rng, sorted({*own["fitted"], *other}))
    match int(rng.integers(4)):
        case 0:
            own["fitted"].pop(name)
        case 1:
            own["fitted"][name] = other[name]
        case 2:
            own["fitted"][name] = _choice(rng, [0, 1, -1, 3, 2.5, "6", True, None, [], {"float": "nan"}, {"dict": []}])
        case _:
            own["fitted"][_choice(rng, ["predict", "x_", "n_features_in_", "weights_"])] = own["fitted"][name]


def _change_classes(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del document, donor
    classes = unpack(own["fitted"]["classes_"])
    match int(rng.integers(3)):
        case 0:
            classes = classes[::-1]
        case 1:
            classes = classes.astype(object)
            classes[0] = float("nan")
        case _:
            classes = np.append(classes, classes[:1])
    own["fitted"]["classes_"] = pack(classes)


def _change_parameters(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del document
    other = json.loads(donor.attributes["scboost"])["parameters"]
    name = _choice(rng, sorted({*own["parameters"], *other}))
    own["parameters"][name] = _choice(rng, [other.get(name), 0.3, 1, "poisson", None, True, [0.1, 0.9]])


def _change_loss(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del document
    match int(rng.integers(3)):
        case 0:
            own["loss"] = json.loads(donor.attributes["scboost"])["loss"]
        case 1:
            numbers = own["loss"]["numbers"]
            numbers[_choice(rng, sorted(numbers))] = _choice(rng, [0.3, 0.5, 1, 2, 4, "0.5", True, [0.2, 0.8]])
        case _:
            name = _choice(rng, ["SquaredLoss", "PoissonLoss", "GammaLoss", "LogisticLoss", "SoftmaxLoss"])
            own["loss"] = {"name": name, "numbers": {"n_classes": 3} if name == "SoftmaxLoss" else {}}


def _change_features(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Rename or exchange features or categories, in one part of the file or in both."""
    del donor
    match int(rng.integers(5)):
        case 0:
            own["sparse"] = not own["sparse"]
        case 1:
            names = document.learner["feature_names"]
            names[int(rng.integers(len(names)))] = _choice(rng, ["", "new", names[0], "x" * 99])
        case 2:
            texts = _choice(rng, [texts for texts in own["columns"]["categories"] if texts])
            a, b = rng.integers(len(texts), size=2)
            texts[a], texts[b] = texts[b], _choice(rng, [texts[a], "new"])
        case 3:
            own["columns"]["whole"] = _choice(rng, [[], [0], [1], [1, 2], [True], own["columns"]["whole"] * 2])
        case _:
            entry = _choice(rng, [entry for entry in document.model["cats"]["enc"] if len(entry["values"])])
            entry["values"][rng.integers(len(entry["values"]))] ^= 1


def _splice_own(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Take one or all entries of another file's own part."""
    del document
    other = json.loads(donor.attributes["scboost"])
    if rng.random() < 0.2:
        own.clear()
        own.update(other)
    else:
        name = _choice(rng, sorted(other))
        own[name] = other[name]


def _retype(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    del document, donor
    name = _choice(rng, ["weights", "leaf_values", "intercept"])
    with np.errstate(all="ignore"):
        _arrays(own, name, lambda v: v.astype(_choice(rng, ["<f4", "<f8", "<i8", "|b1", "<f2"])))


def _change_learner(rng: np.random.Generator, document: Document, own: Own, donor: Document) -> None:
    """Exchange parts of the native model other than its trees."""
    del own
    learner, other = document.learner, donor.learner
    match int(rng.integers(5)):
        case 0:
            learner["objective"] = copy.deepcopy(other["objective"])
        case 1:
            text = learner["learner_model_param"]["base_score"]
            scaled = float(text.strip("[]").split(",")[0]) * float(_choice(rng, FACTORS[:6]))
            learner["learner_model_param"]["base_score"] = _choice(rng, [f"{scaled:.8E}", f"[{text}]", "5E-1", "0.5"])
        case 2:
            name = _choice(rng, sorted(learner["learner_model_param"]))
            learner["learner_model_param"][name] = other["learner_model_param"][name]
        case 3:
            document.content["version"] = _choice(rng, [[0, 9, 0], [1, 7, 6], [3, 4, 1], [3, 1, 1]])
        case _:
            model = document.model
            model["weight_drop"] = [float(_choice(rng, FACTORS[:6])) for _ in document.trees]


CHANGES: tuple[Change, ...] = (
    _swap_trees,
    _swap_ids,
    _swap_children,
    _edit_nodes,
    _edit_nodes,
    _edit_categories,
    _splice_tree,
    _scale_consistently,
    _move_scale,
    _duplicate_round,
    _scale_own,
    _shift_own,
    _swap_in_array,
    _change_fitted,
    _change_classes,
    _change_parameters,
    _change_loss,
    _change_features,
    _splice_own,
    _retype,
    _change_learner,
)
