"""Configuration of a model: its sizes and its architecture."""

import math
from dataclasses import dataclass, fields

from model.config_checks import check_config
from model.errors import ModelError
from model.rope_scaling import RopeScaling

CHOICES = {
    "norm": ("rmsnorm", "layernorm"),
    "norm_placement": ("pre", "post", "parallel", "shared", "output", "sandwich"),
    "qk_norm_over": ("head", "all"),
    "position": ("rope", "sinusoidal", "learned", "none"),
    "rope_layout": ("adjacent", "half_split"),
    "ffn": ("swiglu", "geglu", "relu", "relu2", "gelu", "gelu_tanh"),
}
GATED = ("swiglu", "geglu")  # the feed-forwards with a gate


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Configuration of a `TransformerLM`: everything except the weights.

    Attributes:
        vocab_size: V, number of token ids.
        context_length: C, largest number of positions the model sees at once.
        d_model: D, width of the residual stream.
        num_layers: L, number of blocks.
        num_heads: H, attention heads per block.
        d_ff: F, neurons of the feed-forward's hidden layer.
        num_kv_heads: G, heads of keys and values, each shared by H / G heads of queries; None: G = H.
        head_dim: d, width of a head; None: D / H.
        norm: "rmsnorm" or "layernorm".
        norm_placement: "pre" normalises a sublayer's input, "post" the stream after the sublayer is added,
            "output" the sublayer's output, "sandwich" input and output; "parallel" is like "pre", but both
            sublayers of a block read the same stream, each through its own norm; in "shared" through one norm for
            both.
        norm_eps: ε of the norms.
        qk_norm: whether queries and keys are normalised before their dot product.
        qk_norm_over: vectors that are normalised: each "head", or "all" heads of a token together.
        score_divisor: divisor of the products of queries and keys; None: √d.
        score_cap: c, scores s enter the softmax as c · tanh(s / c), within ± c; None: uncapped.
        logit_cap: soft cap of the logits, likewise; None: uncapped.
        windows: per layer, number of tokens a query attends to, itself the last of them; None: all before it. The
            list repeats if there are more layers.
        position: "rope" rotates queries and keys, "sinusoidal" and "learned" add a vector per position to the
            embeddings, "none" leaves order to the causal mask.
        rope_theta: base of the rotary angles.
        local_rope_theta: base in layers with a window, without `rope_scaling`; None: as in the others.
        rope_layout: dimensions that rotate as a pair: "adjacent" (2i, 2i + 1) or "half_split" (i, i + d_head / 2).
        rotary_dim: r, number of rotated dimensions per head, the first r / 2 pairs; None: all.
        rotary_layers: per layer, whether queries and keys are rotated. The list repeats if there are more layers.
        rope_scaling: scaling of the rotary frequencies for contexts longer than in training.
        ffn: "swiglu"; "geglu", with GELU's tanh approximation as the gate's function; or two layers with "relu",
            "relu2" (its square), "gelu" or its approximation "gelu_tanh" between them.
        bias: whether the blocks' linear maps have biases.
        ffn_bias: whether the feed-forward's maps have biases; None: as `bias`.
        qkv_bias: whether the query, key and value maps have biases even if the others do not.
        unbiased_qkv: whether the query, key and value maps lack biases even if the others have them.
        unembedding_bias: whether each logit has a bias.
        dropout: probability of dropping an element of the embedding or of a sublayer's output during training.
        attention_dropout: probability of dropping an element of the attention pattern during training.
        tie_embeddings: whether the unembedding is the embedding table itself.
        scale_embeddings: whether embeddings are multiplied by √D.
        embedding_multiplier: additional factor of the embeddings.

    Raises:
        ValueError: a field is out of its range; the message names it and the valid range.
    """

    vocab_size: int
    context_length: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    norm: str = "rmsnorm"
    norm_placement: str = "pre"
    norm_eps: float = 1e-5
    qk_norm: bool = False
    qk_norm_over: str = "head"
    score_divisor: float | None = None
    score_cap: float | None = None
    logit_cap: float | None = None
    windows: tuple[int | None, ...] = (None,)
    position: str = "rope"
    rope_theta: float = 10000.0
    local_rope_theta: float | None = None
    rope_layout: str = "adjacent"
    rotary_dim: int | None = None
    rotary_layers: tuple[bool, ...] = (True,)
    rope_scaling: RopeScaling | None = None
    ffn: str = "swiglu"
    bias: bool = False
    ffn_bias: bool | None = None
    qkv_bias: bool = False
    unbiased_qkv: bool = False
    unembedding_bias: bool = False
    dropout: float = 0.0
    attention_dropout: float = 0.0
    tie_embeddings: bool = False
    scale_embeddings: bool = False
    embedding_multiplier: float = 1.0

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
