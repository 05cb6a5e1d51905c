"""Trained models on disk: one folder each, no pickle."""

import json
import logging
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

from model.errors import ModelError
from model.file_formats import PICKLED, SUFFIXES, content_kind, explain_file, explain_files, file_kind
from model.offloading import Device, Spread
from model.placement import OnDevice, Placement
from model.pretrained.hub import folder_of, is_hub_name
from model.pretrained.hugging_face import is_of_transformers, load_hugging_face
from model.pretrained.llama2c import load_llama2c
from model.pretrained.tokenizer import PretrainedTokenizer
from model.pretrained.tokenizer_files import TOKENIZER_FILES
from model.pretrained.weight_files import INDEX, OTHERS, SHARD, SINGLE, find_weights
from model.reading import TOKENIZER, is_missing, read_checkpoint, readable, stored_weights
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

CHECKPOINTS = Path(__file__).parent.parent / "checkpoints"
LOG = logging.getLogger(__name__)


class CheckpointError(ModelError):
    """A checkpoint that cannot be loaded; the message says why, in words for the person who asked for it."""


def list_checkpoints() -> list[str]:
    """Names of the folders in `checkpoints/` that hold a config, in alphabetical order, loadable or not.

    A series of snapshots is a folder of such folders, which are named "series/snapshot".
    """
    configs = [*CHECKPOINTS.glob("*/config.json"), *CHECKPOINTS.glob("*/*/config.json")]
    return sorted(config.parent.relative_to(CHECKPOINTS).as_posix() for config in configs)


def is_checkpoint(name: str) -> bool:
    """Whether `list_checkpoints` has the name; found out without listing them all."""
    path = Path(name)
    if path.anchor or path.drive or ".." in path.parts or path.as_posix() != name or len(path.parts) not in (1, 2):
        return False
    try:
        return (CHECKPOINTS / path / "config.json").exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def version(name_or_path: str | Path) -> tuple:
    """What of a checkpoint's files on disk is another once one of them was written anew."""
    return tuple(map(file_version, files_of(name_or_path)))


def files_of(name_or_path: str | Path) -> list[Path]:
    """What a checkpoint is read from, be it there or not; but for parts that another of the files names."""
    path = checkpoint_folder(name_or_path)
    weights: list[Path] = []
    if path.is_file():
        if is_llama2c(path):
            return [path]
        path, weights = path.parent, [path]
    elif not (path / SINGLE).exists() and not (path / INDEX).exists():
        with suppress(ModelError, OSError):
            weights = find_weights(path)
    names = "config.json", SINGLE, INDEX, TOKENIZER, *TOKENIZER_FILES
    return [*(path / name for name in names), *weights, path.parent / TOKENIZER]


