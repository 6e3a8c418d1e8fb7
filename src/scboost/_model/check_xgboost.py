"""Structural checks of XGBoost's JSON and UBJSON model files of any version since 1.6, without XGBoost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scboost._model import compact, structure
from scboost._model.document import Document
from scboost._model.json_text import convert_lists, read_text

_UBJSON = b"{L"  # a JSON object starts with white space, a quote or its end


def problems(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the location and description of what is wrong with a model file: the first problem of each tree.

    Parameters
    ----------
    data : bytes
        Untrusted.

    Raises
    ------
    UnsupportedError
        If the model is of a kind that is not covered.
    ValueError
        If the file is not of the format.
    """
    binary = data.startswith(_UBJSON)
    content = compact.decode(data) if binary else read_text(data)
    name = _booster_name(content)
    if name == "gblinear":
        yield from structure.linear_problems(Document(content))
    elif _several_outputs(content):
        raise structure.UnsupportedError("trees with several outputs (multi_strategy='multi_output_tree')")
    else:
        try:
            yield from structure.problems(Document(content if binary else convert_lists(content)))
        except structure.UnsupportedError:
            yield "", "the leaves of some trees are vectors, but not of one entry for each target"


def _booster_name(content: Any) -> Any:
    try:
        return content["learner"]["gradient_booster"]["name"]
    except (KeyError, TypeError) as error:
        raise ValueError(f"there is no booster: {type(error).__name__} {error}") from error


def _several_outputs(content: Any) -> bool:
    """Whether the leaves of all trees are vectors with an entry for each target; such trees have other fields."""
    try:
        learner = content["learner"]
        booster, n_targets = learner["gradient_booster"], learner["learner_model_param"]["num_target"]
        trees = booster.get("gbtree", booster)["model"]["trees"]
        sizes = [tree["tree_param"]["size_leaf_vector"] for tree in trees]
    except (KeyError, TypeError, AttributeError):
        return False
    return bool(sizes) and n_targets not in ("0", "1") and all(size == n_targets for size in sizes)
