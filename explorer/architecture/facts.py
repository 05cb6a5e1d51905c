"""A model's kind and size in words."""

from model.config import ModelConfig
from model.transformer_lm import TransformerLM


def facts(lm: TransformerLM) -> str:
    """The model's kind and size, and where it runs, in a line."""
    config = lm.config
    size = sum(parameter.numel() for parameter in lm.parameters())
    return (
        f"{kind(config)} · {size / 1e6:.1f} M parameters · {layers_and_heads(config)} · "
        f"context {config.context_length} · {lm.device.type}"
    )


NAMES = {
    "rmsnorm": "RMSNorm",
    "layernorm": "LayerNorm",
    "rope": "RoPE",
    "sinusoidal": "sinusoidal positions",
    "learned": "learned positions",
    "none": "no positions",
    "swiglu": "SwiGLU",
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
}


def kind(config: ModelConfig) -> str:
    """What a model is built of, as in "RMSNorm · RoPE · SwiGLU"."""
    norm, position, ffn = (NAMES[choice] for choice in (config.norm, config.position, config.ffn))
    if config.norm_placement == "post":
        norm += " (post-norm)"
    if config.position == "rope" and config.rope_scaling:
        position += f" slowed {config.rope_scaling.factor:g}×"
    parts = [norm, position, ffn]
    if config.qk_norm:
        parts.append("QK-norm")
    if config.bias or config.qkv_bias:
        parts.append("biases" if config.bias else "q, k, v biases")
    return " · ".join(parts)


def layers_and_heads(config: ModelConfig) -> str:
    """As in "6 layers × 6 heads (2 kv)"."""
    layers, heads = config.num_layers, config.num_heads
    shared = f" ({config.kv_heads} kv)" if config.kv_heads < heads else ""
    return f"{layers} layer{'s' * (layers > 1)} × {heads} head{'s' * (heads > 1)}{shared}"
