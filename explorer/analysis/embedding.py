"""Token embeddings: their terms, nearest tokens, and principal components of the residual stream."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import top_indices
from explorer.architecture.formulas import embedding_scale_formula, embedding_scale_in_numbers
from explorer.architecture.residual_stream import block_output_tap
from explorer.explain.arithmetic import cosine, dot_product
from explorer.explain.captured.embedding import TABLE
from explorer.explain.captured.formulas import recompute_with_interventions
from explorer.explain.derivation import Calculation, Derivation, Input, get_element, read_input
from explorer.explain.notation import (
    format_factor,
    format_six_digits,
    format_token_id,
    format_token_position,
    quote_token,
)
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace, cache_per_trace
from explorer.tracing.weight_matrices import iter_chunks, linear_by_chunks
from explorer.translations import N_, _, translate


@dataclass(frozen=True)
class EmbeddingParts:
    """The terms that add up to the embedding of one token.

    Attributes:
        row: (D,) the token's row of the embedding table.
        scale: factor on the row.
        position: (D,) the position embedding, None if the model adds none.
        total: (D,) row · scale + position, recomputed, with the run's interventions.
        error: largest difference of `total` from the captured embedding.
    """

    row: np.ndarray
    scale: float
    position: np.ndarray | None
    total: np.ndarray
    error: float


def embedding_parts(trace: Trace, query: int) -> EmbeddingParts:
    """Return the terms of a token's embedding (D,): the table's row, its scale and the position's vector."""
    row = trace.weights["token_embedding.weight"][trace.token_ids[query]]  # (D,)
    scale = trace.config.embedding_scale
    position = trace["position_embed"][query] if "position_embed" in trace else None
    sums = trace.weights["token_embedding.weight"][list(trace.token_ids)].astype(np.float64) * scale  # (T, D)
    if position is not None:
        sums = sums + trace["position_embed"]
    total = recompute_with_interventions(trace, "embed", sums)[query]
    return EmbeddingParts(row, scale, position, total, float(np.abs(total - trace["embed"][query]).max()))


