"""The unembedding, from normalised vectors to logits."""

from collections.abc import Collection, Iterator

import numpy as np

from explorer.architecture.formulas import softcap, softcap_factor
from explorer.explain.captured.interventions import active_effects, apply_intervention_linear_part
from explorer.tracing.logits import CHUNK_BYTES
from explorer.tracing.trace import Trace
from explorer.tracing.weight_matrices import iter_chunks, linear, linear_by_chunks


def unembed_vectors(trace: Trace, x: np.ndarray, positions: int | np.ndarray | None = None) -> np.ndarray:
    """Return the logits of normalised vectors, (..., D) -> (..., V) in float32, with the run's interventions."""
    return apply_intervention_linear_part(
        trace, "logits", softcap(project_to_vocabulary(trace, x.astype(np.float32)), trace.config.logit_cap), positions
    )


def iter_logit_blocks(
    trace: Trace, x: np.ndarray, positions: np.ndarray, token_ids: Collection[int] = ()
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Yield the logits of many vectors (N, D), each at its position, in blocks of vectors and tokens.

    Each block comes with the slices of its vectors and tokens; for each vector, tokens are in order. Results
    are the same bit for bit on every call.

    Args:
        token_ids: restrict the result to the blocks of the vocabulary that contain one of these.
    """
    x, size = x.astype(np.float32), trace.config.vocab_size
    if active_effects(trace, "logits"):  # an intervention may mix the logits of several tokens
        for rows in _slices(len(x), CHUNK_BYTES // (4 * size)):
            yield rows, slice(0, size), unembed_vectors(trace, x[rows], positions[rows])
        return
    biases = trace.weights["lm_head.bias"] if trace.config.unembedding_bias else None
    for tokens, table in iter_chunks(trace.weights["lm_head.weight"]):
        if token_ids and not any(tokens.start <= token_id < tokens.stop for token_id in token_ids):
            continue
        for rows in _slices(len(x), CHUNK_BYTES // (4 * len(table))):
            logits = linear(x[rows], table)
            yield rows, tokens, softcap(logits if biases is None else logits + biases[tokens], trace.config.logit_cap)


def _slices(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, max(1, size)):
        yield slice(start, min(count, start + max(1, size)))


def unembed_token(trace: Trace, x: np.ndarray, token_id: int, positions: np.ndarray) -> np.ndarray:
    """Return the logit of one token alone: (..., T, D) -> (..., T) in float64."""
    logits = softcap(x @ unembedding_row(trace, token_id) + token_bias(trace, token_id), trace.config.logit_cap)
    return logits * intervention_logit_factor(trace, token_id, positions)[..., 0]


def unembed_component(trace: Trace, x: np.ndarray, position: int) -> np.ndarray:
    """Return the contribution of a term of the normalised vector at a position to all logits, (D,) -> (V,).

    The bias is not included; soft-capping multiplies by its factor on each whole logit.
    """
    logits, cap = linear_by_chunks(x.astype(np.float32), trace.weights["lm_head.weight"]), trace.config.logit_cap
    if cap:
        logits = logits * softcap_factor(
            project_to_vocabulary(trace, trace["final_norm"][position].astype(np.float64)), cap
        )
    return apply_intervention_linear_part(trace, "logits", logits, position)


def logit_direction(trace: Trace, token_id: int, position: int) -> np.ndarray:
    """Return the direction whose product with the normalised vector at a position is a token's logit minus bias.

    (D,) in float64, with the run's interventions on logits; soft-capping multiplies it by its factor on the
    whole logit. The bias is `unembedding_bias`.
    """
    return intervention_and_softcap_factor(trace, token_id, position) * unembedding_row(trace, token_id)


def effective_logit_bias(trace: Trace, token_id: int, position: int) -> float:
    """Return the bias of a token's logit, with interventions and soft-capping, see `unembedding`."""
    return float(intervention_and_softcap_factor(trace, token_id, position) * token_bias(trace, token_id))


def intervention_and_softcap_factor(trace: Trace, token_id: int, position: int) -> float:
    """Return the factor of interventions and soft-capping on the logit of a token at a position."""
    edit_scale, cap = float(intervention_logit_factor(trace, token_id, position)[0]), trace.config.logit_cap
    if not cap:
        return edit_scale
    uncapped_logit = trace["final_norm"][position] @ unembedding_row(trace, token_id) + token_bias(trace, token_id)
    return edit_scale * float(softcap_factor(np.array(uncapped_logit), cap))


def intervention_logit_factor(trace: Trace, token_id: int, position: int | np.ndarray) -> np.ndarray:
    """Return the factor of interventions on a logit, (1,); (T, 1) for several positions."""
    ones = np.ones((*np.shape(position), trace.config.vocab_size))
    return apply_intervention_linear_part(trace, "logits", ones, position)[..., [token_id]]


def project_to_vocabulary(trace: Trace, x: np.ndarray) -> np.ndarray:
    """Multiply vectors by the unembedding matrix and add its bias, (..., D) -> (..., V)."""
    logits = linear_by_chunks(x, trace.weights["lm_head.weight"])
    return logits + trace.weights["lm_head.bias"] if trace.config.unembedding_bias else logits


def unembedding_row(trace: Trace, token_id: int) -> np.ndarray:
    """Return a token's row of the unembedding matrix, (D,) in float64."""
    return trace.weights["lm_head.weight"][token_id].astype(np.float64)


def token_bias(trace: Trace, token_id: int) -> float:
    """Return the unembedding's bias of a token's logit; 0 without biases."""
    return float(trace.weights["lm_head.bias"][token_id]) if trace.config.unembedding_bias else 0.0
