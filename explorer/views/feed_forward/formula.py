"""The formula of the chosen neuron at a token."""

from explorer.analysis.feed_forward import ACTIVATIONS, recompute_neuron
from explorer.explain.notation import format_number, quote_token
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate

PLAIN = N_("before = {into_up} = {before}\nhidden = {name}(before) = {name}({before}) = {hidden}")
GATED = N_(
    "gate   = {name}({into_gate}) = {name}({before}) = {after}\nup     = {into_up} = {up}\n"
    "hidden = gate · up = {after} · {up} = {hidden}"
)


def formula(trace: Trace, selection: Selection) -> str:
    """Return the selected neuron's projections and activation, in numbers."""
    layer, chosen_neuron, query = selection.layer, selection.neuron, selection.query
    worked = recompute_neuron(trace, layer, chosen_neuron, query)
    biases = {part: f"blocks.{layer}.ffn.{part}_proj.bias" in trace.weights for part in ("gate", "up")}

    def format_projection(matrix: str) -> str:
        return f"W_{matrix}[{chosen_neuron}]·x" + f" + b_{matrix}[{chosen_neuron}]" * biases[matrix]

    head = _(
        "layer {layer} neuron {neuron} at {token} ({position}), which reads x = {value} ({width} numbers)",
        layer=layer,
        neuron=chosen_neuron,
        token=quote_token(trace.tokens[query]),
        position=query,
        value=worked.read,
        width=trace.config.d_model,
    )
    working = translate(
        PLAIN if worked.up is None else GATED,
        name=ACTIVATIONS[trace.config.ffn][0],
        into_gate=format_projection("gate"),
        into_up=format_projection("up"),
        before=format_number(worked.pre),
        after=format_number(worked.active),
        up=format_number(worked.up or 0),
        hidden=format_number(worked.hidden),
    )
    off = _("recomputed from x and the weights, off by {error}", error=format_number(worked.error))
    return f"{head}\n{working}   {off}"
