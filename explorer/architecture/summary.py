"""Summary of a model's architecture and size, and of its files, as text."""

import re

from explorer.architecture.formulas import layers_and_heads, layers_without_rope
from explorer.translations import N_, _, translate
from model.config import ModelConfig
from model.describe import NOT_NAMED, Description
from model.transformer_lm import TransformerLM

LICENCE_NAMES = {"mit": "MIT", "apache-2.0": "Apache-2.0"}  # model cards have them in small letters


def model_summary(lm: TransformerLM) -> str:
    """Return the model's architecture and size, its device, and the notes on its files, in one line."""
    config = lm.config
    millions = sum(parameter.numel() for parameter in lm.parameters()) / 1e6
    size = _("{millions:.1f} M parameters", millions=millions), layers_and_heads(config)
    widths = " · ".join(f"{name} {getattr(config, name)}" for name in ("d_model", "d_head", "d_ff"))
    size += widths, _("vocabulary {tokens}", tokens=f"{config.vocab_size:,}")
    size += _("context {tokens}", tokens=config.context_length), lm.device.type
    return " · ".join(
        (describe_architecture(config), *size, *(translate(note.template, **note.values) for note in lm.notes))
    )


def summarise_files(description: Description) -> str:
    """Return what a model's files say of it, in one line: the types of its weights, its licence, its chat template."""
    rows, parts = dict(description.rows), []
    if types := re.findall(r"(\w+) in \d", rows.get("types", "")):
        parts.append(_("weights stored as {types}", types=", ".join(types)))
    if (licence := rows.get("licence", NOT_NAMED)) != NOT_NAMED:
        parts.append(_("licence: {name}", name=LICENCE_NAMES.get(licence, licence)))
    if rows.get("chat template", "none") != "none":
        parts.append(_("with a chat template"))
    return " · ".join(parts)


NAMES = {
    "rmsnorm": "RMSNorm",
    "layernorm": "LayerNorm",
    "rope": "RoPE",
    "sinusoidal": N_("sinusoidal positions"),
    "learned": N_("learned positions"),
    "none": N_("no positions"),
    "swiglu": "SwiGLU",
    "geglu": "GeGLU",
    "relu": "ReLU",
    "relu2": "ReLU²",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
}


PLACEMENTS = {
    "post": N_("{norm} (post-norm)"),
    "parallel": N_("{norm} (attention and feed-forward side by side)"),
    "shared": N_("{norm} (one for attention and feed-forward side by side)"),
    "output": N_("{norm} (of what is added)"),
    "sandwich": N_("{norm} (of what is read and of what is added)"),
}


BIASES = {  # whether o_proj has biases, whether q, k and v do, and whether the feed-forward does
    (True, True, True): N_("biases"),
    (True, False, True): N_("biases, none of q, k, v"),
    (False, True, False): N_("q, k, v biases"),
    (True, True, False): N_("biases of the attention"),
    (True, False, False): N_("biases of W_O"),
    (False, False, True): N_("biases of the feed-forward"),
    (False, True, True): N_("biases, none of W_O"),
}


def describe_architecture(config: ModelConfig) -> str:
    """Return a description of the architecture, for example "RMSNorm · RoPE · SwiGLU"."""
    norm, position, ffn = (translate(NAMES[choice]) for choice in (config.norm, config.position, config.ffn))
    if config.norm_placement in PLACEMENTS:
        norm = translate(PLACEMENTS[config.norm_placement], norm=norm)
    if config.position == "rope" and config.num_rotary_dims < config.d_head:
        position = _(
            "{position} of {turned} of {width} dimensions",
            position=position,
            turned=config.num_rotary_dims,
            width=config.d_head,
        )
    if config.position == "rope" and config.local_rope_theta:
        position = _("{position} with two θ", position=position)
    if config.position == "rope" and config.rope_scaling:
        scaling = config.rope_scaling
        if scaling.kind == "longrope":
            position = _("{position} slowed pair by pair (LongRoPE)", position=position)
        else:
            position = _("{position} slowed {factor:g}×", position=position, factor=scaling.factor)
    if still := layers_without_rope(config):
        layers = config.num_layers
        position = _("{position} in {some} of {all} layers", position=position, some=layers - len(still), all=layers)
    parts = [norm, position, ffn]
    if any(config.windows):
        seen = ", ".join(f"{window}" if window else _("all") for window in config.windows)
        parts.append(_("sees {seen} tokens, layer by layer", seen=seen))
    if config.qk_norm:
        parts.append("QK-norm" if config.qk_norm_over == "head" else _("QK-norm over all heads"))
    if config.score_cap:
        parts.append(_("scores within ±{cap:g}", cap=config.score_cap))
    if config.logit_cap:
        parts.append(_("logits within ±{cap:g}", cap=config.logit_cap))
    if biases := BIASES.get((config.bias, config.has_qkv_bias, config.has_ffn_bias)):
        parts.append(translate(biases))
    if config.unembedding_bias:
        parts.append(_("unembedding with a bias"))
    return " · ".join(parts)
