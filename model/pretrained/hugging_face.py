"""Models of Hugging Face's transformers, from a folder: `config.json`, weights as safetensors, `tokenizer.json`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.notes import Note
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
from model.pretrained.weight_files import StoredWeight, check_kind, find_weights, list_weights
from model.reading import checked, converted, missing_weight_error, read_json, shapes_of_one_block
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
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}  # that are computed with, by safetensors
PREFIX = "model."  # before all names but lm_head, where a family names no other; files may leave it out
WRAPPERS = re.compile(r"^(?:module\.|_orig_mod\.)+")  # of DistributedDataParallel and torch.compile
# What files hold beside the weights, and follows from the config: angles, causal masks, positions.
COMPUTED = re.compile(
    r"(^|\.)(inv_freq|rotary_emb\.\w+|cos_cached|sin_cached|freqs_cis|position_ids|masked_bias|causal_mask)$"
    r"|\.(attn|attention|self_attn)\.bias$"
)


def load_hugging_face(
    folder: Path,
    dtype: torch.dtype | None = None,
    placement: Placement | None = None,
    weights_file: Path | None = None,
) -> tuple[TransformerLM, PretrainedTokenizer]:
    """The model and tokenizer of a folder that transformers saved.

    Args:
        dtype: of the weights; None leaves them as they are stored, or in float32 where they are of several types or of
            one that is not computed with here. Gains of RMSNorms may be of a finer type than the rest.
        placement: where they are kept; None: in the memory of the CPU.
        weights_file: of the weights, where it is another than those that are found (see `find_weights`).

    Raises:
        ModelError: a file is missing or damaged, or says what is not understood.
    """
    fields = infer_model_type(read_json(folder / "config.json"))
    family = family_of(fields)
    settings = Settings(fields)
    settings.check()
    config = limit_context(family.config_of(settings))
    weights = list(list_weights([weights_file] if weights_file else find_weights(folder)))
    check_kind(weights)
    by_name, notes = name_weights(weights, family, config)
    if config.tie_embeddings and not tie_unembedding(by_name):
        settings = Settings(fields | {"tie_word_embeddings": False})
        config = limit_context(family.config_of(settings))
        notes.append(
            Note("config.json says that the embeddings are tied, but the file has another lm_head, which is used")
        )
    if (folder / "adapter_config.json").exists():
        notes.append(Note("an adapter lies beside the weights (adapter_config.json), which is not applied"))
    check_parts(by_name, config, weights)
    dtype = dtype or stored_dtype(by_name, config)
    found = checked(config, read_weights(by_name, family, settings, config))

    def of_type(name: str, weight: Tensor) -> torch.dtype:
        is_finer = is_gain(name, config) and weight.dtype.itemsize > dtype.itemsize
        return torch.promote_types(dtype, weight.dtype) if is_finer else dtype

    converted_weights = ((name, converted(name, weight, of_type(name, weight))) for name, weight in found)
    lm = model_of(config, converted_weights, dtype, placement)
    tokenizer = read_tokenizer(folder, config.vocab_size, ends_of(folder, fields))
    lm.notes += (*settings.notes(), *notes, *tokenizer.notes)
    return lm, tokenizer


def name_weights(
    weights: Iterable[StoredWeight], family: ModuleType, config: ModelConfig
) -> tuple[dict[str, StoredWeight], list[Note]]:
    """Return the weights by our names, each as the file has it, and notes on those that are not used: they belong to
    layers beyond the config's, or to no part of a language model.

    Raises:
        ModelError: one belongs to a part of the model that the family has not, or is there twice with other values.
    """
    by_name: dict[str, StoredWeight] = {}
    beyond, others = set(), []
    for weight in weights:
        if COMPUTED.search(weight.name):
            continue
        name = our_name(weight.name, family)
        layer = re.search(r"\.(\d+)\.", name or f".{weight.name}")
        if layer and int(layer[1]) >= config.num_layers and (name or is_of_model(weight.name, family)):
            beyond.add(int(layer[1]))
        elif name is None and is_of_model(weight.name, family):
            raise ModelError(
                "its weights hold {name}, which models of its type have no place for: it takes the code that it was "
                "made for",
                name=weight.name,
            )
        elif name is None:
            others.append(weight.name)
        elif name in by_name and not is_same(by_name[name], weight):
            raise ModelError(
                "its weights hold {name} twice with different values, as {first} in {file} and as {second} in {other}",
                name=name,
                first=by_name[name].name,
                file=by_name[name].file.name,
                second=weight.name,
                other=weight.file.name,
            )
        else:
            by_name.setdefault(name, weight)
    notes = []
    if beyond:
        notes.append(
            Note("the layers from {first} on in the file are not used: config.json has fewer", first=min(beyond))
        )
    if others:
        some = ", ".join(others[:3]) + ", …" * (len(others) > 3)
        notes.append(Note("not used of the file, as no part of a language model: {names}", names=some))
    return by_name, notes


def tie_unembedding(by_name: dict[str, StoredWeight]) -> bool:
    """Leave one table of two that are the same, as the embedding; return whether there is only one. transformers, too,
    leaves two apart where they differ, whatever the config says."""
    if "lm_head.weight" not in by_name:
        return True
    if "token_embedding.weight" not in by_name:
        by_name["token_embedding.weight"] = by_name.pop("lm_head.weight")
    elif is_same(by_name["token_embedding.weight"], by_name["lm_head.weight"]):
        del by_name["lm_head.weight"]
    return "lm_head.weight" not in by_name


def is_same(one: StoredWeight, other: StoredWeight) -> bool:
    """Return whether two weights have the same values."""
    first, second = one.read(), other.read()
    return first.shape == second.shape and torch.equal(first, second.to(first.dtype))


def check_parts(by_name: Mapping[str, StoredWeight], config: ModelConfig, weights: Sequence[StoredWeight]) -> None:
    """Raise ModelError where a whole part of the model is missing: the embedding, a layer, or the unembedding.

    Args:
        weights: all there are in the files.
    """
    if "token_embedding.weight" not in by_name:
        raise ModelError(
            "its weights lack {name}: they are named otherwise than its config’s type has them ({names})",
            name="token_embedding.weight",
            names=", ".join(weight.name for weight in weights[:3]) or "none",
        )
    layers = {name.split(".")[1] for name in by_name}
    for layer in range(config.num_layers):  # before there is a model of as many as the config claims
        if str(layer) not in layers:
            raise missing_weight_error(f"blocks.{layer}.attn.q_proj.weight")
    if not config.tie_embeddings and "lm_head.weight" not in by_name:
        raise ModelError(
            "its weights lack {name}, as those of embedding models and classifiers do: open the language model that it "
            "was made from. If its unembedding is the embedding, set tie_word_embeddings to true in config.json",
            name="lm_head.weight",
        )


def stored_dtype(by_name: Mapping[str, StoredWeight], config: ModelConfig) -> torch.dtype:
    """Of all weights but gains of RMSNorms; float32 where there are several, or one of another size."""
    kinds = {weight.dtype for name, weight in by_name.items() if not is_gain(name, config)}
    return DTYPES.get(*kinds, torch.float32) if len(kinds) == 1 else torch.float32


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


def read_weights(
    by_name: Mapping[str, StoredWeight], family: ModuleType, settings: Settings, config: ModelConfig
) -> Iterator[tuple[str, Tensor]]:
    """Yield all weights as ours are, each read when it is asked for, into memory that is the file's; but no biases of 0
    that the config has no place for."""
    move = getattr(family, "moved", lambda name, weight, config: {name: weight})
    held = getattr(family, "held", lambda name, settings, config: 1.0)
    shapes = shapes_of_one_block(config)
    for name, stored in by_name.items():
        for ours, weight in move(name, stored.read(), config).items():
            is_placed = re.sub(r"^blocks\.\d+\.", "blocks.0.", ours) in shapes
            if is_placed or not ours.endswith(".bias") or weight.any():
                yield ours, multiplied(weight, held(ours, settings, config))
    yield from getattr(family, "given", lambda config: {})(config).items()


def our_name(theirs: str, family: ModuleType) -> str | None:
    """Return our name of a weight, whose own may have the family's prefix or not; None of one that the family does not
    know."""
    module, _dot, kind = theirs.rpartition(".")
    number = re.search(r"\.(\d+)\.", module)
    known = (family.NAMES.get(re.sub(r"\.\d+\.", ".*.", name, count=1)) for name in spellings(module, family))
    ours = next(filter(None, known), None)
    if ours is None or kind not in ("weight", "bias"):
        return None
    return f"{ours.replace('*', number[1]) if number else ours}.{kind}"


def spellings(name: str, family: ModuleType) -> tuple[str, ...]:
    """Return a name without what wraps the model, as it is, with the family's prefix, and without that."""
    bare, prefix = WRAPPERS.sub("", name), getattr(family, "PREFIX", PREFIX)
    return bare, prefix + bare, bare.removeprefix(prefix)


def is_of_model(theirs: str, family: ModuleType) -> bool:
    """Return whether a weight, known or not, belongs to a block or another part that the family has, so that it would
    change what is computed."""
    stacks = {name.partition("*")[0] for name in family.NAMES if "*" in name}
    parts = {f"{name}." for name in family.NAMES if "*" not in name}
    return any(name.startswith((*stacks, *parts)) for name in spellings(theirs, family))


def multiplied(weight: Tensor, factor: float) -> Tensor:
    """The weight times a number, in float32: in the fewer bits that it may be stored in, it would be rounded twice."""
    return weight if factor == 1 else weight.float() * factor


def ends_of(folder: Path, fields: dict) -> list[int]:
    """The ids after which a text is over."""
    path = folder / "generation_config.json"
    found = (read_json(path) if path.exists() else {}).get("eos_token_id", fields.get("eos_token_id"))
    ends = found if isinstance(found, list) else [found]
    return [end for end in ends if isinstance(end, int) and not isinstance(end, bool)]
