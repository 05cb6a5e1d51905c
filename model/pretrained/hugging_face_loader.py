"""Models of Hugging Face's transformers, from a folder: `config.json`, weights as safetensors, `tokenizer.json`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.checkpoint_reader import (
    check_weight_stream,
    convert_tensor,
    missing_weight_error,
    one_block_model_shapes,
    read_json,
)
from model.config import ModelConfig
from model.errors import LoadingNote, ModelError
from model.pretrained import gemma, gpt, llama, nanochat, phi
from model.pretrained.chat_template import read_chat_template
from model.pretrained.config_reader import Family, HFConfigFields, limit_longrope_context
from model.pretrained.lora import merge_adapter
from model.pretrained.tokenizer import PretrainedTokenizer, read_special_names, read_tokenizer
from model.pretrained.weight_files import StoredWeight, check_not_quantized_or_adapter, find_weight_files, list_weights
from model.transformer_lm import TransformerLM
from model.weight_placement import WeightPlacement, build_model

FAMILIES: dict[str, Family] = {  # model_type -> how its config and weights are read
    "llama": llama.Llama(),
    "mistral": llama.Llama(),
    "qwen2": llama.Llama(),
    "qwen3": llama.Llama(),
    "gemma": gemma.Gemma(),
    "gemma2": gemma.Gemma2(),
    "gemma3_text": gemma.Gemma3(),
    "gpt2": gpt.GPT2(),
    "nanochat": nanochat.Nanochat(),
    "olmo2": llama.OLMo2(),
    "opt": gpt.OPT(),
    "phi": phi.Phi(),
    "phi3": phi.Phi3(),
    "granite": llama.Granite(),
    "smollm3": llama.SmolLM3(),
    "gpt_neo": gpt.GPTNeo(),
    "gpt_neox": gpt.GPTNeoX(),
}
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}  # that are computed with, by safetensors
WRAPPERS = re.compile(r"^(?:module\.|_orig_mod\.)+")  # of DistributedDataParallel and torch.compile
# Tensors in files that follow from the config: angles, causal masks, positions.
COMPUTED = re.compile(
    r"(^|\.)(inv_freq|rotary_emb\.\w+|cos_cached|sin_cached|freqs_cis|position_ids|masked_bias|causal_mask)$"
    r"|\.(attn|attention|self_attn)\.bias$"
)


def load_hugging_face(
    folder: Path,
    dtype: torch.dtype | None = None,
    placement: WeightPlacement | None = None,
    weights_file: Path | None = None,
    adapter: Path | None = None,
) -> tuple[TransformerLM, PretrainedTokenizer]:
    """Load the model and tokenizer of a folder that transformers saved.

    Args:
        dtype: of the weights; None: as they are stored, or float32 if they are of several types or of one that is
            not computed with here. Gains of RMSNorms may be of a finer type than the rest.
        placement: of the weights; None: in the memory of the CPU.
        weights_file: of the weights, in place of those that `find_weight_files` returns.
        adapter: folder of a LoRA adapter that is merged into the weights; None: the model as it is.

    Raises:
        ModelError: a file is missing or damaged, or has a value that is not supported.
    """
    fields = add_missing_model_type(read_json(folder / "config.json"))
    family = find_family(fields)
    HFConfigFields(fields).check_supported()
    weights = list(list_weights([weights_file] if weights_file else find_weight_files(folder)))
    check_not_quantized_or_adapter(weights)
    notes: list[LoadingNote] = []
    if adapter is not None:
        weights, note = merge_adapter(weights, adapter)
        notes.append(note)
    lm = assemble_model(fields, family, weights, dtype, placement)
    lm.notes = (*notes, *lm.notes)
    if adapter is None and (folder / "adapter_config.json").exists():
        lm.notes += (LoadingNote("an adapter lies beside the weights (adapter_config.json), which is not applied"),)
    tokenizer = read_tokenizer(folder, lm.config.vocab_size, eos_ids(folder, fields))
    tokenizer.chat_template = read_chat_template(folder)
    tokenizer.special_names = read_special_names(folder)
    lm.notes += tokenizer.notes
    return lm, tokenizer


def assemble_model(
    fields: dict[str, Any],
    family: Family,
    weights: Sequence[StoredWeight],
    dtype: torch.dtype | None,
    placement: WeightPlacement | None,
) -> TransformerLM:
    """Return the model of a config's fields with the weights of files; `load_hugging_face` says more.

    Args:
        family: of the names and layout of the weights.
    """
    settings, config, by_name, notes = match_weights(fields, family, weights)
    dtype = dtype or stored_dtype(by_name, config)
    checked_weights = check_weight_stream(config, read_weights(by_name, family, settings, config))

    def target_dtype(name: str, weight: Tensor) -> torch.dtype:
        is_finer = is_rmsnorm_gain(name, config) and weight.dtype.itemsize > dtype.itemsize
        return torch.promote_types(dtype, weight.dtype) if is_finer else dtype

    converted_weights = (
        (name, convert_tensor(name, weight, target_dtype(name, weight))) for name, weight in checked_weights
    )
    lm = build_model(config, converted_weights, dtype, placement)
    lm.notes += (*settings.notes(), *notes)
    return lm


def match_weights(
    fields: dict[str, Any], family: Family, weights: Sequence[StoredWeight]
) -> tuple[HFConfigFields, ModelConfig, dict[str, StoredWeight], list[LoadingNote]]:
    """Return the reader of a config's fields, the config, the weights of files by our names, and notes.

    Raises:
        ModelError: config and weights do not fit.
    """
    settings = HFConfigFields(fields)
    config = limit_longrope_context(family.parse_config(settings))
    by_name, notes = map_to_our_weight_names(weights, family, config)
    if config.tie_embeddings and not tie_unembedding(by_name):
        settings = HFConfigFields(fields | {"tie_word_embeddings": False})
        config = limit_longrope_context(family.parse_config(settings))
        notes.append(
            LoadingNote(
                "config.json says that the embeddings are tied, but the file has another lm_head, which is used"
            )
        )
    check_completeness(by_name, config, weights)
    return settings, config, by_name, notes


def map_to_our_weight_names(
    weights: Iterable[StoredWeight], family: Family, config: ModelConfig
) -> tuple[dict[str, StoredWeight], list[LoadingNote]]:
    """Return the weights of the files by our names, and notes on unused ones.

    Unused are weights of layers beyond the config's, or of no part of a language model.

    Raises:
        ModelError: one belongs to a part of the model that the family lacks, or occurs twice with different
            values.
    """
    by_name: dict[str, StoredWeight] = {}
    beyond, unused = set(), []
    for weight in weights:
        if COMPUTED.search(weight.name):
            continue
        name = to_our_weight_name(weight.name, family)
        layer = re.search(r"\.(\d+)\.", name or f".{weight.name}")
        if layer and int(layer[1]) >= config.num_layers and (name or belongs_to_model(weight.name, family)):
            beyond.add(int(layer[1]))
        elif name is None and belongs_to_model(weight.name, family):
            raise ModelError(
                "its weights hold {name}, which models of its type do not have: it needs the code that it was made for",
                name=weight.name,
            )
        elif name is None:
            unused.append(weight.name)
        elif name in by_name and not has_equal_values(by_name[name], weight):
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
            LoadingNote("the layers from {first} on in the file are not used: config.json has fewer", first=min(beyond))
        )
    if unused:
        examples = ", ".join(unused[:3]) + ", …" * (len(unused) > 3)
        notes.append(LoadingNote("not used of the file, as no part of a language model: {names}", names=examples))
    return by_name, notes


def tie_unembedding(by_name: dict[str, StoredWeight]) -> bool:
    """Merge equal embedding and unembedding into the embedding; return whether only one table is left.

    As in transformers, different tables stay separate, whatever the config says.
    """
    if "lm_head.weight" not in by_name:
        return True
    if "token_embedding.weight" not in by_name:
        by_name["token_embedding.weight"] = by_name.pop("lm_head.weight")
    elif has_equal_values(by_name["token_embedding.weight"], by_name["lm_head.weight"]):
        del by_name["lm_head.weight"]
    return "lm_head.weight" not in by_name


def has_equal_values(weight: StoredWeight, other: StoredWeight) -> bool:
    """Return True if two weights have the same values."""
    first, second = weight.read(), other.read()
    return first.shape == second.shape and torch.equal(first, second.to(first.dtype))


def check_completeness(
    by_name: Mapping[str, StoredWeight], config: ModelConfig, weights: Sequence[StoredWeight]
) -> None:
    """Raise ModelError if a whole part of the model is missing: the embedding, a layer, or the unembedding.

    Args:
        weights: all weights in the files.
    """
    if "token_embedding.weight" not in by_name:
        raise ModelError(
            "its weights lack {name}: their names are not those of its config’s model type ({names})",
            name="token_embedding.weight",
            names=", ".join(weight.name for weight in weights[:3]) or "none",
        )
    layers = {name.split(".")[1] for name in by_name}
    for layer in range(config.num_layers):  # checked before a model of as many layers as the config claims is built
        if str(layer) not in layers:
            raise missing_weight_error(f"blocks.{layer}.attn.q_proj.weight")
    if not config.tie_embeddings and "lm_head.weight" not in by_name:
        raise ModelError(
            "its weights lack {name}, as those of embedding models and classifiers do: open the language model that it "
            "was made from. If its unembedding is the embedding, set tie_word_embeddings to true in config.json",
            name="lm_head.weight",
        )


def stored_dtype(by_name: Mapping[str, StoredWeight], config: ModelConfig) -> torch.dtype:
    """Return the type of all weights but gains of RMSNorms; float32 if there are several or it is not supported."""
    kinds = {weight.dtype for name, weight in by_name.items() if not is_rmsnorm_gain(name, config)}
    return DTYPES.get(*kinds, torch.float32) if len(kinds) == 1 else torch.float32


def is_rmsnorm_gain(name: str, config: ModelConfig) -> bool:
    """Return True if a weight is the gain of an RMSNorm, which may be of a finer type; False for LayerNorms."""
    return config.norm == "rmsnorm" and name.endswith("norm.weight")


def is_hugging_face_folder(folder: Path) -> bool:
    """Return True if a folder's `config.json` is of transformers: it has `model_type` or `architectures`."""
    with suppress(ModelError):
        return not {"model_type", "architectures"}.isdisjoint(read_json(folder / "config.json"))
    return False


