"""Sliders and switches with which a view changes the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorer.analysis.steering import parse_direction_or_default
from explorer.errors import UserError
from explorer.explain.notation import quote_token
from explorer.interventions import (
    AddDirection,
    AttentionEdgeIntervention,
    Clamp,
    CrossRunIntervention,
    DropEdge,
    Intervention,
    MaskEdge,
    MeanAblation,
    NormReplacement,
    Patch,
    PatchMean,
    PositionSet,
    PositionShift,
    RemoveDirection,
    RopeBaseReplacement,
    Scale,
    ZeroAblation,
)
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison, align_source_run
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.labels import target_token

BY_DIRECTION = "{direction}"  # replaced by the chosen direction


@dataclass(frozen=True)
class InterventionScope:
    """A set of components that an intervention applies to.

    Attributes:
        title: in a list, translated on use, with fields of the selection in braces.
        tap, index: of the intervention.
    """

    title: str
    tap: str
    index: int | str | None = None


@dataclass(frozen=True)
class InterventionControl:
    """An intervention with a slider for its amount, or with a switch (0 off, 1 on) where it takes none.

    With scopes the amount is the number of the chosen scope, from 1.

    Attributes:
        title: beside the slider, translated on use; in it and in other texts, fields of the selection stand in
            braces, `token`, the id of the target token, and `word`, the token itself.
        tap, kind: of the intervention.
        default: the amount that changes nothing.
        minimum, maximum, step: of the amount; with `log`, `step` is one of log₁₀ of the amount.
        log: whether the slider is logarithmic.
        index: of the intervention, or the field of the selection that has it.
        positions, by: of the intervention.
        scopes: of a switch, the choices of a list in its place, the narrowest first: that of `tap` and `index`.
        amount: of a switch whose intervention has one, or the field of the selection that has it.
        without: a tap; models that have it do not get this control.
        here: the chosen token's position, where the intervention can be restricted to it.
        amount_here: the current amount there.
    """

    title: str
    tap: str
    kind: type[Intervention]
    default: float = 0.0
    minimum: float = 0.0
    maximum: float = 1.0
    step: float = 1.0
    log: bool = False
    index: int | str | None = None
    positions: str | None = None
    by: str = ""
    scopes: tuple[InterventionScope, ...] = ()
    amount: float | str = 0.0
    without: str = ""
    here: str | None = None
    amount_here: float = 0.0

    @property
    def group(self) -> str:
        """Heading of the controls of its kind of component."""
        parts = (("norm", N_("norms")), (".attn.", N_("heads")), (".ffn.", N_("neurons")))
        positions = "" if self.tap.startswith("blocks") or "norm" in self.tap else N_("positions")
        return translate(positions or next((title for part, title in parts if part in self.tap), N_("stream")))

    @property
    def is_switch(self) -> bool:
        return self.kind.min_amount == self.kind.max_amount or issubclass(self.kind, AttentionEdgeIntervention)

    def make_intervention(self, amount: float, here: bool = False) -> Intervention:
        """Return the intervention with an amount; a switch's has its own amount."""
        positions = PositionSet.parse(here and self.here or self.positions)
        amount = self.amount if self.is_switch else amount
        return self.kind(self.tap, amount, self.index, positions, self.by)

    def texts(self, here: bool = False) -> tuple[str, str]:
        """Return the intervention's text without a slider's amount, and the prefix of those that it replaces."""
        intervention = self.make_intervention(self.default, here)
        return str(intervention) if self.is_switch else intervention.identity_key, intervention.identity_key

    def ablation_text(self, here: bool = False) -> str:
        """Return the text of the ablation of what the control changes."""
        return replace(self, kind=ZeroAblation).texts(here)[0]

    def scope_texts(self) -> list[str]:
        """Return the intervention's text in each scope."""
        return [str(replace(self, tap=scope.tap, index=scope.index).make_intervention(1)) for scope in self.scopes]

    def current_amount(self, trace: Trace, here: bool = False) -> float:
        """Return the amount that the run has now."""
        if self.scopes:
            texts = {str(intervention) for intervention in trace.edits}
            return float(max((i for i, text in enumerate(self.scope_texts(), 1) if text in texts), default=0))
        text, identity_key = self.texts(here)
        if self.is_switch:
            return float(any(str(intervention) == text for intervention in trace.edits))
        if self.kind is Scale and any(
            intervention.identity_key == self.ablation_text(here) for intervention in trace.edits
        ):
            return 0.0
        return next(
            (intervention.amount for intervention in trace.edits if intervention.identity_key == identity_key),
            self.default,
        )

    def slider_position(self, amount: float) -> float:
        """Return the slider position of an amount, on a scale from `slider_position(minimum)` to the maximum's."""
        return math.log10(amount) if self.log else amount


