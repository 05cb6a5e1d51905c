"""Size of a model, terms and factors of its formulas, and the mask and the rotation of each layer's attention."""

import numpy as np

from explorer.translations import N_, _, ngettext, translate
from model.config import ModelConfig

# whether the norms have shifts, and whether the unembedding has a bias -> in words, and as short as on an axis
WORDS = {
    (True, False): N_("the shift β of all norms"),
    (False, True): N_("the bias of the unembedding"),
    (True, True): N_("the shift β of all norms and the bias of the unembedding"),
}
SHORT = {
    (True, False): N_("β of the norms"),
    (False, True): N_("bias of the unembedding"),
    (True, True): N_("β of the norms and bias of the unembedding"),
}
SIGNS = {(True, False): "β", (False, True): "b", (True, True): "β, b"}


def has_logit_bias_terms(config: ModelConfig) -> bool:
    """Return whether the model's logits contain constants."""
    return any(_constant_flags(config))


def logit_bias_terms_label(config: ModelConfig) -> str:
    """Return the label of the constants, in full."""
    return translate(WORDS[_constant_flags(config)])


def logit_bias_terms_short_label(config: ModelConfig) -> str:
    """Return the label of the constants, short enough for an axis."""
    return translate(SHORT[_constant_flags(config)])


def logit_bias_terms_symbols(config: ModelConfig) -> str:
    """Return the symbols of the constants in a formula."""
    return SIGNS[_constant_flags(config)]


def _constant_flags(config: ModelConfig) -> tuple[bool, bool]:
    return config.norm == "layernorm", config.unembedding_bias


def softcap(x: np.ndarray, cap: float | None) -> np.ndarray:
    """Return soft-capped numbers; unchanged without a cap."""
    return x if cap is None else cap * np.tanh(x / cap)


def softcap_factor(x: np.ndarray, cap: float) -> np.ndarray:
    """Return the factor by which a cap scales each number: softcap(x) / x, 1 at 0."""
    return np.divide(softcap(x, cap), x, out=np.ones_like(x), where=x != 0)


def softcap_formula(x: str, cap: float) -> str:
    """Return the formula of a soft cap, for example "50 · tanh(score / 50)"."""
    return f"{cap:g} · tanh({x} / {cap:g})"


def score_divisor_formula(config: ModelConfig) -> str:
    """Return the divisor of scores in a formula: "√d", or a number."""
    return "√d" if config.score_divisor is None else f"{config.score_divisor:g}"


def score_divisor_in_numbers(config: ModelConfig) -> str:
    """Return the divisor of scores with the value of d, for example "√64"."""
    return f"√{config.d_head}" if config.score_divisor is None else f"{config.score_divisor:g}"


def embedding_scale_formula(config: ModelConfig) -> str:
    """Return the factor in a formula: "√D", a number, both, or "" for none."""
    return _format_factor(config, "√D")


def embedding_scale_in_numbers(config: ModelConfig) -> str:
    """Return the factor with the value of D, for example "√64"."""
    return _format_factor(config, f"√{config.d_model}")


def _format_factor(config: ModelConfig, root: str) -> str:
    multiplier = [f"{config.embedding_multiplier:g}"] * (config.embedding_multiplier != 1)
    return " · ".join([*multiplier, *[root] * config.scale_embeddings])


def layers_and_heads(config: ModelConfig) -> str:
    """Return the numbers of layers and heads, for example "6 layers × 6 heads (2 kv)"."""
    layers = ngettext("{count} layer", "{count} layers", config.num_layers)
    heads = ngettext("{count} head", "{count} heads", config.num_heads)
    if config.kv_heads < config.num_heads:
        return _("{layers} × {heads} ({kv} kv)", layers=layers, heads=heads, kv=config.kv_heads)
    return f"{layers} × {heads}"


def visibility_mask(config: ModelConfig, layer: int, length: int) -> np.ndarray:
    """Return the causal mask of a layer, (T, T) booleans, row = query: itself and earlier keys within the window."""
    window, past = config.window(layer), np.tri(length, dtype=bool)
    return past if window is None else past & ~np.tri(length, k=-window, dtype=bool)


def first_visible_key(config: ModelConfig, layer: int, query: int) -> int:
    """Return the first key that a query of a layer sees."""
    window = config.window(layer)
    return 0 if window is None else max(0, query - window + 1)


ANGLES, LOCAL_ANGLES = (
    "rope.angles",
    "local_rope.angles",
)  # taps of rotation angles: of all layers; of layers with a window


def angles_tap(config: ModelConfig, layer: int) -> str:
    """Return the tap of the angles by which a layer rotates queries and keys, if it rotates them."""
    return LOCAL_ANGLES if config.uses_local_rope(layer) else ANGLES


def rotary_attention_factors(config: ModelConfig, layer: int) -> np.ndarray | None:
    """Return the factors that multiply a layer's rotated pairs, (F,); None if all are 1."""
    scaling = None if config.uses_local_rope(layer) else config.rope_scaling
    if scaling is None or scaling.attention_factor == 1 or not config.has_rope(layer):
        return None
    return np.where(np.arange(config.d_head // 2) < config.num_rotary_dims // 2, scaling.attention_factor, 1.0)


def layers_without_rope(config: ModelConfig) -> list[int]:
    """Return the layers that do not rotate queries and keys, in a model with RoPE."""
    return [layer for layer in range(config.num_layers) if config.position == "rope" and not config.has_rope(layer)]


def token_axes(tap: str) -> tuple[int, ...]:
    """Return the axes of a value that count tokens, from the end, since heads may come before.

    Scores and patterns have queries and keys, all other values the rows of vectors.
    """
    return (-2, -1) if tap.endswith(("attn.scores", "attn.pattern")) else (-2,)
