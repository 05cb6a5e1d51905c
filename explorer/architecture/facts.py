"""A model's kind and size in words."""

from explorer.language import N_, _, look_up, ngettext
from model.config import ModelConfig
from model.transformer_lm import TransformerLM


def facts(lm: TransformerLM) -> str:
    """The model's kind and size, and where it runs, in a line."""
    config = lm.config
    millions = sum(parameter.numel() for parameter in lm.parameters()) / 1e6
    size = _("{millions:.1f} M parameters", millions=millions), layers_and_heads(config)
    return " · ".join((kind(config), *size, _("context {tokens}", tokens=config.context_length), lm.device.type))


NAMES = {
    "rmsnorm": "RMSNorm",
    "layernorm": "LayerNorm",
    "rope": "RoPE",
    "sinusoidal": N_("sinusoidal positions"),
    "learned": N_("learned positions"),
    "none": N_("no positions"),
    "swiglu": "SwiGLU",
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
}


def kind(config: ModelConfig) -> str:
    """What a model is built of, as in "RMSNorm · RoPE · SwiGLU"."""
    norm, position, ffn = (look_up(NAMES[choice]) for choice in (config.norm, config.position, config.ffn))
    if config.norm_placement == "post":
        norm = _("{norm} (post-norm)", norm=norm)
    if config.position == "rope" and config.rope_scaling:
        position = _("{position} slowed {factor:g}×", position=position, factor=config.rope_scaling.factor)
    parts = [norm, position, ffn]
    if config.qk_norm:
        parts.append("QK-norm")
    if config.bias or config.qkv_bias:
        parts.append(_("biases") if config.bias else _("q, k, v biases"))
    return " · ".join(parts)


def layers_and_heads(config: ModelConfig) -> str:
    """As in "6 layers × 6 heads (2 kv)"."""
    layers = ngettext("{count} layer", "{count} layers", config.num_layers)
    heads = ngettext("{count} head", "{count} heads", config.num_heads)
    if config.kv_heads < config.num_heads:
        return _("{layers} × {heads} ({kv} kv)", layers=layers, heads=heads, kv=config.kv_heads)
    return f"{layers} × {heads}"
