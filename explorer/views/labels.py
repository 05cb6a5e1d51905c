"""Texts about the architecture, the target and contrast tokens, and head scores beside chance."""

from collections.abc import Callable

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    LogitAttribution,
    attribution_by_kind,
    check_component_sum,
)
from explorer.analysis.head_scores import ChanceHeadScores
from explorer.analysis.next_token import ranking_without_interventions
from explorer.architecture.formulas import has_logit_bias_terms, logit_bias_terms_short_label
from explorer.explain.notation import format_number, format_six_digits, quote_token, quote_token_in_text
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from model.config import ModelConfig


def shared_kv_head_text(config: ModelConfig, head: int) -> str:
    """Return the kv head of a query head, as in "kv head 2, shared by heads 4 to 5"; "" if none is shared."""
    size = config.num_heads // config.kv_heads
    group = head // size
    if size == 1:
        return ""
    first = group * size
    return _("kv head {group}, shared by heads {first} to {last}", group=group, first=first, last=first + size - 1)


def head_value_label(config: ModelConfig, value: np.ndarray, head: int) -> str:
    """Name the head's slice of a value (H, …), or of shared keys and values (G, …)."""
    return _("head {head}", head=head) if len(value) == config.num_heads else shared_kv_head_text(config, head)


def score_inputs_text(config: ModelConfig, layer: int) -> str:
    """Name the vectors whose products are a layer's scores, as in "the normalised and rotated q and k"."""
    rotated = config.has_rope(layer)
    if config.qk_norm:
        return _("the normalised and rotated q and k") if rotated else _("the normalised q and k")
    return _("the rotated q and k") if rotated else _("q and k")


def masked_keys_text(config: ModelConfig, layer: int, hides_any: bool) -> str:
    """Describe the keys that a layer's mask hides, if it `hides_any` from the query."""
    if not hides_any:
        return _("nothing to mask: the last query")
    if window := config.window(layer):
        return _("masked: {window} keys up to the query", window=window)
    return _("masked: no key after the query")


