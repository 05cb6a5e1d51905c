"""Derivations of a prediction: probabilities, a text's loss, and the contributions of tokens to a logit."""

import math

import numpy as np

from explorer.analysis.next_token import actual_token_ranks, entropy, mean_text_loss, next_token_distribution, surprisal
from explorer.analysis.token_contributions import TokenContributions, token_contributions
from explorer.explain import arithmetic
from explorer.explain.arithmetic import dot_product, mean
from explorer.explain.clicked_point import get_element
from explorer.explain.derivation import Calculation, Derivation, Input, read_input
from explorer.explain.derived import attention
from explorer.explain.notation import format_number, format_token_id, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.explain.tolerance import Check
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

NEXT, LOGITS = "explorer/analysis/next_token.py", "explorer/tracing/logits.py"
SURPRISAL = SourceLine(NEXT, "return np.concatenate([[np.nan], (trace.logits.log_sum_exp")
# measure -> its name, the analysis, how it is worked out again, and the line of the analysis
PREDICTION_MEASURES = {
    "surprisal": (N_("surprisal"), surprisal, arithmetic.surprisal, SURPRISAL),
    "entropy": (N_("entropy"), entropy, arithmetic.entropy, SourceLine(LOGITS, "bits = (np.log(sums) - np.einsum(")),
    "rank": (
        N_("rank"),
        actual_token_ranks,
        arithmetic.rank,
        SourceLine(LOGITS, "(logits > actual).sum(-1) + 1"),
    ),
}


def prediction_measure(trace: Trace, position: int, measure: str) -> Derivation | None:
    """Derive one of `PREDICTION_MEASURES` of a token; None for the first token."""
    name, analysis, calculate, source = PREDICTION_MEASURES[measure]
    displayed_value = get_element(analysis(trace), position)
    if position == 0:
        return None
    logits, read = read_input(trace, "logits", position - 1)
    token_id = trace.token_ids[position]
    token, before = format_token_position(trace, position), format_token_position(trace, position - 1)
    location = _("of {token}, id {token_id}, after {before}", token=token, token_id=token_id, before=before)
    return Derivation(translate(name), location, displayed_value, calculate(logits, token_id, (read,)), source)


def token_probability(
    trace: Trace, position: int, token_id: int, displayed_value: float, source: SourceLine
) -> Derivation:
    """Derive a token's probability after a position, given the displayed value and its source line."""
    logits, read = read_input(trace, "logits", position)
    working = arithmetic.probability(logits, token_id, (read,))
    location = _(
        "of {token} after {before}",
        token=format_token_id(trace, token_id),
        before=format_token_position(trace, position),
    )
    return Derivation(_("probability"), location, displayed_value, working, source)


def next_token_probability(trace: Trace, position: int, token_id: int) -> Derivation:
    """Derive a token's probability after a position."""
    displayed_value = float(next_token_distribution(trace, position).plain[token_id])
    return token_probability(
        trace, position, token_id, displayed_value, SourceLine(NEXT, "plain=sampling_distribution(logits)")
    )


def actual_token_probability(trace: Trace, position: int) -> Derivation:
    """Derive the probability of the actual next token."""
    displayed_value = 2 ** -get_element(surprisal(trace), position + 1)
    return token_probability(trace, position, trace.token_ids[position + 1], displayed_value, SURPRISAL)


def text_loss(trace: Trace) -> Derivation | None:
    """Derive the loss of the run's text; None for a single token."""
    value = mean_text_loss(trace)
    if math.isnan(value):
        return None
    read, losses = Input("logits", (), trace.shape("logits")), []
    for position, token_id in enumerate(trace.token_ids[1:]):
        row, _row = read_input(trace, "logits", position)
        top = row.max()
        losses.append(top + math.log(math.fsum(np.exp(row - top))) - row[token_id])
    return Derivation(
        _("loss of this text, in nats a token"),
        translate(LOSS_LOCATION, count=len(losses)),
        value,
        mean(_("loss = mean of −ln p over the tokens"), losses, (read,), _("loss")),
        SourceLine("explorer/analysis/next_token.py", "return float(np.mean(bits"),
    )


LOSS_LOCATION = N_("of {count} tokens, all but the first: −ln of the probability that the model gave each")


ANALYSIS = "explorer/analysis/token_contributions.py"


def token_contribution(
    trace: Trace, position: int, token_id: int, contrast_id: int | None, method: str, key: int
) -> Derivation | None:
    """Derive a token's contribution by one of METHODS; None if the method has no value for it."""
    contributions = token_contributions(trace, position, token_id, contrast_id)
    displayed_value = get_element(contributions.by_method[method], key)
    if math.isnan(displayed_value):
        return None
    if method == "rollout":
        return attention.rollout_weight(trace, position, key)
    derive_method = {
        "gradient": _gradient_contribution,
        "integrated": _integrated_gradient_contribution,
        "knock_out": _attention_knockout_contribution,
    }[method]
    name, working, fragment = derive_method(trace, contributions, position, token_id, contrast_id, key)
    return Derivation(
        name,
        _("of {token}", token=format_token_position(trace, key)),
        displayed_value,
        working,
        SourceLine(ANALYSIS, fragment),
    )


def _gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope = contributions.arrays["slope"][key]
    inputs = read, Input(_("gradient of f at embed"), (key,), slope.shape)
    return _("gradient × input"), dot_product("Σ x ∂f/∂x =", x, slope, inputs), '"gradient": (x'


def _integrated_gradient_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    x, read = read_input(trace, "embed", key)
    slope, baseline = (contributions.arrays[name][key] for name in ("mean_slope", "baseline"))
    inputs = read, Input(_("mean gradient of f along the path"), (key,), slope.shape)
    working = dot_product(_("Σ (x − baseline) · mean ∂f/∂x ="), x - baseline, slope, inputs)
    return _("integrated gradients"), working, '"integrated": ((x'


def _attention_knockout_contribution(
    trace: Trace, contributions: TokenContributions, position: int, token_id: int, contrast_id: int | None, key: int
):
    logits, read = read_input(trace, "logits", position)
    f = float(logits[token_id] - (0 if contrast_id is None else logits[contrast_id]))
    without = float(contributions.arrays["without"][key])
    rerun_input = Input(
        _("logits of a run in which no later token sees it, at [{query}]", query=position), (), read.shape
    )
    change = f - without
    numbers = f"{format_number(f)} − {format_number(without)} = {format_number(change)}"
    working = Calculation(_("f − f without it"), lambda: numbers, change, (read, rerun_input))
    return _("knock-out"), working, '"knock_out": f'


def check_gradient_run(trace: Trace, position: int, token_id: int, contrast_id: int | None) -> Check:
    """Check f of the run that the gradients were computed in against the captured logits."""
    logits = trace.logits.row(position).astype(float)
    captured = logits[token_id] - (0 if contrast_id is None else logits[contrast_id])
    f = token_contributions(trace, position, token_id, contrast_id).f
    return Check.from_arrays(trace.dtype, f, captured, abs(logits).max())
