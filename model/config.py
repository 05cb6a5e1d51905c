"""Configuration of a model: its sizes and its architecture, validated; and its parameters, operations and memory.

Letters of the counts as in `model/transformer_lm.py`; G key-value heads.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from model.errors import ModelError

SWITCHES = ("bias", "qkv_bias", "unbiased_qkv", "unembedding_bias", "qk_norm", "tie_embeddings", "scale_embeddings")
MAX_SIZE = 1 << 28  # larger than any model; the product of two still fits in 64 bits
MAX_LAYERS = 10_000  # no model has half as many


def check_config(config: "ModelConfig", choices: Mapping[str, tuple[str, ...]]):
    """Check all fields, alone and together.

    Args:
        choices: field -> its allowed words.

    Raises:
        ValueError: a field is out of its range; the message names it and the valid range.
    """
    _check_sizes(config)
    _check_choices(config, choices)
    _check_numbers(config)
    _check_layers(config)
    _check_heads(config)


def check_size(name: str, value: Any, max_size: int):
    """Raise ModelError unless the value of the named field is an integer from 1 to `max_size`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelError("{name} must be a positive integer, got {got!r}", name=name, got=value)
    if value > max_size:
        raise ModelError("{name} must be at most {most:,}, got {got:,}", name=name, most=max_size, got=value)


