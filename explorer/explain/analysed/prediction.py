"""Numbers worked out of predictions: the logit lens, how well tokens were predicted, and what heads add to a logit."""

import math

import numpy as np

from explorer.analysis.lens import LENSES, depths, ranks, readings, tracked
from explorer.analysis.next_token import entropy, next_token, rank, surprisal
from explorer.explain.captured.inspect import at
from explorer.explain.captured.norms import Norm, divided
from explorer.explain.captured.taps import formula_of
from explorer.explain.inspection import Inspection, element
from explorer.explain.notation import number, quoted
from explorer.explain.source import Source
from explorer.explain.working import Input, products, summed, take
from explorer.state.errors import NoSuchPoint
from explorer.tracing.trace import Trace

LENS, NEXT = "explorer/analysis/lens.py", "explorer/analysis/next_token.py"


def lens_cell(trace: Trace, depth: int, position: int, token_id: int, kind: str) -> Inspection:
    """A cell of the logit lens, one of `LENSES`.

    Args:
        depth: which of `depths`.
        token_id: the explained token.
    """
    names, here = depths(trace), range(position, position + 1)
    if not (0 <= depth < len(names) and 0 <= position < len(trace)):
        raise NoSuchPoint(f"the lens has no depth {depth} after position {position}")
    x, inputs = read_at(trace, depth, position)
    logits = trace.weights["lm_head.weight"].astype(np.float64) @ x  # (V,)
    read = readings(trace, here)
    if kind == "probability":
        token_id = int(read.top[depth, 0, 0])
    drawn, line = {
        "probability": (lambda: read.probabilities[depth, 0, 0], "probabilities = np.exp(np.take_along_axis("),
        "target": (lambda: tracked(trace, here, token_id)[depth, 0], "return np.exp(logits - readings("),
        "rank": (lambda: ranks(trace, here, token_id)[depth, 0], "return np.stack([(logits > logits[:, [token_id]])"),
        "entropy": (lambda: read.entropy[depth, 0], "entropy = np.maximum(0, log_total"),
    }[kind]
    table = Input("lm_head.weight", (), trace.weights["lm_head.weight"].shape)
    if kind == "entropy":
        symbols, numbers, again = bits_expected(logits)
    else:
        row, from_row = take(trace, "lm_head.weight", token_id)
        symbols, numbers, again = (place_of if kind == "rank" else chance_of)(logits, token_id)
        symbols = f"{symbols}, logit = x · row of the unembedding"
        numbers = f"logit = {products(row, x)} = {number(logits[token_id])}; {numbers}"
        inputs = (*inputs, from_row)
    whose = "" if kind == "entropy" else f", of {quoted(trace.vocabulary[token_id])} (id {token_id})"
    return Inspection(
        name=f"{LENSES[kind]} by the logit lens at {names[depth]}",
        place=f"after {at(trace, position)}{whose}",
        value=float(drawn()),
        kind="drawn",
        symbols=symbols,
        numbers=numbers,
        inputs=(*inputs, table),
        recomputed=again,
        source=Source(LENS, line),
    )


def read_at(trace: Trace, depth: int, position: int) -> tuple[np.ndarray, tuple[Input, ...]]:
    """(D,) what the unembedding would read at a depth, and what that is worked out from."""
    pre = trace.config.norm_placement == "pre"
    after = ("resid_mid", "resid_post") if pre else ("attn_norm", "ffn_norm")
    name = f"blocks.{(depth - 1) // 2}.{after[(depth - 1) % 2]}" if depth else "blocks.0.resid_pre"
    x, read = take(trace, name, position)
    formula = formula_of(trace.config, "final_norm")
    if not isinstance(formula, Norm):
        return x, (read,)
    gain, from_gain = take(trace, "final_norm.weight")
    x = divided(trace, x, x) * gain
    if "final_norm.bias" not in trace.weights:
        return x, (read, from_gain)
    shift, from_shift = take(trace, "final_norm.bias")
    return x + shift, (read, from_gain, from_shift)


