"""Reader of GGUF, the files of llama.cpp (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

A file has named values (metadata), a list of tensors, and their data. Only the header is read here, with bounds on
what a damaged file can make it take; a tensor's data are mapped into memory when it is read.

A row of a quantised weight is cut into blocks of 32 or 256 numbers. A block has its numbers as integers of few bits,
and scales in 16 bits: a number is scale × integer, plus or minus an offset in some types (ggml's `ggml-quants.c`).
"""

import mmap
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from model.checkpoint_reader import require_readable
from model.errors import ModelError

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


MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_HEADER_BYTES = 1 << 26  # a vocabulary of a million tokens takes less
MAX_GENERAL_BYTES = 1 << 16  # in which a file says what it is, before its vocabulary
LICENCE = "general.license"
MAX_TEXTS = 1 << 21  # in a list: more than any vocabulary has pieces, or merges
MAX_DIMENSIONS = 4
ALIGNMENT = 32  # of data, unless the metadata have another
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # number -> code
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class GGUFTensor:
    """A tensor in a GGUF file, not read yet; it has the attributes of `weight_files.StoredWeight`.

    Attributes:
        name: in the file.
        kind: its type.
        shape: as in PyTorch, (rows, columns); the file lists the columns first.
        offset: of its first byte in the file.
    """

    name: str
    file: Path
    kind: BlockType
    shape: tuple[int, ...]
    offset: int

    @property
    def dtype(self) -> str:
        """Name of its type, as in safetensors where that has it."""
        return self.kind.name

    def read(self) -> Tensor:
        """Read the tensor: in memory of the file, or as float32 if it is quantised."""
        return dequantize(torch.from_numpy(self._map()), self.kind, self.shape)

    def read_rows(self, rows: Sequence[int]) -> Tensor:
        """Read some rows of a matrix: (len(rows), columns)."""
        data = self._map().reshape(self.shape[0], -1)[rows]
        return dequantize(torch.from_numpy(data).flatten(), self.kind, (len(rows), self.shape[1]))

    def _map(self) -> np.ndarray:
        size = self.kind.num_bytes(self.shape)
        return np.memmap(self.file, np.uint8, "c", self.offset, size)  # copied where it is written to: no file changes


@dataclass(frozen=True)
class GGUFHeader:
    """The header of a GGUF file.

    Attributes:
        version: of the format.
        metadata: name -> value: a number, bool, text, list of texts, or NumPy array of numbers.
        tensors: in the file's order.
    """

    version: int
    metadata: Mapping[str, Any]
    tensors: tuple[GGUFTensor, ...]


class _HeaderReader:
    """Reader of a header's values, one after the other.

    Args:
        content: of the file, at least its header.
        name: of the file, for messages.
    """

    def __init__(self, content: bytes, name: str):
        self.content, self.name, self.offset = content, name, 0

    def take(self, size: int) -> int:
        """Advance by a number of bytes and return the offset before; ModelError if the header has no more."""
        start, self.offset = self.offset, self.offset + size
        if self.offset > len(self.content):
            raise ModelError(
                "{file} is cut off or damaged: its header needs more than {size:,} bytes; download it again",
                file=self.name,
                size=len(self.content),
            )
        return start

    def number(self, code: str) -> Any:
        """Read a number or bool by its `struct` code; a float32 as the shortest decimal that rounds to it."""
        value = struct.unpack_from(f"<{code}", self.content, self.take(struct.calcsize(f"<{code}")))[0]
        return float(str(np.float32(value))) if code == "f" else value

    def text(self) -> str:
        """Read a text; bytes that are not UTF-8 become U+FFFD."""
        size = self.number("Q")
        start = self.take(size)
        return self.content[start : start + size].decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        """Read a value of the metadata, of a type by its number."""
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            raise ModelError("{file} is damaged: its metadata have a value of type {kind}", file=self.name, kind=kind)
        kind, count = self.number("I"), self.number("Q")
        if kind == STRING:
            if count > MAX_TEXTS:
                raise ModelError("{file} is damaged: it has a list of {count:,} texts", file=self.name, count=count)
            return [self.text() for _ in range(count)]
        if kind not in SCALARS:
            raise ModelError("{file} is damaged: its metadata have a list of type {kind}", file=self.name, kind=kind)
        dtype = np.dtype(f"<{SCALARS[kind]}" if SCALARS[kind] != "b" else "i1")
        return np.frombuffer(self.content, dtype, count, self.take(dtype.itemsize * count))


