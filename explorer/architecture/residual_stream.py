"""Layout of a block, and the taps along the residual stream: its sums and norms, and what sublayers read and add."""

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


def sublayers(config: ModelConfig) -> list[tuple[int, str]]:
    """Return all sublayers in order, each as (layer, "attn" or "ffn")."""
    return [(layer, sublayer) for layer in range(config.num_layers) for sublayer in SUBLAYERS]


def norms_in_layer(config: ModelConfig, layer: int) -> list[str]:
    """Return the taps of all norms in a layer, LayerNorm or RMSNorm, in the order of computation."""
    return [f"blocks.{layer}.{norm}" for norm in block_layout(config).norms]


def all_norms(config: ModelConfig) -> list[str]:
    """Return all norms of a model, in the order of computation."""
    blocks = [norm for layer in range(config.num_layers) for norm in norms_in_layer(config, layer)]
    return [*blocks, *["final_norm"] * has_final_norm(config)]


def residual_sum_taps(config: ModelConfig) -> list[str]:
    """Return the taps of all sums along the residual stream, such as resid_mid and resid_post, in order."""
    return [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in block_layout(config).sums]


def norms_on_residual_stream(config: ModelConfig) -> list[str]:
    """Return the norms of a block that the residual stream passes through: only post-norm blocks have some."""
    return [name for name in block_layout(config).stream if name in block_layout(config).norms]


def sublayer_input_tap(config: ModelConfig, layer: int, sublayer: str) -> str:
    """Return the name of a sublayer's input."""
    return f"blocks.{layer}.{block_layout(config).reads[sublayer]}"


def sublayers_reading(config: ModelConfig, norm: str) -> tuple[str, ...]:
    """Return the sublayers that read the output of one of a block's norms."""
    return tuple(sublayer for sublayer, read in block_layout(config).reads.items() if read == norm)


def residual_update_tap(config: ModelConfig, layer: int, sublayer: str) -> str:
    """Return the tap of what a sublayer adds to the residual stream: its output, or the norm of it."""
    return f"blocks.{layer}.{block_layout(config).writes[sublayer]}"


def unnormalised_output_tap(layer: int, sublayer: str) -> str:
    """Return the tap of the output of a sublayer's last linear map, before an output norm."""
    return f"blocks.{layer}.{UNNORMALISED_WRITES[sublayer]}"


def output_norm(config: ModelConfig, layer: int, sublayer: str) -> str | None:
    """Return the norm of a sublayer's output; None if the output is added without one."""
    tap = residual_update_tap(config, layer, sublayer)
    return None if tap == unnormalised_output_tap(layer, sublayer) else tap


def normalised_sublayer(config: ModelConfig, norm: str) -> str | None:
    """Return the sublayer whose output this norm of a block normalises before it is added; None for other norms."""
    return next((sublayer for sublayer, written in block_layout(config).writes.items() if written == norm), None)


def residual_sum_tap(config: ModelConfig, layer: int, sublayer: str) -> str:
    """Return the tap of the residual stream after a sublayer's output was added."""
    return next(f"blocks.{layer}.{name}" for name, added in block_layout(config).sums.items() if sublayer in added)


def previous_residual_tap(config: ModelConfig, name: str) -> str:
    """Return the tap of the residual stream before `name`."""
    taps = residual_taps(config)
    return taps[taps.index(name) - 1]


def added_taps(config: ModelConfig, name: str) -> list[str]:
    """Return the taps that are added to the residual stream to make the sum `name`; empty if it is no sum."""
    block, _dot, value = name.rpartition(".")
    return [f"{block}.{block_layout(config).writes[sublayer]}" for sublayer in block_layout(config).sums.get(value, ())]


def block_lens_points(config: ModelConfig) -> tuple[str, ...]:
    """Return the names in a block at which a lens reads: each sum, or the norm on the stream right after it."""
    positions, norms = block_layout(config).stream, norms_on_residual_stream(config)
    normalised = {position: after for position, after in zip(positions, positions[1:], strict=False) if after in norms}
    return tuple(normalised.get(position, position) for position in block_layout(config).sums)


def lens_taps(config: ModelConfig) -> list[str]:
    """Return the taps that a lens reads: the embedding, then the `block_lens_points` of all layers."""
    blocks = (
        f"blocks.{layer}.{position}" for layer in range(config.num_layers) for position in block_lens_points(config)
    )
    return ["blocks.0.resid_pre", *blocks]


def lens_tap_patterns(config: ModelConfig) -> list[str]:
    """Return the taps that a lens reads, with * for every layer."""
    return ["blocks.0.resid_pre", *(f"blocks.*.{name}" for name in block_lens_points(config))]


def stream_tap_patterns(config: ModelConfig) -> list[str]:
    """Return the taps of the stream at all stages, with * for every layer."""
    return ["blocks.0.resid_pre", *(f"blocks.*.{name}" for name in block_layout(config).stream[1:])]


def residual_taps(config: ModelConfig) -> list[str]:
    """Return the taps of the residual stream, from the embedding to the input of the unembedding.

    If a value is a norm, under whose name the model has a weight, the one before it is its input.
    """
    blocks = [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in block_layout(config).stream]
    return ["embed", *blocks, "final_norm"]


def block_output_tap(config: ModelConfig, layer: int) -> str:
    """Return the tap of a block's output; the embedding for layer -1."""
    return "embed" if layer < 0 else f"blocks.{layer}.{block_layout(config).stream[-1]}"


def norm_input_tap(config: ModelConfig, norm: str) -> str:
    """Return the value that a norm reads."""
    if norm == "final_norm":
        return block_output_tap(config, config.num_layers - 1)
    block, _dot, name = norm.rpartition(".")
    return f"{block}.{block_layout(config).norms[name]}"


def has_final_norm(config: ModelConfig) -> bool:
    """Return True if a final norm precedes the unembedding: unless each block's output is normalised."""
    return not norms_on_residual_stream(config)


def residual_taps_onward(config: ModelConfig, name: str) -> list[str]:
    """Return the residual taps from `name`, included, to the input of the unembedding."""
    taps = residual_taps(config)
    return taps[taps.index(name) :]


def output_taps(config: ModelConfig, layer: int, sublayer: str) -> list[str]:
    """Return a sublayer's output and, if it has one, the norm of it."""
    norm = output_norm(config, layer, sublayer)
    return [unnormalised_output_tap(layer, sublayer), *[norm] * (norm is not None)]


def path_to_unembedding(config: ModelConfig, layer: int, sublayer: str) -> list[str]:
    """Return all values from a sublayer's output to the input of the unembedding."""
    return [
        *output_taps(config, layer, sublayer),
        *residual_taps_onward(config, residual_sum_tap(config, layer, sublayer)),
    ]


def norm_inputs(config: ModelConfig, taps: list[str]) -> dict[str, str]:
    """Return norm -> the tap of its input, for those of `taps` that are norms."""
    norms = all_norms(config)
    return {tap: norm_input_tap(config, tap) for tap in taps if tap in norms}