def available_controls(
    controls: Sequence[InterventionControl], trace: Trace, selection: Selection, comparison: Comparison | None = None
) -> list[tuple[InterventionControl, float]]:
    """Return the controls that apply to a run's model, filled in with its numbers, each with its current amount.

    Args:
        comparison: the run and another to patch values from; None where there is none.
    """
    available = [adapt_to_selection(control, trace, selection) for control in controls]
    available = list(filter(None, (adapt_to_patch_source(offer, comparison) for offer in available)))
    available = [
        adapt_to_model(offer, trace, selection)
        for offer in available
        if offer.tap in trace and offer.without not in trace
    ]
    available = [offer for offer in available if offer.maximum > offer.minimum and is_control_applicable(offer, trace)]
    return [
        (replace(offer, amount_here=offer.current_amount(trace, here=True)), offer.current_amount(trace))
        for offer in available
    ]


def adapt_to_selection(control: InterventionControl, trace: Trace, selection: Selection) -> InterventionControl:
    """Return the control with the selection's values in the place of field names."""
    fields = selection.as_dict()
    if control.kind is NormReplacement:
        _blocks, _dot, name = control.tap.rpartition(".")
        fields["norm"] = name if name == control.tap else _("{name} of layer {layer}", name=name, layer=selection.layer)
    elif control.by == BY_DIRECTION:
        direction_spec = parse_direction_or_default(trace, selection.option("direction"))
        fields |= {"direction": str(direction_spec)}
    elif control.by:
        token_id = target_token(trace, selection)
        fields |= {"token": token_id, "word": quote_token(trace.vocabulary[token_id])}
    filled = {name: getattr(control, name) for name in ("tap", "positions", "by", "without", "here")}
    texts = {name: text.format(**fields) for name, text in filled.items() if text}
    numbers = {name: fields.get(getattr(control, name), getattr(control, name)) for name in ("index", "amount")}
    scopes = tuple(
        InterventionScope(
            translate(scope.title, **fields), scope.tap.format(**fields), fields.get(scope.index, scope.index)
        )
        for scope in control.scopes
    )
    tokens = {name: quote_token(trace.tokens[fields[name]]) for name in ("query", "key")}
    return replace(control, title=translate(control.title, **fields | tokens), scopes=scopes, **texts, **numbers)


def adapt_to_model(control: InterventionControl, trace: Trace, selection: Selection) -> InterventionControl:
    """Return the control with a default and bounds that fit the model."""
    config = trace.config
    if control.kind is RopeBaseReplacement:
        theta = config.rope_theta
        minimum, maximum = min(control.minimum, theta), max(control.maximum, theta)
        return replace(control, default=theta, minimum=minimum, maximum=maximum)
    if control.kind is PositionShift and config.position == "learned":  # the table has no more positions
        return replace(control, maximum=min(control.maximum, config.context_length - len(trace)))
    if control.kind is Clamp:  # the default is the value at the chosen token
        value = float(f"{(trace.baseline or trace)[control.tap][selection.query, control.index]:.3g}")
        minimum, maximum = min(control.minimum, value), max(control.maximum, value)
        return replace(control, default=value, minimum=minimum, maximum=maximum)
    return control


def adapt_to_patch_source(control: InterventionControl, comparison: Comparison | None) -> InterventionControl | None:
    """Return the control, without `here` if the other run has no value there; None if it has no values for it at all.

    Controls that patch nothing are returned as they are.
    """
    if not issubclass(control.kind, CrossRunIntervention):
        return control
    if comparison is None or not _can_patch(comparison, control.make_intervention(1)):
        return None
    return control if _can_patch(comparison, control.make_intervention(1, here=True)) else replace(control, here=None)


def _can_patch(comparison: Comparison, intervention: CrossRunIntervention) -> bool:
    prompt_ids, other_ids = comparison.prompt_ids
    source = replace(comparison.other, token_ids=other_ids)
    try:
        align_source_run(
            replace(intervention, pins=comparison.pins),
            comparison.trace.config,
            comparison.trace.tokens[: len(prompt_ids)],
            source,
        )
    except UserError:
        return False
    return True


def is_control_applicable(control: InterventionControl, trace: Trace) -> bool:
    """Return whether the model has what the control changes, and whether it changes anything."""
    try:
        control.make_intervention(control.default).check(trace.config, trace.values)
    except UserError:
        return False
    if issubclass(control.kind, AttentionEdgeIntervention):  # a token that sees nothing else sees itself
        return control.positions != str(control.amount)
    return not (control.kind is NormReplacement and control.by == trace.config.norm)


ROTATION_SHIFT = InterventionControl(N_("Shift all positions by"), "rope.angles", PositionShift, maximum=512)
VECTOR_SHIFT = replace(ROTATION_SHIFT, tap="position_embed")
BASE = InterventionControl(
    N_("Base θ of the rotation"),
    "rope.angles",
    RopeBaseReplacement,
    default=10_000,
    minimum=10,
    maximum=1_000_000,
    step=0.05,
    log=True,
)
ROTATION_OFF = InterventionControl(N_("Switch the rotation off"), "rope.angles", ZeroAblation)
POSITION_VECTORS_OFF = replace(ROTATION_OFF, title=N_("Switch the position vectors off"), tap="position_embed")

