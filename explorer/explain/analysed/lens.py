"""The logit lens."""

from dataclasses import replace

import numpy as np

from explorer.analysis.kept import kept_by_trace
from explorer.analysis.lens import LENSES, depths, ranks, readings, streams, tracked
from explorer.analysis.rounding import Check
from explorer.analysis.unembedding import unembed
from explorer.architecture.caps import written
from explorer.architecture.stream import depth_taps, has_final_norm
from explorer.explain.analysed import distribution
from explorer.explain.captured import put_in, working_of
from explorer.explain.captured.edits import shared
from explorer.explain.captured.norms import divided, has_shift
from explorer.explain.derivation import Derivation
from explorer.explain.notation import factor, number, products
from explorer.explain.place import at, of_id
from explorer.explain.source import Source
from explorer.explain.working import ALL, Input, take
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.tracing.matrices import product
from explorer.tracing.trace import Trace

LENS, READING = "explorer/analysis/lens.py", "explorer/analysis/readings.py"
MEASURES = {
    "probability": distribution.probability,
    "target": distribution.probability,
    "rank": distribution.rank,
    "entropy": distribution.entropy,
}

LOGIT = {  # whether the unembedding has a bias -> a logit, or it before its cap
    False: N_("{symbols}, {logit} = x · row of the unembedding"),
    True: N_("{symbols}, {logit} = x · row of the unembedding + bias"),
}


def lens_cell(trace: Trace, depth: int, position: int, token_id: int, kind: str) -> Derivation:
    """A cell of the logit lens, one of `LENSES`.

    Args:
        depth: which of `depths`.
        token_id: the explained token.
    """
    names, here = depths(trace), range(position, position + 1)
    if not (0 <= depth < len(names) and 0 <= position < len(trace)):
        raise NoSuchPoint(_("the lens has no depth {depth} after position {position}", depth=depth, position=position))
    read = readings(trace, here)
    if kind == "probability":
        token_id = int(read.top[depth, 0, 0])
    drawn, file, line = {
        "probability": (lambda: read.probabilities[depth, 0, 0], READING, "probabilities = np.exp("),
        "target": (lambda: tracked(trace, here, token_id)[depth, 0], LENS, "return np.exp(unembed_token(trace, x,"),
        "rank": (lambda: ranks(trace, here, token_id)[depth, 0], READING, "count[rows] += (part > own[rows, None])"),
        "entropy": (lambda: read.entropy[depth, 0], READING, "entropy = np.maximum(0, log_total"),
    }[kind]
    x, inputs = read_at(trace, depth, position)
    table = trace.weights["lm_head.weight"]
    from_table = Input("lm_head.weight", (), table.shape)
    biases, from_biases = take(trace, "lm_head.bias") if trace.config.unembedding_bias else (None, None)
    inputs = [*inputs, from_biases] if from_biases else inputs
    plain = product(x, table) if biases is None else product(x, table) + biases
    cap = trace.config.logit_cap
    within = plain if cap is None else cap * np.tanh(plain / cap)
    logits = shared(trace, "logits", within, position)  # (V,)
    from_row = take(trace, "lm_head.weight", token_id)[1]
    working = MEASURES[kind](logits, token_id, (*inputs, *[from_row] * (kind != "entropy"), from_table))
    if kind != "entropy":
        rest, symbols = working.numbers, working.symbols
        if cap:
            symbols = _("{symbols}, logit = {capped}", symbols=symbols, capped=written("u", cap))

        def numbers() -> str:
            total = products(take(trace, "lm_head.weight", token_id)[0], x)
            total += "" if biases is None else f" + {factor(biases[token_id])}"
            if cap:
                return _(
                    "u = {sum} = {plain}, logit = {capped} = {logit}; {rest}",
                    sum=total,
                    plain=number(plain[token_id]),
                    capped=written(factor(plain[token_id]), cap),
                    logit=number(logits[token_id]),
                    rest=rest(),
                )
            return _("logit = {sum} = {logit}; {rest}", sum=total, logit=number(logits[token_id]), rest=rest())

        logit = "u" if cap else "logit"
        symbols = look_up(LOGIT[biases is not None], symbols=symbols, logit=logit)
        working = replace(working, symbols=symbols, numbers=numbers)
    where, token = at(trace, position), of_id(trace, token_id)
    return Derivation(
        _("{measure} by the logit lens at {stage}", measure=look_up(LENSES[kind]), stage=names[depth]),
        _("after {token}", token=where) if kind == "entropy" else _("after {token}, of {of}", token=where, of=token),
        float(drawn()),
        working,
        Source(file, line),
    )


def read_at(trace: Trace, depth: int, position: int) -> tuple[np.ndarray, list[Input]]:
    """(D,) what the unembedding would read at a depth, and what that is worked out from."""
    x, read = take(trace, depth_taps(trace.config)[depth], position)
    inputs = [read]
    if has_final_norm(trace.config):
        gain, from_gain = take(trace, "final_norm.weight")
        x, inputs = divided(trace, x, x, "final_norm", position) * gain, [*inputs, from_gain]
    if has_shift(trace, "final_norm", position).any():
        shift, from_shift = take(trace, "final_norm.bias")
        x, inputs = x + shift, [*inputs, from_shift]
    return shared(trace, "final_norm", x, position) + put_in(trace, "final_norm", position), inputs


@kept_by_trace
def last_depth(trace: Trace, position: int) -> Check:
    """What the lens reads at the last depth, as the model does in the end, held against the captured logits."""
    read = unembed(trace, streams(trace, slice(position, position + 1))[-1])
    return Check.of(
        trace.dtype, trace.logits.at(position)[None], read, working_of(trace, "logits", (position, ALL)).sizes
    )
