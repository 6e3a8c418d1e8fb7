"""Registry of readers: finds out which library a model belongs to, and how its trees are read and written.

A model whose class defines ``__tree_ensemble__()``, returning an :class:`EnsembleReader`, needs no registration. If the
class also defines ``__with_tree_weights__(kept, weights, intercept)``, returning a copy of the model with other tree
weights, it can be re-weighted and pruned. All other classes are looked up among the readers added by
:func:`register_reader`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from scboost._arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from scboost.diagnostics._tree_matrix import EnsembleReader


@runtime_checkable
class ReadableModel(Protocol):
    """A model that reads its own trees."""

    def __tree_ensemble__(self) -> EnsembleReader: ...


@runtime_checkable
class WritableModel(Protocol):
    """A model that makes a copy of itself with other tree weights."""

    def __with_tree_weights__(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> object: ...


@dataclass(frozen=True)
class Reader:
    """How the models of one library are recognized, read and written.

    Attributes
    ----------
    name : str
        Unique name of the library. Registering another reader of this name replaces it.
    models : str
        Supported classes, for the error message about unsupported models.
    matches : callable
        ``matches(model)`` returns whether the model belongs to the library. It must not import the library.
    read : callable
        ``read(model)`` returns the :class:`EnsembleReader` of a fitted model.
    write : callable, optional
        ``write(model, kept, weights, intercept)`` returns a copy of the model whose raw score is
        ``sum_t weights[t, k] * H[:, kept[t] * K + k] + intercept[k]``, for weights of shape (n_kept, K) and tree
        predictions H as read. For classifiers the raw score is the log-odds, also where that of the original model is a
        probability or a vote. Without it, models can be measured but not re-weighted or pruned.
    """

    name: str
    models: str
    matches: Callable[[Any], bool]
    read: Callable[[Any], EnsembleReader]
    write: Callable[[Any, IntArray, FloatArray, FloatArray], Any] | None = None


_READERS: dict[str, Reader] = {}


def register_reader(reader: Reader) -> None:
    """Add support for the models of another library to all diagnostics.

    Parameters
    ----------
    reader : Reader
        Takes precedence over readers registered earlier; a reader of the same name is replaced.

    Examples
    --------
    A library whose models wrap those of scikit-learn::

        def read(model):
            return read_ensemble(model.forest)

        register_reader(Reader("wood", "wood's Forest", lambda model: isinstance(model, wood.Forest), read))
    """
    _READERS.pop(reader.name, None)
    _READERS[reader.name] = reader


def instances(module: str, *names: str) -> Callable[[object], bool]:
    """Return a test for instances of a module's classes; it never imports the module."""

    def matches(model: object) -> bool:
        loaded = sys.modules.get(module)
        return isinstance(model, tuple(getattr(loaded, name) for name in names if hasattr(loaded, name)))

    return matches


def read_ensemble(model: object) -> EnsembleReader:
    """Return the :class:`EnsembleReader` of a fitted model of any supported library.

    Parameters
    ----------
    model : object
        A fitted model.

    Returns
    -------
    EnsembleReader

    Raises
    ------
    TypeError
        If the model is not a supported tree ensemble.
    """
    if hasattr(type(model), "__tree_ensemble__") and isinstance(model, ReadableModel):
        return model.__tree_ensemble__()
    return _find_reader(model).read(model)


def write_ensemble(model: object, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> Any:
    """Return a copy of the model with other tree weights and intercepts; see :class:`Reader`."""
    if hasattr(type(model), "__tree_ensemble__"):
        if not isinstance(model, WritableModel):
            raise TypeError(
                f"{type(model).__name__} defines __tree_ensemble__ but not __with_tree_weights__, which reweight and "
                "prune need."
            )
        return model.__with_tree_weights__(kept, weights, intercept)
    reader = _find_reader(model)
    if reader.write is None:
        raise TypeError(f"The reader {reader.name!r} has no `write` function, which reweight and prune need.")
    return reader.write(model, kept, weights, intercept)


def _find_reader(model: object) -> Reader:
    for reader in reversed(_READERS.values()):
        if reader.matches(model):
            return reader
    supported = ", ".join(reader.models for reader in _READERS.values())
    raise TypeError(
        f"model must be a tree ensemble of SCBoost, {supported}, or define __tree_ensemble__; got "
        f"{type(model).__name__}. For a pipeline, pass its last step and the transformed samples."
    )
