"""The residual stream's way through a model."""

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
        writes: what each sublayer adds to the stream.
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
}


def layout(config: ModelConfig) -> Layout:
    """Of a model's blocks, which are all alike."""
    return LAYOUTS[config.norm_placement]


def sublayers(config: ModelConfig) -> list[tuple[int, str]]:
    """All of them, in order, each as its layer and which of the two it is."""
    return [(layer, sublayer) for layer in range(config.num_layers) for sublayer in SUBLAYERS]


def norms_of(config: ModelConfig, layer: int) -> list[str]:
    """The norms of a layer, in the order of the data's way."""
    return [f"blocks.{layer}.{norm}" for norm in layout(config).norms]


def all_norms(config: ModelConfig) -> list[str]:
    """Of a model, in the order of the data's way."""
    blocks = [norm for layer in range(config.num_layers) for norm in norms_of(config, layer)]
    return [*blocks, *["final_norm"] * has_final_norm(config)]


def all_sums(config: ModelConfig) -> list[str]:
    """Of a model the values of the stream that sublayers are added to, in order."""
    return [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in layout(config).sums]


def stream_norms(config: ModelConfig) -> list[str]:
    """Of a block those norms that the stream itself goes through: of post-norm blocks alone there are some."""
    return [name for name in layout(config).stream if name in layout(config).norms]


def read_by(config: ModelConfig, layer: int, sublayer: str) -> str:
    """What a sublayer reads."""
    return f"blocks.{layer}.{layout(config).reads[sublayer]}"


def readers(config: ModelConfig, norm: str) -> tuple[str, ...]:
    """The sublayers that read what one of a block's norms gives out."""
    return tuple(sublayer for sublayer, read in layout(config).reads.items() if read == norm)


def written_by(config: ModelConfig, layer: int, sublayer: str) -> str:
    """What a sublayer adds to the stream."""
    return f"blocks.{layer}.{layout(config).writes[sublayer]}"


def sum_with(config: ModelConfig, layer: int, sublayer: str) -> str:
    """The value of the stream that what a sublayer writes is a part of."""
    return next(f"blocks.{layer}.{name}" for name, added in layout(config).sums.items() if sublayer in added)


def before_value(config: ModelConfig, name: str) -> str:
    """The value of the stream before one of its values: what is added to, normalised or handed on."""
    taps = stream_taps(config)
    return taps[taps.index(name) - 1]


def added_at(config: ModelConfig, name: str) -> list[str]:
    """What a value of the stream has more than the value before: all that sublayers write there; nothing where the
    value is no sum."""
    block, _dot, place = name.rpartition(".")
    return [f"{block}.{layout(config).writes[sublayer]}" for sublayer in layout(config).sums.get(place, ())]


def depth_places(config: ModelConfig) -> tuple[str, ...]:
    """Of a block the values of the stream that are handed on after each of its sums: where it could be read off."""
    places, norms = layout(config).stream, stream_norms(config)
    followed = {place: after for place, after in zip(places, places[1:], strict=False) if after in norms}
    return tuple(followed.get(place, place) for place in layout(config).sums)


def depth_taps(config: ModelConfig) -> list[str]:
    """The embedding, then all `depth_places` of all layers."""
    blocks = (f"blocks.{layer}.{place}" for layer in range(config.num_layers) for place in depth_places(config))
    return ["blocks.0.resid_pre", *blocks]


def stream_taps(config: ModelConfig) -> list[str]:
    """Names of the values that the stream goes through, in order, from the embedding to what the unembedding reads.

    Of a norm among them, which is one in whose name the model has a weight, the one before is what it normalises.
    """
    blocks = [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in layout(config).stream]
    return ["embed", *blocks, "final_norm"]


def block_output(config: ModelConfig, layer: int) -> str:
    """What a block hands on; -1 stands for the embedding."""
    return "embed" if layer < 0 else f"blocks.{layer}.{layout(config).stream[-1]}"


def input_of(config: ModelConfig, norm: str) -> str:
    """The value that a norm reads."""
    if norm == "final_norm":
        return block_output(config, config.num_layers - 1)
    block, _dot, name = norm.rpartition(".")
    return f"{block}.{layout(config).norms[name]}"


def has_final_norm(config: ModelConfig) -> bool:
    """Whether the stream is normalised before the unembedding reads it: unless each block leaves it normalised."""
    return not stream_norms(config)


def taps_from(config: ModelConfig, name: str) -> list[str]:
    """Those from one of them on."""
    taps = stream_taps(config)
    return taps[taps.index(name) :]


def norms_from(config: ModelConfig, name: str) -> list[tuple[str, str]]:
    """The norms that the stream goes through from one of its values on, each with the value that it normalises."""
    norms = stream_norms(config) or ["final_norm"]
    return [(tap, input_of(config, tap)) for tap in taps_from(config, name)[1:] if tap.rpartition(".")[2] in norms]