def is_number(value: Any) -> bool:
    """Return whether a value is an int or float, not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_window(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def _check_sizes(config: "ModelConfig"):
    sizes = ["vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff"]
    sizes += [name for name in ("num_kv_heads", "head_dim", "rotary_dim") if getattr(config, name) is not None]
    for name in sizes:
        check_size(name, getattr(config, name), MAX_LAYERS if name == "num_layers" else MAX_SIZE)


def _check_choices(config: "ModelConfig", choices: Mapping[str, tuple[str, ...]]):
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            raise ModelError(
                "{name} must be one of {known}, got {got!r}",
                name=name,
                known=", ".join(allowed),
                got=getattr(config, name),
            )
    switches = [*SWITCHES, *(["ffn_bias"] if config.ffn_bias is not None else [])]
    for name in switches:
        if not isinstance(getattr(config, name), bool):
            raise ModelError("{name} must be true or false, got {got!r}", name=name, got=getattr(config, name))


def _check_numbers(config: "ModelConfig"):
    for name in ("dropout", "attention_dropout"):
        value = getattr(config, name)
        if not is_number(value) or not 0 <= value < 1:
            raise ModelError("{name} must be a number in [0, 1), got {got!r}", name=name, got=value)
    numbers = "rope_theta", "norm_eps", "embedding_multiplier"
    optional = "score_divisor", "score_cap", "logit_cap", "local_rope_theta"
    for name in (*numbers, *(name for name in optional if getattr(config, name) is not None)):
        value = getattr(config, name)
        if not is_number(value) or not 0 < value < math.inf:
            raise ModelError("{name} must be a positive number, got {got!r}", name=name, got=value)


def _check_layers(config: "ModelConfig"):
    if not isinstance(config.windows, tuple) or not config.windows or not all(map(_is_window, config.windows)):
        raise ModelError(
            "windows must be a list of positive integers, or null where a layer has none, got {got!r}",
            got=config.windows,
        )
    rotary_layers = config.rotary_layers
    if (
        not isinstance(rotary_layers, tuple)
        or not rotary_layers
        or not all(isinstance(flag, bool) for flag in rotary_layers)
    ):
        raise ModelError("rotary_layers must be a list of true or false, got {got!r}", got=rotary_layers)


def _check_heads(config: "ModelConfig"):
    if config.head_dim is None and config.d_model % config.num_heads:
        raise ModelError(
            "num_heads must divide d_model, got {heads} heads for d_model {width}",
            heads=config.num_heads,
            width=config.d_model,
        )
    if config.num_heads % config.kv_heads:
        raise ModelError(
            "num_kv_heads must divide num_heads, got {groups} for {heads} heads",
            groups=config.num_kv_heads,
            heads=config.num_heads,
        )
    if config.position == "rope" and config.d_head % 2:
        raise ModelError("RoPE needs an even head width, got {got}", got=config.d_head)
    if config.position == "rope" and (config.num_rotary_dims % 2 or config.num_rotary_dims > config.d_head):
        raise ModelError(
            "rotary_dim must be even and at most the head width {width}, got {got}",
            width=config.d_head,
            got=config.rotary_dim,
        )
    if config.position == "sinusoidal" and config.d_model % 2:
        raise ModelError("sinusoidal positions need an even d_model, got {got}", got=config.d_model)


ROPE_SCALINGS = ("linear", "ntk", "llama3", "yarn", "longrope")


@dataclass(frozen=True, kw_only=True)
class RopeScaling:
    """Scaling of rotary frequencies, so that later positions rotate no further than those in training.

    Attributes:
        kind: "linear" divides all by `factor`, as if positions were (Chen et al. 2023); "ntk" enlarges the base so
            that the slowest is divided by `factor` and the fastest stays (bloc97 2023, "NTK-aware"); "llama3"
            leaves the fast, divides the slow by `factor` and interpolates between them (Llama 3.1); "yarn" does so
            with a ramp over the pairs' indices instead of their speeds (Peng et al. 2023); "longrope" divides each
            pair's by a factor of its own, from a search (Ding et al. 2024).
        factor: s ≥ 1, ratio of the longer context to the original one.
        low_frequency_factor: llama3, yarn (β_slow): slow pairs make fewer turns than this in the original context.
        high_frequency_factor: llama3, yarn (β_fast): fast pairs make more turns than this in the original context.
        original_context_length: llama3, yarn, longrope: positions in training.
        rounds_ramp: yarn: whether its ramp begins and ends at whole pairs.
        pair_factors: longrope: one for each rotated pair.
        attention_factor: yarn, longrope: factor of the rotated dimensions of queries and keys.

    Raises:
        ValueError: a field is out of its range.
    """

    kind: str
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context_length: int = 8192
    rounds_ramp: bool = True
    pair_factors: tuple[float, ...] = ()
    attention_factor: float = 1.0

    def __post_init__(self):
        if self.kind not in ROPE_SCALINGS:
            raise ModelError(
                "the kind of RoPE scaling must be one of {known}, got {got!r}",
                known=", ".join(ROPE_SCALINGS),
                got=self.kind,
            )
        if not is_number(self.factor) or not 1 <= self.factor < math.inf:
            raise ModelError("the factor of RoPE scaling must be a number of at least 1, got {got!r}", got=self.factor)
        low, high = self.low_frequency_factor, self.high_frequency_factor
        if not (is_number(low) and is_number(high) and 0 < low < high):
            raise ModelError(
                "low_frequency_factor must be positive and below high_frequency_factor, got {low!r} and {high!r}",
                low=low,
                high=high,
            )
        length = self.original_context_length
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise ModelError(
                "{name} must be a positive integer, got {got!r}", name="original_context_length", got=length
            )
        if not isinstance(self.rounds_ramp, bool):
            raise ModelError("{name} must be true or false, got {got!r}", name="rounds_ramp", got=self.rounds_ramp)
        if not _is_positive(self.attention_factor):
            raise ModelError(
                "{name} must be a positive number, got {got!r}", name="attention_factor", got=self.attention_factor
            )
        factors = self.pair_factors
        if not isinstance(factors, tuple) or not all(map(_is_positive, factors)):
            raise ModelError("pair_factors must be positive numbers, one a pair, got {got!r}", got=factors)
        if bool(factors) != (self.kind == "longrope"):
            raise ModelError("pair_factors belong to longrope alone, which needs them, got {got!r}", got=factors)


def _is_positive(value: object) -> bool:
    return is_number(value) and 0 < value < math.inf


CHOICES = {
    "norm": ("rmsnorm", "layernorm"),
    "norm_placement": ("pre", "post", "parallel", "shared", "output", "sandwich"),
    "qk_norm_over": ("head", "all"),
    "position": ("rope", "sinusoidal", "learned", "none"),
    "rope_layout": ("adjacent", "half_split"),
    "ffn": ("swiglu", "geglu", "relu", "relu2", "gelu", "gelu_tanh"),
}
GATED = ("swiglu", "geglu")  # the feed-forwards with a gate


def option(help: str, **kwargs):
    """Return a dataclass field with a help text, which the command line shows, too."""
    return field(metadata={"help": help}, **kwargs)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Configuration of a `TransformerLM`: everything except the weights.

    A list layer by layer repeats if there are more layers.

    Raises:
        ValueError: a field is out of its range; the message names it and the valid range.
    """

    vocab_size: int = option("V, number of token ids")
    context_length: int = option("C, maximum number of input tokens; 64 to 1,024 for small models")
    d_model: int = option("D, width of the residual stream; 64 to 768")
    num_layers: int = option("L, number of blocks; 2 to 12")
    num_heads: int = option("H, attention heads per block; d_model / 64 to d_model / 16")
    d_ff: int = option("F, neurons per feed-forward layer; 8/3 d_model for swiglu, 4 d_model for others")
    num_kv_heads: int | None = option(
        "G, key and value heads, each shared by H / G query heads; num_heads / 8 to num_heads", default=None
    )
    head_dim: int | None = option("d, width of a head; d_model / num_heads unless given", default=None)
    norm: str = option("rmsnorm or layernorm", default="rmsnorm")
    norm_placement: str = option(
        "pre: normalise the input of each sublayer; post: the stream after each (needs a small learning rate); "
        "parallel: the input of both sublayers, which read the same residual stream; shared: by one norm for both; "
        "output: the output of each sublayer; sandwich: its input and its output",
        default="pre",
    )
    norm_eps: float = option("epsilon of the norms; 1e-6 to 1e-5", default=1e-5)
    qk_norm: bool = option(
        "normalise queries and keys before their product, for stability at large learning rates", default=False
    )
    qk_norm_over: str = option("head (each head by itself) or all (all heads of a token together)", default="head")
    score_divisor: float | None = option("divisor of the attention scores; √head_dim unless given", default=None)
    score_cap: float | None = option(
        "soft cap c: keep attention scores s within ± c, as c · tanh(s / c), before the softmax; 50", default=None
    )
    logit_cap: float | None = option("soft cap: keep logits within ± this by tanh; 15 to 30", default=None)
    windows: tuple[int | None, ...] = option(
        "attention window in tokens, a query's own the last of them, layer by layer, as a JSON list (null: none); "
        "[null, 256] for every other layer",
        default=(None,),
    )
    position: str = option(
        "rope (rotates queries and keys), sinusoidal or learned (a vector per position, added to the embeddings) or "
        "none (order is left to the causal mask)",
        default="rope",
    )
    rope_theta: float = option("base of the rotary angles; 10,000, up to 1,000,000 for long contexts", default=10000.0)
    local_rope_theta: float | None = option(
        "rope_theta of layers with an attention window, without rope_scaling; 10,000 if the others have 1,000,000",
        default=None,
    )
    rope_layout: str = option(
        "pairs of dimensions that RoPE rotates: adjacent (2i, 2i + 1) or half_split (i, i + head_dim / 2)",
        default="adjacent",
    )
    rotary_dim: int | None = option("r, dimensions of each head rotated by RoPE; all unless given", default=None)
    rotary_layers: tuple[bool, ...] = option(
        "whether RoPE is applied, layer by layer, as a JSON list; [true, true, true, false]", default=(True,)
    )
    rope_scaling: RopeScaling | None = option(
        'slower rotation for longer contexts, {"kind": "linear", "ntk", "llama3" or "yarn", "factor": 4}', default=None
    )
    ffn: str = option(
        "swiglu or geglu (with a gate), relu, relu2 (its square), gelu or gelu_tanh (its approximation, as in geglu)",
        default="swiglu",
    )
    bias: bool = option("biases in the blocks' linear layers", default=False)
    ffn_bias: bool | None = option("biases in the feed-forward's linear layers; as bias unless given", default=None)
    qkv_bias: bool = option("biases of queries, keys and values, even if the others have none", default=False)
    unbiased_qkv: bool = option("no biases of queries, keys and values, even if the others have them", default=False)
    unembedding_bias: bool = option("a bias per token, added to its logit", default=False)
    dropout: float = option(
        "probability of dropping an element of the embedding or of a sublayer's output in training; 0 to 0.2, more "
        "when epochs repeat",
        default=0.0,
    )
    attention_dropout: float = option("probability of dropping an attention weight; 0 to 0.2, slow", default=0.0)
    tie_embeddings: bool = option("use one matrix for embedding and unembedding; useful in small models", default=False)
    scale_embeddings: bool = option(
        "multiply embeddings by √d_model; recommended if they are tied and positions are sinusoidal", default=False
    )
    embedding_multiplier: float = option("additional factor of the embeddings; 1 to 12", default=1.0)

    @property
    def d_head(self) -> int:
        """Width d of a head: `head_dim`, or D / H if that is None."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def num_rotary_dims(self) -> int:
        """Number r of rotated dimensions per head: `rotary_dim`, or d if that is None."""
        return self.rotary_dim or self.d_head

    @property
    def divisor(self) -> float:
        """Divisor of the attention scores: `score_divisor`, or √d if that is None."""
        return self.score_divisor or math.sqrt(self.d_head)

    @property
    def is_gated(self) -> bool:
        """True if the feed-forward multiplies its neurons by a gate."""
        return self.ffn in GATED

    @property
    def embedding_scale(self) -> float:
        """Total factor of the embeddings."""
        return self.embedding_multiplier * (math.sqrt(self.d_model) if self.scale_embeddings else 1.0)

    def window(self, layer: int) -> int | None:
        """Return the number of tokens that a query of a layer attends to, itself the last; None: all before it."""
        return self.windows[layer % len(self.windows)]

    def has_rope(self, layer: int) -> bool:
        """Return True if a layer rotates queries and keys by their positions."""
        return self.position == "rope" and self.rotary_layers[layer % len(self.rotary_layers)]

    def uses_local_rope(self, layer: int) -> bool:
        """Return True if a layer's angles are those of `local_rope_theta`."""
        return self.local_rope_theta is not None and self.window(layer) is not None

    @property
    def has_qkv_bias(self) -> bool:
        """True if the query, key and value maps have biases."""
        return (self.bias or self.qkv_bias) and not self.unbiased_qkv

    @property
    def has_ffn_bias(self) -> bool:
        """True if the feed-forward's maps have biases: `ffn_bias`, or `bias` if that is None."""
        return self.bias if self.ffn_bias is None else self.ffn_bias

    @property
    def kv_heads(self) -> int:
        """Number G of key-value heads: `num_kv_heads`, or H if that is None."""
        return self.num_kv_heads or self.num_heads

    @classmethod
    def llama_style(cls, **sizes) -> "ModelConfig":
        """Return a config with RMSNorm, RoPE, SwiGLU and no biases (Touvron et al. 2023).

        d_ff is about 8/3 d_model unless given.
        """
        if "d_model" in sizes and "d_ff" not in sizes:
            sizes["d_ff"] = -(-8 * sizes["d_model"] // (3 * 64)) * 64
        return cls(**({"norm": "rmsnorm", "position": "rope", "ffn": "swiglu"} | sizes))

    @classmethod
    def gpt_style(cls, **sizes) -> "ModelConfig":
        """Return a config with LayerNorm, sinusoidal positions, ReLU and biases.

        The decoder of Vaswani et al. 2017 with its norms moved before the sublayers, as in GPT-2 (Radford et al.
        2019); d_ff = 4 d_model unless given.
        """
        if "d_model" in sizes and "d_ff" not in sizes:
            sizes["d_ff"] = 4 * sizes["d_model"]
        return cls(**({"norm": "layernorm", "position": "sinusoidal", "ffn": "relu", "bias": True} | sizes))

    @classmethod
    def from_dict(cls, values: dict) -> "ModelConfig":
        """Build a config from its fields; ValueError names a field that is unknown or missing."""
        if not isinstance(values, dict):
            raise ModelError("a model config is an object of named settings, got {got}", got=type(values).__name__)
        field_names = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - field_names):
            raise ModelError(
                "unknown model setting {unknown}; known are {known}",
                unknown=", ".join(unknown),
                known=", ".join(sorted(field_names)),
            )
        try:
            list_fields = {
                name: values[name] for name in ("windows", "rotary_layers") if isinstance(values.get(name), list)
            }
            values = values | {name: tuple(layers) for name, layers in list_fields.items()}
            if isinstance(scaling := values.get("rope_scaling"), dict):
                if isinstance(factors := scaling.get("pair_factors"), list):
                    scaling = scaling | {"pair_factors": tuple(factors)}
                values = values | {"rope_scaling": RopeScaling(**scaling)}
            return cls(**values)
        except TypeError as error:
            raise ModelError("incomplete model config: {why}", why=error) from None

    def __post_init__(self):
        check_config(self, CHOICES)
        if self.rope_scaling is not None and not isinstance(self.rope_scaling, RopeScaling):
            raise ModelError("rope_scaling must be a RopeScaling or None, got {got!r}", got=self.rope_scaling)
        if self.rope_scaling and self.rope_scaling.pair_factors:
            expected, got = self.num_rotary_dims // 2, len(self.rope_scaling.pair_factors)
            if expected != got:
                raise ModelError(
                    "rope_scaling needs {wanted} pair_factors, one a pair, got {got}", wanted=expected, got=got
                )


