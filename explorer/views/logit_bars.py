"""The components of a logit as bars."""

from collections.abc import Iterator

from explorer.analysis.direct_logit_attribution import LogitAttribution, has_intervention_additions
from explorer.architecture import logits
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL


def component_bar_data(
    trace: Trace, contributions: LogitAttribution, include_interventions: bool | None = None
) -> Iterator[tuple[str, float, str, str, int | None]]:
    """Yield each bar's axis label, value, colour, description, and layer (None outside layers), from left to right.

    Args:
        include_interventions: whether what interventions add to the stream has a bar; None: if they add
            anything.
    """
    yield _("embedding"), contributions.token, EMBEDDING, _("the token's embedding"), None
    if "position_embed" in trace:
        yield _("position"), contributions.positions, EMBEDDING, _("the position added to it"), None
    for layer, heads in enumerate(contributions.heads):
        description = _("the {count} heads of layer {layer}", count=len(heads), layer=layer)
        yield _("{layer} attention", layer=layer), heads.sum(), ATTENTION, description, layer
        if f"blocks.{layer}.attn.o_proj.bias" in trace.weights:
            description = _("the bias of W_O of layer {layer}", layer=layer)
            yield _("{layer} bias", layer=layer), contributions.biases[layer], ATTENTION, description, layer
        description = _("the feed-forward of layer {layer}", layer=layer)
        yield (
            _("{layer} feed-forward", layer=layer),
            contributions.feed_forward[layer],
            FEED_FORWARD,
            description,
            layer,
        )
    if logits.has_logit_constants(trace.config):
        yield (
            logits.logit_constants_symbols(trace.config),
            contributions.shift,
            NORM,
            logits.logit_constants_label(trace.config),
            None,
        )
    if has_intervention_additions(trace) if include_interventions is None else include_interventions:
        yield _("changes"), contributions.changes, RESIDUAL, _("what the changes of the run put in"), None


def component_keys(trace: Trace, include_interventions: bool | None = None) -> list[tuple[str, int]]:
    """Return the key of each bar's component, for its derivation, and its layer."""
    include_interventions = (
        has_intervention_additions(trace) if include_interventions is None else include_interventions
    )
    bias = "blocks.0.attn.o_proj.bias" in trace.weights
    names_per_layer = ("heads", *["bias"] * bias, "feed_forward")
    first_names = ("token", *["position"] * ("position_embed" in trace))
    last_names = [*["shift"] * logits.has_logit_constants(trace.config), *["changes"] * include_interventions]
    layers = [(component, layer) for layer in range(trace.config.num_layers) for component in names_per_layer]
    return [*((component, 0) for component in first_names), *layers, *((component, 0) for component in last_names)]
