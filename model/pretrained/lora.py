"""LoRA adapters (Hu et al. 2021) in the folders of peft: merged into the weights of their base model as these are read.

A matrix W becomes W + s B A, where s is alpha / rank, or alpha / √rank (rsLoRA, Kalajdzievski 2023).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from model.checkpoint_reader import is_missing, open_weights, read_json
from model.config import is_number
from model.errors import LoadingNote, ModelError
from model.pretrained.weight_files import StoredWeight, list_weights

CONFIG, WEIGHTS, PICKLED_WEIGHTS = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
ADAPTER_FILES = CONFIG, WEIGHTS
PREFIX = "base_model.model."
PARTS = re.compile(r"(.+)\.(lora_A|lora_B|lora_embedding_A|lora_embedding_B)(?:\.weight)?")
REFUSED = {  # field of the config -> name of what it turns on
    "use_dora": "DoRA",
    "use_qalora": "QALoRA",
    "use_bdlora": "BD-LoRA",
    "lora_bias": "biases of its matrices",
    "layer_replication": "replicated layers",
    "alora_invocation_tokens": "activation by tokens (aLoRA)",
    "trainable_token_indices": "single trained tokens",
    "target_parameters": "parameters that are no module’s weight",
    "arrow_config": "Arrow",
    "monteclora_config": "MonteCLoRA",
    "velora_config": "VeLoRA",
}
# What a pattern of modules may consist of: a regular expression without repeated groups, which could take for ever.
PATTERN = re.compile(r"\^?(?:[\w-]|\\[.d]\+?|\.\*|\.|\([\w|]{1,200}\)|\[[\w-]{1,20}\]\+?){1,200}\$?")


@dataclass(frozen=True)
class MergedWeight:
    """A stored weight with an adapter's update; it has the attributes of a `StoredWeight`.

    Attributes:
        stored: the weight of the base model.
        first: A, of the adapter.
        second: B.
        scale: s.
        is_transposed: whether the update is (B A)ᵀ, as in embeddings and in GPT-2.
    """

    stored: StoredWeight
    first: StoredWeight
    second: StoredWeight
    scale: float
    is_transposed: bool

    @property
    def name(self) -> str:
        return self.stored.name

    @property
    def file(self) -> Path:
        return self.stored.file

    @property
    def dtype(self) -> str:
        return self.stored.dtype

    def read(self) -> Tensor:
        """Return the sum, computed in float32 and rounded once to the stored type."""
        weight = self.stored.read()
        update = self.second.read().float() @ self.first.read().float()
        update = update.T if self.is_transposed else update
        if update.shape != weight.shape:
            raise ModelError(
                "the adapter’s update of {name} should be {wanted}, got {got}: it is another model’s",
                name=self.name,
                wanted=tuple(weight.shape),
                got=tuple(update.shape),
            )
        return (weight.float() + self.scale * update).to(weight.dtype)


def is_adapter(folder: Path) -> bool:
    """Return True for a folder of an adapter alone, without its base model."""
    return folder.is_dir() and not is_missing(folder / CONFIG) and is_missing(folder / "config.json")


def base_model_name(folder: Path) -> str:
    """Return the name or path of an adapter's base model; ModelError if the config does not name it."""
    name = read_json(folder / CONFIG).get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise ModelError("the adapter does not say what its base model is: open the base with adapter=FOLDER")
    return name


