"""The blocks of a model for one token at a time."""

from collections.abc import Callable

from torch import Tensor, nn

from model.config import ModelConfig
from model.generation.decoded_layers import Attention, MakeReader, adder, hidden_layer, normaliser
from model.layers.transformer_block import (
    OutputNormBlock,
    ParallelBlock,
    PostNormBlock,
    SandwichBlock,
    SharedNormBlock,
    TransformerBlock,
)

Block = Callable[[Tensor, Tensor | None, tuple[Tensor, Tensor, Tensor]], Tensor]  # stream, rotation, room in the cache


def pre_norm(block: TransformerBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    return around(block, config, layer, reader, (block.attn_norm, block.ffn_norm))


def post_norm(block: PostNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    as_it_is = nn.Identity()
    attend, hidden = Attention(as_it_is, block, config, layer, reader), hidden_layer(as_it_is, block, config, reader)
    add_attention, add_hidden = adder(block.attn.o_proj), adder(block.ffn.down_proj)
    attn_norm, ffn_norm = normaliser(block.attn_norm), normaliser(block.ffn_norm)

    def step(x: Tensor, rotation: Tensor | None, room: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        x = attn_norm(add_attention(x, attend(x, rotation, *room)))
        return ffn_norm(add_hidden(x, hidden(x)))

    return step


def output_norm(block: OutputNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    as_it_is = nn.Identity()
    return around(block, config, layer, reader, (as_it_is, as_it_is), (block.attn_norm, block.ffn_norm))


def sandwich(block: SandwichBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    before, after = (block.attn_norm, block.ffn_norm), (block.attn_out_norm, block.ffn_out_norm)
    return around(block, config, layer, reader, before, after)


def around(
    block: TransformerBlock,
    config: ModelConfig,
    layer: int,
    reader: MakeReader,
    before: tuple[nn.Module, nn.Module],
    after: tuple[nn.Module | None, nn.Module | None] = (None, None),
) -> Block:
    """One sublayer after the other, with norms of what they read and of what they give out."""
    attend, hidden = Attention(before[0], block, config, layer, reader), hidden_layer(before[1], block, config, reader)
    add_attention, add_hidden = adder(block.attn.o_proj, after[0]), adder(block.ffn.down_proj, after[1])

    def step(x: Tensor, rotation: Tensor | None, room: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        x = add_attention(x, attend(x, rotation, *room))
        return add_hidden(x, hidden(x))

    return step


def parallel(block: ParallelBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    return side_by_side(block, config, layer, reader, block.ffn_norm)


def shared(block: SharedNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    return side_by_side(block, config, layer, reader, block.attn_norm)


def side_by_side(
    block: ParallelBlock | SharedNormBlock, config: ModelConfig, layer: int, reader: MakeReader, ffn_norm: nn.Module
) -> Block:
    attend = Attention(block.attn_norm, block, config, layer, reader)
    hidden = hidden_layer(ffn_norm, block, config, reader)
    add_attention, add_hidden = adder(block.attn.o_proj), adder(block.ffn.down_proj)

    def step(x: Tensor, rotation: Tensor | None, room: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        neurons = hidden(x)  # before attention adds to x in its own memory
        return add_hidden(add_attention(x, attend(x, rotation, *room)), neurons)

    return step


DECODED = {
    "pre": pre_norm,
    "post": post_norm,
    "parallel": parallel,
    "shared": shared,
    "output": output_norm,
    "sandwich": sandwich,
}
