"""Path patching: the direct effects of heads on a receiver."""

from explorer.analysis.patching_effects import patching_effects
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching.experiment import Receiver
from explorer.translations import _, translate
from explorer.views import graph_objects as go
from explorer.views.intervention_effects import annotate_empty
from explorer.views.patching.effect_map import DIRECTION, effect_map
from explorer.views.patching.prompt_pair import PromptPairContext, make_prompt_pair


def path_effect_map(runs: Comparison, selection: Selection) -> go.Figure:
    """Draw each head's direct effect on a receiver, with everything else frozen."""
    prompt_pair = make_prompt_pair(runs, selection)
    receiver = selected_receiver(prompt_pair, selection)
    direction = selection.option("patch_direction")
    metrics = prompt_pair.experiment.path_metrics(direction, receiver)
    values = patching_effects(prompt_pair.experiment, metrics, selection.option("metric"), direction)
    title = _(
        "direct paths to {receiver}, {direction}",
        receiver=receiver_label(receiver),
        direction=translate(DIRECTION[direction]),
    )
    fig = effect_map(prompt_pair, "attn.z", values, None, title)
    if receiver != "logits" and receiver[0] == 0:
        annotate_empty(fig, _("no head comes before layer 0: choose a receiver in a later layer"))
    return fig


def selected_receiver(prompt_pair: PromptPairContext, selection: Selection) -> Receiver:
    """Return the chosen receiver: the logits, or the chosen head's q, k or v (its shared kv head, if it has one)."""
    if selection.option("receiver") == "logits":
        return "logits"
    config, head = prompt_pair.clean.config, selection.head
    shared = head if selection.option("receiver") == "q" else head * config.kv_heads // config.num_heads
    return selection.layer, shared, selection.option("receiver")


def receiver_label(receiver: Receiver) -> str:
    """Return the label of a path's receiver."""
    if receiver == "logits":
        return _("the logits")
    return _("{name} of head {head} of layer {layer}", name=receiver[2], head=receiver[1], layer=receiver[0])
