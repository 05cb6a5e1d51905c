"""Export of models as folders that Hugging Face's transformers opens."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save_file
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

from model.checkpoint_reader import weights_to_save
from model.config import ModelConfig
from model.errors import ModelError
from model.layers.positions import convert_to_half_split
from model.pretrained.config_reader import ACTIVATIONS, Family, HFConfigFields
from model.pretrained.gpt import GPT2
from model.pretrained.llama import Llama
from model.pretrained.reference_logits import save_reference_logits
from model.pretrained.tokenizer import TOKENIZER_JSON, PretrainedTokenizer, encode_byte_level_piece
from model.pretrained.weight_files import SINGLE
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM


def tokenizer_json(tokenizer: Tokenizer | PretrainedTokenizer) -> str:
    """Return the content of a `tokenizer.json`.

    Raises:
        ValueError: one of our tokens cannot be made by merges, which the format requires.
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        return tokenizer.to_json()
    ordinary = [token for token in tokenizer.bytes_of_ids if token is not None]
    ids = {encode_byte_level_piece(token): token_id for token_id, token in enumerate(ordinary)}
    merges = [(encode_byte_level_piece(left), encode_byte_level_piece(right)) for left, right in tokenizer.merges]
    hf_tokenizer = tokenizers.Tokenizer(models.BPE(vocab=ids, merges=merges))
    hf_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False
    )  # splits by GPT-2's pattern, as WORD_PATTERN does
    hf_tokenizer.decoder = decoders.ByteLevel()
    hf_tokenizer.add_special_tokens([tokenizers.AddedToken(text, special=True) for text in tokenizer.special_tokens])
    return hf_tokenizer.to_str(pretty=True)


Weights = dict[str, Tensor]


@dataclass(frozen=True)
class _Format:
    """Export format of a transformers family.

    Attributes:
        family: class that reads the family.
        fields: config -> fields of `config.json`.
        weights: model -> weights in the family's layout, under our names.
        equivalent: config -> fields that the family's config has differently for the same function.
    """

    family: type[Family]
    fields: Callable[[ModelConfig], dict[str, Any]]
    weights: Callable[[TransformerLM], Weights]
    equivalent: Callable[[ModelConfig], dict[str, Any]]


