"""Sentences on what an element of a captured value is."""

from explorer.architecture.formulas import score_divisor_in_numbers
from explorer.explain.notation import format_number, format_six_digits, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

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
    "up": N_("the neuron’s sum of inputs"),
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
