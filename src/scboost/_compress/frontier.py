"""``compress`` as a curve of :func:`scboost.diagnostics.frontier`, and so of reports."""

from __future__ import annotations

import numpy as np

from scboost._arrays import FloatArray
from scboost._compress.compression import Options, compress_model
from scboost.diagnostics._frontier import FrontierTask, NotedMargins

_MOST_TREES, _LEAVES, _SYNTHETIC = 20, 64, 8_000  # less than the defaults of `compress`: a report should not take long


def compressed_margins(task: FrontierTask) -> NotedMargins:
    """Return raw scores of the first trees of a compressed model; see :data:`FrontierMethod`."""
    sizes = task.sizes[task.sizes <= _MOST_TREES]
    if not len(sizes):
        raise ValueError(f"compress is shown for at most {_MOST_TREES} trees")
    options = Options(
        max_trees=int(sizes.max()),
        max_leaves=_LEAVES,
        max_bytes=None,
        confidence=0.95,
        X_certify=task.X_evaluation,
        y_certify=None,
        certify_fraction=0.1,
        X_synthetic=None,
        n_synthetic=_SYNTHETIC,
        link="auto",
    )
    try:
        growth = compress_model(task.model, task.X_selection, task.y_selection, options, 0, 1)
    except TypeError as error:  # of models whose raw score cannot be had
        raise ValueError(str(error)) from error
    family, n_trees = growth.teacher.family, growth.result.n_trees
    margins: dict[int, FloatArray] = {}
    for size in sizes[sizes <= n_trees].tolist():
        raw = growth.scores(size)
        F = family.mean(raw) if family.link == "log" else raw
        margins[size] = F[0] if len(F) == 1 else np.ascontiguousarray(F.T)
    certificate = " ".join(str(growth.result.certificate).splitlines())
    return NotedMargins(margins, f"Certificate for {n_trees} trees: {certificate}")
