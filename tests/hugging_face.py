"""Our model as Hugging Face's `LlamaForCausalLM`, with the same weights.

One convention differs. We rotate adjacent dimensions (0, 1), (2, 3), … together, as the RoPE paper does; Hugging Face
rotates (0, d/2), (1, d/2 + 1), …. The dot product of query and key does not care in which order dimensions are
listed, so the models agree once each head's rows of q_proj and k_proj are listed in Hugging Face's order: first the
even rows, then the odd ones.
"""

import os

import torch

from model.transformer_lm import TransformerLM

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import transformers  # noqa: E402  reads the variable on import

NAMES = {
    "token_embedding": "model.embed_tokens",
    "attn_norm": "input_layernorm",
    "attn": "self_attn",
    "ffn_norm": "post_attention_layernorm",
    "ffn": "mlp",
    "blocks": "model.layers",
    "final_norm": "model.norm",
}


def as_llama(lm: TransformerLM, **options) -> transformers.LlamaForCausalLM:
    """The same function as `lm`, in eval mode; `options` go to `LlamaConfig`."""
    config = transformers.LlamaConfig(
        vocab_size=lm.config.vocab_size,
        hidden_size=lm.config.d_model,
        intermediate_size=lm.config.d_ff,
        num_hidden_layers=lm.config.num_layers,
        num_attention_heads=lm.config.num_heads,
        max_position_embeddings=lm.config.context_length,
        rms_norm_eps=lm.config.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": lm.config.rope_theta},
        tie_word_embeddings=lm.config.tie_embeddings,
        bos_token_id=None,
        eos_token_id=None,
        **options,
    )
    llama = transformers.LlamaForCausalLM(config).eval()
    llama.load_state_dict(llama_weights(lm))
    return llama


def llama_weights(lm: TransformerLM) -> dict[str, torch.Tensor]:
    weights = {}
    for name, weight in lm.state_dict().items():
        name_there = ".".join(NAMES.get(part, part) for part in name.split("."))
        turns = "q_proj" in name or "k_proj" in name
        weights[name_there] = half_split(weight, lm.config.num_heads) if turns else weight
    return weights


def half_split(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    """(H d, D) rows of q_proj or k_proj: in each head the even rows, then the odd ones."""
    heads = weight.unflatten(0, (num_heads, -1, 2))  # (H, d/2, 2, D)
    return heads.transpose(1, 2).flatten(0, 2)