def read_header(path: Path) -> GGUFHeader:
    """Read the header of a GGUF file, and check that all tensors lie within the file.

    Raises:
        ModelError: it is no GGUF, of another version, cut off or damaged, or has a type that is not read.
    """
    size = require_readable(path).stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        reader = _HeaderReader(content[:MAX_HEADER_BYTES], path.name)
    version, num_tensors, num_values = _read_start(reader)
    metadata = {}
    for _ in range(num_values):
        name = reader.text()
        metadata[name] = reader.value(reader.number("I"))
    infos = [_read_tensor_info(reader) for _ in range(num_tensors)]
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ModelError("{file} is damaged: its alignment is {alignment!r}", file=path.name, alignment=alignment)
    start = -(-reader.offset // alignment) * alignment
    tensors = tuple(
        GGUFTensor(name, path, _find_type(name, kind), shape, start + offset) for name, shape, kind, offset in infos
    )
    _check_tensors(tensors, path.name, size)
    return GGUFHeader(version, metadata, tensors)


def read_licence(path: Path) -> str:
    """Return the licence that a GGUF file names before its vocabulary; "" if it names none there, or is damaged."""
    try:
        with require_readable(path).open("rb") as file:
            reader = _HeaderReader(file.read(MAX_GENERAL_BYTES), path.name)
        for _ in range(_read_start(reader)[2]):
            name, value = reader.text(), reader.value(reader.number("I"))
            if name == LICENCE:
                return value if isinstance(value, str) else ""
    except (ModelError, OSError):  # the vocabulary begins
        return ""
    return ""


def _read_start(reader: _HeaderReader) -> tuple[int, int, int]:
    """Return the version, and the numbers of tensors and of values; ModelError if it is no GGUF that is read."""
    if reader.content[: reader.take(4) + 4] != MAGIC:
        raise ModelError("{file} is no GGUF file", file=reader.name)
    version = reader.number("I")
    if version not in VERSIONS:
        raise ModelError(
            "{file} is GGUF of version {version}, only {known} are read: convert it again, on a little-endian machine, "
            "with a recent llama.cpp",
            file=reader.name,
            version=version,
            known=", ".join(map(str, VERSIONS)),
        )
    return version, reader.number("Q"), reader.number("Q")


def _read_tensor_info(reader: _HeaderReader) -> tuple[str, tuple[int, ...], int, int]:
    """Return name, shape, number of the type, and offset within the data of the next tensor in the list."""
    name, dimensions = reader.text(), reader.number("I")
    if dimensions > MAX_DIMENSIONS:
        raise ModelError(
            "{file} is damaged: its tensor {name} has {count} dimensions", file=reader.name, name=name, count=dimensions
        )
    shape = tuple(reader.number("Q") for _ in range(dimensions))[::-1]
    return name, shape, reader.number("I"), reader.number("Q")


def _find_type(name: str, number: int) -> BlockType:
    """Return a tensor's type; ModelError if there is none of this number."""
    if number not in TYPES:
        raise ModelError("its weights are of a type that is not known, number {kind} ({name})", kind=number, name=name)
    return TYPES[number]


def check_types(tensors: Iterable[GGUFTensor]) -> None:
    """Raise ModelError if a tensor is of a type that is not read."""
    for tensor in tensors:
        if not tensor.kind.is_read:
            raise ModelError(
                "its weights are of the type {kind} ({name}), which is not read, only {known}: take a file of the same "
                "model in one of these, such as Q4_K_M or Q8_0",
                kind=tensor.kind.name,
                name=tensor.name,
                known=", ".join(kind.name for kind in TYPES.values() if kind.is_read),
            )


def _check_tensors(tensors: tuple[GGUFTensor, ...], file: str, size: int) -> None:
    """Raise ModelError unless each tensor has a name of its own, whole blocks, and data within the file."""
    names = set()
    for tensor in tensors:
        if tensor.name in names:
            raise ModelError("{file} is damaged: it has two tensors {name}", file=file, name=tensor.name)
        names.add(tensor.name)
        if not tensor.shape or 0 in tensor.shape or tensor.shape[-1] % tensor.kind.block_size:
            raise ModelError(
                "{file} is damaged: its tensor {name} of type {kind} has the shape {shape}",
                file=file,
                name=tensor.name,
                kind=tensor.kind.name,
                shape=tensor.shape,
            )
        numbers = 1
        for length in tensor.shape:  # Python's integers, as a product of the file's may be of any size
            numbers *= length
        end = tensor.offset + numbers // tensor.kind.block_size * tensor.kind.block_bytes
        if end > size:
            raise ModelError(
                "{file} is cut off or damaged: by its header it has {wanted:,} bytes, got {got:,}; download it again",
                file=file,
                wanted=end,
                got=size,
            )
