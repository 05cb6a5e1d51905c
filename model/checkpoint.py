"""Trained models on disk: one folder each, no pickle."""

import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from model.checkpoint_reader import TOKENIZER, is_missing, read_checkpoint, require_readable, weights_to_save
from model.errors import ModelError
from model.file_formats import (
    PICKLED,
    SUFFIXES,
    content_kind,
    file_kind,
    unsupported_file_error,
    unsupported_files_error,
)
from model.gguf.gguf_loader import load_gguf
from model.pretrained.hub import cached_model, get_or_download_model, is_hub_name, split_hub_name
from model.pretrained.hugging_face_loader import is_hugging_face_folder, load_hugging_face
from model.pretrained.llama2c import load_llama2c
from model.pretrained.lora import ADAPTER_FILES, base_model_name, is_adapter
from model.pretrained.tokenizer import TOKENIZER_FILES, PretrainedTokenizer
from model.pretrained.weight_files import INDEX, NON_WEIGHT_FILES, SHARD, SINGLE, find_weight_files
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM
from model.weight_placement import Device, ShardedPlacement, WeightPlacement, parse_bytes

_INSTALLED = Path(__file__).parent / "checkpoints"  # where a wheel has the bundled ones; in a clone they are beside
CHECKPOINTS = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parent.parent / "checkpoints"
LOG = logging.getLogger(__name__)


class CheckpointError(ModelError):
    """A checkpoint that cannot be loaded; the message gives the user the reason."""


def list_checkpoints() -> list[str]:
    """Return the names of the folders in `checkpoints/` with a config, sorted, loadable or not.

    A series of snapshots is a folder of such folders, which are named "series/snapshot".
    """
    configs = [*CHECKPOINTS.glob("*/config.json"), *CHECKPOINTS.glob("*/*/config.json")]
    return sorted(config.parent.relative_to(CHECKPOINTS).as_posix() for config in configs)


def is_checkpoint(name: str) -> bool:
    """Return True if `list_checkpoints` has the name, without listing all."""
    path = Path(name)
    if path.anchor or path.drive or ".." in path.parts or path.as_posix() != name or len(path.parts) not in (1, 2):
        return False
    try:
        return (CHECKPOINTS / path / "config.json").exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def checkpoint_file_stats(name_or_path: str | Path) -> tuple:
    """Return inode, modification time and size of each of a checkpoint's files, which change when one is rewritten."""
    return tuple(map(file_stat, checkpoint_files(name_or_path)))


def checkpoint_files(name_or_path: str | Path) -> list[Path]:
    """Return the paths that a checkpoint is read from, whether they exist or not.

    Shards that an index names are not included.
    """
    path = checkpoint_folder(name_or_path)
    weights: list[Path] = []
    if is_adapter(path):
        adapter_files = [path / name for name in ADAPTER_FILES]
        with suppress(CheckpointError):
            return [*adapter_files, *checkpoint_files(find_base_model(path))]
        return adapter_files
    if path.is_file():
        if is_model_file(path):
            return [path]
        path, weights = path.parent, [path]
    elif not (path / SINGLE).exists() and not (path / INDEX).exists():
        with suppress(ModelError, OSError):
            weights = find_weight_files(path)
    names = "config.json", SINGLE, INDEX, TOKENIZER, *TOKENIZER_FILES
    return [*(path / name for name in names), *weights, path.parent / TOKENIZER]


