"""Models of Hugging Face's transformers, from a folder: `config.json`, weights as safetensors, `tokenizer.json`."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.placement import Placement, model_of
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
from model.pretrained.rotation import limit_context
from model.pretrained.settings import Settings
from model.pretrained.tokenizer import PretrainedTokenizer
from model.pretrained.tokenizer_files import read_tokenizer
from model.reading import checked, converted, read_json, readable
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
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}  # that are computed with, by safetensors
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def load_hugging_face(
    folder: Path, dtype: torch.dtype | None = None, placement: Placement | None = None
) -> tuple[TransformerLM, PretrainedTokenizer]:
    """The model and tokenizer of a folder that transformers saved.

    Args:
        dtype: of the weights; None leaves them as they are stored, or in float32 where they are of several types or of
            one that is not computed with here. Gains of RMSNorms may be of a finer type than the rest.
        placement: where they are kept; None: in the memory of the CPU.

    Raises:
        ModelError: a file is missing or damaged, or says what is not understood.
    """
    fields = infer_model_type(read_json(folder / "config.json"))
    family = family_of(fields)
    settings = Settings(fields)
    settings.check()
    config = limit_context(family.config_of(settings))
    dtype = dtype or stored_dtype(folder, family, config)
    found = checked(config, weights_of(folder, family, settings, config))

    def of_type(name: str, weight: Tensor) -> torch.dtype:
        return torch.promote_types(dtype, weight.dtype) if is_gain(name, config) else dtype

    weights = ((name, converted(name, weight, of_type(name, weight))) for name, weight in found)
    lm = model_of(config, weights, dtype, placement)
    tokenizer = read_tokenizer(folder, config.vocab_size, ends_of(folder, fields))
    lm.notes += (*settings.notes(), *tokenizer.notes)
    return lm, tokenizer


def stored_dtype(folder: Path, family: ModuleType, config: ModelConfig) -> torch.dtype:
    """Of all weights but gains of RMSNorms; float32 where there are several, or one of another size.

    Raises:
        ModelError: there is nothing of a layer.
    """
    kinds, layers = set(), set()
    for theirs, weight in listed(folder, family):
        name = our_name(theirs, family)
        layers.add(name.split(".")[1])
        if not is_gain(name, config):
            kinds.add(weight.get_dtype())
    for layer in range(config.num_layers):  # before there is a model of as many as the config claims
        if str(layer) not in layers:
            raise ModelError("its weights lack {name}", name=f"blocks.{layer}.attn.q_proj.weight")
    return DTYPES.get(*kinds, torch.float32) if len(kinds) == 1 else torch.float32


def listed(folder: Path, family: ModuleType) -> Iterator[tuple[str, Any]]:
    """Names in the files of all weights, and what is known of each before it is read."""
    for path in files_of(folder):
        with safe_open(readable(path), framework="pt") as file:
            for theirs in file.keys():  # noqa: SIM118  it is no dictionary
                if not theirs.endswith(family.COMPUTED):
                    yield theirs, file.get_slice(theirs)


def is_gain(name: str, config: ModelConfig) -> bool:
    """Whether a weight is the gain of an RMSNorm, which multiplies numbers of its own type (see `RMSNorm`)."""
    return config.norm == "rmsnorm" and name.endswith("norm.weight")


def is_of_transformers(folder: Path) -> bool:
    """Whether a folder's `config.json` is one of transformers': they name their type, or of what class they are."""
    with suppress(ModelError):
        return not {"model_type", "architectures"}.isdisjoint(read_json(folder / "config.json"))
    return False


def infer_model_type(fields: dict) -> dict:
    """The fields of a config with the type that it leaves out, as those of 2019 do."""
    if fields.get("model_type") is None and fields.get("architectures") == ["GPT2LMHeadModel"]:
        return fields | {"model_type": "gpt2"}
    return fields


def family_of(fields: dict) -> ModuleType:
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ModelError(
            "models of the type {kind!r} are not understood, only {known}", kind=kind, known=", ".join(sorted(FAMILIES))
        )
    return FAMILIES[kind]


def weights_of(
    folder: Path, family: ModuleType, settings: Settings, config: ModelConfig
) -> Iterator[tuple[str, Tensor]]:
    """All weights under our names, a tied unembedding once; each read when it is asked for, into memory that is the
    file's."""
    move = getattr(family, "moved", lambda name, weight, config: {name: weight})
    held = getattr(family, "held", lambda name, settings, config: 1.0)
    for path in files_of(folder):
        with safe_open(readable(path), framework="pt") as file:
            names = [name for name in file.keys() if not name.endswith(family.COMPUTED)]  # noqa: SIM118
        for theirs in names:
            name = our_name(theirs, family)
            if name == "lm_head.weight" and config.tie_embeddings:
                continue
            with safe_open(path, framework="pt") as file:  # anew, as it keeps in memory what was read of it
                stored = file.get_tensor(theirs)
            for ours, weight in move(name, stored, config).items():
                yield ours, multiplied(weight, held(ours, settings, config))
    yield from getattr(family, "given", lambda config: {})(config).items()


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
    """The weight times a number, in float32: in the fewer bits that it may be stored in, it would be rounded twice."""
    return weight if factor == 1 else weight.float() * factor


def ends_of(folder: Path, fields: dict) -> list[int]:
    """The ids after which a text is over."""
    path = folder / "generation_config.json"
    found = (read_json(path) if path.exists() else {}).get("eos_token_id", fields.get("eos_token_id"))
    ends = found if isinstance(found, list) else [found]
    return [end for end in ends if isinstance(end, int) and not isinstance(end, bool)]
