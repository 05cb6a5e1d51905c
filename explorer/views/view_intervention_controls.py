"""The intervention controls of all views."""

from dataclasses import replace

from explorer.interventions import (
    AddDirection,
    Clamp,
    DropEdge,
    MaskEdge,
    MeanAblation,
    NormReplacement,
    Patch,
    PatchMean,
    PositionShift,
    RemoveDirection,
    RopeBaseReplacement,
    Scale,
    ZeroAblation,
)
from explorer.translations import N_
from explorer.views.intervention_control import BY_DIRECTION, InterventionControl, ScopeOption

ROTATION_SHIFT = InterventionControl(N_("all positions shifted by"), "rope.angles", PositionShift, maximum=512)
VECTOR_SHIFT = replace(ROTATION_SHIFT, tap="position_embed")
BASE = InterventionControl(
    "θ", "rope.angles", RopeBaseReplacement, default=10_000, minimum=10, maximum=1_000_000, step=0.05, log=True
)
ROTATION_OFF = InterventionControl(N_("rotation off"), "rope.angles", ZeroAblation)
POSITION_VECTORS_OFF = replace(ROTATION_OFF, title=N_("position vectors off"), tap="position_embed")

# Of what is chosen. A head is scaled where it still is one: o_proj mixes them. To silence a sublayer is to silence its
# work and not the residual stream; a bias of its output stays.
COMPONENT_SCALE = InterventionControl("", "", Scale, default=1, maximum=2, step=0.05, here="{query}")
HEAD = replace(COMPONENT_SCALE, title=N_("head {head} of layer {layer} ×"), tap="blocks.{layer}.attn.z", index="head")
HEADS = replace(COMPONENT_SCALE, title=N_("all heads of layer {layer} ×"), tap="blocks.{layer}.attn.z")
FEED_FORWARD = replace(COMPONENT_SCALE, title=N_("feed-forward of layer {layer} ×"), tap="blocks.{layer}.ffn.hidden")
NEURON = replace(FEED_FORWARD, title=N_("neuron {neuron} of layer {layer} ×"), index="neuron")
MEAN = replace(HEAD, title=N_("head {head} of layer {layer} at its mean over the prompt"), kind=MeanAblation, default=0)

# Patches of the chosen component, offered if there is another run.
PATCH_HEAD = replace(MEAN, title=N_("head {head} of layer {layer} as in the other run"), kind=Patch)
PATCH_HEADS = replace(PATCH_HEAD, title=N_("all heads of layer {layer} as in the other run"), index=None)
PATCH_PATTERN = replace(
    PATCH_HEAD,
    title=N_("pattern of head {head} of layer {layer} as in the other run"),
    tap="blocks.{layer}.attn.pattern",
)
PATCH_FEED_FORWARD = replace(
    FEED_FORWARD, title=N_("feed-forward of layer {layer} as in the other run"), kind=Patch, default=0
)
PATCH_NEURON = replace(NEURON, title=N_("neuron {neuron} of layer {layer} as in the other run"), kind=Patch, default=0)
PATCH_STREAM = replace(
    PATCH_HEADS, title=N_("the stream after layer {layer} as in the other run"), tap="blocks.{layer}.resid_post"
)
PATCH_MEAN = replace(MEAN, title=N_("head {head} of layer {layer} at its mean over the other run"), kind=PatchMean)

EDGE_SCOPES = (
    ScopeOption(N_("with head {head} of layer {layer}"), "blocks.{layer}.attn.pattern", "head"),
    ScopeOption(N_("with any head of layer {layer}"), "blocks.{layer}.attn.pattern"),
    ScopeOption(N_("with any head of any layer"), "blocks.*.attn.pattern"),
)
MASK = InterventionControl(
    N_("position {query} does not see position {key}, and other weights make up for it:"),
    EDGE_SCOPES[0].tap,
    MaskEdge,
    index=EDGE_SCOPES[0].index,
    positions="{query}",
    scopes=EDGE_SCOPES,
    amount="key",
)
DROP = replace(
    MASK,
    title=N_("position {query} does not see position {key}, and other weights stay:"),
    kind=DropEdge,
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
STEER_TO_TOKEN = InterventionControl(
    N_("the stream after layer {layer}, pushed towards {word} by × its length"),
    "blocks.{layer}.resid_post",
    AddDirection,
    minimum=-1,
    step=0.05,
    by="unembed.{token}",
    here="{query}",
)
STEER_ALONG_DIRECTION = replace(
    STEER_TO_TOKEN,
    title=N_("the stream after layer {layer}, pushed by × its length along the direction"),
    by=BY_DIRECTION,
)
REMOVE_DIRECTION = replace(
    STEER_ALONG_DIRECTION,
    title=N_("the stream after layer {layer} without its part along the direction"),
    kind=RemoveDirection,
)
REMOVE_TOKEN_DIRECTION = replace(
    STEER_TO_TOKEN, title=N_("the stream after layer {layer} without its part along {word}"), kind=RemoveDirection
)
NORM_TITLES = {
    "rmsnorm": N_("{norm} as an RMSNorm"),
    "layernorm": N_("{norm} as a LayerNorm"),
    "none": N_("{norm} off, but for its gain"),
}
NORMS = tuple(
    InterventionControl(title, tap, NormReplacement, by=by, here="{query}")
    for tap in (
        *(f"blocks.{{layer}}.{norm}" for norm in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm")),
        "final_norm",
    )
    for by, title in NORM_TITLES.items()
)