def file_stat(path: Path) -> tuple[int, ...] | None:
    """Return a file's inode, time and size; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def save_checkpoint(
    lm: TransformerLM, tokenizer: Tokenizer | None, name_or_path: str | Path, dtype: torch.dtype = torch.float16
) -> Path:
    """Write `config.json`, `model.safetensors` and `tokenizer.tiktoken`; return the folder.

    Without a tokenizer the parent folder's is used on loading; a series of snapshots shares it.

    Each file is written under a temporary name and then moved, so that a reader never sees half a file. Weights
    are stored as `dtype`; a tied unembedding is stored once, as the embedding.

    Raises:
        ValueError: a weight is too large for `dtype`, or not a number.
    """
    weights = {name: tensor.detach().cpu().to(dtype).contiguous() for name, tensor in weights_to_save(lm).items()}
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds values that are not finite as {dtype}; save with another dtype")
    folder = checkpoint_folder(name_or_path)
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer:
        write_atomically(folder / TOKENIZER, tokenizer.save)
    write_atomically(folder / "model.safetensors", lambda path: save_file(weights, path))
    config = json.dumps(asdict(lm.config), indent=2) + "\n"
    write_atomically(folder / "config.json", lambda path: path.write_text(config, encoding="utf-8"))
    return folder


def load_checkpoint(
    name_or_path: str | Path,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    *,
    device_map: str | Mapping[str, Device] | None = None,
    max_memory: Mapping[Device, int | str] | None = None,
    tokenizer: Any = None,
    adapter: str | Path | None = None,
) -> tuple[TransformerLM, Tokenizer | PretrainedTokenizer]:
    """Load a model, in eval mode on `device`, and its tokenizer; its `notes` are logged.

    Args:
        name_or_path: the name of a folder in `checkpoints/`; or a path: to another such folder, to one that
            Hugging Face's transformers saved, to a file in one of these, to a GGUF file of llama.cpp, or to a model of
            llama2.c, `x.bin` with its `tok*.bin` beside it; or the name of a model on the Hugging Face Hub,
            "owner/name", or of a GGUF file there, "owner/name/file.gguf", which is downloaded once.
        dtype: of the weights; None: float32 for this project's checkpoints, the stored type for others.
        device_map: "auto", or a device for each module, for a model that is sharded over several devices, in place
            of `device` (see `model.weight_placement.ShardedPlacement`); needs the package accelerate.
        max_memory: bound for each device, as in {"cpu": "2GiB"}. Without a `device_map` it is only for GGUF: matrices
            beyond it stay in the file, and are dequantised whenever they are used.
        tokenizer: used in place of the tokenizer in a checkpoint of this project; None: the checkpoint's own.
        adapter: folder of a LoRA adapter that peft saved, which is merged into the weights of a model of transformers.
            The folder alone, as `name_or_path`, opens its base model, if that is on this machine, with it.

    Raises:
        CheckpointError: it does not exist, or a file of it is missing, damaged, does not fit the others, or has an
            unsupported value.
    """
    try:
        placement = ShardedPlacement(device_map, max_memory) if device_map else WeightPlacement(device)
        is_remote = is_remote_checkpoint(name_or_path)
        path = get_or_download_model(str(name_or_path)) if is_remote else find_checkpoint(name_or_path)
    except CheckpointError:
        raise
    except ModelError as error:
        raise CheckpointError("{why}", why=error) from error
    name = Path(name_or_path).name or str(name_or_path)
    if is_adapter(path):
        path, adapter = find_base_model(path), path
    folder, weights_file = (path.parent, path) if path.is_file() else (path, None)
    try:
        if adapter is not None and (is_model_file(path) or not is_hugging_face_folder(folder)):
            if is_gguf(path):
                raise ModelError(
                    "an adapter is not merged into GGUF: open it with the folder of transformers that {file} was made "
                    "from",
                    file=path.name,
                )
            raise ModelError("an adapter needs its base model as a folder that transformers saved")
        check_links(path)
        if is_gguf(path):
            max_bytes = parse_bytes(max_memory["cpu"]) if max_memory and not device_map else math.inf
            lm, tokenizer = load_gguf(path, dtype, placement, max_bytes)
        elif is_llama2c(path):
            lm, tokenizer = load_llama2c(path, dtype or torch.float32, placement)
        elif is_hugging_face_folder(folder):
            adapter_folder = Path(adapter) if adapter is not None else None
            lm, tokenizer = load_hugging_face(folder, dtype, placement, weights_file, adapter_folder)
        else:
            lm, tokenizer = read_checkpoint(folder, dtype or torch.float32, placement, tokenizer, weights_file)
    except (OSError, ValueError, TypeError, OverflowError, RuntimeError, MemoryError, SafetensorError) as error:
        raise CheckpointError("checkpoint {name!r} cannot be loaded: {why}", name=name, why=error) from error
    for note in lm.notes:
        LOG.warning("%s: %s", name, note)
    return lm, tokenizer


def is_remote_checkpoint(name_or_path: str | Path) -> bool:
    """Return True if a name means a model on the Hub, not a local path; the Hub is not asked.

    That is owner/name, where no local path has the owner's name, and not the name of a weights file; or
    owner/name/file.gguf.
    """
    name, file = split_hub_name(str(name_or_path))
    if not is_hub_name(str(name_or_path)) or (not file and Path(name).suffix.lower() in SUFFIXES):
        return False
    owner = name.partition("/")[0]
    return is_missing(Path(owner)) and is_missing(CHECKPOINTS / owner)


def check_links(path: Path) -> None:
    """Raise ModelError if a file of a model's folder is a link to one outside, other than in the Hub's cache."""
    if is_model_file(path):
        return
    folder = path.parent if path.is_file() else path
    inside = folder.resolve()
    try:
        files = {*checkpoint_files(path), *folder.glob("*.safetensors")}
    except OSError:  # what reads them says which cannot be read
        return
    for file in files:
        if file.is_symlink() and not (target := file.resolve()).is_relative_to(inside):
            if target.parent.name == "blobs" and target.parent.parent in inside.parents:
                continue
            raise ModelError(
                "its {file} is a link to a file outside of its folder, which is not followed: copy the file there",
                file=file.name,
            )


def find_base_model(adapter: Path) -> Path:
    """Return the path of an adapter's base model; CheckpointError unless it is on this machine."""
    try:
        name = base_model_name(adapter)
        folder = cached_model(name) if is_remote_checkpoint(name) else find_checkpoint(name)
        if folder is None:
            raise ModelError("it is not on this machine: open it once by its name, which downloads it")
    except ModelError as error:
        raise CheckpointError(
            "checkpoint {name!r} cannot be loaded: it is an adapter (LoRA), and its base model cannot be opened: {why}",
            name=adapter.name,
            why=error,
        ) from None
    return folder