# Of what is chosen. A head is scaled where it still is one: o_proj mixes them. To silence a sublayer is to silence its
# work and not the residual stream; a bias of its output stays.
COMPONENT_SCALE = InterventionControl("", "", Scale, default=1, maximum=2, step=0.05, here="{query}")
HEADS = replace(COMPONENT_SCALE, title=N_("Scale all heads of layer {layer} by"), tap="blocks.{layer}.attn.z")
HEAD = replace(HEADS, title=N_("Scale head {head} of layer {layer} by"), index="head")
HEAD_OFF = replace(
    HEAD, title=N_("Switch head {head} of layer {layer} off (ablate to 0)"), kind=ZeroAblation, default=0
)
FEED_FORWARD = replace(
    COMPONENT_SCALE, title=N_("Scale the feed-forward of layer {layer} by"), tap="blocks.{layer}.ffn.hidden"
)
NEURON = replace(FEED_FORWARD, title=N_("Scale neuron {neuron} of layer {layer} by"), index="neuron")
NEURON_OFF = replace(
    NEURON, title=N_("Switch neuron {neuron} of layer {layer} off (ablate to 0)"), kind=ZeroAblation, default=0
)
MEAN = replace(
    HEAD, title=N_("Replace head {head} of layer {layer} by its mean over the prompt"), kind=MeanAblation, default=0
)

# Patches of the chosen component, offered if there is another run.
PATCH_HEAD = replace(MEAN, title=N_("Replace head {head} of layer {layer} by the other run’s"), kind=Patch)
PATCH_HEADS = replace(PATCH_HEAD, title=N_("Replace all heads of layer {layer} by the other run’s"), index=None)
PATCH_PATTERN = replace(
    PATCH_HEAD,
    title=N_("Replace the pattern of head {head} of layer {layer} by the other run’s"),
    tap="blocks.{layer}.attn.pattern",
)
PATCH_FEED_FORWARD = replace(
    FEED_FORWARD, title=N_("Replace the feed-forward of layer {layer} by the other run’s"), kind=Patch, default=0
)
PATCH_NEURON = replace(
    NEURON, title=N_("Replace neuron {neuron} of layer {layer} by the other run’s"), kind=Patch, default=0
)
PATCH_STREAM = replace(
    PATCH_HEADS, title=N_("Replace the stream after layer {layer} by the other run’s"), tap="blocks.{layer}.resid_post"
)
PATCH_MEAN = replace(
    MEAN, title=N_("Replace head {head} of layer {layer} by its mean over the other run"), kind=PatchMean
)

EDGE_SCOPES = (
    InterventionScope(N_("in head {head} of layer {layer}"), "blocks.{layer}.attn.pattern", "head"),
    InterventionScope(N_("in all heads of layer {layer}"), "blocks.{layer}.attn.pattern"),
    InterventionScope(N_("in all heads of all layers"), "blocks.*.attn.pattern"),
)
MASK = InterventionControl(
    N_("Block {query} from looking at {key}: other tokens get its share"),
    EDGE_SCOPES[0].tap,
    MaskEdge,
    index=EDGE_SCOPES[0].index,
    positions="{query}",
    scopes=EDGE_SCOPES,
    amount="key",
)
DROP = replace(
    MASK,
    title=N_("Block {query} from looking at {key}: its share is lost"),
    kind=DropEdge,
)
GATE = replace(
    NEURON,
    title=N_("Hold the gate of neuron {neuron} of layer {layer} at"),
    tap="blocks.{layer}.ffn.gate",
    kind=Clamp,
    minimum=-2,
    maximum=4,
)
HIDDEN = replace(
    GATE,
    title=N_("Hold neuron {neuron} of layer {layer} at"),
    tap="blocks.{layer}.ffn.hidden",
    without="blocks.{layer}.ffn.gate",
)
STEER_TO_TOKEN = InterventionControl(
    N_("Push the stream after layer {layer} towards {word}, by × its length"),
    "blocks.{layer}.resid_post",
    AddDirection,
    minimum=-1,
    step=0.05,
    by="unembed.{token}",
    here="{query}",
)
STEER_ALONG_DIRECTION = replace(
    STEER_TO_TOKEN,
    title=N_("Push the stream after layer {layer} along the direction, by × its length"),
    by=BY_DIRECTION,
)
REMOVE_DIRECTION = replace(
    STEER_ALONG_DIRECTION,
    title=N_("Take the part along the direction out of the stream after layer {layer}"),
    kind=RemoveDirection,
)
REMOVE_TOKEN_DIRECTION = replace(
    STEER_TO_TOKEN, title=N_("Take the part along {word} out of the stream after layer {layer}"), kind=RemoveDirection
)
NORM_TITLES = {
    "rmsnorm": N_("Compute {norm} as an RMSNorm"),
    "layernorm": N_("Compute {norm} as a LayerNorm"),
    "none": N_("Switch {norm} off, but for its gain"),
}
NORMS = tuple(
    InterventionControl(title, tap, NormReplacement, by=by, here="{query}")
    for tap in (
        *(f"blocks.{{layer}}.{norm}" for norm in ("attn_norm", "attn_out_norm", "ffn_norm", "ffn_out_norm")),
        "final_norm",
    )
    for by, title in NORM_TITLES.items()
)