def pair_dimensions_text(config: ModelConfig) -> str:
    """Name the two dimensions that RoPE rotates together."""
    if config.rope_layout == "adjacent":
        return _("2i and 2i + 1")
    return _("i and i + {half}", half=config.d_head // 2)


def rope_scaling_text(config: ModelConfig) -> str:
    """Describe how RoPE is scaled; "" if it is not."""
    scaling = config.rope_scaling
    if scaling is None:
        return ""
    return translate(
        ROPE_SCALING_TEXTS[scaling.kind],
        factor=scaling.factor,
        original=scaling.original_context_length,
        low=scaling.low_frequency_factor,
        high=scaling.high_frequency_factor,
        scale=scaling.attention_factor,
    )


ROPE_SCALING_TEXTS = {
    "linear": N_("slowed for longer texts: every pair is rotated {factor:g} times slower (linear scaling)"),
    "ntk": N_(
        "slowed for longer texts: pair 0 as it was, the last pair {factor:g} times slower, those between less "
        "(NTK-aware scaling)"
    ),
    "llama3": N_(
        "slowed for longer texts: pairs with fewer than {low:g} rotations in {original:,} positions are {factor:g} "
        "times slower, those with more than {high:g} as they were (Llama 3 scaling)"
    ),
    "yarn": N_(
        "slowed for longer texts: pairs with fewer than {low:g} rotations in {original:,} positions are {factor:g} "
        "times slower, those with more than {high:g} as they were; rotated pairs are multiplied by {scale:.4g} (YaRN)"
    ),
    "longrope": N_(
        "slowed by a factor for each pair, for texts of up to {original:,} tokens; rotated pairs are multiplied by "
        "{scale:.4g} (LongRoPE)"
    ),
}


# The components of a logit, and the inputs of the norms on the path to it.
PARTS = (
    *("embed", "position_embed", "blocks.*.attn.z", "blocks.*.attn.out", "blocks.*.ffn.out"),
    *("blocks.*.resid_mid", "blocks.*.resid_post"),
)
ATTRIBUTION_TAPS = ("embed", "blocks.*.attn.z", "blocks.*.ffn.out", "blocks.*.resid_post", "logits", "lm_head.weight")
NORMS = tuple(f"blocks.*.{norm}" for norm in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm"))

COMPONENT_LABELS = {  # kind of component in `by_kind` -> label
    "token": N_("embedding"),
    "position": N_("position"),
    "attention": N_("attention"),
    "feed_forward": N_("feed-forward"),
    "shift": "{shifts}",
    "changes": N_("changes"),
}


def target_and_contrast(trace: Trace, selection: Selection) -> tuple[int, int | None]:
    """Return the ids of the target token and of the contrast token; None if there is no contrast.

    Ranks are those of the run without interventions.
    """
    order = ranking_without_interventions(trace, selection.query)
    contrast_id = int(order[selection.rival - 1]) if selection.rival else None
    return int(order[selection.target - 1]), contrast_id


def target_token(trace: Trace, selection: Selection) -> int:
    """Return the id of the target token."""
    return target_and_contrast(trace, selection)[0]


def logit_label(
    trace: Trace, token_id: int, contrast_id: int | None, format_token: Callable[[str], str] = quote_token
) -> str:
    """Return the name of the target token's logit, or of its difference from the contrast token's.

    As in "the logit of “a”" or "the logit of “a” less that of “b”".

    Args:
        format_token: formats the tokens.
    """
    token = format_token(trace.vocabulary[token_id])
    if contrast_id is None:
        return _("the logit of {token}", token=token)
    return _(
        "the logit of {token} less that of {rival}", token=token, rival=format_token(trace.vocabulary[contrast_id])
    )


def format_heading(template: str, trace: Trace, selection: Selection) -> str:
    """Return a panel's heading, translated, with what is selected.

    Its fields are {layer}, {head}, {neuron}, {value}, {query}, {key}, {target} for the target token, and {logit}.
    """
    names = {name: getattr(selection, name) for name in ("layer", "head", "neuron")} | {"value": selection.tap}
    names |= {name: quote_token_in_text(trace.tokens, getattr(selection, name)) for name in ("query", "key")}
    if "{target}" in template or "{logit}" in template:
        token_ids = target_and_contrast(trace, selection)
        names |= {"target": quote_token(trace.vocabulary[token_ids[0]]), "logit": logit_label(trace, *token_ids)}
    return translate(template, **names)


def difference_title(title: str) -> str:
    """Return the title of a difference of two runs, from that of a panel, which goes on in lower case."""
    first_word = title.split(" ")[0]
    is_name = first_word[1:] != first_word[1:].lower()  # as in “RoPE”
    return _("Difference A − B: {title}", title=title if is_name else title[:1].lower() + title[1:])


def contribution_sum_text(trace: Trace, contributions: LogitAttribution) -> str:
    """Format a logit as a sum over kinds of components, as in "embedding 0.21 + attention 1.5"."""
    shifts = logit_bias_terms_short_label(trace.config) if has_logit_bias_terms(trace.config) else ""
    values = attribution_by_kind(trace, contributions).items()
    return " + ".join(
        f"{translate(COMPONENT_LABELS[kind], shifts=shifts)} {format_six_digits(value)}" for kind, value in values
    )


SUM_CHECK = (
    N_("the sum of all parts against the captured logit"),
    lambda trace, s: check_component_sum(trace, s.query, *target_and_contrast(trace, s)),
)


NO_REPEATED_TOKEN = N_("no token of this prompt occurs twice")


def uniform_score_text(baseline: ChanceHeadScores) -> str:
    """Format the score of uniform attention; a range where layers differ in the tokens that they can see."""
    minimum, maximum = format_number(baseline.uniform_scores.min()), format_number(baseline.uniform_scores.max())
    return minimum if minimum == maximum else _("{least} to {most}", least=minimum, most=maximum)


def chance_hover(baseline: ChanceHeadScores, exceeds: np.ndarray) -> list[list[str]]:
    """Return each head's hover text on chance: the score of uniform attention and the chance bound, (L, H)."""
    even_text = _("attention spread evenly<br>would have {even}", even=uniform_score_text(baseline))
    if baseline.quantiles is None:
        return [[even_text] * exceeds.shape[1]] * len(exceeds)
    return [
        [
            translate(ABOVE_CHANCE if more else MAY_BE_CHANCE, even=even_text, most=format_number(bound))
            for bound, more in zip(*row, strict=True)
        ]
        for row in zip(baseline.quantiles, exceeds, strict=True)
    ]


ABOVE_CHANCE = N_(
    "{even};<br>weights as sharp as these,<br>but anywhere, stay within<br>{most} in 19 of 20 tries:<br>"
    "more than chance"
)


MAY_BE_CHANCE = N_(
    "{even};<br>weights as sharp as these,<br>but anywhere, stay within<br>{most} in 19 of 20 tries:<br>"
    "this may be chance"
)
