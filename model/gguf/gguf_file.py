"""Reader of GGUF, the files of llama.cpp (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

A file has named values (metadata), a list of tensors, and their data. Only the header is read here, with bounds on
what a damaged file can make it take; a tensor's data are mapped into memory when it is read.

A row of a quantised weight is cut into blocks of 32 or 256 numbers. A block has its numbers as integers of few bits,
and scales: a number is scale × integer, plus or minus an offset in some types. llama.cpp's package `gguf` knows them.
"""

import math
import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from torch import Tensor

from model.checkpoint_reader import require_readable
from model.errors import ModelError

CHUNK_NUMBERS = 1 << 18  # that are dequantised at once: they stay in the processor's cache


DTYPES = {  # types that PyTorch has
    GGMLQuantizationType.F32: torch.float32,
    GGMLQuantizationType.F16: torch.float16,
    GGMLQuantizationType.BF16: torch.bfloat16,
}


@lru_cache
def is_read(kind: GGMLQuantizationType) -> bool:
    """Return True if weights of a type can be read: it is one of PyTorch, or the package `gguf` dequantises it."""
    try:
        return kind in DTYPES or bool(gguf.dequantize(np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8), kind).size)
    except NotImplementedError:
        return False


def dequantize(data: np.ndarray, kind: GGMLQuantizationType, shape: tuple[int, ...]) -> Tensor:
    """Return the numbers of a tensor from its bytes, uint8 (n,): in the type of the file, or float32 if quantised."""
    if kind in DTYPES:
        return torch.from_numpy(data).view(DTYPES[kind]).view(shape)
    block_size, block_bytes = GGML_QUANT_SIZES[kind]
    blocks, values = data.reshape(-1, block_bytes), np.empty((data.size // block_bytes, block_size), np.float32)
    chunk_blocks = CHUNK_NUMBERS // block_size
    for start in range(0, len(blocks), chunk_blocks):
        row = blocks[start : start + chunk_blocks].reshape(1, -1)  # one row, as the package is slow on many
        values[start : start + chunk_blocks] = gguf.dequantize(row, kind).reshape(-1, block_size)
    return torch.from_numpy(values).view(shape)


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
    kind: GGMLQuantizationType
    shape: tuple[int, ...]
    offset: int

    @property
    def dtype(self) -> str:
        """Name of its type, as in safetensors where that has it."""
        return self.kind.name

    def read(self) -> Tensor:
        """Read the tensor: in memory of the file, or as float32 if it is quantised."""
        return dequantize(self._map(), self.kind, self.shape)

    def read_rows(self, rows: Sequence[int]) -> Tensor:
        """Read some rows of a matrix: (len(rows), columns)."""
        data = self._map().reshape(self.shape[0], -1)[rows]
        return dequantize(data.reshape(-1), self.kind, (len(rows), self.shape[1]))

    @property
    def num_bytes(self) -> int:
        """Bytes of its data; Python's integers, as a product of a damaged file's may be of any size."""
        block_size, block_bytes = GGML_QUANT_SIZES[self.kind]
        return math.prod(self.shape) // block_size * block_bytes

    def _map(self) -> np.ndarray:
        return np.memmap(self.file, np.uint8, "c", self.offset, self.num_bytes)  # copied where it is written to


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


def _find_type(name: str, number: int) -> GGMLQuantizationType:
    """Return a tensor's type; ModelError if there is none of this number."""
    if number not in set(GGMLQuantizationType):
        raise ModelError("its weights are of a type that is not known, number {kind} ({name})", kind=number, name=name)
    return GGMLQuantizationType(number)


def check_types(tensors: Iterable[GGUFTensor]) -> None:
    """Raise ModelError if a tensor is of a type that is not read."""
    for tensor in tensors:
        if not is_read(tensor.kind):
            raise ModelError(
                "its weights are of the type {kind} ({name}), which is not read, only {known}: take a file of the same "
                "model in one of these, such as Q4_K_M or Q8_0",
                kind=tensor.kind.name,
                name=tensor.name,
                known=", ".join(kind.name for kind in GGMLQuantizationType if is_read(kind)),
            )


def _check_tensors(tensors: tuple[GGUFTensor, ...], file: str, size: int) -> None:
    """Raise ModelError unless each tensor has a name of its own, whole blocks, and data within the file."""
    names = set()
    for tensor in tensors:
        if tensor.name in names:
            raise ModelError("{file} is damaged: it has two tensors {name}", file=file, name=tensor.name)
        names.add(tensor.name)
        if not tensor.shape or 0 in tensor.shape or tensor.shape[-1] % GGML_QUANT_SIZES[tensor.kind][0]:
            raise ModelError(
                "{file} is damaged: its tensor {name} of type {kind} has the shape {shape}",
                file=file,
                name=tensor.name,
                kind=tensor.kind.name,
                shape=tensor.shape,
            )
        end = tensor.offset + tensor.num_bytes
        if end > size:
            raise ModelError(
                "{file} is cut off or damaged: by its header it has {wanted:,} bytes, got {got:,}; download it again",
                file=file,
                wanted=end,
                got=size,
            )
