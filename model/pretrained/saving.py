"""Our models as folders that Hugging Face's transformers opens."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.pretrained import gpt2, llama
from model.pretrained.self_check import save_known_logits
from model.pretrained.settings import Settings
from model.pretrained.tokenizer import PretrainedTokenizer
from model.pretrained.tokenizer_files import TOKENIZER_JSON
from model.pretrained.tokenizer_json import tokenizer_json
from model.pretrained.weight_files import SINGLE
from model.reading import stored_weights
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class _Format:
    """How a family is written.

    Attributes:
        family: how it is read.
        fields: of `config.json`.
        weights: ours, as the family has them, under our names.
        same: what of the config is other there, for the same function.
    """

    family: ModuleType
    fields: Callable[[ModelConfig], dict[str, Any]]
    weights: Callable[[TransformerLM], Weights]
    same: Callable[[ModelConfig], dict[str, Any]]


def save_hugging_face(
    lm: TransformerLM, tokenizer: Tokenizer | PretrainedTokenizer, folder: Path, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a folder that transformers opens as a model with equal logits, and `load_checkpoint` too; return it.

    It holds `config.json`, `generation_config.json`, `model.safetensors`, `tokenizer.json`, `tokenizer_config.json`,
    and the logits of a few tokens, by which whoever loads it can see that it computes the same.

    Args:
        dtype: of the weights.

    Raises:
        ModelError: no model of transformers that is known here computes the same.
        ValueError: a weight is too large for `dtype`.
    """
    config = lm.config
    known = _FORMATS["llama" if config.norm == "rmsnorm" else "gpt2"]
    described = known.fields(config)
    check(config, known, described)
    weights = {}
    for name, weight in known.weights(lm).items():
        stored = weight.detach().cpu().to(dtype).contiguous()
        if not stored.isfinite().all():
            raise ValueError(f"{name} holds values that are not finite as {dtype}; save with another dtype")
        weights[their_name(name, known.family)] = stored
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / SINGLE, metadata={"format": "pt"})
    ends = list(tokenizer.ends)
    texts = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
    described |= {"dtype": str(dtype).removeprefix("torch."), "use_cache": True}
    described |= {"bos_token_id": next(iter(tokenizer.beginning), None), "eos_token_id": next(iter(ends), None)}
    write_json(folder / "config.json", described)
    write_json(folder / "generation_config.json", {"eos_token_id": ends})
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.context_length}
        | {"clean_up_tokenization_spaces": False}
        | {
            name: texts[ids[0]]
            for name, ids in {"eos_token": ends, "bos_token": tokenizer.beginning}.items()
            if ids and ids[0] in texts  # a text may end with an ordinary token, such as a line break
        },
    )
    (folder / TOKENIZER_JSON).write_text(tokenizer_json(tokenizer), encoding="utf-8")
    save_known_logits(folder, lm, tokenizer)
    return folder


def check(config: ModelConfig, known: _Format, described: dict[str, Any]):
    """ModelError unless what is written is read as a config that means the same."""
    read = known.family.config_of(Settings(described))
    wanted = replace(config, dropout=0.0, attention_dropout=0.0, **known.same(config))
    for field in fields(ModelConfig):
        if getattr(read, field.name) != getattr(wanted, field.name):
            raise ModelError(
                "no model of transformers that is known here has {name} {got!r} with the rest of this config",
                name=field.name,
                got=getattr(config, field.name),
            )


def their_name(name: str, family: ModuleType) -> str:
    """The family's name of a weight of ours."""
    module, _dot, kind = name.rpartition(".")
    parts = module.split(".")
    number = parts[1] if parts[0] == "blocks" else ""
    ours = {ours: theirs for theirs, ours in family.NAMES.items()}
    theirs = ours[".".join(["blocks", "*", *parts[2:]] if number else parts)].replace("*", number)
    prefix = "" if theirs == "lm_head" else getattr(family, "PREFIX", "")
    return f"{prefix}{theirs}.{kind}"