Measured = tuple[str, str, float]  # in symbols, in numbers, the result


def log_total(logits: np.ndarray) -> float:
    """ln Σ e^logits."""
    largest = float(logits.max())
    return largest + math.log(math.fsum(np.exp(logits - largest)))


def chance_of(logits: np.ndarray, token_id: int) -> Measured:
    total = log_total(logits)
    p = math.exp(logits[token_id] - total)
    numbers = f"p = e^({number(logits[token_id])} − {number(total)}) = {number(p)}"
    return "p = e^(logit − ln Σ e^logits)", numbers, p


def place_of(logits: np.ndarray, token_id: int) -> Measured:
    likelier = sum(1 for logit in logits.tolist() if logit > logits[token_id])
    symbols = "rank = 1 + how many tokens have a larger logit"
    return symbols, f"rank = 1 + {likelier:,} = {likelier + 1:,}", likelier + 1.0


def bits_expected(logits: np.ndarray) -> Measured:
    shares = np.exp(logits - log_total(logits))
    terms = np.array([-p * math.log2(p) if p > 0 else 0.0 for p in shares.tolist()])
    bits = math.fsum(terms)
    return "entropy = −Σ p log₂ p", f"entropy = {summed(terms)} = {number(bits)} bits", bits


def bits_of(logits: np.ndarray, token_id: int) -> Measured:
    _, _, p = chance_of(logits, token_id)
    bits = (log_total(logits) - float(logits[token_id])) / math.log(2)
    return "surprisal = −log₂ p, p = e^logit / Σ e^logits", f"surprisal = −log₂ {number(p)} = {number(bits)} bits", bits


PREDICTED = {"surprisal": (surprisal, bits_of), "entropy": (entropy, bits_expected), "rank": (rank, place_of)}
LINES = {
    "surprisal": "return np.concatenate([[np.nan], surprisal_of(",
    "entropy": "bits = (np.log(total) - np.einsum(",
    "rank": "return np.concatenate([[np.nan], (logits > actual[:, None])",
}


def predicted(trace: Trace, position: int, measure: str) -> Inspection | None:
    """How well a token was predicted, one of `PREDICTED`; None of the first, which nothing precedes."""
    analysis, work_out = PREDICTED[measure]
    value = element(analysis(trace), position)
    if position == 0:
        return None
    logits, read = take(trace, "logits", position - 1)
    token_id = trace.token_ids[position]
    symbols, numbers, again = work_out(logits) if measure == "entropy" else work_out(logits, token_id)
    return Inspection(
        name=measure,
        place=f"of {at(trace, position)}, id {token_id}, after {at(trace, position - 1)}",
        value=value,
        kind="drawn",
        symbols=symbols,
        numbers=numbers,
        inputs=(read,),
        recomputed=again,
        source=Source(NEXT, LINES[measure]),
    )


def probability(trace: Trace, position: int, token_id: int, value: float, source: Source) -> Inspection:
    """Of a token after a position, as it is drawn and by the line that works it out."""
    logits, read = take(trace, "logits", position)
    symbols, numbers, again = chance_of(logits, token_id)
    return Inspection(
        name="probability",
        place=f"of {quoted(trace.vocabulary[token_id])} (id {token_id}) after {at(trace, position)}",
        value=value,
        kind="drawn",
        symbols=symbols,
        numbers=numbers,
        inputs=(read,),
        recomputed=again,
        source=source,
    )


def next_token_probability(trace: Trace, position: int, token_id: int) -> Inspection:
    value = float(next_token(trace, position).plain[token_id])
    return probability(trace, position, token_id, value, Source(NEXT, "plain=sampling_distribution(logits)"))


def probability_of_actual(trace: Trace, position: int) -> Inspection:
    """Of the token that does come next."""
    value = 2 ** -element(surprisal(trace), position + 1)
    return probability(trace, position, trace.token_ids[position + 1], value, Source(NEXT, LINES["surprisal"]))