def is_llama2c(path: Path) -> bool:
    """Return True for a path of a llama2.c model: a `.bin` file whose first bytes match no other format."""
    return path.suffix == ".bin" and path.is_file() and not (content_kind(path) or PICKLED.fullmatch(path.name))


def is_gguf(path: Path) -> bool:
    """Return True for a path of a GGUF file, by its content or else by its name."""
    return path.is_file() and file_kind(path) == "gguf"


def is_model_file(path: Path) -> bool:
    """Return True for a path of a file that holds a whole model: of llama.cpp (GGUF), or of llama2.c."""
    return is_gguf(path) or is_llama2c(path)


def find_checkpoint(name_or_path: str | Path) -> Path:
    """Resolve a name or path to the model's folder, or to the file of its weights or of the whole model.

    A file of a model's folder stands for the folder, and a folder for the only model in it.

    Raises:
        CheckpointError: nothing exists there, or nothing that can be opened.
    """
    literal_path, path = Path(name_or_path), checkpoint_folder(name_or_path)
    with suppress(RuntimeError):  # there is no such user
        literal_path = literal_path.expanduser()
        path = path.expanduser() if is_missing(literal_path) or not is_missing(path) else literal_path
    if not str(name_or_path) or is_missing(path):
        raise _missing_error(str(name_or_path))
    try:
        return _resolve_folder(path) if path.is_dir() else _resolve_file(path)
    except (ModelError, OSError) as error:
        reason = error if isinstance(error, ModelError) else error.strerror
        raise CheckpointError("checkpoint {name!r} cannot be loaded: {why}", name=path.name, why=reason) from None


def _resolve_file(path: Path) -> Path:
    require_readable(path)
    if is_model_file(path):
        return path
    folder, kind = path.parent, file_kind(path)
    if path.name in NON_WEIGHT_FILES or is_missing(folder / "config.json"):
        raise unsupported_file_error(path)
    if kind == "safetensors":
        return path if path.name != SINGLE and not _is_shard(path) else folder
    if kind in ("json", "vocabulary"):
        return folder
    if PICKLED.fullmatch(path.name) and not (is_missing(folder / SINGLE) and is_missing(folder / INDEX)):
        raise ModelError(
            "{file} is pickled, which could run code of others; its folder has the weights as safetensors, too: open "
            "{folder}",
            file=path.name,
            folder=folder,
        )
    raise unsupported_file_error(path)


