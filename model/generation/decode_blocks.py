"""Transformer blocks that compute a single position."""

from collections.abc import Callable

from torch import Tensor, nn

from model.config import ModelConfig
from model.generation.decode_layers import (
    DecodeAttention,
    MakeReader,
    make_hidden_layer,
    make_normaliser,
    make_residual_adder,
)
from model.layers.transformer_block import (
    OutputNormBlock,
    ParallelBlock,
    PostNormBlock,
    SandwichBlock,
    SharedNormBlock,
    TransformerBlock,
)

Block = Callable[
    [Tensor, Tensor | None, tuple[Tensor, Tensor, Tensor]], Tensor
]  # stream, rotation, cache slot (slot, keys, values)


def pre_norm_block(block: TransformerBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms before the sublayers."""
    return sequential_block(block, config, layer, reader, (block.attn_norm, block.ffn_norm))


def post_norm_block(block: PostNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms after the additions."""
    identity = nn.Identity()
    attend, hidden = (
        DecodeAttention(identity, block, config, layer, reader),
        make_hidden_layer(identity, block, config, reader),
    )
    add_attention, add_hidden = make_residual_adder(block.attn.o_proj), make_residual_adder(block.ffn.down_proj)
    attn_norm, ffn_norm = make_normaliser(block.attn_norm), make_normaliser(block.ffn_norm)

    def step(x: Tensor, rotation: Tensor | None, cache_slot: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        x = attn_norm(add_attention(x, attend(x, rotation, *cache_slot)))
        return ffn_norm(add_hidden(x, hidden(x)))

    return step


def output_norm_block(block: OutputNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms of the sublayers' outputs."""
    identity = nn.Identity()
    return sequential_block(block, config, layer, reader, (identity, identity), (block.attn_norm, block.ffn_norm))


def sandwich_block(block: SandwichBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a block with norms before and after each sublayer."""
    input_norms, output_norms = (block.attn_norm, block.ffn_norm), (block.attn_out_norm, block.ffn_out_norm)
    return sequential_block(block, config, layer, reader, input_norms, output_norms)


def sequential_block(
    block: TransformerBlock,
    config: ModelConfig,
    layer: int,
    reader: MakeReader,
    input_norms: tuple[nn.Module, nn.Module],
    output_norms: tuple[nn.Module | None, nn.Module | None] = (None, None),
) -> Block:
    """Return a block of attention, then feed-forward, with norms of their inputs and of their outputs."""
    attend, hidden = (
        DecodeAttention(input_norms[0], block, config, layer, reader),
        make_hidden_layer(input_norms[1], block, config, reader),
    )
    add_attention, add_hidden = (
        make_residual_adder(block.attn.o_proj, output_norms[0]),
        make_residual_adder(block.ffn.down_proj, output_norms[1]),
    )

    def step(x: Tensor, rotation: Tensor | None, cache_slot: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        x = add_attention(x, attend(x, rotation, *cache_slot))
        return add_hidden(x, hidden(x))

    return step


def parallel_norms_block(block: ParallelBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a parallel block with a norm for each sublayer."""
    return parallel_block(block, config, layer, reader, block.ffn_norm)


def shared_norm_block(block: SharedNormBlock, config: ModelConfig, layer: int, reader: MakeReader) -> Block:
    """Return the decoding step of a parallel block with one norm."""
    return parallel_block(block, config, layer, reader, block.attn_norm)


def parallel_block(
    block: ParallelBlock | SharedNormBlock, config: ModelConfig, layer: int, reader: MakeReader, ffn_norm: nn.Module
) -> Block:
    """Return the decoding step of a parallel block."""
    attend = DecodeAttention(block.attn_norm, block, config, layer, reader)
    hidden = make_hidden_layer(ffn_norm, block, config, reader)
    add_attention, add_hidden = make_residual_adder(block.attn.o_proj), make_residual_adder(block.ffn.down_proj)

    def step(x: Tensor, rotation: Tensor | None, cache_slot: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        neurons = hidden(x)  # before attention adds to x in its own memory
        return add_hidden(add_attention(x, attend(x, rotation, *cache_slot)), neurons)

    return step


DECODE_BLOCKS = {
    "pre": pre_norm_block,
    "post": post_norm_block,
    "parallel": parallel_norms_block,
    "shared": shared_norm_block,
    "output": output_norm_block,
    "sandwich": sandwich_block,
}
