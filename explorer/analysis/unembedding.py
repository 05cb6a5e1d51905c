"""From normalised vectors to logits."""

from collections.abc import Collection, Iterator

import numpy as np

from explorer.analysis.interventions import as_edited, effects_at
from explorer.architecture.caps import capped, share
from explorer.tracing.logits import CHUNK_BYTES
from explorer.tracing.matrices import in_parts, linear, product
from explorer.tracing.trace import Trace


def unembed(trace: Trace, x: np.ndarray, positions: int | np.ndarray | None = None) -> np.ndarray:
    """Logits of normalised vectors, (..., D) -> (..., V) in float32, with the run's edits."""
    return as_edited(trace, "logits", capped(uncapped(trace, x.astype(np.float32)), trace.config.logit_cap), positions)


def unembed_in_parts(
    trace: Trace, x: np.ndarray, positions: np.ndarray, having: Collection[int] = ()
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """The same of many vectors (N, D), each at the position beside it: some of them and some tokens at a time, for each
    vector from the first token on; to the last bit the same as often as it is asked for.

    Args:
        having: tokens, if only those parts of the vocabulary are wanted that have one of them.
    """
    x, size = x.astype(np.float32), trace.config.vocab_size
    if effects_at(trace, "logits"):  # what an edit makes of one may depend on others
        for rows in _slices(len(x), CHUNK_BYTES // (4 * size)):
            yield rows, slice(0, size), unembed(trace, x[rows], positions[rows])
        return
    biases = trace.weights["lm_head.bias"] if trace.config.unembedding_bias else None
    for tokens, table in in_parts(trace.weights["lm_head.weight"]):
        if having and not any(tokens.start <= token_id < tokens.stop for token_id in having):
            continue
        for rows in _slices(len(x), CHUNK_BYTES // (4 * len(table))):
            logits = linear(x[rows], table)
            yield rows, tokens, capped(logits if biases is None else logits + biases[tokens], trace.config.logit_cap)


def _slices(count: int, at_once: int) -> Iterator[slice]:
    for start in range(0, count, max(1, at_once)):
        yield slice(start, min(count, start + max(1, at_once)))


def unembed_token(trace: Trace, x: np.ndarray, token_id: int, positions: np.ndarray) -> np.ndarray:
    """The logit of one token alone: (..., T, D) -> (..., T) in float64."""
    logits = capped(x @ row_of(trace, token_id) + bias_of(trace, token_id), trace.config.logit_cap)
    return logits * edits_share(trace, token_id, positions)[..., 0]


def unembed_part(trace: Trace, x: np.ndarray, position: int) -> np.ndarray:
    """What a part of the normalised vector at a position has in the logits, (D,) -> (V,): without the bias, which is no
    part's, and times what a cap multiplies each whole logit by."""
    part, cap = product(x.astype(np.float32), trace.weights["lm_head.weight"]), trace.config.logit_cap
    if cap:
        part = part * share(uncapped(trace, trace["final_norm"][position].astype(np.float64)), cap)
    return as_edited(trace, "logits", part, position)


def unembedding(trace: Trace, token_id: int, position: int) -> np.ndarray:
    """(D,) in float64, whose product with the normalised vector at a position is a token's logit less its
    `unembedding_bias`, with the run's edits of logits; a cap multiplies it by what it multiplies the whole logit by."""
    return factor(trace, token_id, position) * row_of(trace, token_id)


def unembedding_bias(trace: Trace, token_id: int, position: int) -> float:
    """What is added to that product."""
    return float(factor(trace, token_id, position) * bias_of(trace, token_id))


def factor(trace: Trace, token_id: int, position: int) -> float:
    """What edits and a cap multiply the logit of a token at a position by."""
    edits, cap = float(edits_share(trace, token_id, position)[0]), trace.config.logit_cap
    if not cap:
        return edits
    whole = trace["final_norm"][position] @ row_of(trace, token_id) + bias_of(trace, token_id)
    return edits * float(share(np.array(whole), cap))


def edits_share(trace: Trace, token_id: int, position: int | np.ndarray) -> np.ndarray:
    """(1,) what edits multiply a logit by; of several positions (T, 1)."""
    ones = np.ones((*np.shape(position), trace.config.vocab_size))
    return as_edited(trace, "logits", ones, position)[..., [token_id]]


def uncapped(trace: Trace, x: np.ndarray) -> np.ndarray:
    """(..., D) -> (..., V)."""
    logits = product(x, trace.weights["lm_head.weight"])
    return logits + trace.weights["lm_head.bias"] if trace.config.unembedding_bias else logits


def row_of(trace: Trace, token_id: int) -> np.ndarray:
    """(D,) in float64."""
    return trace.weights["lm_head.weight"][token_id].astype(np.float64)


def bias_of(trace: Trace, token_id: int) -> float:
    return float(trace.weights["lm_head.bias"][token_id]) if trace.config.unembedding_bias else 0.0
