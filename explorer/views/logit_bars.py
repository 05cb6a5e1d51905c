"""The parts that a logit is taken apart into, as bars."""

from collections.abc import Iterator

from explorer.analysis.attribution import Attribution, is_put_in
from explorer.architecture import shifts
from explorer.language import _
from explorer.tracing.trace import Trace
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL


def components(
    trace: Trace, taken: Attribution, changes: bool | None = None
) -> Iterator[tuple[str, float, str, str, int | None]]:
    """The bars from left to right: on the axis, value, colour, in words, and the layer it belongs to.

    Args:
        changes: whether what edits put in has one; None: where they put anything in.
    """
    yield _("embedding"), taken.token, EMBEDDING, _("the token's embedding"), None
    if "position_embed" in trace:
        yield _("position"), taken.positions, EMBEDDING, _("the position added to it"), None
    for layer, heads in enumerate(taken.heads):
        told = _("the {count} heads of layer {layer}", count=len(heads), layer=layer)
        yield _("{layer} attention", layer=layer), heads.sum(), ATTENTION, told, layer
        if f"blocks.{layer}.attn.o_proj.bias" in trace.weights:
            told = _("the bias of W_O of layer {layer}", layer=layer)
            yield _("{layer} bias", layer=layer), taken.biases[layer], ATTENTION, told, layer
        told = _("the feed-forward of layer {layer}", layer=layer)
        yield _("{layer} feed-forward", layer=layer), taken.feed_forward[layer], FEED_FORWARD, told, layer
    if shifts.has_shifts(trace.config):
        yield shifts.signs(trace.config), taken.shift, NORM, shifts.words(trace.config), None
    if is_put_in(trace) if changes is None else changes:
        yield _("changes"), taken.changes, RESIDUAL, _("what the changes of the run put in"), None


def parts_in_order(trace: Trace, changes: bool | None = None) -> list[tuple[str, int]]:
    """What each bar is, as `logit_part` calls it, and its layer."""
    changes = is_put_in(trace) if changes is None else changes
    bias = "blocks.0.attn.o_proj.bias" in trace.weights
    each = ("heads", *["bias"] * bias, "feed_forward")
    first = ("token", *["position"] * ("position_embed" in trace))
    last = [*["shift"] * shifts.has_shifts(trace.config), *["changes"] * changes]
    layers = [(part, layer) for layer in range(trace.config.num_layers) for part in each]
    return [*((part, 0) for part in first), *layers, *((part, 0) for part in last)]
