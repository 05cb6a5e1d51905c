"""Reader of a checkpoint's files, which are checked against each other before they take memory."""

import json
import math
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from model.config import ModelConfig
from model.errors import ModelError
from model.file_formats import check_not_placeholder, file_kind, unsupported_file_error
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM
from model.weight_placement import WeightPlacement, build_model, build_without_weights

TOKENIZER = "tokenizer.tiktoken"

# Larger files are damaged or wrong, and are not read into memory.
MAX_CONFIG_BYTES, MAX_TOKENIZER_BYTES = 1 << 20, 1 << 26


def read_checkpoint(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    placement: WeightPlacement | None = None,
    tokenizer: Tokenizer | None = None,
    weights_file: Path | None = None,
) -> tuple[TransformerLM, Tokenizer]:
    """Read the model and tokenizer of a folder; errors of its files are raised as they occur.

    Args:
        tokenizer: used in place of the folder's.
        weights_file: of the weights, if it is not `model.safetensors`.
    """
    config = read_config(require_readable(folder / "config.json", MAX_CONFIG_BYTES))
    if tokenizer is None:
        shared = is_missing(folder / TOKENIZER) and not is_missing(folder.parent / TOKENIZER)
        tokenizer = Tokenizer.load(
            require_readable((folder.parent if shared else folder) / TOKENIZER, MAX_TOKENIZER_BYTES)
        )
    if tokenizer.vocab_size != config.vocab_size:
        raise ModelError(
            "the tokenizer has {tokens} tokens, the model {known}", tokens=tokenizer.vocab_size, known=config.vocab_size
        )
    with open_weights(weights_file or folder / "model.safetensors") as weights:
        return read_model(config, weights, dtype, placement), tokenizer


def require_readable(path: Path, max_bytes: float = math.inf) -> Path:
    """Return the path if its file is readable, not too large, and no placeholder (see `check_not_placeholder`).

    Raises:
        ModelError: it is not; the message gives the reason.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ModelError("its {file} cannot be read: it is a folder", file=path.name)
        if not stat.S_ISREG(status.st_mode):  # a pipe, say, would be waited for
            raise ModelError("its {file} cannot be read: it is no file", file=path.name)
        if status.st_size > max_bytes:
            raise ModelError(
                "its {file} cannot be read: it has {size:,} bytes, more than {most:,}",
                file=path.name,
                size=status.st_size,
                most=max_bytes,
            )
        path.open("rb").close()
    except FileNotFoundError:
        raise ModelError("its {file} cannot be read: No such file or directory", file=path.name) from None
    except PermissionError:
        raise ModelError("its {file} cannot be read: Permission denied", file=path.name) from None
    except OSError as error:
        raise ModelError("its {file} cannot be read: {why}", file=path.name, why=error.strerror) from None
    check_not_placeholder(path)
    return path


@contextmanager
def open_weights(path: Path) -> Iterator[safe_open]:
    """Open a safetensors file; ModelError if it is another format or damaged."""
    try:
        with safe_open(require_readable(path), framework="pt") as weights:
            yield weights
    except SafetensorError as error:
        if file_kind(path) not in ("safetensors", ""):
            raise ModelError(
                "its {file} is not what its name says: {why}", file=path.name, why=unsupported_file_error(path)
            ) from None
        raise ModelError(
            "its {file} is cut off or damaged, so download or save it again ({why})", file=path.name, why=error
        ) from None


def read_json(path: Path) -> dict:
    """Read the JSON object in a file; ModelError if there is none."""
    try:
        content = json.loads(require_readable(path, MAX_CONFIG_BYTES).read_text(encoding="utf-8-sig"))
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelError("its {file} is no JSON: {why}", file=path.name, why=error) from None
    if not isinstance(content, dict):
        raise ModelError("its {file} is no JSON: {why}", file=path.name, why="no object")
    return content


def read_config(path: Path) -> ModelConfig:
    """Read a config; ModelError if the file is no JSON or has invalid values."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError("its {file} is no JSON: {why}", file=path.name, why=error) from None
    return ModelConfig.from_dict(values)