def window_start(num_tokens: int, context_length: int) -> int:
    """Return the index of the first of `num_tokens` tokens that the model sees: 0 while all fit.

    Past the context length the window moves by a quarter of it at a time, not by one token, so that the cache is
    refilled only then.
    """
    hop = max(1, context_length // 4)
    overflow = max(0, num_tokens - context_length)
    return -(-overflow // hop) * hop


@dataclass(frozen=True)
class CountRow:
    """A component's share of a count: its name, the formula and the result."""

    component: str
    formula: str
    count: int


# whether queries, keys and values have biases, and whether the output has -> how those of attention are counted
ATTENTION_BIAS_FORMULAS = {
    (True, True): "L ((H + 2 G) d + D)",
    (True, False): "L (H + 2 G) d",
    (False, True): "L D",
    (False, False): "0",
}


NORMS_PER_BLOCK = {"pre": 2, "post": 2, "parallel": 2, "shared": 1, "output": 2, "sandwich": 4}


def parameter_table(config: ModelConfig) -> list[CountRow]:
    """Return the parameters by component; the counts sum to all parameters of `TransformerLM(config)`.

    Components that a model lacks have no row; a tied unembedding has one with 0.
    """
    c, d = config, config.d_head
    V, C, D, L, H, G, F = c.vocab_size, c.context_length, c.d_model, c.num_layers, c.num_heads, c.kv_heads, c.d_ff
    norm, norm_formula = (2 * D, "2 D") if c.norm == "layernorm" else (D, "D")
    num_norms = NORMS_PER_BLOCK[c.norm_placement] * L + (c.norm_placement != "post")
    qk_norms, times = (2 * L, "2 L") if c.qk_norm_over == "head" else (L * (H + G), "L (H + G)")
    matrices = 3 if c.is_gated else 2
    attention_biases = (H + 2 * G) * d * c.has_qkv_bias + D * c.bias
    rows = [
        CountRow("token embedding", "V D", V * D),
        CountRow("position embedding", "C D", C * D * (c.position == "learned")),
        CountRow("attention matrices", "2 L D d (H + G)", 2 * L * D * d * (H + G)),
        CountRow(
            "attention biases",
            ATTENTION_BIAS_FORMULAS[c.has_qkv_bias, c.bias],
            L * attention_biases,
        ),
        CountRow(
            "query and key norms", f"{times} {norm_formula.replace('D', 'd')}", c.qk_norm * qk_norms * norm * d // D
        ),
        CountRow("feed-forward matrices", f"{matrices} L D F", matrices * L * D * F),
        CountRow("feed-forward biases", f"L ({matrices - 1} F + D)", c.has_ffn_bias * L * ((matrices - 1) * F + D)),
        CountRow("norms", f"{num_norms} · {norm_formula}", num_norms * norm),
    ]
    rows = [row for row in rows if row.count]
    unembedding = CountRow("unembedding", "tied: 0", 0) if c.tie_embeddings else CountRow("unembedding", "V D", V * D)
    bias = [CountRow("unembedding bias", "V", V)] * c.unembedding_bias
    return [*rows, unembedding, *bias]


def num_parameters(config: ModelConfig) -> int:
    """Return the number of parameters, with tied weights counted once."""
    return sum(row.count for row in parameter_table(config))


def flops_table(config: ModelConfig, num_positions: int) -> list[CountRow]:
    """Return a token's forward-pass FLOPs by component, attending to `num_positions` = K positions.

    Only matrix products are counted, a multiplication and an addition each; they are all but a few per cent. A
    training step costs about three times as much (Kaplan et al. 2020, §2.1).
    """
    c = config
    V, D, L, H, G, F, K = c.vocab_size, c.d_model, c.num_layers, c.num_heads, c.kv_heads, c.d_ff, num_positions
    matrices = 3 if c.is_gated else 2
    return [
        CountRow("attention projections", "4 L D d (H + G)", 4 * L * D * c.d_head * (H + G)),
        CountRow("attention scores and weighted values", *score_and_value_flops(c, K)),
        CountRow("feed-forward", f"2 · {matrices} L D F", 2 * matrices * L * D * F),
        CountRow("unembedding", "2 V D", 2 * V * D),
    ]


def score_and_value_flops(config: ModelConfig, num_positions: int) -> tuple[str, int]:
    """Return the formula and the FLOPs of attention scores and weighted values, without the projections.

    If some layers attend to fewer than K positions, the formula has the total over layers as a number.
    """
    windows = [config.window(layer) or num_positions for layer in range(config.num_layers)]
    num_attended = sum(min(window, num_positions) for window in windows)
    formula = "4 L H d K" if num_attended == config.num_layers * num_positions else f"4 H d {num_attended}"
    return formula, 4 * config.num_heads * config.d_head * num_attended


def kv_cache_bytes_per_token(config: ModelConfig, bytes_per_number: int = 4) -> int:
    """Return the bytes of the key-value cache per position: 2 L G d numbers."""
    return 2 * config.num_layers * config.kv_heads * config.d_head * bytes_per_number
