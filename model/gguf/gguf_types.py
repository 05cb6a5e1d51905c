"""Types of weights in GGUF files, and the numbers that their blocks stand for (ggml's `ggml-quants.c`).

A row of a quantised weight is cut into blocks of 32 or 256 numbers. A block has its numbers as integers of few bits,
and scales in 16 bits: a number is scale × integer, plus or minus an offset in some types.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK_NUMBERS = 1 << 18  # that are dequantised at once: they stay in the processor's cache


@dataclass(frozen=True)
class BlockType:
    """A type of weights in a file.

    Attributes:
        name: ggml's name.
        block_size: numbers in a block.
        block_bytes: bytes of a block.
        dtype: the same type in PyTorch; None if it has none.
        dequantize_blocks: blocks, uint8 (N, block_bytes) -> float32 (N, block_size); None if they need not be, or if
            the type is not read.
    """

    name: str
    block_size: int
    block_bytes: int
    dtype: torch.dtype | None = None
    dequantize_blocks: Callable[[Tensor], Tensor] | None = None

    @property
    def is_read(self) -> bool:
        """True if weights of this type can be read."""
        return self.dtype is not None or self.dequantize_blocks is not None

    @property
    def bits(self) -> int:
        """Bits of an integer in a block, which the name of the type begins with."""
        return int(self.name[1])

    def num_bytes(self, shape: tuple[int, ...]) -> int:
        """Return the bytes of a tensor of this shape."""
        return torch.Size(shape).numel() // self.block_size * self.block_bytes


def dequantize(data: Tensor, kind: BlockType, shape: tuple[int, ...]) -> Tensor:
    """Return the numbers of a tensor from its bytes, uint8 (n,): in the type of the file, or float32 if quantised."""
    if kind.dequantize_blocks is None:
        return data.view(kind.dtype).view(shape)
    blocks = data.view(-1, kind.block_bytes)
    values = torch.empty(blocks.shape[0], kind.block_size)
    for chunk, target in zip(*(rows.split(CHUNK_NUMBERS // kind.block_size) for rows in (blocks, values)), strict=True):
        target.copy_(kind.dequantize_blocks(chunk))
    return values.view(shape)


def _halves(blocks: Tensor, start: int) -> Tensor:
    """Return the float16 number at a byte of each block, as float32 (N, 1)."""
    return blocks[:, start : start + 2].contiguous().view(torch.float16).float()


def _nibbles(bytes_: Tensor) -> Tensor:
    """Return the low halves of bytes (N, …, n), then the high ones, as float32 (N, …, 2n)."""
    bytes_ = bytes_.contiguous()
    return torch.cat(((bytes_ & 15).float(), (bytes_ >> 4).float()), dim=-1)


def _bits(bytes_: Tensor) -> Tensor:
    """Return 16 × each bit of four bytes (N, 4), the lowest of the first byte first, as float32 (N, 32)."""
    return (bytes_[..., None] >> torch.arange(8, dtype=torch.uint8) & 1).flatten(1).float().mul_(16)


def _q8_0(blocks: Tensor) -> Tensor:
    return blocks[:, 2:].contiguous().view(torch.int8).float().mul_(_halves(blocks, 0))


def _q4_0(blocks: Tensor) -> Tensor:
    return _nibbles(blocks[:, 2:]).sub_(8).mul_(_halves(blocks, 0))


def _q4_1(blocks: Tensor) -> Tensor:
    return _nibbles(blocks[:, 4:]).mul_(_halves(blocks, 0)).add_(_halves(blocks, 2))


def _q5_0(blocks: Tensor) -> Tensor:
    return _nibbles(blocks[:, 6:]).add_(_bits(blocks[:, 2:6])).sub_(16).mul_(_halves(blocks, 0))


def _q5_1(blocks: Tensor) -> Tensor:
    integers = _nibbles(blocks[:, 8:]).add_(_bits(blocks[:, 4:8]))
    return integers.mul_(_halves(blocks, 0)).add_(_halves(blocks, 2))


def _scale_parts(blocks: Tensor, integers: Tensor) -> Tensor:
    """Return the numbers (N, 256) of the blocks of Q4_K and Q5_K from their integers (N, 8, 32).

    Scale and offset of the eight parts have 6 bits each, packed into 12 bytes.
    """
    scales, offsets, rest = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = torch.cat((scales & 63, rest & 15 | scales >> 2 & 48), dim=1)
    offsets = torch.cat((offsets & 63, rest >> 4 | offsets >> 2 & 48), dim=1)
    scales, offsets = _halves(blocks, 0) * scales, _halves(blocks, 2) * offsets
    return integers.mul_(scales[..., None]).sub_(offsets[..., None]).flatten(1)


def _q4_k(blocks: Tensor) -> Tensor:
    return _scale_parts(blocks, _nibbles(blocks[:, 16:].unflatten(1, (4, 32))).view(-1, 8, 32))


def _q5_k(blocks: Tensor) -> Tensor:
    high = blocks[:, None, 16:48] >> torch.arange(8, dtype=torch.uint8)[:, None] & 1  # (N, 8, 32)
    low = _nibbles(blocks[:, 48:].unflatten(1, (4, 32))).view(-1, 8, 32)
    return _scale_parts(blocks, low.add_(high.float().mul_(16)))


def _q6_k(blocks: Tensor) -> Tensor:
    low = _nibbles(blocks[:, :128].unflatten(1, (2, 64))).view(-1, 2, 4, 32)
    high = blocks[:, 128:192].unflatten(1, (2, 1, 32)) >> torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None] & 3
    integers = low.add_(high.float().mul_(16)).sub_(32).view(-1, 16, 16)
    scales = _halves(blocks, 208) * blocks[:, 192:208].view(torch.int8)  # (N, 16)
    return integers.mul_(scales[..., None]).flatten(1)


TYPES = {  # ggml's number -> type
    0: BlockType("F32", 1, 4, torch.float32),
    1: BlockType("F16", 1, 2, torch.float16),
    2: BlockType("Q4_0", 32, 18, dequantize_blocks=_q4_0),
    3: BlockType("Q4_1", 32, 20, dequantize_blocks=_q4_1),
    6: BlockType("Q5_0", 32, 22, dequantize_blocks=_q5_0),
    7: BlockType("Q5_1", 32, 24, dequantize_blocks=_q5_1),
    8: BlockType("Q8_0", 32, 34, dequantize_blocks=_q8_0),
    12: BlockType("Q4_K", 256, 144, dequantize_blocks=_q4_k),
    13: BlockType("Q5_K", 256, 176, dequantize_blocks=_q5_k),
    14: BlockType("Q6_K", 256, 210, dequantize_blocks=_q6_k),
    30: BlockType("BF16", 1, 2, torch.bfloat16),
    # Types that are not read:
    9: BlockType("Q8_1", 32, 40),
    10: BlockType("Q2_K", 256, 84),
    11: BlockType("Q3_K", 256, 110),
    15: BlockType("Q8_K", 256, 292),
    16: BlockType("IQ2_XXS", 256, 66),
    17: BlockType("IQ2_XS", 256, 74),
    18: BlockType("IQ3_XXS", 256, 98),
    19: BlockType("IQ1_S", 256, 50),
    20: BlockType("IQ4_NL", 32, 18),
    21: BlockType("IQ3_S", 256, 110),
    22: BlockType("IQ2_S", 256, 82),
    23: BlockType("IQ4_XS", 256, 136),
    24: BlockType("I8", 1, 1),
    25: BlockType("I16", 1, 2),
    26: BlockType("I32", 1, 4),
    27: BlockType("I64", 1, 8),
    28: BlockType("F64", 1, 8),
    29: BlockType("IQ1_M", 256, 56),
    34: BlockType("TQ1_0", 256, 54),
    35: BlockType("TQ2_0", 256, 66),
    39: BlockType("MXFP4", 32, 17),
    40: BlockType("NVFP4", 64, 36),
    41: BlockType("Q1_0", 128, 18),
}