def read_model(
    config: ModelConfig, weights: safe_open, dtype: torch.dtype, placement: WeightPlacement | None
) -> TransformerLM:
    """Build the model of a config with the weights of a file.

    Names and shapes are checked before the model takes memory.
    """
    names = weights.keys()
    check_weights(config, {name: tuple(weights.get_slice(name).get_shape()) for name in names})
    converted_weights = ((name, convert_tensor(name, weights.get_tensor(name), dtype)) for name in names)
    return build_model(config, converted_weights, dtype, placement)


def convert_tensor(name: str, stored: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a copy of a weight in `dtype`, in memory that does not belong to the file.

    Raises:
        ModelError: it is not floating-point, or holds numbers that are not finite in `dtype`.
    """
    if not stored.is_floating_point():
        raise ModelError("{name} should hold floating-point numbers, got {got}", name=name, got=stored.dtype)
    weight = stored.to(dtype, copy=True)
    if all(map(math.isfinite, weight.aminmax())):
        return weight
    if stored.double().isfinite().all():
        raise ModelError(
            "{name} holds numbers beyond the range of {dtype}: open it in a wider type, such as float32 for float16",
            name=name,
            dtype=str(dtype).removeprefix("torch."),
        )
    raise ModelError(
        "{name} holds numbers that are not finite: the file is damaged, or its training went wrong", name=name
    )


def check_weights(config: ModelConfig, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ModelError unless the shapes, by name, are those of the config's weights."""
    remaining = dict(shapes)
    for name, shape in weight_shapes(config):
        if name not in remaining:
            raise missing_weight_error(name)
        check_shape(name, remaining.pop(name), shape)
    if remaining:
        check_shape(min(remaining), remaining[min(remaining)], None)


def missing_weight_error(name: str) -> ModelError:
    """Return the error for a weight that is missing."""
    return ModelError("its weights lack {name}: they are not complete, or of another model than its config", name=name)


def check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...] | None) -> None:
    """Raise ModelError unless a weight has the expected shape; None means that the config has no such weight."""
    if expected is None:
        raise ModelError(
            "its weights hold {name}, which its config has no place for: the two may be of different models", name=name
        )
    if shape != expected:
        raise ModelError("{name} should be {wanted} by its config, got {got}", name=name, wanted=expected, got=shape)


def check_weight_stream(
    config: ModelConfig, weights: Iterable[tuple[str, torch.Tensor]]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield weights as they come, checked against the config.

    Raises:
        ModelError: a weight does not fit, or, at the end, one is missing.
    """
    shapes, checked = one_block_model_shapes(config), {}
    for name, weight in weights:
        layer, _dot, suffix = name.removeprefix("blocks.").partition(".")
        is_in_block = name.startswith("blocks.") and layer.isdecimal() and int(layer) < config.num_layers
        check_shape(name, tuple(weight.shape), shapes.get(f"blocks.0.{suffix}" if is_in_block else name))
        checked[name] = tuple(weight.shape)
        yield name, weight
    check_weights(config, checked)


def weight_shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of every weight in `weights_to_save`, without memory for the weights.

    All blocks are alike, so only one is built: a config may claim any number of them.
    """
    shapes, block_prefix = one_block_model_shapes(config), "blocks.0."
    yield from ((name, shape) for name, shape in shapes.items() if not name.startswith(block_prefix))
    for layer in range(config.num_layers):
        for name, shape in shapes.items():
            if name.startswith(block_prefix):
                yield f"blocks.{layer}.{name.removeprefix(block_prefix)}", shape


def one_block_model_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of all weights of the model cut down to a single block, embeddings included."""
    weights = weights_to_save(build_without_weights(replace(config, num_layers=1)))
    return {name: tuple(weight.shape) for name, weight in weights.items()}


def weights_to_save(lm: TransformerLM) -> dict[str, torch.Tensor]:
    """Return the weights that a checkpoint saves: all, with a tied embedding under its first name only."""
    weights = lm.state_dict()
    if lm.config.tie_embeddings:
        del weights["lm_head.weight"]
    return weights


def is_missing(path: Path) -> bool:
    """Return True if nothing exists at the path; a folder or an unreadable file does exist."""
    try:
        path.stat()
    except PermissionError:
        return False
    except (OSError, ValueError):  # ValueError: no path has such characters
        return True
    return False
