"""Models of Hugging Face's transformers, from a folder: `config.json`, weights as safetensors, `tokenizer.json`."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import ModuleType

import torch
from safetensors import safe_open
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained import (
    gemma2,
    gemma3,
    gpt2,
    gpt_neo,
    gpt_neox,
    granite,
    llama,
    nanochat,
    olmo2,
    opt,
    phi,
    phi3,
    smollm3,
)
from model.pretrained.settings import Settings
from model.pretrained.tokenizer import PretrainedTokenizer, read_tokenizer
from model.reading import check_weights, model_of, read_json, readable
from model.transformer_lm import TransformerLM

FAMILIES: dict[str, ModuleType] = {  # model_type -> how its config and weights are read
    "llama": llama,
    "mistral": llama,
    "qwen2": llama,
    "qwen3": llama,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "gpt2": gpt2,
    "nanochat": nanochat,
    "olmo2": olmo2,
    "opt": opt,
    "phi": phi,
    "phi3": phi3,
    "granite": granite,
    "smollm3": smollm3,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
}
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def load_hugging_face(folder: Path, dtype: torch.dtype | None = None) -> tuple[TransformerLM, PretrainedTokenizer]:
    """The model and tokenizer of a folder that transformers saved.

    Args:
        dtype: of the weights; None leaves them as they are stored.

    Raises:
        ModelError: a file is missing or damaged, or says what is not understood.
    """
    fields = read_json(folder / "config.json")
    family = family_of(fields)
    settings = Settings(fields)
    config = family.config_of(settings)
    settings.finish()
    held = getattr(family, "held", lambda name, settings, config: 1.0)
    given = getattr(family, "given", lambda config: {})
    found = chain(weights_of(folder, family, config), given(config).items())
    weights = {name: multiplied(weight, held(name, settings, config)) for name, weight in found}
    check_weights(config, {name: tuple(weight.shape) for name, weight in weights.items()})
    dtypes = {weight.dtype for weight in weights.values()}
    if len(dtypes) > 1 and dtype is None:
        dtype = torch.float32
    lm = model_of(config, {name: converted(name, weight, dtype) for name, weight in weights.items()})
    return lm, read_tokenizer(folder, config.vocab_size, ends_of(folder, fields))


def is_of_transformers(folder: Path) -> bool:
    """Whether a folder's `config.json` is one of transformers': they name their type."""
    with suppress(ModelError):
        return "model_type" in read_json(folder / "config.json")
    return False


def family_of(fields: dict) -> ModuleType:
    kind = fields.get("model_type")
    if kind not in FAMILIES:
        raise ModelError(
            "models of the type {kind!r} are not understood, only {known}", kind=kind, known=", ".join(sorted(FAMILIES))
        )
    return FAMILIES[kind]


def weights_of(folder: Path, family: ModuleType, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    """All weights under our names, a tied unembedding once."""
    for path in files_of(folder):
        with safe_open(readable(path), framework="pt") as file:
            for theirs in file.keys():  # noqa: SIM118  it is no dictionary
                if theirs.endswith(family.COMPUTED):
                    continue
                name = our_name(theirs, family)
                if name == "lm_head.weight" and config.tie_embeddings:
                    continue
                move = getattr(family, "moved", lambda name, weight, config: {name: weight})
                yield from move(name, file.get_tensor(theirs), config).items()


def files_of(folder: Path) -> list[Path]:
    """The files that hold the weights; ModelError where there are none but pickled ones, which are never opened."""
    if (folder / SINGLE).exists():
        return [folder / SINGLE]
    if (folder / INDEX).exists():
        shards = read_json(folder / INDEX).get("weight_map")
        names = sorted(set(shards.values())) if isinstance(shards, dict) else []
        if not names or any(not isinstance(name, str) or Path(name).name != name for name in names):
            raise ModelError("its {file} names no files beside it", file=INDEX)
        return [folder / name for name in names]
    if any((folder / name).exists() for name in PICKLED):
        raise ModelError(
            "its weights are pickled, which could run code of others: convert them elsewhere, with "
            "transformers’ save_pretrained(…, safe_serialization=True)"
        )
    raise ModelError("its {file} cannot be read: No such file or directory", file=SINGLE)


def our_name(theirs: str, family: ModuleType) -> str:
    """Our name of a weight; ModelError of one that the family does not know."""
    bare = theirs.removeprefix(getattr(family, "PREFIX", ""))
    module, _dot, kind = bare.rpartition(".")
    number = re.search(r"\.(\d+)\.", module)
    ours = family.NAMES.get(re.sub(r"\.\d+\.", ".*.", module, count=1))
    if ours is None or kind not in ("weight", "bias"):
        raise ModelError("its weights hold {name}, which its config has no place for", name=theirs)
    return f"{ours.replace('*', number[1]) if number else ours}.{kind}"


def multiplied(weight: Tensor, factor: float) -> Tensor:
    """The weight times a number, in float32: in the fewer bits that it may be stored in, more would be lost."""
    return weight if factor == 1 else weight.float() * factor


def converted(name: str, stored: Tensor, dtype: torch.dtype | None) -> Tensor:
    """A weight in memory of its own; ModelError unless it holds finite numbers."""
    if not stored.is_floating_point():
        raise ModelError("{name} should hold floating-point numbers, got {got}", name=name, got=stored.dtype)
    weight = stored.to(dtype or stored.dtype, copy=True)
    if not all(math.isfinite(end) for end in weight.float().aminmax()):
        raise ModelError(
            "{name} holds numbers that are not finite: the file is damaged, or its training went wrong", name=name
        )
    return weight


def ends_of(folder: Path, fields: dict) -> list[int]:
    """The ids after which a text is over."""
    path = folder / "generation_config.json"
    found = (read_json(path) if path.exists() else {}).get("eos_token_id", fields.get("eos_token_id"))
    ends = found if isinstance(found, list) else [found]
    return [end for end in ends if isinstance(end, int) and not isinstance(end, bool)]
