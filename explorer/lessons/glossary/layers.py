"""Glossary entries on layers and their components."""

import numpy as np

from explorer.analysis.next_token import next_token_ranking
from explorer.analysis.residual import residual_stream
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.translations import N_, _
from model.parameter_and_flop_counts import num_parameters


def layers_example(context: GlossaryContext) -> str:
    config = context.trace.config
    return _(
        "This model has {layers} layers with {heads} heads each.", layers=config.num_layers, heads=config.num_heads
    )


def residual_stream_example(context: GlossaryContext) -> str:
    lengths = np.linalg.norm(residual_stream(context.trace)[:, context.selection.query], axis=-1)
    return _(
        "At {token} it grows from length {first} to {last}.",
        token=quote_token(context.token),
        first=format_number(lengths[0]),
        last=format_number(lengths[-1]),
    )


def neurons_example(context: GlossaryContext) -> str:
    selection = context.selection
    value = context.trace[f"blocks.{selection.layer}.ffn.hidden"][selection.query, selection.neuron]
    return _(
        "A layer has {count:,}; neuron {neuron} of layer {layer} has {value} at {token}.",
        count=context.trace.config.d_ff,
        neuron=selection.neuron,
        layer=selection.layer,
        value=format_number(value),
        token=quote_token(context.token),
    )


def norm_layer_example(context: GlossaryContext) -> str:
    x = context.trace[f"blocks.{context.trace.config.num_layers - 1}.resid_post"][context.selection.query]
    kind = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}[context.trace.config.norm]
    return _(
        "Here {kind}; it reads a vector of length {length} at {token} last.",
        kind=kind,
        length=format_number(np.linalg.norm(x)),
        token=quote_token(context.token),
    )


def bias_example(context: GlossaryContext) -> str:
    config = context.trace.config
    maps = {"q, k, v": config.has_qkv_bias, "W_O": config.bias, _("the feed-forward"): config.has_ffn_bias}
    if all(maps.values()):
        return _("This model’s linear maps have them.")
    if not any(maps.values()):
        return _("This model’s linear maps have none.")
    return _(
        "Of this model’s linear maps, these have them: {maps}.", maps=", ".join(name for name in maps if maps[name])
    )


def parameters_example(context: GlossaryContext) -> str:
    return _("This model has {count:,}.", count=num_parameters(context.trace.config))


def gate_example(context: GlossaryContext) -> str:
    selection, name = context.selection, f"blocks.{context.selection.layer}.ffn.gate"
    if name not in context.trace:
        return _("This model’s feed-forwards have none.")
    return _(
        "That of neuron {neuron} of layer {layer} is {value} at {token}.",
        neuron=selection.neuron,
        layer=selection.layer,
        value=format_number(context.trace[name][selection.query, selection.neuron]),
        token=quote_token(context.token),
    )


def activation_function_example(context: GlossaryContext) -> str:
    kind = {"swiglu": "SwiGLU", "geglu": "GeGLU", "relu": "ReLU", "relu2": "ReLU²"}.get(
        context.trace.config.ffn, "GELU"
    )
    return _("This model has {kind}, at {count:,} neurons a layer.", kind=kind, count=context.trace.config.d_ff)


def gain_example(context: GlossaryContext) -> str:
    gains = context.trace.weights[f"blocks.{context.selection.layer}.attn_norm.weight"]
    return _(
        "Those of layer {layer}’s attn_norm go from {least} to {most}.",
        layer=context.selection.layer,
        least=format_number(gains.min()),
        most=format_number(gains.max()),
    )


def sparsity_example(context: GlossaryContext) -> str:
    hidden = context.trace[f"blocks.{context.selection.layer}.ffn.hidden"]
    return _(
        "Of {count:,} hidden values in layer {layer} here, {zeros:,} are 0.",
        count=hidden.size,
        layer=context.selection.layer,
        zeros=int((hidden == 0).sum()),
    )


def depths_example(context: GlossaryContext) -> str:
    return _("Here from 0 to {last}.", last=context.trace.config.num_layers)


def logit_difference_example(context: GlossaryContext) -> str:
    first, second = (int(token_id) for token_id in next_token_ranking(context.trace, context.selection.query)[:2])
    logits = context.trace.logits.row(context.selection.query)
    return _(
        "The logit of {first} is {lead} above that of {second}.",
        first=quote_token(context.trace.vocabulary[first]),
        lead=format_number(logits[first] - logits[second]),
        second=quote_token(context.trace.vocabulary[second]),
    )


ENTRIES = (
    Entry(
        (N_("layer"), N_("layers")),
        N_("attention, then a feed-forward; each adds to the residual stream"),
        layers_example,
    ),
    Entry(
        (N_("residual stream"),),
        N_("the vector of a token that every layer reads and adds to"),
        residual_stream_example,
    ),
    Entry(
        (N_("feed-forward"), N_("feed-forwards")),
        N_("the part of a layer that works on each token by itself, through its neurons"),
        neurons_example,
    ),
    Entry(
        (N_("neuron"), N_("neurons"), N_("hidden value")),
        N_("one number inside a feed-forward; the larger it is, the more of its own vector is added to the stream"),
        neurons_example,
    ),
    Entry(
        (N_("norm"), N_("norms"), "RMSNorm", "LayerNorm"),
        N_("brings a vector to a standard size before it is read"),
        norm_layer_example,
    ),
    Entry((N_("gate"),), N_("how far SwiGLU opens each neuron: SiLU of a first product"), gate_example),
    Entry(
        ("SiLU", "SwiGLU", "GELU", "GeGLU", "ReLU"),
        N_(
            "lets large numbers of a feed-forward through and brings negative ones to 0 or near it; SwiGLU multiplies "
            "SiLU by a second product"
        ),
        activation_function_example,
    ),
    Entry(
        (N_("gain"), N_("gains")),
        N_("the learned number by which a norm multiplies each dimension in the end"),
        gain_example,
    ),
    Entry(
        (N_("activations"), N_("sparsity")),
        N_("what is computed inside the model; sparse where most of it is 0"),
        sparsity_example,
    ),
    Entry(
        (N_("sublayer"), N_("sublayers")),
        N_("attention or a feed-forward, the two halves of a layer"),
        lambda look: _("Here {count}.", count=2 * look.trace.config.num_layers),
    ),
    Entry((N_("depth"), N_("depths")), N_("how many layers have worked on a vector"), depths_example),
    Entry((N_("rival"),), N_("the token that the explained one is compared with"), logit_difference_example),
    Entry((N_("bias"), N_("biases")), N_("a learned number that is added whatever comes in"), bias_example),
    Entry((N_("parameters"),), N_("the numbers of a model that training has set"), parameters_example),
)
