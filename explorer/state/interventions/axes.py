"""Axes of captured values that an intervention's index refers to."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.translations import N_
from model.config import ModelConfig


@dataclass(frozen=True)
class Axis:
    """The axis that the index of an intervention refers to.

    Attributes:
        size: config -> its length.
        one: template for one element, for example "head 1".
        limits: template of the message for an index out of range.
    """

    size: Callable[[ModelConfig], int]
    one: str
    limits: str


HEADS = Axis(lambda config: config.num_heads, N_("head {index}"), N_("{tap} has heads 0 to {last}, got {index}"))
KV_HEADS = Axis(
    lambda config: config.kv_heads, N_("kv head {index}"), N_("{tap} has kv heads 0 to {last}, got {index}")
)
NEURONS = Axis(lambda config: config.d_ff, N_("neuron {index}"), N_("{tap} has neurons 0 to {last}, got {index}"))
PAIRS = Axis(lambda config: config.d_head // 2, N_("pair {index}"), N_("{tap} has pairs 0 to {last}, got {index}"))
TOKENS = Axis(lambda config: config.vocab_size, N_("token {index}"), N_("{tap} has tokens 0 to {last}, got {index}"))
DIMENSIONS = Axis(
    lambda config: config.d_model, N_("dimension {index}"), N_("{tap} has dimensions 0 to {last}, got {index}")
)
# last part of a tap's name -> what the parts of its value are, where they are not dimensions
AXES = {
    **dict.fromkeys(("q", "q_norm", "q_rot", "scores", "pattern", "z"), HEADS),
    **dict.fromkeys(("k", "k_norm", "k_rot", "v"), KV_HEADS),
    **dict.fromkeys(("gate_pre", "gate", "up", "hidden"), NEURONS),
    "angles": PAIRS,
    "logits": TOKENS,
}


def index_axis(tap: str) -> Axis:
    """Return the axis that the index of an intervention at a tap refers to."""
    return AXES.get(tap.rpartition(".")[2], DIMENSIONS)