def merge_adapter(
    weights: Sequence[StoredWeight], folder: Path
) -> tuple[list[StoredWeight | MergedWeight], LoadingNote]:
    """Return the weights of a base model with an adapter's updates, and a note on it.

    Weights that were trained whole (`modules_to_save`, biases) replace those of the base.

    Raises:
        ModelError: the adapter is of a kind that is not supported, damaged, or another model's.
    """
    fields = read_json(folder / CONFIG)
    check_supported(fields)
    if is_missing(folder / WEIGHTS) and not is_missing(folder / PICKLED_WEIGHTS):
        raise ModelError(
            "its {file} is pickled, which could run code of others: save the adapter again with peft, which writes "
            "{wanted}",
            file=PICKLED_WEIGHTS,
            wanted=WEIGHTS,
        )
    parts: dict[str, dict[str, StoredWeight]] = {}
    whole: dict[str, StoredWeight] = {}
    for weight in list_weights([folder / WEIGHTS]):
        name = weight.name.removeprefix(PREFIX).replace(".base_layer.", ".")
        if match := PARTS.fullmatch(name):
            parts.setdefault(match[1], {})[match[2][-1]] = weight
        else:
            whole[name] = replace(weight, key=weight.name)
    merged, ranks = [], set()
    for weight in weights:
        module, _dot, kind = weight.name.rpartition(".")
        name = next((name for name in parts if kind == "weight" and is_same_module(name, module)), None)
        whole_name = next((other for other in whole if is_same_module(other, weight.name)), None)
        if whole_name is not None:
            weight = replace(whole.pop(whole_name), name=weight.name)
        if name is not None:
            rank, weight = _make_update(weight, name, parts.pop(name), fields)
            ranks.add(rank)
        merged.append(weight)
    if "lm_head.weight" in whole:  # of a model whose unembedding was its embedding
        merged.append(replace(whole.pop("lm_head.weight"), name="lm_head.weight"))
    if unused := sorted({*parts, *whole}):
        raise ModelError(
            "the adapter changes {name}, which the model’s weights lack: it is another model’s, or is not supported",
            name=unused[0],
        )
    ranks_text = ", ".join(map(str, sorted(ranks)))
    return merged, LoadingNote("merged with the adapter {name}: LoRA of rank {rank}", name=folder.name, rank=ranks_text)


def check_supported(fields: Mapping[str, Any]) -> None:
    """Raise ModelError if an adapter is not LoRA, or a variant of it that is not supported; the message names it."""
    if fields.get("peft_type") != "LORA":
        raise ModelError("the adapter is of the kind {kind!r}: only LORA is supported", kind=fields.get("peft_type"))
    for name, variant in REFUSED.items():
        if fields.get(name):
            raise ModelError("the adapter uses {variant} ({name}), which is not supported", variant=variant, name=name)


def is_same_module(name: str, other: str) -> bool:
    """Return True if two names are the same but for what stands before all of one, such as "transformer."."""
    return name == other or name.endswith(f".{other}") or other.endswith(f".{name}")


def _make_update(
    weight: StoredWeight, name: str, parts: Mapping[str, StoredWeight], fields: Mapping[str, Any]
) -> tuple[int, MergedWeight]:
    """Return the rank of a module's update, and the merged weight."""
    if set(parts) != {"A", "B"}:
        raise ModelError("the adapter lacks A or B of {name}: it is damaged", name=name)
    first, second = parts["A"], parts["B"]
    with open_weights(first.file) as file:
        rank = file.get_slice(first.name).get_shape()[0]
    if "r" in fields and match_pattern(fields.get("rank_pattern"), name, fields["r"]) != rank:
        raise ModelError(
            "the adapter’s matrices of {name} have rank {rank}, unlike its config says", name=name, rank=rank
        )
    alpha = match_pattern(fields.get("alpha_pattern"), name, fields.get("lora_alpha", 8))
    if not is_number(alpha) or not math.isfinite(alpha):
        raise ModelError("{name} must be a number, got {got!r}", name="lora_alpha", got=alpha)
    scale = alpha / (math.sqrt(rank) if fields.get("use_rslora") else rank)
    is_transposed = "embedding" in first.name or bool(fields.get("fan_in_fan_out"))
    return rank, MergedWeight(weight, first, second, scale, is_transposed)


def match_pattern(patterns: Any, module: str, default: Any) -> Any:
    """Return the value of the first pattern that matches a module's name from a dot on, as in peft."""
    if not isinstance(patterns, Mapping):
        return default
    for pattern, value in patterns.items():
        if not PATTERN.fullmatch(pattern):
            raise ModelError("the adapter’s pattern {pattern!r} is not understood", pattern=pattern[:100])
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return default