def save_hugging_face(
    lm: TransformerLM, tokenizer: Tokenizer | PretrainedTokenizer, folder: Path, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a folder that transformers, and `load_checkpoint`, open as a model with equal logits; return it.

    It holds `config.json`, `generation_config.json`, `model.safetensors`, `tokenizer.json`,
    `tokenizer_config.json`, and the logits of a few tokens, with which a loader can check that it computes the
    same.

    Args:
        dtype: of the weights.

    Raises:
        ModelError: no supported model of transformers computes the same.
        ValueError: a weight is too large for `dtype`.
    """
    config = lm.config
    export_format = choose_format(config)
    config_fields = export_format.fields(config)
    check_round_trip(config, export_format, config_fields)
    weights = {}
    for name, weight in export_format.weights(lm).items():
        converted = weight.detach().cpu().to(dtype).contiguous()
        if not converted.isfinite().all():
            raise ValueError(f"{name} holds values that are not finite as {dtype}; save with another dtype")
        weights[to_family_weight_name(name, export_format.family)] = converted
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / SINGLE, metadata={"format": "pt"})
    eos_ids = list(tokenizer.eos_ids)
    texts = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
    config_fields |= {"dtype": str(dtype).removeprefix("torch."), "use_cache": True}
    config_fields |= {"bos_token_id": next(iter(tokenizer.bos_ids), None), "eos_token_id": next(iter(eos_ids), None)}
    write_json(folder / "config.json", config_fields)
    write_json(folder / "generation_config.json", {"eos_token_id": eos_ids})
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.context_length}
        | {"clean_up_tokenization_spaces": False}
        | {
            name: texts[ids[0]]
            for name, ids in {"eos_token": eos_ids, "bos_token": tokenizer.bos_ids}.items()
            if ids and ids[0] in texts  # a text may end with an ordinary token, such as a line break
        },
    )
    (folder / TOKENIZER_JSON).write_text(tokenizer_json(tokenizer), encoding="utf-8")
    save_reference_logits(folder, lm, tokenizer)
    return folder


def choose_format(config: ModelConfig) -> _Format:
    """Return the format that a model may be exported in, if any."""
    return _FORMATS["llama" if config.norm == "rmsnorm" else "gpt2"]


def check_round_trip(config: ModelConfig, export_format: _Format, config_fields: dict[str, Any]):
    """Raise ModelError unless the written fields are read as an equivalent config."""
    parsed = export_format.family.parse_config(HFConfigFields(config_fields))
    expected = replace(config, dropout=0.0, attention_dropout=0.0, **export_format.equivalent(config))
    for field in fields(ModelConfig):
        if getattr(parsed, field.name) != getattr(expected, field.name):
            raise ModelError(
                "no model of transformers that is known here has {name} {got!r} with the rest of this config",
                name=field.name,
                got=getattr(config, field.name),
            )


def to_family_weight_name(name: str, family: type[Family]) -> str:
    """Return the name that a family has for one of our weights."""
    module, _dot, kind = name.rpartition(".")
    parts = module.split(".")
    number = parts[1] if parts[0] == "blocks" else ""
    ours = {ours: hf_name for hf_name, ours in family.NAMES.items()}
    hf_name = ours[".".join(["blocks", "*", *parts[2:]] if number else parts)].replace("*", number)
    prefix = "" if hf_name == "lm_head" else getattr(family, "PREFIX", "")
    return f"{prefix}{hf_name}.{kind}"


def llama_fields(config: ModelConfig) -> dict[str, Any]:
    """Return the config of a Llama or Qwen model for transformers."""
    kind = "qwen3" if config.qk_norm else "qwen2" if config.qkv_bias and not config.bias else "llama"
    scaling = config.rope_scaling
    scaling_fields = scaling and {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling and scaling.kind == "llama3":
        scaling_fields |= {
            "low_freq_factor": scaling.low_frequency_factor,
            "high_freq_factor": scaling.high_frequency_factor,
            "original_max_position_embeddings": scaling.original_context_length,
        }
    if scaling and scaling.kind == "yarn":
        scaling_fields |= {
            "beta_slow": scaling.low_frequency_factor,
            "beta_fast": scaling.high_frequency_factor,
            "truncate": scaling.rounds_ramp,
            "attention_factor": scaling.attention_factor,
            "original_max_position_embeddings": scaling.original_context_length,
        }
    if scaling and scaling.kind == "longrope":
        scaling_fields |= {
            "short_factor": list(scaling.pair_factors),
            "long_factor": list(scaling.pair_factors),  # of longer texts, which this model does not read
            "attention_factor": scaling.attention_factor,
            "original_max_position_embeddings": scaling.original_context_length,
        }
    return {
        "model_type": kind,
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.d_head,
        "intermediate_size": config.d_ff,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "rope_scaling": scaling_fields,
        "tie_word_embeddings": is_tied_after_export(config),
    } | ({"attention_bias": config.bias, "mlp_bias": config.has_ffn_bias} if kind == "llama" else {})


def llama_weights(lm: TransformerLM) -> Weights:
    """Return the weights of a Llama or Qwen model by the names of transformers."""
    weights = fold_embedding_scale(lm)
    if lm.config.rope_layout == "adjacent":
        rotary_suffixes = (
            "q_proj.weight",
            "q_proj.bias",
            "k_proj.weight",
            "k_proj.bias",
            "q_norm.weight",
            "k_norm.weight",
        )
        for name in weights:
            if name.endswith(rotary_suffixes):
                weights[name] = convert_to_half_split(weights[name], lm.config.d_head)
    return weights


def gpt2_fields(config: ModelConfig) -> dict[str, Any]:
    """Return the config of a GPT-2 model for transformers."""
    names = {our_name: hf_name for hf_name, our_name in ACTIVATIONS.items()}  # the usual one of several is the last
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_embd": config.d_model,
        "n_layer": config.num_layers,
        "n_head": config.num_heads,
        "n_inner": config.d_ff,
        "activation_function": names.get(config.ffn, "relu"),
        "layer_norm_epsilon": config.norm_eps,
        "tie_word_embeddings": is_tied_after_export(config),
    }


def gpt2_weights(lm: TransformerLM) -> Weights:
    """Return the weights of a GPT-2 model by the names of transformers."""
    weights = fold_embedding_scale(lm)
    if lm.config.position == "sinusoidal":  # a table of theirs may hold any numbers
        weights["position_embedding.weight"] = lm.position_embedding(torch.arange(lm.config.context_length))
    for name in [name for name in weights if ".attn.q_proj." in name]:
        projections = [weights.pop(name.replace("q_proj", f"{kind}_proj")) for kind in "qkv"]
        weights[name.replace("q_proj", "qkv")] = torch.cat(projections)
    return {
        name: weight.T if name.startswith("blocks.") and weight.ndim == 2 else weight
        for name, weight in weights.items()
    }


def fold_embedding_scale(lm: TransformerLM) -> Weights:
    """Return the weights with the embedding scale folded into the embeddings, which unties the unembedding."""
    weights = dict(weights_to_save(lm))
    if lm.config.embedding_scale != 1:
        weights["lm_head.weight"] = lm.lm_head.weight
        weights["token_embedding.weight"] = weights["token_embedding.weight"] * lm.config.embedding_scale
    return weights


def is_tied_after_export(config: ModelConfig) -> bool:
    """Return whether the exported unembedding is the embedding, which a scale prevents."""
    return config.tie_embeddings and config.embedding_scale == 1


def write_json(path: Path, content: dict[str, Any]):
    """Write a JSON file."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def llama_equivalent(config: ModelConfig) -> dict[str, Any]:
    """Return changed fields that make the config one of a Llama with the same outputs."""
    sizes = {"num_kv_heads": config.kv_heads, "head_dim": config.d_head}
    layout = "half_split" if config.position == "rope" else config.rope_layout
    windows = tuple(map(config.window, range(config.num_layers)))
    return common_equivalent(config) | sizes | {"rope_layout": layout, "windows": windows}


def gpt2_equivalent(config: ModelConfig) -> dict[str, Any]:
    """Return changed fields that make the config one of a GPT-2 with the same outputs."""
    kv_heads = None if config.kv_heads == config.num_heads else config.kv_heads
    head_dim = None if config.d_head * config.num_heads == config.d_model else config.head_dim
    position = "learned" if config.position == "sinusoidal" else config.position
    return common_equivalent(config) | {"position": position, "num_kv_heads": kv_heads, "head_dim": head_dim}


def common_equivalent(config: ModelConfig) -> dict[str, Any]:
    """Return changed fields of any export."""
    biases = {"qkv_bias": config.qkv_bias and not config.bias}
    biases |= {"ffn_bias": None if config.has_ffn_bias == config.bias else config.ffn_bias}
    scale = {"scale_embeddings": False, "embedding_multiplier": 1.0}
    rotary = {} if config.rotary_layers.count(False) else {"rotary_layers": (True,)}
    return biases | scale | rotary | {"tie_embeddings": is_tied_after_export(config)}


_FORMATS = {
    "llama": _Format(Llama, llama_fields, llama_weights, llama_equivalent),
    "gpt2": _Format(GPT2, gpt2_fields, gpt2_weights, gpt2_equivalent),
}