def llama_fields(config: ModelConfig) -> dict[str, Any]:
    kind = "qwen3" if config.qk_norm else "qwen2" if config.qkv_bias and not config.bias else "llama"
    scaling = config.rope_scaling
    slowed = scaling and {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling and scaling.kind == "llama3":
        slowed |= {
            "low_freq_factor": scaling.low_frequency_factor,
            "high_freq_factor": scaling.high_frequency_factor,
            "original_max_position_embeddings": scaling.original_context_length,
        }
    if scaling and scaling.kind == "yarn":
        slowed |= {
            "beta_slow": scaling.low_frequency_factor,
            "beta_fast": scaling.high_frequency_factor,
            "truncate": scaling.rounds_ramp,
            "attention_factor": scaling.attention_factor,
            "original_max_position_embeddings": scaling.original_context_length,
        }
    if scaling and scaling.kind == "longrope":
        slowed |= {
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
        "rope_scaling": slowed,
        "tie_word_embeddings": is_tied(config),
    } | ({"attention_bias": config.bias, "mlp_bias": config.bias} if kind == "llama" else {})


def llama_weights(lm: TransformerLM) -> Weights:
    weights = unscaled(lm)
    if lm.config.rope_layout == "adjacent":
        turned = ("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias", "q_norm.weight", "k_norm.weight")
        for name in weights:
            if name.endswith(turned):
                weights[name] = halves_together(weights[name], lm.config.d_head)
    return weights


def halves_together(weight: Tensor, d_head: int) -> Tensor:
    """(H d, …) with each head's even rows before its odd ones: pairs that were neighbours are d/2 apart."""
    heads = weight.reshape(-1, d_head // 2, 2, *weight.shape[1:])  # (H, d/2, 2, …)
    return heads.transpose(1, 2).reshape(weight.shape)


def gpt2_fields(config: ModelConfig) -> dict[str, Any]:
    names = {ours: theirs for theirs, ours in gpt2.ACTIVATIONS.items()}  # the usual one of several is the last
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
        "tie_word_embeddings": is_tied(config),
    }


def gpt2_weights(lm: TransformerLM) -> Weights:
    weights = unscaled(lm)
    if lm.config.position == "sinusoidal":  # a table of theirs may hold any numbers
        weights["position_embedding.weight"] = lm.position_embedding.table.detach()
    for name in [name for name in weights if ".attn.q_proj." in name]:
        parts = [weights.pop(name.replace("q_proj", f"{part}_proj")) for part in "qkv"]
        weights[name.replace("q_proj", "qkv")] = torch.cat(parts)
    return {
        name: weight.T if name.startswith("blocks.") and weight.ndim == 2 else weight
        for name, weight in weights.items()
    }


def unscaled(lm: TransformerLM) -> Weights:
    """The weights, of embeddings that are multiplied as they are read the products, which no unembedding shares."""
    weights = dict(stored_weights(lm))
    if lm.config.embedding_scale != 1:
        weights["lm_head.weight"] = lm.lm_head.weight
        weights["token_embedding.weight"] = weights["token_embedding.weight"] * lm.config.embedding_scale
    return weights


def is_tied(config: ModelConfig) -> bool:
    return config.tie_embeddings and config.embedding_scale == 1


def write_json(path: Path, content: dict[str, Any]):
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def same_llama(config: ModelConfig) -> dict[str, Any]:
    sizes = {"num_kv_heads": config.kv_heads, "head_dim": config.d_head}
    layout = "half_split" if config.position == "rope" else config.rope_layout
    windows = tuple(map(config.window, range(config.num_layers)))
    return same_of_all(config) | sizes | {"rope_layout": layout, "windows": windows}


def same_gpt2(config: ModelConfig) -> dict[str, Any]:
    kv_heads = None if config.kv_heads == config.num_heads else config.kv_heads
    head_dim = None if config.d_head * config.num_heads == config.d_model else config.head_dim
    position = "learned" if config.position == "sinusoidal" else config.position
    return same_of_all(config) | {"position": position, "num_kv_heads": kv_heads, "head_dim": head_dim}


def same_of_all(config: ModelConfig) -> dict[str, Any]:
    biases = {"qkv_bias": config.qkv_bias and not config.bias}
    scale = {"scale_embeddings": False, "embedding_multiplier": 1.0}
    turning = {} if config.rotary_layers.count(False) else {"rotary_layers": (True,)}
    return biases | scale | turning | {"tie_embeddings": is_tied(config)}


_FORMATS = {
    "llama": _Format(llama, llama_fields, llama_weights, same_llama),
    "gpt2": _Format(gpt2, gpt2_fields, gpt2_weights, same_gpt2),
}
