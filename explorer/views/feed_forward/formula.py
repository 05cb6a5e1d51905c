"""What the chosen neuron makes of a token, worked out."""

from explorer.analysis.feed_forward import ACTIVATIONS, neuron
from explorer.explain.notation import number, quoted
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

PLAIN = N_("before = {into_up} = {before}\nhidden = {name}(before) = {name}({before}) = {hidden}")
GATED = N_(
    "gate   = {name}({into_gate}) = {name}({before}) = {after}\nup     = {into_up} = {up}\n"
    "hidden = gate · up = {after} · {up} = {hidden}"
)


def formula(trace: Trace, selection: Selection) -> str:
    layer, chosen, query = selection.layer, selection.neuron, selection.query
    worked = neuron(trace, layer, chosen, query)
    biases = {part: f"blocks.{layer}.ffn.{part}_proj.bias" in trace.weights for part in ("gate", "up")}

    def projected(part: str) -> str:
        return f"W_{part}[{chosen}]·x" + f" + b_{part}[{chosen}]" * biases[part]

    head = _(
        "layer {layer} neuron {neuron} at {token} ({position}), which reads x = {value} ({width} numbers)",
        layer=layer,
        neuron=chosen,
        token=quoted(trace.tokens[query]),
        position=query,
        value=worked.read,
        width=trace.config.d_model,
    )
    working = look_up(
        PLAIN if worked.up is None else GATED,
        name=ACTIVATIONS[trace.config.ffn][0],
        into_gate=projected("gate"),
        into_up=projected("up"),
        before=number(worked.pre),
        after=number(worked.active),
        up=number(worked.up or 0),
        hidden=number(worked.hidden),
    )
    off = _("recomputed from x and the weights, off by {error}", error=number(worked.error))
    return f"{head}\n{working}   {off}"