def nearest_tokens(trace: Trace, token_id: int, max_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of the other tokens with the most similar embeddings, and their cosine similarities.

    Nearest first, at most `max_count`; ties by lower id. The cosines of a row of zeros are 0.
    """
    table = trace.weights["token_embedding.weight"]  # (V, D)
    norms = row_norms(trace)
    products = linear_by_chunks(table[token_id], table)
    scale = norms * norms[token_id]
    cosines = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    other_ids = np.delete(np.arange(len(table)), token_id)
    nearest = other_ids[top_indices(cosines[other_ids], max_count)]
    return nearest, cosines[nearest].clip(-1, 1)


@cache_per_trace
def row_norms(trace: Trace) -> np.ndarray:
    """Return ‖row‖₂ of each row of the embedding table, (V,)."""
    table = trace.weights["token_embedding.weight"]
    return np.concatenate([np.sqrt(np.einsum("vd,vd->v", rows, rows)) for _rows, rows in iter_chunks(table)])


def residual_at_depth(trace: Trace, depth: int) -> np.ndarray:
    """Return the residual stream after `depth` blocks, (T, D): 0 is the embedding, L the input of the final norm."""
    if depth < trace.config.num_layers:
        return trace[f"blocks.{depth}.resid_pre"]
    return trace[block_output_tap(trace.config, depth - 1)]


@dataclass(frozen=True)
class PrincipalComponents:
    """Principal components of vectors (Pearson 1901).

    Attributes:
        points: (T, n), coordinates of the centred vectors along each direction.
        directions: (n, D), orthonormal; the sign is fixed by a positive largest element.
        shares: (n,), explained variance ratio.
    """

    points: np.ndarray
    directions: np.ndarray
    shares: np.ndarray


@cache_per_trace
def residual_pca(trace: Trace, depth: int, first: int = 0) -> PrincipalComponents:
    """Return the principal components of the residual stream after `depth` blocks, from position `first` on."""
    return principal_components(residual_at_depth(trace, depth)[first:])


def principal_components(vectors: np.ndarray, n: int = 2) -> PrincipalComponents:
    """Return the first n principal components of (T, D) vectors.

    Directions without variance are all zeros. If an element is NaN or infinite, all points and shares are NaN.
    """
    centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    if not np.isfinite(centred).all():
        nan_points = np.full((len(vectors), n), np.nan)
        return PrincipalComponents(nan_points, np.zeros((n, vectors.shape[1])), nan_points[0])
    _coordinates, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    real = sizes > 1e-9 * max(1.0, float(np.abs(vectors).max()))
    components = np.zeros((n, vectors.shape[1]))
    significant = directions[real][:n]
    largest = np.take_along_axis(significant, np.abs(significant).argmax(-1)[:, None], -1)
    components[: len(significant)] = significant * np.sign(largest)
    shares = np.zeros(n)
    shares[: len(significant)] = sizes[real][:n] ** 2 / max((sizes**2).sum(), 1e-300)
    return PrincipalComponents(centred @ components.T, components, shares)


FILE = "explorer/analysis/embedding.py"
ROW = N_("row of the token’s id, as it was learned")
SCALED_ROW = N_("row of the token’s id · {factor}, as it was learned")


def embedding_row_element(trace: Trace, query: int, dim: int) -> Derivation:
    """Derive an element of the token's scaled row of the embedding table."""
    token_id, config = trace.token_ids[query], trace.config
    terms = embedding_parts(trace, query)
    displayed_value = get_element(terms.row * terms.scale, dim)
    row, read = read_input(trace, TABLE, token_id, dim)
    value, scaled = float(row) * config.embedding_scale, config.embedding_scale != 1
    scale_text = f"{format_factor(row)} · {embedding_scale_in_numbers(config)} = " * scaled
    symbols = translate(SCALED_ROW, factor=embedding_scale_formula(config)) if scaled else translate(ROW)
    return Derivation(
        _("token {token_id}’s own vector[{dim}]", token_id=token_id, dim=dim),
        format_token_position(trace, query),
        displayed_value,
        Calculation(symbols, lambda: f"{scale_text}{format_six_digits(value)}", value, (read,)),
        SourceLine(FILE, 'row = trace.weights["token_embedding.weight"][trace.token_ids[query]]'),
    )


def nearest_token_cosine(trace: Trace, query: int, index: int, max_count: int) -> Derivation:
    """Derive the cosine of the token’s embedding with that of one of the nearest tokens."""
    ids, cosines = nearest_tokens(trace, trace.token_ids[query], max_count)
    displayed_value, token_id = get_element(cosines, index), int(ids[index])
    return Derivation(
        _("cosine of two tokens’ vectors"),
        _("{one} and {other}", one=quote_token(trace.tokens[query]), other=format_token_id(trace, token_id)),
        displayed_value,
        cosine(read_input(trace, TABLE, trace.token_ids[query]), read_input(trace, TABLE, token_id)),
        SourceLine(FILE, "cosines = np.divide(products, scale"),
    )


def principal_component_coordinate(
    trace: Trace, depth: int, position: int, component: int, first: int = 0
) -> Derivation:
    """Derive the coordinate of a token's vector along a principal component.

    Args:
        component: index of the principal component.
        first: the first token that is included.
    """
    vectors = residual_at_depth(trace, depth)[first:].astype(float)
    components = principal_components(residual_at_depth(trace, depth)[first:])
    displayed_value = get_element(components.points, position - first, component)
    centred = vectors[position - first] - vectors.mean(0)
    name = f"blocks.{depth}.resid_pre" if depth < trace.config.num_layers else _("the stream after the last block")
    inputs = (Input(name, (slice(first, None),), vectors.shape),)
    return Derivation(
        _("component {which}", which=component + 1),
        _("{token} at depth {depth}", token=format_token_position(trace, position), depth=depth),
        displayed_value,
        dot_product(_("(x − mean x of all tokens) · direction"), centred, components.directions[component], inputs),
        SourceLine(FILE, "return PrincipalComponents(centred @ components.T"),
    )
