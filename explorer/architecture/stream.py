"""The residual stream's way through a model."""

from explorer.architecture.layout import AS_IT_IS, SUBLAYERS, layout
from model.config import ModelConfig


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


def given_out(layer: int, sublayer: str) -> str:
    """What a sublayer's last linear map gives, which is added to the stream as it is or normalised."""
    return f"blocks.{layer}.{AS_IT_IS[sublayer]}"


def output_norm(config: ModelConfig, layer: int, sublayer: str) -> str | None:
    """The norm of what a sublayer gives out; None where that is added as it is."""
    written = written_by(config, layer, sublayer)
    return None if written == given_out(layer, sublayer) else written


def giver(config: ModelConfig, norm: str) -> str | None:
    """The sublayer whose output one of a block's norms normalises before it is added; None of other norms."""
    return next((sublayer for sublayer, written in layout(config).writes.items() if written == norm), None)


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
    """The `stream_taps` from one of them on."""
    taps = stream_taps(config)
    return taps[taps.index(name) :]


def joining(config: ModelConfig, layer: int, sublayer: str) -> list[str]:
    """The values that what a sublayer gives out goes through before it is a part of the stream: itself, and its norm if
    it has one."""
    norm = output_norm(config, layer, sublayer)
    return [given_out(layer, sublayer), *[norm] * (norm is not None)]


def way_of(config: ModelConfig, layer: int, sublayer: str) -> list[str]:
    """All that it goes through then, to what the unembedding reads."""
    return [*joining(config, layer, sublayer), *taps_from(config, sum_with(config, layer, sublayer))]


def norms_among(config: ModelConfig, taps: list[str]) -> dict[str, str]:
    """Of some values those that norms give out, each with the one that it normalises."""
    norms = all_norms(config)
    return {tap: input_of(config, tap) for tap in taps if tap in norms}