def _is_shard(path: Path) -> bool:
    """Return True if a file is one of several that hold the weights of its folder."""
    try:
        weight_files = find_weight_files(path.parent)
    except ModelError:  # several may be meant, or others are missing
        return SHARD.fullmatch(path.name) is not None
    return len(weight_files) > 1 and path in weight_files


def _resolve_folder(folder: Path) -> Path:
    if not is_missing(folder / "config.json") or is_adapter(folder):
        return folder
    names = sorted(path.name for path in folder.iterdir())
    if not names:
        raise ModelError("the folder is empty: download the model again")
    if error := unsupported_files_error(
        [name for name in names if name in ("model_index.json", "adapter_config.json")], folder
    ):
        raise error
    snapshot = _find_snapshot(folder)
    configs = [*folder.glob("*/config.json"), *folder.glob("snapshots/*/config.json")]
    models = [snapshot] if snapshot else sorted({path.parent for path in configs})
    models = models or [folder / name for name in names if name.endswith(".gguf")]
    if len(models) == 1:
        return models[0]
    if models:
        raise ModelError(
            "the folder holds {count} models, {names}: open one of them",
            count=len(models),
            names=", ".join(path.name for path in models[:4]) + ", …" * (len(models) > 4),
        )
    raise unsupported_files_error(names, folder) or ModelError(
        "the folder has no config.json, which says what model its weights are: download that, too (there are {names})",
        names=", ".join(names[:5]) + ", …" * (len(names) > 5),
    )


def _find_snapshot(folder: Path) -> Path | None:
    """Return the main branch's snapshot in a folder of the Hub's cache, `models--owner--name`; else None."""
    with suppress(OSError, UnicodeDecodeError):
        main = (folder / "refs" / "main").read_text(encoding="ascii").strip()
        if re.fullmatch(r"\w+", main) and (folder / "snapshots" / main / "config.json").exists():
            return folder / "snapshots" / main
    return None


def _missing_error(name: str) -> CheckpointError:
    """Return the error for a name or path that does not exist."""
    if re.match(r"\w\w+:/", name):
        return CheckpointError(
            "a model cannot be opened by a URL: use a path, or its name on the Hugging Face Hub, owner/name, got "
            "{name!r}",
            name=name,
        )
    if re.search(r"[/\\]", name) or Path(name).suffix.lower() in SUFFIXES:
        return CheckpointError("there is no file or folder {path!r}", path=name)
    return CheckpointError(
        "there is no checkpoint {name!r}; there are: {names}",
        name=name,
        names=format_checkpoint_names(list_checkpoints()),
    )


def format_checkpoint_names(names: Iterable[str]) -> str:
    """Return names as a comma-separated list, with only the first and last of a series of snapshots."""
    series: dict[str, list[str]] = {}
    for name in sorted(names):
        series.setdefault(re.sub(r"/step-\d+$", "/", name), []).append(name)
    return (
        ", ".join(group[0] if len(group) == 1 else f"{group[0]} … {group[-1]}" for group in series.values()) or "none"
    )


def checkpoint_folder(name_or_path: str | Path) -> Path:
    """Return `checkpoints/<name>` for a bare name or one of `list_checkpoints`; any other path unchanged."""
    path = Path(name_or_path)
    is_name = len(path.parts) == 1 or is_checkpoint(path.as_posix())
    return CHECKPOINTS / path if is_name and not path.is_absolute() else path


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write to a temporary name, then move it to `path`: readers see the old file or the new one, never a part.

    Raises:
        OSError: it cannot be written, for example because the disk is full.
    """
    temporary_path = path.with_name(path.name + ".part")
    try:
        write(temporary_path)
        os.replace(temporary_path, path)
    except (OSError, SafetensorError) as error:
        temporary_path.unlink(missing_ok=True)
        raise OSError(f"cannot write {path}: {error}") from error
