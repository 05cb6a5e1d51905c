"""How the parts of a block hang together."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.config import ModelConfig

SUBLAYERS = ("attn", "ffn")  # of a block, in the order of the data's way


@dataclass(frozen=True)
class Layout:
    """How the parts of a block hang together, each value by its name in the block.

    Attributes:
        stream: the values that the stream goes through, in order.
        sums: those of them that are sums, and whose sublayers' writes are added there to the value before.
        norms: every norm, in the order of the data's way, and what it normalises.
        reads: what each sublayer reads.
        writes: what each sublayer adds to the stream: what it gives out, or a norm of that.
    """

    stream: tuple[str, ...]
    sums: Mapping[str, tuple[str, ...]]
    norms: Mapping[str, str]
    reads: Mapping[str, str]
    writes: Mapping[str, str]


IN_TURN = {"resid_mid": ("attn",), "resid_post": ("ffn",)}
AS_IT_IS = {"attn": "attn.out", "ffn": "ffn.out"}
THROUGH_NORMS = {"attn": "attn_norm", "ffn": "ffn_norm"}
# where the norms of a model stand -> the layout of its blocks
LAYOUTS = {
    "pre": Layout(
        stream=("resid_pre", "resid_mid", "resid_post"),
        sums=IN_TURN,
        norms={"attn_norm": "resid_pre", "ffn_norm": "resid_mid"},
        reads=THROUGH_NORMS,
        writes=AS_IT_IS,
    ),
    "post": Layout(
        stream=("resid_pre", "resid_mid", "attn_norm", "resid_post", "ffn_norm"),
        sums=IN_TURN,
        norms={"attn_norm": "resid_mid", "ffn_norm": "resid_post"},
        reads={"attn": "resid_pre", "ffn": "attn_norm"},
        writes=AS_IT_IS,
    ),
    "parallel": Layout(
        stream=("resid_pre", "resid_post"),
        sums={"resid_post": SUBLAYERS},
        norms={"attn_norm": "resid_pre", "ffn_norm": "resid_pre"},
        reads=THROUGH_NORMS,
        writes=AS_IT_IS,
    ),
    "shared": Layout(
        stream=("resid_pre", "resid_post"),
        sums={"resid_post": SUBLAYERS},
        norms={"attn_norm": "resid_pre"},
        reads={"attn": "attn_norm", "ffn": "attn_norm"},
        writes=AS_IT_IS,
    ),
    "output": Layout(
        stream=("resid_pre", "resid_mid", "resid_post"),
        sums=IN_TURN,
        norms={"attn_norm": "attn.out", "ffn_norm": "ffn.out"},
        reads={"attn": "resid_pre", "ffn": "resid_mid"},
        writes=THROUGH_NORMS,
    ),
    "sandwich": Layout(
        stream=("resid_pre", "resid_mid", "resid_post"),
        sums=IN_TURN,
        norms={
            "attn_norm": "resid_pre",
            "attn_out_norm": "attn.out",
            "ffn_norm": "resid_mid",
            "ffn_out_norm": "ffn.out",
        },
        reads=THROUGH_NORMS,
        writes={"attn": "attn_out_norm", "ffn": "ffn_out_norm"},
    ),
}


def layout(config: ModelConfig) -> Layout:
    """Of a model's blocks, which are all alike."""
    return LAYOUTS[config.norm_placement]
