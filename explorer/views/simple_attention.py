"""Attention step of the story: the head that contributes most to the guess, and its attention."""

import numpy as np

from explorer.analysis.direct_logit_attribution import (
    attribution_by_source,
    direct_logit_attribution,
    largest_earlier_source,
)
from explorer.analysis.next_token import next_token_ranking
from explorer.errors import PointNotFoundError
from explorer.explain.captured import derive
from explorer.explain.clicked_point import ClickedPoint
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views import graph_objects as go
from explorer.views.labels import PARTS, SUM_CHECK
from explorer.views.plots import format_percent, token_bars
from explorer.views.verification import Verification, verify_captured, verify_derived
from explorer.views.view import Panel, View
from model.config import ModelConfig

PATTERN = "blocks.{layer}.attn.pattern"
MAX_NAMED = 3  # tokens that it looks at
MIN_NAMED_WEIGHT = 0.05  # of its attention


def top_contributing_head(trace: Trace, query: int) -> tuple[int, int]:
    """Return layer and head of the largest contribution from an earlier token to the likeliest next token's logit.

    As the whole model's sentence has it. Where no earlier token adds to the logit: the head that adds most.
    """
    token_id = int(next_token_ranking(trace, query)[0])
    if source := largest_earlier_source(attribution_by_source(trace, query, token_id), query):
        return source[:2]
    heads = direct_logit_attribution(trace, query, token_id).heads  # (L, H)
    layer, head = np.unravel_index(heads.argmax(), heads.shape)
    return int(layer), int(head)


def top_head_weights(trace: Trace, query: int) -> np.ndarray:
    """Return the top contributing head's attention from the query to each token up to it, (query + 1,).

    The weights sum to 1.
    """
    layer, head = top_contributing_head(trace, query)
    return trace[PATTERN.format(layer=layer)][head, query, : query + 1]


def draw(trace: Trace, query: int) -> go.Figure:
    """Draw the attention weights of the head that contributes most."""
    layer, head = top_contributing_head(trace, query)
    alt = _(
        "Where layer {layer} head {head} looks from {token}.", layer=layer, head=head, token=token_label(trace, query)
    )
    return token_bars(
        trace,
        top_head_weights(trace, query),
        int(top_head_weights(trace, query).argmax()),
        _("share of its attention"),
        f"{alt} {strongest_attention_text(trace, query)}",
    )


def token_label(trace: Trace, position: int) -> str:
    """Return the token at a position in quotes."""
    return quote_token(trace.tokens[position])


def strongest_attention_text(trace: Trace, query: int) -> str:
    """Describe, in a sentence, the tokens that the top contributing head attends to most."""
    weights = top_head_weights(trace, query)
    top_positions = [int(i) for i in np.argsort(-weights, kind="stable")[:MAX_NAMED] if weights[i] >= MIN_NAMED_WEIGHT]
    phrases = (
        _("at itself, {token} ({share})", token=token_label(trace, i), share=format_percent(float(weights[i])))
        if i == query
        else _("at {token} ({share})", token=token_label(trace, i), share=format_percent(float(weights[i])))
        for i in top_positions
    )
    if not top_positions:
        return _("It looks a little at many tokens, at none with a twentieth of its attention.")
    return _("It looks most {places}.", places=", ".join(phrases))


def formula(trace: Trace, selection: Selection) -> str:
    """Return a sentence on the head that contributes most."""
    layer, head = top_contributing_head(trace, selection.query)
    head_text = _(
        "Of {heads} heads, head {head} of layer {layer} does most for the guess after {token}, {guess}.",
        token=token_label(trace, selection.query),
        guess=quote_token(trace.vocabulary[next_token_ranking(trace, selection.query)[0]]),
        head=head,
        layer=layer,
        heads=trace.config.num_layers * trace.config.num_heads,
    )
    return f"{head_text}\n{strongest_attention_text(trace, selection.query)}"


def verify(trace: Trace, selection: Selection) -> Verification:
    """Verify the drawn pattern and the attribution by which the head is chosen."""
    layer, _head = top_contributing_head(trace, selection.query)
    pattern_verification = verify_captured(PATTERN.format(layer=layer))(trace, selection)
    head_verification = verify_derived(*PARTS, "logits", against=SUM_CHECK)(trace, selection)
    return head_verification if head_verification.state == "off" else pattern_verification


def inspect(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation:
    """Derive the clicked attention weight."""
    if point.column > selection.query:
        raise PointNotFoundError(_("no bar is after the query"))
    layer, head = top_contributing_head(trace, selection.query)
    return derive(trace, PATTERN.format(layer=layer), (head, selection.query, point.column))


def numbers_view_link(trace: Trace, selection: Selection) -> tuple[str, dict]:
    """Return the link to all heads, with that head selected."""
    layer, head = top_contributing_head(trace, selection.query)
    return _("All heads of all layers"), {"view": "attention", "layer": layer, "head": head, "pattern": "weight"}


def unavailable_reason(config: ModelConfig) -> str:
    """Return why the view has nothing to show."""
    return _("This model has no attention.")


VIEW = View(
    name="looks",
    title=N_("2 · Who looks at whom"),
    group="story",
    order=20,
    description=N_(
        "To guess, the model looks back: attention heads decide how much to take from each earlier token. This one "
        "does most for the guess."
    ),
    formula=formula,
    required_taps=(
        *(
            "embed",
            "blocks.*.attn.pattern",
            "blocks.*.attn.v",
            "blocks.*.attn.z",
            "blocks.*.ffn.out",
            "blocks.*.resid_post",
            "logits",
        ),
        "lm_head.weight",
    ),
    unavailable_message=unavailable_reason,
    panels=(
        Panel(
            name="weights",
            title=N_("Who looks at whom?"),
            draw=lambda trace, s: draw(trace, s.query),
            click_selects={"x": "key"},
            verify=verify,
            inspect=inspect,
            height=420,
        ),
    ),
    numbers_view_link=numbers_view_link,
)
