"""The dataflow of a block: the inputs of its sublayers and norms, and the terms of its sums."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from explorer.errors import UserError
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
class BlockDataflow:
    """The values around the sublayers, each as a function of those before it.

    Attributes:
        attn_input: the attention's input.
        first_norm_input: the first norm's input.
        second_norm_input: the second norm's input.
        ffn_input: the feed-forward's input.
        block_output: the block's output.
        block_input: the block's input.
    """

    attn_input: Value
    first_norm_input: Value
    second_norm_input: Value
    ffn_input: Value
    block_output: Value
    block_input: Value = lambda b: b.before


PRE = BlockDataflow(
    attn_input=lambda b: b.n1(b.x),
    first_norm_input=lambda b: b.x,
    second_norm_input=lambda b: b.x + b.a,
    ffn_input=lambda b: b.n2(b.m),
    block_output=lambda b: b.m + b.f,
)
POST = BlockDataflow(
    attn_input=lambda b: b.x,
    first_norm_input=lambda b: b.x + b.a,
    second_norm_input=lambda b: b.n1(b.x + b.a) + b.f,
    ffn_input=lambda b: b.n1(b.x + b.a),
    block_output=lambda b: b.n2(b.m),
)
OUTPUT = BlockDataflow(
    attn_input=lambda b: b.x,
    first_norm_input=lambda b: b.a,
    second_norm_input=lambda b: b.f,
    ffn_input=lambda b: b.x + b.n1(b.a),
    block_output=lambda b: b.x + b.n1(b.a) + b.n2(b.f),
)
PARALLEL = BlockDataflow(
    attn_input=lambda b: b.n1(b.x),
    first_norm_input=lambda b: b.x,
    second_norm_input=lambda b: b.x,
    ffn_input=lambda b: b.n2(b.x),
    block_output=lambda b: b.x + b.a + b.f,
)
DATAFLOWS = {"pre": PRE, "post": POST, "output": OUTPUT, "parallel": PARALLEL}  # by the config's norm_placement

# Taps of the values around the sublayers; values without a tap are not compared.
ROLES: dict[str, dict[str, str]] = {
    "pre": {
        "block_input": "resid_pre",
        "attn_input": "attn_norm",
        "second_norm_input": "resid_mid",
        "ffn_input": "ffn_norm",
        "block_output": "resid_post",
    },
    "post": {
        "attn_input": "resid_pre",
        "first_norm_input": "resid_mid",
        "ffn_input": "attn_norm",
        "second_norm_input": "resid_post",
        "block_output": "ffn_norm",
    },
    "output": {"attn_input": "resid_pre", "ffn_input": "resid_mid", "block_output": "resid_post"},
    "parallel": {
        "block_input": "resid_pre",
        "attn_input": "attn_norm",
        "ffn_input": "ffn_norm",
        "block_output": "resid_post",
    },
}
ATTENTION = "attn.q", "attn.k", "attn.v", "attn.z", "attn.out"
FEED_FORWARD = "ffn.gate_pre", "ffn.up", "ffn.hidden", "ffn.out"
VALUE_ORDER = {  # values of a block, or what they are around the sublayers
    "pre": ("block_input", "attn_input", *ATTENTION, "second_norm_input", "ffn_input", *FEED_FORWARD, "block_output"),
    "post": (
        "attn_input",
        *ATTENTION,
        "first_norm_input",
        "ffn_input",
        *FEED_FORWARD,
        "second_norm_input",
        "block_output",
    ),
    "output": ("attn_input", *ATTENTION, "attn_norm", "ffn_input", *FEED_FORWARD, "ffn_norm", "block_output"),
    "parallel": ("block_input", "attn_input", *ATTENTION, "ffn_input", *FEED_FORWARD, "block_output"),
}


def check_supported(config: ModelConfig):
    """Raise a UserError if the config has settings that a diagnosis does not support."""
    if config.norm_placement not in DATAFLOWS:
        raise UserError(
            _(
                "Cannot diagnose the norm placement {placement}. Supported: {known}.",
                placement=config.norm_placement,
                known=", ".join(DATAFLOWS),
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
