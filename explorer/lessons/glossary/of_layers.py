"""Words about layers and what each part of them does for a prediction."""

import numpy as np

from explorer.analysis.next_token import likeliest
from explorer.analysis.residual import stream
from explorer.explain.notation import number, quoted
from explorer.language import N_, _
from explorer.lessons.glossary.entry import Entry, Look
from model.counting import num_parameters


def layers(look: Look) -> str:
    config = look.trace.config
    return _(
        "This model has {layers} layers with {heads} heads each.", layers=config.num_layers, heads=config.num_heads
    )


def residual_stream(look: Look) -> str:
    lengths = np.linalg.norm(stream(look.trace)[:, look.selection.query], axis=-1)
    return _(
        "At {token} it grows from length {first} to {last}.",
        token=quoted(look.token),
        first=number(lengths[0]),
        last=number(lengths[-1]),
    )


def neurons(look: Look) -> str:
    selection = look.selection
    value = look.trace[f"blocks.{selection.layer}.ffn.hidden"][selection.query, selection.neuron]
    return _(
        "A layer has {count:,}; neuron {neuron} of layer {layer} has {value} at {token}.",
        count=look.trace.config.d_ff,
        neuron=selection.neuron,
        layer=selection.layer,
        value=number(value),
        token=quoted(look.token),
    )


def norm(look: Look) -> str:
    x = look.trace[f"blocks.{look.trace.config.num_layers - 1}.resid_post"][look.selection.query]
    kind = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}[look.trace.config.norm]
    return _(
        "Here {kind}; it reads a vector of length {length} at {token} last.",
        kind=kind,
        length=number(np.linalg.norm(x)),
        token=quoted(look.token),
    )


def bias(look: Look) -> str:
    if look.trace.config.bias and not look.trace.config.has_qkv_bias:
        return _("This model’s linear maps have them, but for q, k and v.")
    if look.trace.config.bias:
        return _("This model’s linear maps have them.")
    return (
        _("This model’s linear maps have q, k and v biases alone.")
        if look.trace.config.qkv_bias
        else _("This model’s linear maps have none.")
    )


def parameters(look: Look) -> str:
    return _("This model has {count:,}.", count=num_parameters(look.trace.config))


def gate(look: Look) -> str:
    selection, name = look.selection, f"blocks.{look.selection.layer}.ffn.gate"
    if name not in look.trace:
        return _("This model’s feed-forwards have none.")
    return _(
        "That of neuron {neuron} of layer {layer} is {value} at {token}.",
        neuron=selection.neuron,
        layer=selection.layer,
        value=number(look.trace[name][selection.query, selection.neuron]),
        token=quoted(look.token),
    )


def bend(look: Look) -> str:
    kind = {"swiglu": "SwiGLU", "geglu": "GeGLU", "relu": "ReLU", "relu2": "ReLU²"}.get(look.trace.config.ffn, "GELU")
    return _("This model has {kind}, at {count:,} neurons a layer.", kind=kind, count=look.trace.config.d_ff)


def gain(look: Look) -> str:
    gains = look.trace.weights[f"blocks.{look.selection.layer}.attn_norm.weight"]
    return _(
        "Those of layer {layer}’s attn_norm go from {least} to {most}.",
        layer=look.selection.layer,
        least=number(gains.min()),
        most=number(gains.max()),
    )


def sparsity(look: Look) -> str:
    hidden = look.trace[f"blocks.{look.selection.layer}.ffn.hidden"]
    return _(
        "Of {count:,} hidden values in layer {layer} here, {zeros:,} are 0.",
        count=hidden.size,
        layer=look.selection.layer,
        zeros=int((hidden == 0).sum()),
    )


def depths(look: Look) -> str:
    return _("Here from 0 to {last}.", last=look.trace.config.num_layers)


def lead(look: Look) -> str:
    first, second = (int(token_id) for token_id in likeliest(look.trace, look.selection.query)[:2])
    logits = look.trace.logits.at(look.selection.query)
    return _(
        "The logit of {first} is {lead} above that of {second}.",
        first=quoted(look.trace.vocabulary[first]),
        lead=number(logits[first] - logits[second]),
        second=quoted(look.trace.vocabulary[second]),
    )


ENTRIES = (
    Entry((N_("layer"), N_("layers")), N_("attention, then a feed-forward; each adds to the residual stream"), layers),
    Entry((N_("residual stream"),), N_("the vector of a token that every layer reads and adds to"), residual_stream),
    Entry(
        (N_("feed-forward"), N_("feed-forwards")),
        N_("the part of a layer that works on each token by itself, through its neurons"),
        neurons,
    ),
    Entry(
        (N_("neuron"), N_("neurons"), N_("hidden value")),
        N_("one number inside a feed-forward; the larger it is, the more of its own vector is added to the stream"),
        neurons,
    ),
    Entry(
        (N_("norm"), N_("norms"), "RMSNorm", "LayerNorm"),
        N_("brings a vector to a standard size before it is read"),
        norm,
    ),
    Entry((N_("gate"),), N_("how far SwiGLU opens each neuron: SiLU of a first product"), gate),
    Entry(
        ("SiLU", "SwiGLU", "GELU", "GeGLU", "ReLU"),
        N_(
            "lets large numbers of a feed-forward through and brings negative ones to 0 or near it; SwiGLU multiplies "
            "SiLU by a second product"
        ),
        bend,
    ),
    Entry(
        (N_("gain"), N_("gains")), N_("the learned number by which a norm multiplies each dimension in the end"), gain
    ),
    Entry(
        (N_("activations"), N_("sparsity")),
        N_("what is computed inside the model; sparse where most of it is 0"),
        sparsity,
    ),
    Entry(
        (N_("sublayer"), N_("sublayers")),
        N_("attention or a feed-forward, the two halves of a layer"),
        lambda look: _("Here {count}.", count=2 * look.trace.config.num_layers),
    ),
    Entry((N_("depth"), N_("depths")), N_("how many layers have worked on a vector"), depths),
    Entry((N_("rival"),), N_("the token that the explained one is compared with"), lead),
    Entry((N_("bias"), N_("biases")), N_("a learned number that is added whatever comes in"), bias),
    Entry((N_("parameters"),), N_("the numbers of a model that training has set"), parameters),
)
