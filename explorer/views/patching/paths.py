"""What heads send a receiver directly."""

from explorer.analysis.patching import effects
from explorer.language import _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching_question import Receiver
from explorer.views import graph_objects as go
from explorer.views.change import say
from explorer.views.patching.effect_map import DIRECTION, effect_map
from explorer.views.patching.two_prompts import TwoPrompts, two_prompts


def path_map(runs: Comparison, selection: Selection) -> go.Figure:
    """What each head sends a receiver directly, all else frozen."""
    two = two_prompts(runs, selection)
    receiver = receiver_of(two, selection)
    measured = two.question.paths(selection.patch_direction, receiver)
    values = effects(two.question, measured, selection.metric, selection.patch_direction)
    words = _(
        "direct paths to {receiver}, {direction}",
        receiver=receiver_words(receiver),
        direction=look_up(DIRECTION[selection.patch_direction]),
    )
    fig = effect_map(two, "attn.z", values, None, words)
    if receiver != "logits" and receiver[0] == 0:
        say(fig, _("no head comes before layer 0: choose a receiver in a later layer"))
    return fig


def receiver_of(two: TwoPrompts, selection: Selection) -> Receiver:
    """The chosen head reads; of keys and values the one that it shares with others."""
    if selection.receiver == "logits":
        return "logits"
    config, head = two.clean.config, selection.head
    shared = head if selection.receiver == "q" else head * config.kv_heads // config.num_heads
    return selection.layer, shared, selection.receiver


def receiver_words(receiver: Receiver) -> str:
    if receiver == "logits":
        return _("the logits")
    return _("{name} of head {head} of layer {layer}", name=receiver[2], head=receiver[1], layer=receiver[0])
