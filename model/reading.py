"""The files of a checkpoint, held to one another before they take memory."""

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
from model.file_formats import check_content, explain_file, file_kind
from model.placement import Placement, model_of
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

TOKENIZER = "tokenizer.tiktoken"

# What is larger is damaged or somebody's mistake, and not read into memory.
MOST_CONFIG_BYTES, MOST_TOKENIZER_BYTES = 1 << 20, 1 << 26


def read_checkpoint(
    folder: Path,
    dtype: torch.dtype = torch.float32,
    placement: Placement | None = None,
    tokenizer: Tokenizer | None = None,
    weights_file: Path | None = None,
) -> tuple[TransformerLM, Tokenizer]:
    """The model and tokenizer of a folder; whatever is wrong with its files raises the error that met it.

    Args:
        tokenizer: another than the folder's.
        weights_file: of the weights, where it is another than `model.safetensors`.
    """
    config = read_config(readable(folder / "config.json", MOST_CONFIG_BYTES))
    if tokenizer is None:
        shared = is_missing(folder / TOKENIZER) and not is_missing(folder.parent / TOKENIZER)
        tokenizer = Tokenizer.load(readable((folder.parent if shared else folder) / TOKENIZER, MOST_TOKENIZER_BYTES))
    if tokenizer.vocab_size != config.vocab_size:
        raise ModelError(
            "the tokenizer has {tokens} tokens, the model {known}", tokens=tokenizer.vocab_size, known=config.vocab_size
        )
    with open_weights(weights_file or folder / "model.safetensors") as weights:
        return read_model(config, weights, dtype, placement), tokenizer


def readable(path: Path, most_bytes: float = math.inf) -> Path:
    """The path, of a file that can be read, is not too large, and is itself and no stand-in (see `check_content`);
    ModelError says why it is not."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise ModelError("its {file} cannot be read: it is a folder", file=path.name)
        if not stat.S_ISREG(found.st_mode):  # a pipe, say, would be waited for
            raise ModelError("its {file} cannot be read: it is no file", file=path.name)
        if found.st_size > most_bytes:
            raise ModelError(
                "its {file} cannot be read: it has {size:,} bytes, more than {most:,}",
                file=path.name,
                size=found.st_size,
                most=most_bytes,
            )
        path.open("rb").close()
    except FileNotFoundError:
        raise ModelError("its {file} cannot be read: No such file or directory", file=path.name) from None
    except PermissionError:
        raise ModelError("its {file} cannot be read: Permission denied", file=path.name) from None
    except OSError as error:
        raise ModelError("its {file} cannot be read: {why}", file=path.name, why=error.strerror) from None
    check_content(path)
    return path


@contextmanager
def open_weights(path: Path) -> Iterator[safe_open]:
    """Open a safetensors file; ModelError where it is none, or is damaged."""
    try:
        with safe_open(readable(path), framework="pt") as weights:
            yield weights
    except SafetensorError as error:
        if file_kind(path) not in ("safetensors", ""):
            raise ModelError(
                "its {file} is not what its name says: {why}", file=path.name, why=explain_file(path)
            ) from None
        raise ModelError(
            "its {file} is cut off or damaged, so download or save it again ({why})", file=path.name, why=error
        ) from None


def read_json(path: Path) -> dict:
    """The object in a file; ModelError where there is none."""
    try:
        found = json.loads(readable(path, MOST_CONFIG_BYTES).read_text(encoding="utf-8-sig"))
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelError("its {file} is no JSON: {why}", file=path.name, why=error) from None
    if not isinstance(found, dict):
        raise ModelError("its {file} is no JSON: {why}", file=path.name, why="no object")
    return found


def read_config(path: Path) -> ModelConfig:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError("its {file} is no JSON: {why}", file=path.name, why=error) from None
    return ModelConfig.from_dict(values)


def read_model(
    config: ModelConfig, weights: safe_open, dtype: torch.dtype, placement: Placement | None
) -> TransformerLM:
    """The model of a config with the weights of a file, whose names and shapes are compared before it takes memory."""
    names = weights.keys()
    check_weights(config, {name: tuple(weights.get_slice(name).get_shape()) for name in names})
    found = ((name, converted(name, weights.get_tensor(name), dtype)) for name in names)
    return model_of(config, found, dtype, placement)


def converted(name: str, stored: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A weight in memory of its own, not the file's, which others can change; ModelError unless it holds finite
    numbers."""
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


def check_weights(config: ModelConfig, found: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ModelError unless the shapes, by name, are those of the config's weights."""
    left = dict(found)
    for name, shape in weight_shapes(config):
        if name not in left:
            raise missing_weight_error(name)
        check_shape(name, left.pop(name), shape)
    if left:
        check_shape(min(left), left[min(left)], None)


def missing_weight_error(name: str) -> ModelError:
    """Return the error about a weight that is not there."""
    return ModelError("its weights lack {name}: they are not complete, or of another model than its config", name=name)


def check_shape(name: str, found: tuple[int, ...], wanted: tuple[int, ...] | None) -> None:
    """Raise ModelError unless a weight has the shape that its config wants; None where that knows no such weight."""
    if wanted is None:
        raise ModelError(
            "its weights hold {name}, which its config has no place for: the two may be of different models", name=name
        )
    if found != wanted:
        raise ModelError("{name} should be {wanted} by its config, got {got}", name=name, wanted=wanted, got=found)


def checked(config: ModelConfig, weights: Iterable[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
    """Weights as they come; ModelError at the first that does not fit the config, or at the end if one is missing."""
    shapes, found = shapes_of_one_block(config), {}
    for name, weight in weights:
        layer, _dot, place = name.removeprefix("blocks.").partition(".")
        known = name.startswith("blocks.") and layer.isdecimal() and int(layer) < config.num_layers
        check_shape(name, tuple(weight.shape), shapes.get(f"blocks.0.{place}" if known else name))
        found[name] = tuple(weight.shape)
        yield name, weight
    check_weights(config, found)


def weight_shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of what `stored_weights` has, one by one and without memory for them.

    All blocks are alike, so that one is built: nobody knows how many a config may claim.
    """
    shapes, first = shapes_of_one_block(config), "blocks.0."
    yield from ((name, shape) for name, shape in shapes.items() if not name.startswith(first))
    for layer in range(config.num_layers):
        for name, shape in shapes.items():
            if name.startswith(first):
                yield f"blocks.{layer}.{name.removeprefix(first)}", shape


def shapes_of_one_block(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The same of a model with a single block."""
    with torch.device("meta"):
        weights = stored_weights(TransformerLM(replace(config, num_layers=1)))
    return {name: tuple(weight.shape) for name, weight in weights.items()}


def stored_weights(lm: TransformerLM) -> dict[str, torch.Tensor]:
    """What goes to disk: all weights, a tied embedding under its first name only."""
    weights = lm.state_dict()
    if lm.config.tie_embeddings:
        del weights["lm_head.weight"]
    return weights


def is_missing(path: Path) -> bool:
    """Whether nothing is there; a file that may not be read, or a folder of that name, is something."""
    try:
        path.stat()
    except PermissionError:
        return False
    except (OSError, ValueError):  # ValueError: no path has such characters
        return True
    return False
