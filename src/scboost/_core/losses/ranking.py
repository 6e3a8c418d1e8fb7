"""Losses of rankings: the raw scores of the documents of a query are compared with each other.

Targets have shape (n, 2): the relevance of a document, at least 0, and the number of its query.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost._core.links import PairwiseRankLink, RankLink
from scboost._core.losses.base import MIN_HESSIAN, Loss
from scboost._core.losses.coupled import CoupledLoss
from scboost._core.ranking import discounts, gains, ndcg_by_query
from scboost._engine.native import is_available
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator

_CELLS = 1 << 21  # pairs of documents that are compared at once
_LARGEST_RELEVANCE = 50  # whose exponential gain, and its sums, float64 holds


@dataclass(frozen=True)
class Block:
    """Queries of similar size, as rows of matrices of shape (n_queries, size), by descending score.

    Attributes
    ----------
    place : ndarray of int
        Index of the document among the samples.
    known : ndarray of bool
        Whether there is a document with weight at this place.
    score, relevance, weight : ndarray
        Of the document; the weights of a query have mean 1.
    """

    place: IntArray
    known: BoolArray
    score: FloatArray
    relevance: FloatArray
    weight: FloatArray


def blocks(y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None, width: int) -> Iterator[Block]:
    """Yield the documents with weight, query by query; ``width`` of them are compared with all of their query."""
    used = np.arange(len(y)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    score = raw[0].astype(np.float64)
    order = used[np.lexsort((-score[used], y[used, 1]))]
    _, starts, sizes = np.unique(y[order, 1], return_index=True, return_counts=True)
    padded = np.exp2(np.ceil(np.log2(sizes))).astype(np.intp) if len(sizes) else sizes
    for size in np.unique(padded):
        same = np.flatnonzero(padded == size)
        step = max(_CELLS // int(size * min(size, width)), 1)
        for first in range(0, len(same), step):
            part = same[first : first + step]
            column = np.arange(size)
            known = column < sizes[part, None]
            place = order[np.where(known, starts[part, None] + column, starts[part, None])]
            weight = np.where(known, 1.0 if sample_weight is None else sample_weight[place], 0.0)
            weight /= weight.sum(axis=1, keepdims=True) / sizes[part, None]
            yield Block(place, known, np.where(known, score[place], -np.inf), y[place, 0], weight)


class RankingLoss(CoupledLoss):
    """A loss of the order of the documents within each query.

    Attributes
    ----------
    ranking_kernel : str
        Name of the compiled kernel; NumPy computes the loss without one, and where the kernels are not installed.
    """

    task = "ranking"
    ranking_kernel: str = ""

    def check_target(self, y: FloatArray, name: str) -> None:
        relevance = y[:, 0]
        if (relevance < 0).any() or (relevance > _LARGEST_RELEVANCE).any():
            raise ValueError(
                f"{name} must hold relevances from 0 to {_LARGEST_RELEVANCE}, got {relevance.min():g} to "
                f"{relevance.max():g}."
            )

    def require_pairs(self, y: FloatArray, name: str, communicator: Communicator = SINGLE_PROCESS) -> None:
        """Raise ValueError if no query on any worker has documents of different relevance."""
        order = np.lexsort((y[:, 0], y[:, 1]))
        same = y[order[1:], 1] == y[order[:-1], 1]
        comparable = same & (np.diff(y[order, 0]) > 0)
        if not communicator.max(np.array([float(comparable.any())])).any():
            raise ValueError(
                f"{name} has no query with documents of different relevance; at least one is needed to learn a ranking."
            )

    def derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        if not self._is_compiled:
            return self.numpy_derivatives(y, raw, sample_weight)
        gradient, hessian = np.empty((2, len(y)))
        loss = self._call_kernel(y, raw, sample_weight, gradient, hessian)
        return loss, gradient[None], hessian[None]

    def losses(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        if not self._is_compiled:
            return self.numpy_losses(y, raw, sample_weight)
        return self._call_kernel(y, raw, sample_weight, None, None)

    @property
    def _is_compiled(self) -> bool:
        return bool(vars(type(self)).get("ranking_kernel")) and is_available()  # not the kernel of a parent

    @property
    def _kernel_options(self) -> tuple[int, ...]:
        """Arguments of the kernel besides arrays."""
        return ()

    def _call_kernel(
        self,
        y: FloatArray,
        raw: FloatArray,
        sample_weight: FloatArray | None,
        gradient: FloatArray | None,
        hessian: FloatArray | None,
    ) -> FloatArray:
        """Set gradient and Hessian, of shape (n,), if they are given; return the losses."""
        from scboost._engine.native import _native

        loss = np.empty(len(y))
        y, score = np.ascontiguousarray(y, dtype=np.float64), np.ascontiguousarray(raw[0], dtype=np.float64)
        weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
        getattr(_native, self.ranking_kernel)(y, score, weight, *self._kernel_options, loss, gradient, hessian)
        return loss

    def numpy_losses(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return the losses without the kernel."""
        return self.numpy_derivatives(y, raw, sample_weight)[0]

    def numpy_derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what :meth:`derivatives` returns, without the kernel."""
        loss, gradient, hessian = (np.zeros(len(y)) for _ in range(3))
        for block in self._blocks(y, raw, sample_weight):
            at, known = block.place, block.known
            for whole, part in zip((loss, gradient, hessian), self.terms(block), strict=True):
                whole[at[known]] = part[known]
        return loss, gradient[None], np.maximum(hessian, MIN_HESSIAN)[None]

    def hessian_product(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None, V: FloatArray
    ) -> FloatArray:
        product = np.zeros(V.shape)
        for block in self._blocks(y, raw, sample_weight):
            at, known = block.place, block.known
            part = self.block_product(block, V[at].astype(np.float64, copy=False))
            if sample_weight is not None:  # the weights of a block have mean 1 in each query
                part *= (sample_weight[at] / np.where(known, block.weight, 1.0))[:, :, None]
            product[at[known]] = part[known]
        return product

    def _blocks(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> Iterator[Block]:
        return blocks(y, raw, sample_weight, self._width)

    @property
    def _width(self) -> int:
        """How many of the best documents of a query are compared with all others."""
        return 1 << 30

    @abstractmethod
    def terms(self, block: Block) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return loss, gradient and Hessian of the documents of a block, for a unit of weight."""

    @abstractmethod
    def block_product(self, block: Block, V: FloatArray) -> FloatArray:
        """Return the Hessian of the sum of a block's losses, times its weights, applied to V.

        Parameters
        ----------
        block : Block
            Queries.
        V : ndarray of shape (n_queries, size, T)
            Directions of the raw scores.
        """


