"""A folder's weight files, and the weights in them."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torch import Tensor

from model.checkpoint_reader import open_weights, read_json
from model.errors import ModelError
from model.file_formats import unsupported_files_error

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
ANY_INDEX = re.compile(r".+\.safetensors\.index(\.\w+)?\.json")  # with the name of a variant, such as fp16
SHARD = re.compile(r"(.+)-(\d+)-of-(\d+)\.safetensors")
NON_WEIGHT_FILES = (
    "adapter_model.safetensors",
    "known_logits.safetensors",
    "optimizer.safetensors",
)  # that are no weights of it
FLOATS = (
    "F64",
    "F32",
    "F16",
    "BF16",
    "F8_E4M3",
    "F8_E5M2",
)  # safetensors' names of types that are read without dequantization
# What weights in few bits lie beside, or are called: of GPTQ and AWQ, bitsandbytes, FP8 and compressed-tensors, EXL,
# HQQ, AQLM, MLX.
QUANTIZED = re.compile(
    r"\.(qweight|qzeros|scales|g_idx|absmax|quant_map|nested_absmax|quant_state\..*|SCB|weight_format|weight_scale|"
    r"weight_scale_inv|weight_packed|weight_zero_point|weight_global_scale|q_weight|q_scale|q_perm|trellis|W_q|codes|"
    r"codebooks)$"
)
ADAPTED = re.compile(r"\.(lora_[AB]|lora_embedding_[AB]|base_layer|original_module|modules_to_save)\b")


@dataclass(frozen=True)
class StoredWeight:
    """A weight in a safetensors file, not read yet.

    Attributes:
        name: in its model.
        dtype: safetensors' name of it.
        key: name in the file; None: `name`.
    """

    name: str
    file: Path
    dtype: str
    key: str | None = None

    def read(self) -> Tensor:
        """Read the weight; its memory is the file's."""
        with open_weights(self.file) as file:  # reopened each time: an open file holds in memory what was read from it
            return file.get_tensor(self.key or self.name)


def list_weights(files: Iterable[Path]) -> Iterator[StoredWeight]:
    """Yield all weights of safetensors files."""
    for path in files:
        with open_weights(path) as file:
            yield from (StoredWeight(name, path, file.get_slice(name).get_dtype()) for name in file.keys())  # noqa: SIM118


def check_not_quantized_or_adapter(weights: Iterable[StoredWeight]) -> None:
    """Raise ModelError if weights are quantized or belong to an adapter."""
    for weight in weights:
        if QUANTIZED.search(weight.name) or (weight.dtype not in (*FLOATS, "BOOL") and weight.name.endswith(".weight")):
            raise ModelError(
                "its weights are quantized ({name} is {dtype}), which is not read: open the model that they were made "
                "from, in 16 or 32 bits",
                name=weight.name,
                dtype=weight.dtype,
            )
        if ADAPTED.search(weight.name):
            raise ModelError(
                "its weights hold an adapter (LoRA) that is not merged, {name}: merge the two with peft’s "
                "merge_and_unload(), save_pretrained(…), and open that folder",
                name=weight.name,
            )


def find_weight_files(folder: Path) -> list[Path]:
    """Return a folder's weight files (see `choose_weight_files`); ModelError also if a shard is missing."""
    names = {path.name for path in folder.iterdir()}
    if not any(name.endswith(".safetensors") or ANY_INDEX.fullmatch(name) for name in names):
        names |= {path.relative_to(folder).as_posix() for path in folder.glob("*/*")}  # to say what there is
    files = choose_weight_files(names, folder)
    if not files[0].endswith(".json"):
        return [folder / name for name in files]
    shards = read_index(folder / files[0])
    if missing := [name for name in shards if not (folder / name).exists()]:
        raise ModelError(
            "{count} of its {total} files of weights are missing, such as {file}: download the folder again",
            count=len(missing),
            total=len(shards),
            file=missing[0],
        )
    return [folder / name for name in shards]


def choose_weight_files(names: Collection[str], folder: Path | str) -> list[str]:
    """Return the files of a folder that hold the weights.

    These are `model.safetensors`, the index of its shards, or the only safetensors file, index or set of shards of
    another name.

    Args:
        names: of the files; those in subfolders are ignored.
        folder: of the files, or the model's name on the Hub.

    Raises:
        ModelError: there are none, they are in an unsupported format, or the choice is ambiguous.
    """
    top_level = sorted(name for name in names if "/" not in name)
    for name in (SINGLE, INDEX):
        if name in top_level:
            return [name]
    choices = [[name] for name in top_level if ANY_INDEX.fullmatch(name)] or complete_weight_sets(top_level)
    if len(choices) == 1:
        return choices[0]
    if choices:
        raise ModelError(
            "its weights may be any of {names}: open the file that is meant by its own path",
            names=", ".join(choice[0] for choice in choices),
        )
    raise unsupported_files_error(names, folder) or ModelError(
        "its weights are missing: {file}, or another safetensors file, is to lie beside config.json", file=SINGLE
    )


def read_index(index: Path) -> list[str]:
    """Return the files that an index names, relative to its folder; ModelError if one may be outside."""
    weight_map = read_json(index).get("weight_map")
    names = list(weight_map.values()) if isinstance(weight_map, dict) else []
    if not names or not all(map(is_safe_weight_path, names)):
        raise ModelError("its {file} names no files of weights in its folder", file=index.name)
    return sorted(set(names))


def is_safe_weight_path(name: object) -> bool:
    """Return True if an index's entry is a safetensors file within the index's folder, not outside it."""
    if not isinstance(name, str) or not name.endswith(".safetensors") or re.search(r"[\\:\0]", name):
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def complete_weight_sets(names: Iterable[str]) -> list[list[str]]:
    """Return the candidates that may each hold all weights: single files, and complete sets of shards.

    Raises:
        ModelError: there is only an incomplete set.
    """
    sets: dict[tuple[str, int], dict[int, str]] = {}
    singles = []
    for name in sorted(names):
        if not name.endswith(".safetensors") or name in NON_WEIGHT_FILES:
            continue
        if shard := SHARD.fullmatch(name):
            sets.setdefault((shard[1], int(shard[3])), {})[int(shard[2])] = name
        else:
            singles.append([name])
    complete = [list(shards.values()) for (_stem, total), shards in sets.items() if len(shards) >= total]
    if sets and not complete and not singles:
        (stem, total), shards = next(iter(sets.items()))
        raise ModelError(
            "{count} of its {total} files of weights are missing, beside {file}: download the folder again",
            count=total - len(shards),
            total=total,
            file=next(iter(shards.values())),
        )
    return singles + complete
