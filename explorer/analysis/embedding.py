"""From ids to vectors: where the residual stream begins, and how its vectors lie to one another."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.interventions import after_edits
from explorer.analysis.kept import kept_by_trace
from explorer.analysis.largest import largest_first
from explorer.architecture.stream import block_output
from explorer.tracing.matrices import in_parts, product
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class EmbeddingParts:
    """How the vector of one token is made.

    Attributes:
        row: (D,) of the token's id in the embedding table.
        scale: what it is multiplied by.
        position: (D,) what is added for its position, None where nothing is.
        total: (D,) row · scale + position, recomputed, and what the run's edits make of that.
        error: largest difference of `total` from the captured embedding.
    """

    row: np.ndarray
    scale: float
    position: np.ndarray | None
    total: np.ndarray
    error: float


def embedding_parts(trace: Trace, query: int) -> EmbeddingParts:
    row = trace.weights["token_embedding.weight"][trace.token_ids[query]]  # (D,)
    scale = trace.config.embedding_scale
    position = trace["position_embed"][query] if "position_embed" in trace else None
    sums = trace.weights["token_embedding.weight"][list(trace.token_ids)].astype(np.float64) * scale  # (T, D)
    if position is not None:
        sums = sums + trace["position_embed"]
    total = after_edits(trace, "embed", sums)[query]
    return EmbeddingParts(row, scale, position, total, float(np.abs(total - trace["embed"][query]).max()))


def nearest_tokens(trace: Trace, token_id: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids of the other tokens whose rows of the embedding table point most nearly the same way, and the cosines.

    Nearest first, at most `most`; of equal ones the lower id first. A row of zeros points nowhere: its cosines are 0.
    """
    table = trace.weights["token_embedding.weight"]  # (V, D)
    lengths = row_lengths(trace)
    products = product(table[token_id], table)
    scale = lengths * lengths[token_id]
    cosines = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    others = np.delete(np.arange(len(table)), token_id)
    nearest = others[largest_first(cosines[others], most)]
    return nearest, cosines[nearest].clip(-1, 1)


@kept_by_trace
def row_lengths(trace: Trace) -> np.ndarray:
    """(V,) ‖row‖₂ of the embedding table."""
    table = trace.weights["token_embedding.weight"]
    return np.concatenate([np.sqrt(np.einsum("vd,vd->v", rows, rows)) for _rows, rows in in_parts(table)])


def stream_at(trace: Trace, depth: int) -> np.ndarray:
    """(T, D), the residual stream after `depth` blocks: 0 is the embedding, L what the final norm reads."""
    if depth < trace.config.num_layers:
        return trace[f"blocks.{depth}.resid_pre"]
    return trace[block_output(trace.config, depth - 1)]


@dataclass(frozen=True)
class PrincipalComponents:
    """The directions along which vectors differ most (Pearson 1901).

    Attributes:
        points: (T, n), the vectors less their mean along each direction.
        directions: (n, D), orthogonal and of length 1; the largest number of each is positive, which fixes its sign.
        shares: (n,), of the whole variance, that along each.
    """

    points: np.ndarray
    directions: np.ndarray
    shares: np.ndarray


@kept_by_trace
def spread_at(trace: Trace, depth: int, first: int = 0) -> PrincipalComponents:
    """Of the stream's vectors after `depth` blocks, from a position on."""
    return principal_components(stream_at(trace, depth)[first:])


def principal_components(vectors: np.ndarray, n: int = 2) -> PrincipalComponents:
    """Of (T, D) vectors; a direction along which nothing differs, or there is none left, is all zeros. Where a number
    is NaN or infinite, all points and shares are NaN."""
    centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    if not np.isfinite(centred).all():
        nowhere = np.full((len(vectors), n), np.nan)
        return PrincipalComponents(nowhere, np.zeros((n, vectors.shape[1])), nowhere[0])
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    real = sizes > 1e-9 * max(1.0, float(np.abs(vectors).max()))
    kept = np.zeros((n, vectors.shape[1]))
    found = directions[real][:n]
    largest = np.take_along_axis(found, np.abs(found).argmax(-1)[:, None], -1)
    kept[: len(found)] = found * np.sign(largest)
    shares = np.zeros(n)
    shares[: len(found)] = sizes[real][:n] ** 2 / max((sizes**2).sum(), 1e-300)
    return PrincipalComponents(centred @ kept.T, kept, shares)
