"""Layout of a block: its sublayers, norms and residual sums."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.config import ModelConfig

SUBLAYERS = ("attn", "ffn")  # of a block, in the order of the data's way


@dataclass(frozen=True)
class BlockLayout:
    """The layout of a block, with each value by its name in the block.

    Attributes:
        stream: the values along the residual stream, in order.
        sums: those of them that are sums, and the sublayers whose outputs are added there to the previous value.
        norms: every norm, in the order of computation, and its input.
        reads: the input of each sublayer.
        writes: the value that each sublayer adds to the stream: its output, or a norm of it.
    """

    stream: tuple[str, ...]
    sums: Mapping[str, tuple[str, ...]]
    norms: Mapping[str, str]
    reads: Mapping[str, str]
    writes: Mapping[str, str]


SEQUENTIAL_SUMS = {"resid_mid": ("attn",), "resid_post": ("ffn",)}
UNNORMALISED_WRITES = {"attn": "attn.out", "ffn": "ffn.out"}
NORMALISED_TAPS = {"attn": "attn_norm", "ffn": "ffn_norm"}
# where the norms of a model stand -> the layout of its blocks
LAYOUTS = {
    "pre": BlockLayout(
        stream=("resid_pre", "resid_mid", "resid_post"),
        sums=SEQUENTIAL_SUMS,
        norms={"attn_norm": "resid_pre", "ffn_norm": "resid_mid"},
        reads=NORMALISED_TAPS,
        writes=UNNORMALISED_WRITES,
    ),
    "post": BlockLayout(
        stream=("resid_pre", "resid_mid", "attn_norm", "resid_post", "ffn_norm"),
        sums=SEQUENTIAL_SUMS,
        norms={"attn_norm": "resid_mid", "ffn_norm": "resid_post"},
        reads={"attn": "resid_pre", "ffn": "attn_norm"},
        writes=UNNORMALISED_WRITES,
    ),
    "parallel": BlockLayout(
        stream=("resid_pre", "resid_post"),
        sums={"resid_post": SUBLAYERS},
        norms={"attn_norm": "resid_pre", "ffn_norm": "resid_pre"},
        reads=NORMALISED_TAPS,
        writes=UNNORMALISED_WRITES,
    ),
    "shared": BlockLayout(
        stream=("resid_pre", "resid_post"),
        sums={"resid_post": SUBLAYERS},
        norms={"attn_norm": "resid_pre"},
        reads={"attn": "attn_norm", "ffn": "attn_norm"},
        writes=UNNORMALISED_WRITES,
    ),
    "output": BlockLayout(
        stream=("resid_pre", "resid_mid", "resid_post"),
        sums=SEQUENTIAL_SUMS,
        norms={"attn_norm": "attn.out", "ffn_norm": "ffn.out"},
        reads={"attn": "resid_pre", "ffn": "resid_mid"},
        writes=NORMALISED_TAPS,
    ),
    "sandwich": BlockLayout(
        stream=("resid_pre", "resid_mid", "resid_post"),
        sums=SEQUENTIAL_SUMS,
        norms={
            "attn_norm": "resid_pre",
            "attn_out_norm": "attn.out",
            "ffn_norm": "resid_mid",
            "ffn_out_norm": "ffn.out",
        },
        reads=NORMALISED_TAPS,
        writes={"attn": "attn_out_norm", "ffn": "ffn_out_norm"},
    ),
}


def block_layout(config: ModelConfig) -> BlockLayout:
    """Return the layout of a model's blocks, which are all alike."""
    return LAYOUTS[config.norm_placement]