def add_missing_model_type(fields: dict) -> dict:
    """Return the fields of a config with `model_type` added for GPT-2 files of 2019, which lack it."""
    if fields.get("model_type") is None and fields.get("architectures") == ["GPT2LMHeadModel"]:
        return fields | {"model_type": "gpt2"}
    return fields


def find_family(fields: dict) -> Family:
    """Return the family of a model type; ModelError if it is not supported."""
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ModelError(
            "models of the type {kind!r} are not understood, only {known}", kind=kind, known=", ".join(sorted(FAMILIES))
        )
    return FAMILIES[kind]


def read_weights(
    by_name: Mapping[str, StoredWeight], family: Family, settings: HFConfigFields, config: ModelConfig
) -> Iterator[tuple[str, Tensor]]:
    """Yield all weights in our layout, each read on demand; its memory may be the file's.

    Biases of 0 that the config has no place for are left out.
    """
    shapes = one_block_model_shapes(config)
    for name, stored in by_name.items():
        for our_name, weight in family.convert_weight(name, stored.read(), config).items():
            has_place = re.sub(r"^blocks\.\d+\.", "blocks.0.", our_name) in shapes
            if has_place or not our_name.endswith(".bias") or weight.any():
                yield our_name, multiply_weight(weight, family.weight_multiplier(our_name, settings, config))
    yield from family.default_weights(config).items()


