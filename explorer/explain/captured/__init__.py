"""Derivations and checks of captured values."""

from weakref import WeakKeyDictionary

import numpy as np

from explorer.architecture.formulas import score_divisor_in_numbers
from explorer.explain.captured.formulas import (
    adds_constant,
    apply_intervention_linear_part,
    calculate_with_interventions,
)
from explorer.explain.captured.tap_formulas import get_formula
from explorer.explain.derivation import (
    ALL,
    Calculation,
    Derivation,
    Index,
    RecomputationCheck,
    check_element,
    format_index,
)
from explorer.explain.notation import describe_element, format_number, format_six_digits, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate


def derive(trace: Trace, name: str, index: tuple[int, ...]) -> Derivation:
    """Derive one element of a captured value.

    Raises:
        PointNotFoundError: it has no such element.
        KeyError: there is no captured value or no formula of that name.
    """
    check_element(trace.shape(name), *index)
    value = float(trace.get_slice(name, *index))
    source = get_formula(trace.config, name).source
    working = recompute(trace, name, index)
    return Derivation(
        f"{name}{format_index(index)}",
        describe_element(trace, name, index),
        value,
        working,
        source,
        "captured",
        words=element_sentence(trace, name, index, value),
    )


def recompute(trace: Trace, name: str, index: Index = ()) -> Calculation:
    """Recompute part of a captured value, or all of it, from its inputs and the run's interventions.

    Raises KeyError if there is no formula of that name.
    """
    index = index or (ALL,) * len(trace.shape(name))
    return calculate_with_interventions(trace, name, index, get_formula(trace.config, name))


def added_constant(trace: Trace, name: str, position: int) -> np.ndarray:
    """Return the constant that interventions added to a value (T, N) at a position.

    It is the value minus the linear part of the interventions on the recomputed value.
    """
    value = trace[name][position].astype(np.float64)
    if not adds_constant(trace, name):
        return np.zeros_like(value)
    before = get_formula(trace.config, name).calculate(trace, (ALL, ALL)).value[position]
    return value - apply_intervention_linear_part(trace, name, before, position)


def check_captured_value(trace: Trace, name: str) -> RecomputationCheck:
    """Check a whole captured value against its recomputation, cached per run."""
    return _check_with_inputs(trace, name)[0]


def input_names(trace: Trace, name: str) -> tuple[str, ...]:
    """Return the names of the captured values and weights that a captured value is computed from."""
    return _check_with_inputs(trace, name)[1]


def _check_with_inputs(trace: Trace, name: str) -> tuple[RecomputationCheck, tuple[str, ...]]:
    checks = _CHECKED.setdefault(trace, {})
    if name not in checks:
        with np.errstate(all="ignore"):
            checks[name] = _check_logits(trace) if name == "logits" else _check_whole(trace, name)
    return checks[name]


def _check_whole(trace: Trace, name: str) -> tuple[RecomputationCheck, tuple[str, ...]]:
    working = recompute(trace, name)
    inputs, sizes = tuple(read.name for read in working.inputs), working.sizes
    if trace.is_lazy and not _is_from_one_pass(trace, name, *inputs):
        # another kernel may have computed attention there, and what that rounds W_O spreads over the whole vector
        sizes = np.broadcast_to(sizes, trace.shape(name)).max(-1, keepdims=True)
    return RecomputationCheck.from_arrays(trace.dtype, trace[name], working.value, sizes), inputs


def _is_from_one_pass(trace: Trace, *names: str) -> bool:
    """Return whether all values were stored, or all recomputed; the input of a block is the same for both."""
    return (
        len({name in trace.values.stored for name in names if name in trace and not name.endswith(".resid_pre")}) <= 1
    )


def _check_logits(trace: Trace) -> tuple[RecomputationCheck, tuple[str, ...]]:
    """Check the logits in blocks: all of them in float64 would take several times the memory of a run."""
    if any(
        intervention.affects("logits") for intervention in trace.edits
    ):  # what an edit makes of one may depend on others
        return _check_whole(trace, "logits")
    checks = []
    for positions, logits in trace.logits.chunks():
        for start in range(0, trace.config.vocab_size, TOKENS_PER_CHECK):
            tokens = slice(start, start + TOKENS_PER_CHECK)
            working = recompute(trace, "logits", (positions, tokens))
            checks.append(RecomputationCheck.from_arrays(trace.dtype, logits[:, tokens], working.value, working.sizes))
    return RecomputationCheck.worst(checks), tuple(read.name for read in working.inputs)


TOKENS_PER_CHECK = 8192  # of the vocabulary, checked at a time
_CHECKED: WeakKeyDictionary[Trace, dict[str, tuple[RecomputationCheck, tuple[str, ...]]]] = WeakKeyDictionary()


# last part of a tap's name, or the last two of a sublayer's output -> an element of its value
ELEMENT_NAMES = {
    "embed": N_("embedding"),
    "position_embed": N_("the position’s vector"),
    "angles": N_("angle of the rotation"),
    "resid_pre": N_("residual stream before the layer"),
    "resid_mid": N_("residual stream after the attention"),
    "resid_post": N_("residual stream after the layer"),
    "attn_norm": N_("norm before the attention"),
    "attn_out_norm": N_("norm after the attention"),
    "ffn_norm": N_("norm before the feed-forward"),
    "ffn_out_norm": N_("norm after the feed-forward"),
    "final_norm": N_("final norm"),
    "q": N_("query vector"),
    "k": N_("key vector"),
    "v": N_("value vector"),
    "q_norm": N_("query vector after its norm"),
    "k_norm": N_("key vector after its norm"),
    "q_rot": N_("query vector, rotated"),
    "k_rot": N_("key vector, rotated"),
    "scores": N_("attention score"),
    "pattern": N_("attention weight"),
    "z": N_("output of the head"),
    "attn.out": N_("output of the attention"),
    "ffn.out": N_("output of the feed-forward"),
    "gate_pre": N_("gate before its activation"),
    "gate": N_("gate"),
    "up": N_("the neuron’s up projection"),
    "hidden": N_("hidden value"),
    "logits": N_("logit"),
}


def element_sentence(trace: Trace, name: str, index: tuple[int, ...], value: float) -> str:
    """Return what an element of a captured value is, and its value."""
    if name.endswith(".pattern") and value > 0 and _is_plain_softmax(trace, name):
        return _attention_sentence(trace, name, index, value)
    *_block, owner, last = ("", *name.split("."))
    element = ELEMENT_NAMES.get(f"{owner}.{last}") or ELEMENT_NAMES.get(last)
    return f"{translate(element)} = {format_six_digits(value)}" if element else ""


def _is_plain_softmax(trace: Trace, name: str) -> bool:
    """Return whether a pattern is the softmax of its scores, without a soft cap or an intervention."""
    names = (name, _scores_tap(name))
    is_changed = any(intervention.affects(tap) for intervention in trace.edits for tap in names)
    return trace.config.score_cap is None and not is_changed


def _scores_tap(pattern: str) -> str:
    return f"{pattern.removesuffix('pattern')}scores"


def _attention_sentence(trace: Trace, name: str, index: tuple[int, ...], weight: float) -> str:
    _head, query, key = index
    score = float(trace.get_slice(_scores_tap(name), *index))
    return _(
        "{query} looks at {key} with {weight}: q·k {product} ÷ {divisor} = {score}, then softmax",
        query=quote_token(trace.tokens[query]),
        key=quote_token(trace.tokens[key]),
        weight=format_number(weight),
        product=format_number(score * trace.config.divisor),
        divisor=score_divisor_in_numbers(trace.config),
        score=format_number(score),
    )
