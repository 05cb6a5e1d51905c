"""All that views let a reader change of the run."""

from dataclasses import replace

from explorer.language import N_
from explorer.state.interventions import (
    Add,
    Base,
    Clamp,
    Drop,
    Mask,
    Mean,
    Norm,
    Patch,
    PatchMean,
    Remove,
    Scale,
    Shift,
    Zero,
)
from explorer.views.what_if import BY_DIRECTION, Scope, WhatIf

ROTATION_SHIFT = WhatIf(N_("all positions shifted by"), "rope.angles", Shift, maximum=512)
VECTOR_SHIFT = replace(ROTATION_SHIFT, tap="position_embed")
BASE = WhatIf("θ", "rope.angles", Base, default=10_000, minimum=10, maximum=1_000_000, step=0.05, log=True)
ROTATION_OFF = WhatIf(N_("rotation off"), "rope.angles", Zero)
VECTORS_OFF = replace(ROTATION_OFF, title=N_("position vectors off"), tap="position_embed")

# Of what is chosen. A head is scaled where it still is one: o_proj mixes them. To silence a sublayer is to silence its
# work and not the residual stream; a bias of its output stays.
PART = WhatIf("", "", Scale, default=1, maximum=2, step=0.05, here="{query}")
HEAD = replace(PART, title=N_("head {head} of layer {layer} ×"), tap="blocks.{layer}.attn.z", index="head")
HEADS = replace(PART, title=N_("all heads of layer {layer} ×"), tap="blocks.{layer}.attn.z")
FEED_FORWARD = replace(PART, title=N_("feed-forward of layer {layer} ×"), tap="blocks.{layer}.ffn.hidden")
NEURON = replace(FEED_FORWARD, title=N_("neuron {neuron} of layer {layer} ×"), index="neuron")
MEAN = replace(HEAD, title=N_("head {head} of layer {layer} at its mean over the prompt"), kind=Mean, default=0)

# Of what is chosen, where another run is there to take it from.
TAKEN_HEAD = replace(MEAN, title=N_("head {head} of layer {layer} as in the other run"), kind=Patch)
TAKEN_HEADS = replace(TAKEN_HEAD, title=N_("all heads of layer {layer} as in the other run"), index=None)
TAKEN_PATTERN = replace(
    TAKEN_HEAD,
    title=N_("pattern of head {head} of layer {layer} as in the other run"),
    tap="blocks.{layer}.attn.pattern",
)
TAKEN_FEED_FORWARD = replace(
    FEED_FORWARD, title=N_("feed-forward of layer {layer} as in the other run"), kind=Patch, default=0
)
TAKEN_NEURON = replace(NEURON, title=N_("neuron {neuron} of layer {layer} as in the other run"), kind=Patch, default=0)
TAKEN_STREAM = replace(
    TAKEN_HEADS, title=N_("the stream after layer {layer} as in the other run"), tap="blocks.{layer}.resid_post"
)
TAKEN_MEAN = replace(MEAN, title=N_("head {head} of layer {layer} at its mean over the other run"), kind=PatchMean)

EDGES = (
    Scope(N_("with head {head} of layer {layer}"), "blocks.{layer}.attn.pattern", "head"),
    Scope(N_("with any head of layer {layer}"), "blocks.{layer}.attn.pattern"),
    Scope(N_("with any head of any layer"), "blocks.*.attn.pattern"),
)
MASK = WhatIf(
    N_("position {query} does not see position {key}, and other weights make up for it:"),
    EDGES[0].tap,
    Mask,
    index=EDGES[0].index,
    positions="{query}",
    scopes=EDGES,
    amount="key",
)
DROP = replace(
    MASK,
    title=N_("position {query} does not see position {key}, and other weights stay:"),
    kind=Drop,
)
GATE = replace(
    NEURON,
    title=N_("gate of neuron {neuron} of layer {layer} held at"),
    tap="blocks.{layer}.ffn.gate",
    kind=Clamp,
    minimum=-2,
    maximum=4,
)
HIDDEN = replace(
    GATE,
    title=N_("neuron {neuron} of layer {layer} held at"),
    tap="blocks.{layer}.ffn.hidden",
    without="blocks.{layer}.ffn.gate",
)
TOWARDS = WhatIf(
    N_("the stream after layer {layer}, pushed towards {word} by × its length"),
    "blocks.{layer}.resid_post",
    Add,
    minimum=-1,
    step=0.05,
    by="unembed.{token}",
    here="{query}",
)
ALONG = replace(
    TOWARDS,
    title=N_("the stream after layer {layer}, pushed by × its length along the direction"),
    by=BY_DIRECTION,
)
ALONG_REMOVED = replace(
    ALONG, title=N_("the stream after layer {layer} without its part along the direction"), kind=Remove
)
WITHOUT = replace(TOWARDS, title=N_("the stream after layer {layer} without its part along {word}"), kind=Remove)
AS_NORM = {
    "rmsnorm": N_("{norm} as an RMSNorm"),
    "layernorm": N_("{norm} as a LayerNorm"),
    "none": N_("{norm} off, but for its gain"),
}
NORMS = tuple(
    WhatIf(title, tap, Norm, by=by, here="{query}")
    for tap in (
        *(f"blocks.{{layer}}.{norm}" for norm in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm")),
        "final_norm",
    )
    for by, title in AS_NORM.items()
)