def to_our_weight_name(hf_name: str, family: Family) -> str | None:
    """Return our name of a weight, with or without the family's prefix; None if the family has no such weight."""
    module, _dot, kind = hf_name.rpartition(".")
    number = re.search(r"\.(\d+)\.", module)
    candidates = (
        family.NAMES.get(re.sub(r"\.\d+\.", ".*.", name, count=1)) for name in candidate_names(module, family)
    )
    our_name = next(filter(None, candidates), None)
    if our_name is None or kind not in ("weight", "bias"):
        return None
    return f"{our_name.replace('*', number[1]) if number else our_name}.{kind}"


def candidate_names(name: str, family: Family) -> tuple[str, ...]:
    """Return possible names of a weight in the family: unwrapped, with the family's prefix, and without it."""
    unwrapped = WRAPPERS.sub("", name)
    return unwrapped, family.PREFIX + unwrapped, unwrapped.removeprefix(family.PREFIX)


def belongs_to_model(hf_name: str, family: Family) -> bool:
    """Return True if a weight is in a block or another part of the family, whether its name is known or not.

    Such a weight would change the computation.
    """
    stacks = {name.partition("*")[0] for name in family.NAMES if "*" in name}
    parts = {f"{name}." for name in family.NAMES if "*" not in name}
    return any(name.startswith((*stacks, *parts)) for name in candidate_names(hf_name, family))


def multiply_weight(weight: Tensor, factor: float) -> Tensor:
    """Return the weight times a number, in float32, since fewer bits would round twice."""
    return weight if factor == 1 else weight.float() * factor


def eos_ids(folder: Path, fields: dict) -> list[int]:
    """Return the ids that end a text, by `generation_config.json` or else the config."""
    path = folder / "generation_config.json"
    value = (read_json(path) if path.exists() else {}).get("eos_token_id", fields.get("eos_token_id"))
    ids = value if isinstance(value, list) else [value]
    return [token_id for token_id in ids if isinstance(token_id, int) and not isinstance(token_id, bool)]
