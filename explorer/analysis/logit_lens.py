"""The logit lens (nostalgebraist 2020): the unembedding of any depth's vectors, and summaries of the distributions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.residual import apply_norm, residual_stages
from explorer.architecture.formulas import softcap, softcap_factor, softcap_formula
from explorer.architecture.residual_stream import has_final_norm, lens_taps
from explorer.errors import PointNotFoundError
from explorer.explain import arithmetic
from explorer.explain.captured import added_constant, recompute
from explorer.explain.captured.formulas import (
    apply_intervention_linear_part,
    has_bias,
    normalise_before_gain,
)
from explorer.explain.derivation import ALL, Derivation, Input, RecomputationCheck, read_input
from explorer.explain.notation import (
    format_dot_product,
    format_factor,
    format_six_digits,
    format_token_id,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace, cache_per_trace, summarise_logits
from explorer.tracing.weight_matrices import linear_by_chunks
from explorer.translations import N_, _, translate

LENS_CHUNK_BYTES = 64 << 20  # of logits at a time: each time the whole unembedding is read


@dataclass(frozen=True)
class LogitSummaries:
    """Summaries of distributions; the leading axes are those of the logits.

    Attributes:
        top: (..., 3) ids of the most probable tokens, most probable first; ties by lower id.
        probabilities: (..., 3), their probabilities.
        log_total: (...) ln Σ e^logits, so that ln p = logit - log_total.
        entropy: (...) -Σ p log₂ p, bits.
    """

    top: np.ndarray
    probabilities: np.ndarray
    log_total: np.ndarray
    entropy: np.ndarray

    @classmethod
    def from_logits(cls, logits: np.ndarray) -> "LogitSummaries":
        """Summarise logits (n, V)."""
        log_total, entropy, top, top_logits = summarise_logits(logits)
        return cls(top, np.exp(top_logits - log_total[:, None]), log_total, entropy)

    def select(self, indices: slice) -> "LogitSummaries":
        """Return the summaries (S, n, ...) at some indices of the second axis."""
        return LogitSummaries(
            *(array[:, indices] for array in (self.top, self.probabilities, self.log_total, self.entropy))
        )


# name -> quantity that the cells are coloured by
LENSES = {
    "probability": N_("probability (likeliest)"),
    "target": N_("probability (explained)"),
    "rank": N_("rank (explained)"),
    "entropy": N_("entropy in bits"),
}
MAX_SUMMARIES = 16  # per trace, some 30 kB each


def depth_names(trace: Trace) -> tuple[str, ...]:
    """Return the names of the S depths of the lens: the embedding, then after each sum."""
    return tuple(stage.name for stage in residual_stages(trace, normed=False))


def lens_inputs(trace: Trace, positions: slice) -> np.ndarray:
    """Return the input of the unembedding at each depth if the rest of the model were skipped, (S, n, D).

    In most models this is the stream after the final norm. In a post-norm model it is the stream itself, which
    each sublayer normalises (`attn_norm`, `ffn_norm`) before the unembedding reads it; no norm
    follows the embedding, so it is used unchanged too.
    """
    names = lens_taps(trace.config)
    position_ids = np.arange(len(trace))[positions]
    return apply_norm(trace, "final_norm", np.stack([trace[name][positions] for name in names]), positions=position_ids)


def lens_summaries(trace: Trace, positions: range) -> LogitSummaries:
    """Return the distribution at every depth after `positions`, (S, n, ...).

    The latest summaries are cached per trace; a range within a cached range is not computed again.
    """
    summaries_by_range = SUMMARIES.setdefault(trace, {})
    if positions not in summaries_by_range:
        for other, summaries in list(summaries_by_range.items()):
            if other[0] <= positions[0] and positions[-1] <= other[-1]:
                return summaries.select(slice(positions.start - other.start, positions.stop - other.start))
        chunks = [vars(LogitSummaries.from_logits(logits)).values() for logits in iter_lens_logits(trace, positions)]
        joined = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
        summaries = LogitSummaries(*(array.reshape(-1, len(positions), *array.shape[1:]) for array in joined))
        for old in list(summaries_by_range)[: 1 - MAX_SUMMARIES]:
            summaries_by_range.pop(old, None)
        summaries_by_range[positions] = summaries
    return summaries_by_range[positions]


SUMMARIES: WeakKeyDictionary[Trace, dict[range, LogitSummaries]] = WeakKeyDictionary()


def iter_lens_logits(trace: Trace, positions: range) -> Iterator[np.ndarray]:
    """Yield the logits at every depth after `positions`, (n, V), of some vectors at a time: depth by depth."""
    x = lens_inputs(trace, slice(positions.start, positions.stop))
    vectors, position_ids = x.reshape(-1, x.shape[-1]), np.tile(np.array(positions), len(x))
    step = max(1, LENS_CHUNK_BYTES // (4 * trace.config.vocab_size))
    for start in range(0, len(vectors), step):
        rows = slice(start, start + step)
        yield unembed_vectors(trace, vectors[rows], position_ids[rows])


def token_probabilities(trace: Trace, positions: range, token_id: int) -> np.ndarray:
    """Return the probability of one token at every depth after `positions`, (S, n)."""
    x = lens_inputs(trace, slice(positions.start, positions.stop))
    position_ids = np.array(positions)
    return np.exp(unembed_token(trace, x, token_id, position_ids) - lens_summaries(trace, positions).log_total)


def single_token_ranks(trace: Trace, positions: range, token_id: int) -> np.ndarray:
    """Return the rank of one token at every depth, (S, n): 1 + the number of more probable tokens."""
    return token_ranks(trace, positions, (token_id,))[0]


@cache_per_trace
def token_ranks(trace: Trace, positions: range, token_ids: tuple[int, ...]) -> np.ndarray:
    """Return the ranks of several tokens, (N, S, n), with one pass over the logits."""
    ranks = [
        [(logits > logits[:, [token_id]]).sum(-1) + 1 for token_id in token_ids]
        for logits in iter_lens_logits(trace, positions)
    ]
    return np.concatenate(ranks, axis=1).reshape(len(token_ids), -1, len(positions))


FILE, TRACE_FILE = "explorer/analysis/logit_lens.py", "explorer/tracing/trace.py"
MEASURES = {
    "probability": arithmetic.probability,
    "target": arithmetic.probability,
    "rank": arithmetic.rank,
    "entropy": arithmetic.entropy,
}

LOGIT = {  # whether the unembedding has a bias -> a logit, or it before its cap
    False: N_("{symbols}, {logit} = x · row of the unembedding"),
    True: N_("{symbols}, {logit} = x · row of the unembedding + bias"),
}


def lens_cell(trace: Trace, depth: int, position: int, token_id: int, kind: str) -> Derivation:
    """Derive a cell of the logit lens, one of `LENSES`.

    Args:
        depth: index into `depths`.
        token_id: the target token.
    """
    names, positions = depth_names(trace), range(position, position + 1)
    if not (0 <= depth < len(names) and 0 <= position < len(trace)):
        raise PointNotFoundError(
            _("the lens has no depth {depth} after position {position}", depth=depth, position=position)
        )
    read = lens_summaries(trace, positions)
    if kind == "probability":
        token_id = int(read.top[depth, 0, 0])
    get_value, file, line = {
        "probability": (lambda: read.probabilities[depth, 0, 0], FILE, "np.exp(top_logits - log_total"),
        "target": (
            lambda: token_probabilities(trace, positions, token_id)[depth, 0],
            FILE,
            "return np.exp(unembed_token(trace, x,",
        ),
        "rank": (
            lambda: single_token_ranks(trace, positions, token_id)[depth, 0],
            FILE,
            "(logits > logits[:, [token_id]]).sum(-1) + 1",
        ),
        "entropy": (lambda: read.entropy[depth, 0], TRACE_FILE, "bits = (np.log(sums)"),
    }[kind]
    x, inputs = lens_unembedding_input(trace, depth, position)
    table = trace.weights["lm_head.weight"]
    from_table = Input("lm_head.weight", (), table.shape)
    biases, from_biases = read_input(trace, "lm_head.bias") if trace.config.unembedding_bias else (None, None)
    inputs = [*inputs, from_biases] if from_biases else inputs
    plain = linear_by_chunks(x, table) if biases is None else linear_by_chunks(x, table) + biases
    cap = trace.config.logit_cap
    softcapped = plain if cap is None else cap * np.tanh(plain / cap)
    logits = apply_intervention_linear_part(trace, "logits", softcapped, position)  # (V,)
    from_row = read_input(trace, "lm_head.weight", token_id)[1]
    working = MEASURES[kind](logits, token_id, (*inputs, *[from_row] * (kind != "entropy"), from_table))
    if kind != "entropy":
        rest, symbols = working.numbers, working.symbols
        if cap:
            symbols = _("{symbols}, logit = {capped}", symbols=symbols, capped=softcap_formula("u", cap))

        def numbers() -> str:
            total = format_dot_product(read_input(trace, "lm_head.weight", token_id)[0], x)
            total += "" if biases is None else f" + {format_factor(biases[token_id])}"
            if cap:
                return _(
                    "u = {sum} = {plain}, logit = {capped} = {logit}; {rest}",
                    sum=total,
                    plain=format_six_digits(plain[token_id]),
                    capped=softcap_formula(format_factor(plain[token_id]), cap),
                    logit=format_six_digits(logits[token_id]),
                    rest=rest(),
                )
            return _(
                "logit = {sum} = {logit}; {rest}", sum=total, logit=format_six_digits(logits[token_id]), rest=rest()
            )

        logit = "u" if cap else "logit"
        symbols = translate(LOGIT[biases is not None], symbols=symbols, logit=logit)
        working = replace(working, symbols=symbols, numbers=numbers)
    position_text, token = format_token_position(trace, position), format_token_id(trace, token_id)
    return Derivation(
        _("{measure} by the logit lens at {stage}", measure=translate(LENSES[kind]), stage=names[depth]),
        _("after {token}", token=position_text)
        if kind == "entropy"
        else _("after {token}, of {of}", token=position_text, of=token),
        float(get_value()),
        working,
        SourceLine(file, line),
    )


def lens_unembedding_input(trace: Trace, depth: int, position: int) -> tuple[np.ndarray, list[Input]]:
    """Return the input of the unembedding at a depth, (D,), and its own inputs."""
    x, read = read_input(trace, lens_taps(trace.config)[depth], position)
    inputs = [read]
    if has_final_norm(trace.config):
        gain, from_gain = read_input(trace, "final_norm.weight")
        x, inputs = normalise_before_gain(trace, x, x, "final_norm", position) * gain, [*inputs, from_gain]
    if has_bias(trace, "final_norm", position).any():
        shift, from_shift = read_input(trace, "final_norm.bias")
        x, inputs = x + shift, [*inputs, from_shift]
    return apply_intervention_linear_part(trace, "final_norm", x, position) + added_constant(
        trace, "final_norm", position
    ), inputs


@cache_per_trace
def check_last_depth(trace: Trace, position: int) -> RecomputationCheck:
    """Check the logits of the lens at the last depth against the captured logits."""
    read = unembed_vectors(trace, lens_inputs(trace, slice(position, position + 1))[-1])
    return RecomputationCheck.from_arrays(
        trace.dtype, trace.logits.row(position)[None], read, recompute(trace, "logits", (position, ALL)).sizes
    )


def unembed_vectors(trace: Trace, x: np.ndarray, positions: int | np.ndarray | None = None) -> np.ndarray:
    """Return the logits of normalised vectors, (..., D) -> (..., V) in float32, with the run's interventions."""
    return apply_intervention_linear_part(
        trace, "logits", softcap(project_to_vocabulary(trace, x.astype(np.float32)), trace.config.logit_cap), positions
    )


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
