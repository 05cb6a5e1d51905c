"""Trained models on disk: one folder each, no pickle."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from model.config import ModelConfig
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

CHECKPOINTS = Path(__file__).parent.parent / "checkpoints"
TOKENIZER = "tokenizer.tiktoken"


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded; the message says why, in words for the person who asked for it."""


def list_checkpoints() -> list[str]:
    """Names of the folders in `checkpoints/` that hold a config, in alphabetical order, loadable or not.

    A series of snapshots is a folder of such folders, which are named "series/snapshot".
    """
    configs = [*CHECKPOINTS.glob("*/config.json"), *CHECKPOINTS.glob("*/*/config.json")]
    return sorted(config.parent.relative_to(CHECKPOINTS).as_posix() for config in configs)


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


def load_checkpoint(name_or_path: str | Path, device: str | torch.device = "cpu") -> tuple[TransformerLM, Tokenizer]:
    """The model, in eval mode and float32 on `device`, and its tokenizer.

    Args:
        name_or_path: the name of a folder in `checkpoints/`, or a path to one elsewhere.

    Raises:
        CheckpointError: it does not exist, or a file of it is missing, damaged or does not fit the others.
    """
    folder = checkpoint_folder(name_or_path)
    if not os.path.isfile(folder / "config.json"):
        raise CheckpointError(
            f"there is no checkpoint {str(name_or_path)!r}; there are: {', '.join(list_checkpoints()) or 'none'}"
        )
    try:
        lm, tokenizer = read_checkpoint(folder)
    except (OSError, ValueError, TypeError, OverflowError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"checkpoint {folder.name!r} cannot be loaded: {error}") from error
    return lm.to(device).eval().requires_grad_(False), tokenizer


def read_checkpoint(folder: Path) -> tuple[TransformerLM, Tokenizer]:
    """The model and tokenizer of a folder; whatever is wrong with its files raises the error that met it."""
    config = ModelConfig.from_dict(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    own = folder / TOKENIZER
    tokenizer = Tokenizer.load(own if own.is_file() else folder.parent / TOKENIZER)
    weights = load_file(folder / "model.safetensors")
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(f"the tokenizer has {tokenizer.vocab_size} tokens, the model {config.vocab_size}")
    with torch.device("meta"):  # compare the shapes before taking memory for them
        check_weights(expected=stored_weights(TransformerLM(config)), found=weights)
    lm = TransformerLM(config)
    lm.load_state_dict(weights, strict=False)  # strict would ask for both names of a tied embedding
    return lm, tokenizer


def stored_weights(lm: TransformerLM) -> dict[str, torch.Tensor]:
    """What goes to disk: all weights, a tied embedding under its first name only."""
    weights = lm.state_dict()
    if lm.config.tie_embeddings:
        del weights["lm_head.weight"]
    return weights


def checkpoint_folder(name_or_path: str | Path) -> Path:
    """`checkpoints/<name>` for a bare name or one that `list_checkpoints` has; any other path as it is."""
    path = Path(name_or_path)
    is_name = len(path.parts) == 1 or path.as_posix() in list_checkpoints()
    return CHECKPOINTS / path if is_name and not path.is_absolute() else path


def check_weights(expected: dict, found: dict) -> None:
    """Raise ValueError unless both have the same names and shapes."""
    if missing := sorted(expected.keys() - found.keys()):
        raise ValueError(f"its weights lack {missing[0]} (and {len(missing) - 1} more)")
    if extra := sorted(found.keys() - expected.keys()):
        raise ValueError(f"its weights hold {extra[0]}, which its config has no place for")
    for name, tensor in expected.items():
        if tensor.shape != found[name].shape:
            raise ValueError(f"{name} should be {tuple(tensor.shape)} by its config, got {tuple(found[name].shape)}")


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
