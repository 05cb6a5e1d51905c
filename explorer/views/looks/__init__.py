"""Who looks at whom: the head that counts most for the guess, and where it looks. The simple page's second step."""

import numpy as np

from explorer.analysis.attribution import attribution
from explorer.analysis.next_token import likeliest
from explorer.explain.captured import derivation_of
from explorer.explain.derivation import Derivation
from explorer.explain.notation import quoted
from explorer.explain.point import Point
from explorer.language import N_, _
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.checks import Mark, recomputed, worked_out
from explorer.views.explained import PARTS, SUM
from explorer.views.token_bars import percent, token_bars
from explorer.views.view import Panel, View
from model.config import ModelConfig

PATTERN = "blocks.{layer}.attn.pattern"
MOST_NAMED = 3  # tokens that it looks at
LEAST_NAMED = 0.05  # of its attention


def strongest_head(trace: Trace, query: int) -> tuple[int, int]:
    """Layer and head of the one that adds most to the logit of the likeliest next token (direct logit attribution); the
    page says that it speaks most for it."""
    heads = attribution(trace, query, int(likeliest(trace, query)[0])).heads  # (L, H)
    layer, head = np.unravel_index(heads.argmax(), heads.shape)
    return int(layer), int(head)


def looks(trace: Trace, query: int) -> np.ndarray:
    """(query + 1,) its attention from the query to each token so far; it sums to 1."""
    layer, head = strongest_head(trace, query)
    return trace[PATTERN.format(layer=layer)][head, query, : query + 1]


def picture(trace: Trace, query: int) -> go.Figure:
    layer, head = strongest_head(trace, query)
    alt = _("Where layer {layer} head {head} looks from {token}.", layer=layer, head=head, token=named(trace, query))
    return token_bars(
        trace,
        looks(trace, query),
        int(looks(trace, query).argmax()),
        _("share of its attention"),
        f"{alt} {most(trace, query)}",
    )


def named(trace: Trace, position: int) -> str:
    return quoted(trace.tokens[position])


def most(trace: Trace, query: int) -> str:
    """Where it looks most, in a sentence."""
    weights = looks(trace, query)
    places = [int(i) for i in np.argsort(-weights, kind="stable")[:MOST_NAMED] if weights[i] >= LEAST_NAMED]
    told = (
        _("at itself, {token} ({share})", token=named(trace, i), share=percent(float(weights[i])))
        if i == query
        else _("at {token} ({share})", token=named(trace, i), share=percent(float(weights[i])))
        for i in places
    )
    if not places:
        return _("It looks a little at many tokens, at none with a twentieth of its attention.")
    return _("It looks most {places}.", places=", ".join(told))


def formula(trace: Trace, selection: Selection) -> str:
    layer, head = strongest_head(trace, selection.query)
    first = _(
        "Of {heads} heads, head {head} of layer {layer} speaks most for its guess after {token}, {guess}.",
        token=named(trace, selection.query),
        guess=quoted(trace.vocabulary[likeliest(trace, selection.query)[0]]),
        head=head,
        layer=layer,
        heads=trace.config.num_layers * trace.config.num_heads,
    )
    return f"{first}\n{most(trace, selection.query)}"


def mark(trace: Trace, selection: Selection) -> Mark:
    """What is drawn, and what chose the head."""
    layer, _head = strongest_head(trace, selection.query)
    drawn = recomputed(PATTERN.format(layer=layer))(trace, selection)
    chosen = worked_out(*PARTS, "logits", against=SUM)(trace, selection)
    return chosen if chosen.state == "off" else drawn


def inspect(trace: Trace, selection: Selection, point: Point) -> Derivation:
    if point.column > selection.query:
        raise NoSuchPoint(_("no bar is after the query"))
    layer, head = strongest_head(trace, selection.query)
    return derivation_of(trace, PATTERN.format(layer=layer), (head, selection.query, point.column))


def in_full(trace: Trace, selection: Selection) -> tuple[str, dict]:
    layer, head = strongest_head(trace, selection.query)
    return _("All heads of all layers"), {"view": "attention", "layer": layer, "head": head, "pattern": "weight"}


def otherwise(config: ModelConfig) -> str:
    return _("This model has no attention.")


VIEW = View(
    name="looks",
    title=N_("2 · Looking back"),
    words=N_(
        "To guess, the model looks back. It has many small searchlights, called attention heads: each decides anew, at "
        "every token, how much to take from which earlier one. Here is the one that speaks most for the guess; choose "
        "another token above to see where it looks from there."
    ),
    formula=formula,
    needs=(
        *("embed", "blocks.*.attn.pattern", "blocks.*.attn.z", "blocks.*.ffn.out", "blocks.*.resid_post", "logits"),
        "lm_head.weight",
    ),
    otherwise=otherwise,
    panels=(
        Panel(
            name="weights",
            title=N_("Who looks at whom?"),
            draw=lambda trace, s: picture(trace, s.query),
            selects={"x": "key"},
            mark=mark,
            inspect=inspect,
            height=300,
        ),
    ),
    in_full=in_full,
)