class PairwiseLoss(RankingLoss):
    """Logistic loss of the pairs of documents of different relevance, divided by the number of documents."""

    link = PairwiseRankLink()
    ranking_kernel = "pairwise"

    def terms(self, block: Block) -> tuple[FloatArray, FloatArray, FloatArray]:
        pairs = _Pairs.of(block, block.score.shape[1])
        scale = 1 / block.known.sum(axis=1)[:, None, None]
        return pairs.losses(scale), *pairs.derivatives(scale)

    def block_product(self, block: Block, V: FloatArray) -> FloatArray:
        return _Pairs.of(block, block.score.shape[1]).product(1 / block.known.sum(axis=1)[:, None, None], V)


class LambdaRankLoss(RankingLoss):
    """LambdaRank: each pair counts by how much NDCG changes if its documents are swapped.

    The derivatives of a query are divided by one plus the sum of their sizes, so that no query outweighs others. The
    value of the loss, on which rounds are selected, is one minus NDCG.

    Parameters
    ----------
    truncation : int
        NDCG counts this many documents of a query, and each pair has one of these at least.
    """

    link = RankLink()
    ranking_kernel = "lambdarank"
    normalized = True
    convex = False

    def __init__(self, truncation: int) -> None:
        self.truncation = int(truncation)

    @property
    def _width(self) -> int:
        return self.truncation

    @property
    def _kernel_options(self) -> tuple[int, ...]:
        return self.truncation, self.normalized

    def numpy_losses(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        del sample_weight
        query = np.unique(y[:, 1], return_inverse=True)[1].reshape(-1)
        shares = ndcg_by_query(y[:, 0], raw[0].astype(np.float64), query, self.truncation)
        return np.where(np.isnan(shares), 0.0, 1 - shares)[query]

    def numpy_derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        _, gradient, hessian = super().numpy_derivatives(y, raw, sample_weight)
        if self.normalized:
            query = np.unique(y[:, 1], return_inverse=True)[1].reshape(-1)
            factor = self._query_factor(query, gradient[0], sample_weight)
            gradient, hessian = (part * factor for part in (gradient, hessian))
        return self.numpy_losses(y, raw, sample_weight), gradient, np.maximum(hessian, MIN_HESSIAN)

    def shared_derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        loss, gradient, hessian = self.derivatives(y, raw, sample_weight)
        if communicator.size == 1 or not self.normalized:
            return loss, gradient, hessian
        # They have the mean number of documents per query of this worker as a factor.
        used = y if sample_weight is None else y[sample_weight > 0]
        own = np.array([len(used), len(np.unique(used[:, 1]))], dtype=np.float64)
        n_documents, n_queries = communicator.sum(own)
        factor = n_documents / n_queries * own[1] / max(own[0], 1.0)
        return loss, gradient * factor, np.maximum(hessian * factor, MIN_HESSIAN)

    @staticmethod
    def _query_factor(query: IntArray, gradient: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return what the derivatives of each document are multiplied by, so that no query outweighs others."""
        used = np.ones(len(query)) if sample_weight is None else (sample_weight > 0).astype(np.float64)
        sizes = np.bincount(query, weights=np.abs(gradient) * used)
        mean = used.sum() / max(len(np.unique(query[used > 0])), 1)
        return np.asarray((mean / (1 + sizes))[query])

    def convex_surrogate(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> Loss:
        return FixedLambdaLoss(self, y, raw, sample_weight)

    def terms(self, block: Block) -> tuple[FloatArray, FloatArray, FloatArray]:
        return np.zeros_like(block.score), *self.pairs(block).derivatives(self.changes(block))

    def block_product(self, block: Block, V: FloatArray) -> FloatArray:
        return self.pairs(block).product(self.changes(block), V)

    def pairs(self, block: Block) -> _Pairs:
        """Return the pairs of which one document is among the first."""
        return _Pairs.of(block, min(self.truncation, block.score.shape[1]))

    def changes(self, block: Block) -> FloatArray:
        """Return by how much NDCG changes if the documents of a pair are swapped, of shape (n_queries, k, size)."""
        k = min(self.truncation, block.score.shape[1])
        gain, discount = gains(block.relevance) * block.known, discounts(block.score.shape[1])
        cut = np.where(np.arange(len(discount)) < self.truncation, discount, 0.0)
        best = -np.sort(-gain, axis=1) @ cut
        change = np.abs(gain[:, :k, None] - gain[:, None]) * np.abs(discount[:k, None] - discount)
        change /= np.where(best > 0, best, 1.0)[:, None, None]
        return np.asarray(change)


class FixedLambdaLoss(RankingLoss):
    """LambdaRank with the pairs and their weights as they are at given raw scores.

    It is a convex loss, whose derivatives at these scores are those of LambdaRank.

    Parameters
    ----------
    loss : LambdaRankLoss
        The loss.
    y, raw, sample_weight
        Targets, raw scores and weights that determine pairs and weights.
    """

    link = RankLink()

    def __init__(self, loss: LambdaRankLoss, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> None:
        self._loss, self._at = loss, np.array(raw, dtype=np.float64)
        self._factor: FloatArray = np.ones(len(y))
        if loss.normalized:
            query = np.unique(y[:, 1], return_inverse=True)[1].reshape(-1)
            gradient = self.derivatives(y, self._at, sample_weight)[1][0]
            self._factor = loss._query_factor(query, gradient, sample_weight)  # noqa: SLF001 - its own surrogate

    def _blocks(self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None) -> Iterator[Block]:
        """Yield documents in the order of the given raw scores, with those to be evaluated."""
        for block in blocks(y, self._at, sample_weight, self._loss.truncation):
            yield replace(block, score=np.where(block.known, raw[0].astype(np.float64)[block.place], -np.inf))

    def terms(self, block: Block) -> tuple[FloatArray, FloatArray, FloatArray]:
        pairs, changes = self._loss.pairs(block), self._changes(block)
        return pairs.losses(changes), *pairs.derivatives(changes)

    def block_product(self, block: Block, V: FloatArray) -> FloatArray:
        return self._loss.pairs(block).product(self._changes(block), V)

    def _changes(self, block: Block) -> FloatArray:
        return self._loss.changes(block) * self._factor[block.place[:, 0]][:, None, None]


class XENDCGLoss(RankingLoss):
    """Cross-entropy between the softmax of the scores of a query and its gains, a bound of NDCG (XE-NDCG).

    The gain of a relevance r is ``2^r - 1/2``, the mean over the random perturbation of the paper. The loss of a query
    counts as often as it has documents.
    """

    link = RankLink()
    ranking_kernel = "xendcg"

    def terms(self, block: Block) -> tuple[FloatArray, FloatArray, FloatArray]:
        size = block.known.sum(axis=1, keepdims=True)
        target = block.weight * (gains(block.relevance) + 0.5)
        target = target / target.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            logs = special.log_softmax(block.score + np.log(block.weight), axis=1)
        # Per unit of weight: the derivatives of the loss of the query by the score are these times the weight.
        weight = np.where(block.known, block.weight, 1.0)
        share, wanted = np.exp(logs) / weight, target / weight
        own = np.where(block.known, logs - np.log(weight), 0.0)
        different = np.ptp(np.where(block.known, block.relevance, block.relevance[:, :1]), axis=1, keepdims=True) > 0
        scale = size * different
        return -scale * wanted * own, scale * (share - wanted), scale * share * (1 - np.exp(logs))

    def block_product(self, block: Block, V: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            share = special.softmax(block.score + np.log(block.weight), axis=1)[:, :, None]
        different = np.ptp(np.where(block.known, block.relevance, block.relevance[:, :1]), axis=1) > 0
        scale = (block.known.sum(axis=1) * different)[:, None, None]
        return np.asarray(scale * share * (V - (share * V).sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class _Pairs:
    """Pairs (i, j) of the first k documents of a query and those behind them, of shape (n_queries, k, size)."""

    block: Block
    usable: BoolArray  # of different relevance
    sign: FloatArray  # 1 if the first document should be first
    margin: FloatArray  # score of the more relevant minus that of the other

    @classmethod
    def of(cls, block: Block, k: int) -> _Pairs:
        relevance, known, size = block.relevance, block.known, block.score.shape[1]
        sign = np.sign(relevance[:, :k, None] - relevance[:, None])
        usable = (sign != 0) & known[:, :k, None] & known[:, None] & (np.arange(k)[:, None] < np.arange(size))
        score = np.where(known, block.score, 0.0)
        return cls(block, usable, sign, sign * (score[:, :k, None] - score[:, None]))

    def by_document(self, values: FloatArray, *, symmetric: bool) -> FloatArray:
        """Add up the values of the pairs of each document, times the weights of the other ones."""
        weight, k = self.block.weight, values.shape[1]
        total = np.einsum("qij,qi->qj", values, weight[:, :k])
        total *= 1 if symmetric else -1
        total[:, :k] += np.einsum("qij,qj->qi", values, weight)
        return np.asarray(total)

    def losses(self, factor: FloatArray) -> FloatArray:
        """Return the logistic loss of pairs, times a factor of each; each document has half of it."""
        costs = factor * self.usable * np.logaddexp(0, -self.margin)
        return self.by_document(costs / 2, symmetric=True)

    def product(self, factor: FloatArray, V: FloatArray) -> FloatArray:
        """Return the Hessian of the weighted sum of the losses, the Laplacian of a graph, applied to V."""
        p, weight, k = special.expit(-self.margin), self.block.weight, self.margin.shape[1]
        edges = np.where(self.usable, p * (1 - p) * factor, 0.0) * weight[:, :k, None] * weight[:, None]
        total = V * edges.sum(axis=1)[:, :, None] - np.swapaxes(edges, 1, 2) @ V[:, :k]
        total[:, :k] += V[:, :k] * edges.sum(axis=2)[:, :, None] - edges @ V
        return np.asarray(total)

    def derivatives(self, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian of the logistic loss of pairs, times a factor of each."""
        p = special.expit(-self.margin)
        slopes = np.where(self.usable, -self.sign * p * factor, 0.0)
        second = np.where(self.usable, p * (1 - p) * factor, 0.0)
        return self.by_document(slopes, symmetric=False), self.by_document(second, symmetric=True)
