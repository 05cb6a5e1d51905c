"""Derivations of the logit lens."""

from dataclasses import replace

import numpy as np

from explorer.analysis.logit_lens import (
    LENSES,
    depth_names,
    lens_inputs,
    lens_summaries,
    single_token_ranks,
    token_probabilities,
)
from explorer.analysis.trace_cache import cache_per_trace
from explorer.analysis.unembedding import unembed_vectors
from explorer.architecture.logits import softcap_formula
from explorer.architecture.residual_stream import has_final_norm, lens_taps
from explorer.errors import PointNotFoundError
from explorer.explain import arithmetic
from explorer.explain.captured import added_constant, recompute
from explorer.explain.captured.interventions import apply_intervention_linear_part
from explorer.explain.captured.norms import has_bias, normalise_before_gain
from explorer.explain.derivation import ALL, Derivation, Input, read_input
from explorer.explain.notation import (
    format_dot_product,
    format_factor,
    format_number,
    format_token_id,
    format_token_position,
)
from explorer.explain.source_code import SourceLine
from explorer.explain.tolerance import Check
from explorer.tracing.trace import Trace
from explorer.tracing.weight_matrices import linear_by_chunks
from explorer.translations import N_, _, translate

LENS, SUMMARIES = "explorer/analysis/logit_lens.py", "explorer/analysis/logit_lens.py"
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
        "probability": (lambda: read.probabilities[depth, 0, 0], SUMMARIES, "probabilities = np.exp("),
        "target": (
            lambda: token_probabilities(trace, positions, token_id)[depth, 0],
            LENS,
            "return np.exp(unembed_token(trace, x,",
        ),
        "rank": (
            lambda: single_token_ranks(trace, positions, token_id)[depth, 0],
            SUMMARIES,
            "count[rows] += (block_logits > token_logits[rows, None])",
        ),
        "entropy": (lambda: read.entropy[depth, 0], SUMMARIES, "entropy = np.maximum(0, log_total"),
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
                    plain=format_number(plain[token_id]),
                    capped=softcap_formula(format_factor(plain[token_id]), cap),
                    logit=format_number(logits[token_id]),
                    rest=rest(),
                )
            return _("logit = {sum} = {logit}; {rest}", sum=total, logit=format_number(logits[token_id]), rest=rest())

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
def check_last_depth(trace: Trace, position: int) -> Check:
    """Check the logits of the lens at the last depth against the captured logits."""
    read = unembed_vectors(trace, lens_inputs(trace, slice(position, position + 1))[-1])
    return Check.from_arrays(
        trace.dtype, trace.logits.row(position)[None], read, recompute(trace, "logits", (position, ALL)).sizes
    )
