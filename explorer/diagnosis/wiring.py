"""The wiring of a block: the inputs of its sublayers and norms, and the terms of its sums."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from explorer.state.errors import UserError
from explorer.translations import _
from model.config import ModelConfig


class BlockValues(Protocol):
    """The values around a block's sublayers.

    Attributes:
        before: the previous block's output, or the embedding.
        x: the block's input.
        a: the attention's output.
        f: the feed-forward's output.
        m: the second norm's input.
        positions: the vectors added for positions.
        n1, n2: the norms.
        attend, feed, apply_block, active: the attention, the feed-forward, the block and the activation, as
            functions.
    """

    before: Tensor
    x: Tensor
    a: Tensor
    f: Tensor
    m: Tensor
    positions: Tensor
    n1: Callable[[Tensor], Tensor]
    n2: Callable[[Tensor], Tensor]
    attend: Callable[[Tensor], Tensor]
    feed: Callable[[Tensor], Tensor]
    apply_block: Callable[[Tensor], Tensor]
    active: Callable[[Tensor], Tensor]


Value = Callable[[BlockValues], Tensor]


@dataclass(frozen=True)
class BlockWiring:
    """The values around the sublayers, each as a function of those before it.

    Attributes:
        reads: the attention's input.
        first: the first norm's input.
        middle: the second norm's input.
        then: the feed-forward's input.
        leaves: the block's output.
        enters: the block's input.
    """

    reads: Value
    first: Value
    middle: Value
    then: Value
    leaves: Value
    enters: Value = lambda b: b.before


PRE = BlockWiring(
    reads=lambda b: b.n1(b.x),
    first=lambda b: b.x,
    middle=lambda b: b.x + b.a,
    then=lambda b: b.n2(b.m),
    leaves=lambda b: b.m + b.f,
)
POST = BlockWiring(
    reads=lambda b: b.x,
    first=lambda b: b.x + b.a,
    middle=lambda b: b.n1(b.x + b.a) + b.f,
    then=lambda b: b.n1(b.x + b.a),
    leaves=lambda b: b.n2(b.m),
)
OUTPUT = BlockWiring(
    reads=lambda b: b.x,
    first=lambda b: b.a,
    middle=lambda b: b.f,
    then=lambda b: b.x + b.n1(b.a),
    leaves=lambda b: b.x + b.n1(b.a) + b.n2(b.f),
)
PARALLEL = BlockWiring(
    reads=lambda b: b.n1(b.x),
    first=lambda b: b.x,
    middle=lambda b: b.x,
    then=lambda b: b.n2(b.x),
    leaves=lambda b: b.x + b.a + b.f,
)
WIRINGS = {"pre": PRE, "post": POST, "output": OUTPUT, "parallel": PARALLEL}  # by the config's norm_placement

# Taps of the values around the sublayers; values without a tap are not compared.
ROLES: dict[str, dict[str, str]] = {
    "pre": {
        "enters": "resid_pre",
        "reads": "attn_norm",
        "middle": "resid_mid",
        "then": "ffn_norm",
        "leaves": "resid_post",
    },
    "post": {
        "reads": "resid_pre",
        "first": "resid_mid",
        "then": "attn_norm",
        "middle": "resid_post",
        "leaves": "ffn_norm",
    },
    "output": {"reads": "resid_pre", "then": "resid_mid", "leaves": "resid_post"},
    "parallel": {"enters": "resid_pre", "reads": "attn_norm", "then": "ffn_norm", "leaves": "resid_post"},
}
ATTENTION = "attn.q", "attn.k", "attn.v", "attn.z", "attn.out"
FEED_FORWARD = "ffn.gate_pre", "ffn.up", "ffn.hidden", "ffn.out"
VALUE_ORDER = {  # values of a block, or what they are around the sublayers
    "pre": ("enters", "reads", *ATTENTION, "middle", "then", *FEED_FORWARD, "leaves"),
    "post": ("reads", *ATTENTION, "first", "then", *FEED_FORWARD, "middle", "leaves"),
    "output": ("reads", *ATTENTION, "attn_norm", "then", *FEED_FORWARD, "ffn_norm", "leaves"),
    "parallel": ("enters", "reads", *ATTENTION, "then", *FEED_FORWARD, "leaves"),
}


def check_supported(config: ModelConfig):
    """Raise a UserError if the config has settings that a diagnosis does not support."""
    if config.norm_placement not in WIRINGS:
        raise UserError(
            _(
                "Cannot diagnose the norm placement {placement}. Supported: {known}.",
                placement=config.norm_placement,
                known=", ".join(WIRINGS),
            )
        )
    has = {
        "qk_norm": config.qk_norm,
        "windows": any(config.windows),
        "rotary_layers": not all(config.rotary_layers),
    }
    if any(has.values()):
        settings = ", ".join(name for name in has if has[name])
        raise UserError(
            _("Cannot diagnose a model with these settings: {settings}. Use one without them.", settings=settings)
        )