def file_version(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def save_checkpoint(
    lm: TransformerLM, tokenizer: Tokenizer | None, name_or_path: str | Path, dtype: torch.dtype = torch.float16
) -> Path:
    """Write `config.json`, `model.safetensors` and `tokenizer.tiktoken`; return the folder.

    Without a tokenizer the one in the folder around it counts, which a series of snapshots shares.

    Each file is written beside its place and moved there, so that a reader never finds half of one. Weights are
    stored as `dtype`; a tied unembedding is stored once, as the embedding.

    Raises:
        ValueError: a weight is too large for `dtype`, or not a number.
    """
    weights = {name: tensor.detach().cpu().to(dtype).contiguous() for name, tensor in stored_weights(lm).items()}
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds values that are not finite as {dtype}; save with another dtype")
    folder = checkpoint_folder(name_or_path)
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer:
        write_whole(folder / TOKENIZER, tokenizer.save)
    write_whole(folder / "model.safetensors", lambda path: save_file(weights, path))
    config = json.dumps(asdict(lm.config), indent=2) + "\n"
    write_whole(folder / "config.json", lambda path: path.write_text(config, encoding="utf-8"))
    return folder


def load_checkpoint(
    name_or_path: str | Path,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    *,
    device_map: str | Mapping[str, Device] | None = None,
    max_memory: Mapping[Device, int | str] | None = None,
    tokenizer: Any = None,
) -> tuple[TransformerLM, Tokenizer | PretrainedTokenizer]:
    """The model, in eval mode on `device`, and its tokenizer; its `notes` are logged.

    Args:
        name_or_path: the name of a folder in `checkpoints/`; or a path: to another such folder, to one that Hugging
            Face's transformers saved, to a file in one of these, or to a model of llama2.c, `x.bin` with its `tok*.bin`
            beside it; or the name of a model on the Hugging Face Hub, "owner/name", which is downloaded once.
        dtype: of the weights; None: float32 of ours, and those of others as they are stored.
        device_map: "auto", or which part is where, of a model that is to be spread over several devices, in place of
            `device` (see `model.offloading.Spread`); takes the package accelerate.
        max_memory: how much each of them may take, as in {"cpu": "2GiB"}.
        tokenizer: in place of that of a folder of ours; None: that.

    Raises:
        CheckpointError: it does not exist, or a file of it is missing, damaged, does not fit the others, or says what
            is not understood.
    """
    placement = spread(device_map, max_memory) if device_map else OnDevice(device)
    place = fetched(str(name_or_path)) if is_of_hub(name_or_path) else find_checkpoint(name_or_path)
    name = Path(name_or_path).name or str(name_or_path)
    folder, weights_file = (place.parent, place) if place.is_file() else (place, None)
    try:
        if is_llama2c(place):
            lm, tokenizer = load_llama2c(place, dtype or torch.float32, placement)
        elif is_of_transformers(folder):
            lm, tokenizer = load_hugging_face(folder, dtype, placement, weights_file)
        else:
            lm, tokenizer = read_checkpoint(folder, dtype or torch.float32, placement, tokenizer, weights_file)
    except (OSError, ValueError, TypeError, OverflowError, RuntimeError, MemoryError, SafetensorError) as error:
        raise CheckpointError("checkpoint {name!r} cannot be loaded: {why}", name=name, why=error) from error
    for note in lm.notes:
        LOG.warning("%s: %s", name, note)
    return lm, tokenizer


def spread(device_map: str | Mapping[str, Device], max_memory: Mapping[Device, int | str] | None) -> Placement:
    try:
        return Spread(device_map, max_memory)
    except ModelError as error:
        raise CheckpointError("{why}", why=error) from error


def is_of_hub(name_or_path: str | Path) -> bool:
    """Whether it names a model of the hub: owner/name, nothing of the owner's name is on this machine, and the name is
    not that of a file of weights."""
    path = Path(name_or_path)
    is_name = is_hub_name(str(name_or_path)) and path.suffix.lower() not in SUFFIXES
    return is_name and is_missing(path.parent) and is_missing(CHECKPOINTS / path.parent)


def fetched(name: str) -> Path:
    """The folder of a model of the hub, downloaded where it is not there; CheckpointError where it cannot be."""
    try:
        return folder_of(name)
    except ModelError as error:
        raise CheckpointError("{why}", why=error) from error


def is_llama2c(path: Path) -> bool:
    """Return whether a path is that of a model of llama2.c: a `.bin` whose first bytes are those of no other format."""
    return path.suffix == ".bin" and path.is_file() and not (content_kind(path) or PICKLED.fullmatch(path.name))


def find_checkpoint(name_or_path: str | Path) -> Path:
    """Return where the model is that somebody means by a name or a path: its folder, or the file of llama2.c or of its
    weights. A file of a model's folder stands for the folder, and a folder for the only model in it.

    Raises:
        CheckpointError: nothing is there, or nothing that can be opened.
    """
    here, path = Path(name_or_path), checkpoint_folder(name_or_path)
    with suppress(RuntimeError):  # there is no such user
        here = here.expanduser()
        path = path.expanduser() if is_missing(here) or not is_missing(path) else here
    if not str(name_or_path) or is_missing(path):
        raise _missing_error(str(name_or_path))
    try:
        return _place_of_folder(path) if path.is_dir() else _place_of_file(path)
    except (ModelError, OSError) as error:
        why = error if isinstance(error, ModelError) else error.strerror
        raise CheckpointError("checkpoint {name!r} cannot be loaded: {why}", name=path.name, why=why) from None


def _place_of_file(path: Path) -> Path:
    readable(path)
    if is_llama2c(path):
        return path
    folder, kind = path.parent, file_kind(path)
    if path.name in OTHERS or is_missing(folder / "config.json"):
        raise explain_file(path)
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
    raise explain_file(path)


def _is_shard(path: Path) -> bool:
    """Return whether a file is one of several that hold the weights of its folder."""
    try:
        found = find_weights(path.parent)
    except ModelError:  # several may be meant, or others are missing
        return SHARD.fullmatch(path.name) is not None
    return len(found) > 1 and path in found


def _place_of_folder(folder: Path) -> Path:
    if not is_missing(folder / "config.json"):
        return folder
    names = sorted(path.name for path in folder.iterdir())
    if not names:
        raise ModelError("the folder is empty: download the model again")
    if error := explain_files([name for name in names if name in ("model_index.json", "adapter_config.json")], folder):
        raise error
    snapshot = _snapshot_of(folder)
    configs = [*folder.glob("*/config.json"), *folder.glob("snapshots/*/config.json")]
    inner = [snapshot] if snapshot else sorted({path.parent for path in configs})
    if len(inner) == 1:
        return inner[0]
    if inner:
        raise ModelError(
            "the folder holds {count} models, {names}: open one of them",
            count=len(inner),
            names=", ".join(path.name for path in inner[:4]) + ", …" * (len(inner) > 4),
        )
    raise explain_files(names, folder) or ModelError(
        "the folder has no config.json, which says what model its weights are: download that, too (there are {names})",
        names=", ".join(names[:5]) + ", …" * (len(names) > 5),
    )


def _snapshot_of(folder: Path) -> Path | None:
    """Return the snapshot that a folder of the Hub's cache, `models--owner--name`, has of its main branch."""
    with suppress(OSError, UnicodeDecodeError):
        main = (folder / "refs" / "main").read_text(encoding="ascii").strip()
        if re.fullmatch(r"\w+", main) and (folder / "snapshots" / main / "config.json").exists():
            return folder / "snapshots" / main
    return None


def _missing_error(name: str) -> CheckpointError:
    """Return the sentence about a name or path that nothing has."""
    if re.match(r"\w\w+:/", name):
        return CheckpointError(
            "a model is opened by a path, or by its name on the Hugging Face Hub, owner/name: no URL is, got {name!r}",
            name=name,
        )
    if re.search(r"[/\\]", name) or Path(name).suffix.lower() in SUFFIXES:
        return CheckpointError("there is no file or folder {path!r}", path=name)
    return CheckpointError(
        "there is no checkpoint {name!r}; there are: {names}", name=name, names=summarize_names(list_checkpoints())
    )


def summarize_names(names: Iterable[str]) -> str:
    """Return names as a list, of a series of snapshots the first and the last alone."""
    series: dict[str, list[str]] = {}
    for name in sorted(names):
        series.setdefault(re.sub(r"/step-\d+$", "/", name), []).append(name)
    return ", ".join(each[0] if len(each) == 1 else f"{each[0]} … {each[-1]}" for each in series.values()) or "none"


def checkpoint_folder(name_or_path: str | Path) -> Path:
    """`checkpoints/<name>` for a bare name or one that `list_checkpoints` has; any other path as it is."""
    path = Path(name_or_path)
    is_name = len(path.parts) == 1 or is_checkpoint(path.as_posix())
    return CHECKPOINTS / path if is_name and not path.is_absolute() else path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`write` to a temporary name, then move to `path`: either the old file is there or the new one, never a part.

    Raises:
        OSError: it cannot be written, because the disk is full, say.
    """
    part = path.with_name(path.name + ".part")
    try:
        write(part)
        os.replace(part, path)
    except (OSError, SafetensorError) as error:
        part.unlink(missing_ok=True)
        raise OSError(f"cannot write {path}: {error}") from error
