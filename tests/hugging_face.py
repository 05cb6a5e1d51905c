"""Our model as one of Hugging Face's, with the same weights.

One convention differs. We rotate adjacent dimensions (0, 1), (2, 3), … together, as the RoPE paper does, unless a
config says "half_split"; Hugging Face always rotates (0, d/2), (1, d/2 + 1), …. The dot product of query and key does
not care in which order dimensions are listed, so the models agree once each head's rows of q_proj and k_proj, and the
gains of their norms, are listed in Hugging Face's order: first the even ones, then the odd ones.
"""

from __future__ import annotations  # transformers imports a model where its class is first named, for seconds

import os

import torch

from model.config import ModelConfig
from model.transformer_lm import TransformerLM

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import transformers  # noqa: E402  reads the variable on import

LLAMA_NAMES = {
    "token_embedding": "model.embed_tokens",
    "attn_norm": "input_layernorm",
    "attn": "self_attn",
    "ffn_norm": "post_attention_layernorm",
    "ffn": "mlp",
    "blocks": "model.layers",
    "final_norm": "model.norm",
}
GPT2_NAMES = {
    "token_embedding": "transformer.wte",
    "position_embedding": "transformer.wpe",
    "attn_norm": "ln_1",
    "o_proj": "c_proj",
    "ffn_norm": "ln_2",
    "ffn": "mlp",
    "up_proj": "c_fc",
    "down_proj": "c_proj",
    "blocks": "transformer.h",
    "final_norm": "transformer.ln_f",
}


def as_llama(lm: TransformerLM, **options) -> transformers.LlamaForCausalLM:
    """Return a Llama model that computes the same function as `lm`, in eval mode; `options` go to `LlamaConfig`."""
    biases = {"attention_bias": lm.config.bias, "mlp_bias": lm.config.has_ffn_bias}
    config = transformers.LlamaConfig(**llama_settings(lm.config), **biases, **options)
    return load_weights(transformers.LlamaForCausalLM(config), llama_weights(lm))


def as_qwen2(lm: TransformerLM, **options) -> transformers.Qwen2ForCausalLM:
    """Return a Qwen2 model that computes the same function as an `lm` with `qkv_bias`; `options` go to its config."""
    config = transformers.Qwen2Config(**llama_settings(lm.config), **options)
    return load_weights(transformers.Qwen2ForCausalLM(config), llama_weights(lm))


def as_qwen3(lm: TransformerLM, **options) -> transformers.Qwen3ForCausalLM:
    """Return a Qwen3 model that computes the same function as an `lm` with `qk_norm`; `options` go to its config."""
    config = transformers.Qwen3Config(**llama_settings(lm.config), head_dim=lm.config.d_head, **options)
    return load_weights(transformers.Qwen3ForCausalLM(config), llama_weights(lm))


def as_gpt2(lm: TransformerLM, **options) -> transformers.GPT2LMHeadModel:
    """Return a GPT-2 model that computes the same function as an `lm`; `options` go to its config.

    `lm` must have learned positions, LayerNorm, gelu_tanh and biases.
    """
    config = transformers.GPT2Config(
        vocab_size=lm.config.vocab_size,
        n_positions=lm.config.context_length,
        n_embd=lm.config.d_model,
        n_layer=lm.config.num_layers,
        n_head=lm.config.num_heads,
        n_inner=lm.config.d_ff,
        layer_norm_epsilon=lm.config.norm_eps,
        tie_word_embeddings=lm.config.tie_embeddings,
        bos_token_id=None,
        eos_token_id=None,
        **options,
    )
    return load_weights(transformers.GPT2LMHeadModel(config), gpt2_weights(lm))


def load_weights(model: torch.nn.Module, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
    model.load_state_dict(weights)
    return model.eval()


def llama_settings(config: ModelConfig) -> dict:
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.kv_heads,
        "max_position_embeddings": config.context_length,
        "rms_norm_eps": config.norm_eps,
        "rope_parameters": {"rope_theta": config.rope_theta} | rope_scaling(config),
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def rope_scaling(config: ModelConfig) -> dict:
    scaling = config.rope_scaling
    if scaling is None:
        return {"rope_type": "default"}
    if scaling.kind == "linear":
        return {"rope_type": "linear", "factor": scaling.factor}
    if scaling.kind != "llama3":
        raise ValueError(f"Hugging Face has no {scaling.kind} scaling of fixed strength")
    return {
        "rope_type": "llama3",
        "factor": scaling.factor,
        "low_freq_factor": scaling.low_frequency_factor,
        "high_freq_factor": scaling.high_frequency_factor,
        "original_max_position_embeddings": scaling.original_context_length,
    }


def llama_weights(lm: TransformerLM) -> dict[str, torch.Tensor]:
    """Return the weights by Hugging Face's names, in its rotary layout."""
    heads = {"q_proj": lm.config.num_heads, "k_proj": lm.config.kv_heads, "q_norm": 1, "k_norm": 1}
    weights = {}
    for name, weight in lm.state_dict().items():
        layer = name.split(".")[-2]
        if layer in heads and lm.config.rope_layout == "adjacent":
            weight = to_half_split(weight, heads[layer])
        weights[rename_parameter(name, LLAMA_NAMES)] = weight
    return weights


def gpt2_weights(lm: TransformerLM) -> dict[str, torch.Tensor]:
    """Return the weights by GPT-2's names: matrices transposed, and queries, keys and values in one."""
    ours = lm.state_dict()
    weights = {}
    for name, weight in ours.items():
        if ".q_proj." in name:
            weight = torch.cat([ours[name.replace("q_proj", layer)] for layer in ("q_proj", "k_proj", "v_proj")])
            name = name.replace("q_proj", "c_attn")
        if ".k_proj." not in name and ".v_proj." not in name:
            is_transposed = weight.ndim == 2 and name.startswith("blocks.")
            weights[rename_parameter(name, GPT2_NAMES)] = weight.T if is_transposed else weight
    return weights


def rename_parameter(name: str, names: dict[str, str]) -> str:
    return ".".join(names.get(component, component) for component in name.split("."))


def to_half_split(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Reorder the rows (H d, ...) of q_proj or k_proj: in each head the even rows, then the odd ones."""
    heads = weight.unflatten(0, (num_heads, -1, 2))  # (H, d/2, 2, ...)
    return heads.transpose(1, 2).flatten(0, 2)
