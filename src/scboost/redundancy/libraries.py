"""Which library a model is from: a registry that others can extend, and a protocol for models that tell themselves.

A model whose class defines ``__tree_ensemble__()``, which returns an :class:`~scboost.redundancy.EnsembleReader`, needs
no registration. If the class also defines ``__with_tree_weights__(kept, weights, intercept)``, which returns a copy of
the model with other weights, it can be re-weighted and pruned. The models of any other class are found through
:func:`register_library`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scboost._arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from scboost.redundancy.tree_matrix import EnsembleReader


@dataclass(frozen=True)
class Library:
    """How the models of one library are read and written.

    Attributes
    ----------
    name : str
        Unique; a library of the same name is replaced.
    models : str
        What is supported, for the message about other models.
    matches : callable
        ``matches(model)`` tells whether the model is of this library. It must not import the library.
    read : callable
        ``read(model)`` returns the :class:`~scboost.redundancy.EnsembleReader` of a fitted model.
    write : callable, optional
        ``write(model, kept, weights, intercept)`` returns a copy of the model whose margin is
        ``sum_t weights[t, k] * H[:, kept[t] * K + k] + intercept[k]``, for weights of shape (n_kept, K) and the trees'
        values H as they were read. The margin is the log-odds of classes, even where that of the model is a
        probability or a vote.
    """

    name: str
    models: str
    matches: Callable[[Any], bool]
    read: Callable[[Any], EnsembleReader]
    write: Callable[[Any, IntArray, FloatArray, FloatArray], Any] | None = None


_LIBRARIES: dict[str, Library] = {}


def register_library(library: Library) -> None:
    """Let :func:`tree_matrix`, :func:`redundancy_report`, :func:`reweight` and :func:`prune` know another library.

    Parameters
    ----------
    library : Library
        It is asked before the libraries registered earlier; one of the same name is replaced.

    Examples
    --------
    A library whose models hold scikit-learn's::

        def read(model):
            return read_ensemble(model.forest)

        register_library(Library("wood", "wood's Forest", lambda model: isinstance(model, wood.Forest), read))
    """
    _LIBRARIES.pop(library.name, None)
    _LIBRARIES[library.name] = library


def instances(module: str, *names: str) -> Callable[[Any], bool]:
    """Return a test for instances of a module's classes; a module that is not loaded has none."""

    def matches(model: Any) -> bool:
        loaded = sys.modules.get(module)
        return isinstance(model, tuple(getattr(loaded, name) for name in names if hasattr(loaded, name)))

    return matches


def read_ensemble(model: Any) -> EnsembleReader:
    """Read the trees of a model of any known kind."""
    if hasattr(type(model), "__tree_ensemble__"):
        return model.__tree_ensemble__()  # type: ignore[no-any-return]
    return _library_of(model).read(model)


def write_ensemble(model: Any, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> Any:
    """Return a copy of the model with other trees' weights and intercepts; see :class:`Library`."""
    if hasattr(type(model), "__tree_ensemble__"):
        write = getattr(model, "__with_tree_weights__", None)
        if write is None:
            raise TypeError(f"{type(model).__name__} has __tree_ensemble__, but no __with_tree_weights__.")
        return write(kept, weights, intercept)
    library = _library_of(model)
    if library.write is None:
        raise TypeError(f"The library {library.name!r} was registered without a way to write models.")
    return library.write(model, kept, weights, intercept)


def _library_of(model: Any) -> Library:
    for library in reversed(_LIBRARIES.values()):
        if library.matches(model):
            return library
    supported = ", ".join(library.models for library in _LIBRARIES.values())
    raise TypeError(
        f"model must be a tree ensemble of SCBoost, {supported}, or define __tree_ensemble__; got "
        f"{type(model).__name__}. For a pipeline, pass its last step and the transformed rows."
    )
