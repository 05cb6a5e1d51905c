"""What reads what in a block, and what is added to what."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from explorer.language import _
from explorer.state.errors import UserError
from model.config import ModelConfig


class Around(Protocol):
    """The values around a block's sublayers.

    Attributes:
        before: the stream that leaves the block before, or the embedding.
        x: the stream that enters.
        a: what attention gives out.
        f: what feed-forward gives out.
        m: what the second norm reads.
        positions: the vectors added for positions.
        n1, n2: the norms.
        attend, feed, again, active: the sublayers, the block and the activation, of whatever they are given.
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
    again: Callable[[Tensor], Tensor]
    active: Callable[[Tensor], Tensor]


Value = Callable[[Around], Tensor]


@dataclass(frozen=True)
class Wiring:
    """Each of the values around the sublayers, from those before it.

    Attributes:
        reads: what the attention reads.
        first: what the first norm reads.
        middle: what the second norm reads.
        then: what the feed-forward reads.
        leaves: what leaves the block.
        enters: what enters it.
    """

    reads: Value
    first: Value
    middle: Value
    then: Value
    leaves: Value
    enters: Value = lambda b: b.before


PRE = Wiring(
    reads=lambda b: b.n1(b.x),
    first=lambda b: b.x,
    middle=lambda b: b.x + b.a,
    then=lambda b: b.n2(b.m),
    leaves=lambda b: b.m + b.f,
)
POST = Wiring(
    reads=lambda b: b.x,
    first=lambda b: b.x + b.a,
    middle=lambda b: b.n1(b.x + b.a) + b.f,
    then=lambda b: b.n1(b.x + b.a),
    leaves=lambda b: b.n2(b.m),
)
OUTPUT = Wiring(
    reads=lambda b: b.x,
    first=lambda b: b.a,
    middle=lambda b: b.f,
    then=lambda b: b.x + b.n1(b.a),
    leaves=lambda b: b.x + b.n1(b.a) + b.n2(b.f),
)
PARALLEL = Wiring(
    reads=lambda b: b.n1(b.x),
    first=lambda b: b.x,
    middle=lambda b: b.x,
    then=lambda b: b.n2(b.x),
    leaves=lambda b: b.x + b.a + b.f,
)
WIRINGS = {"pre": PRE, "post": POST, "output": OUTPUT, "parallel": PARALLEL}  # by where a config normalises

# Which of our values each is; what has no value of ours is not walked.
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
ORDER = {  # values of a block, or what they are around the sublayers
    "pre": ("enters", "reads", *ATTENTION, "middle", "then", *FEED_FORWARD, "leaves"),
    "post": ("reads", *ATTENTION, "first", "then", *FEED_FORWARD, "middle", "leaves"),
    "output": ("reads", *ATTENTION, "attn_norm", "then", *FEED_FORWARD, "ffn_norm", "leaves"),
    "parallel": ("enters", "reads", *ATTENTION, "then", *FEED_FORWARD, "leaves"),
}


def check_walked(config: ModelConfig):
    """UserError where the walk knows nothing of something that a model of the config computes."""
    if config.norm_placement not in WIRINGS:
        raise UserError(
            _(
                "The reference normalises in a way ({placement}) that is not walked: known are {known}.",
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
            _("The reference has settings that are not walked ({settings}): give one without.", settings=settings)
        )
