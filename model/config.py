"""The shape of a model."""

import math
from dataclasses import dataclass, fields

from model.config_checks import check
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
    """Everything that fixes a `TransformerLM` but its weights.

    Attributes:
        vocab_size: V, number of token ids.
        context_length: C, the most positions the model sees at once.
        d_model: D, width of the residual stream.
        num_layers: L, number of blocks.
        num_heads: H, attention heads a block.
        d_ff: F, neurons of the feed-forward's hidden layer.
        num_kv_heads: G, heads of keys and values, each shared by H / G heads of queries; None: one each, G = H.
        head_dim: d, how wide each head is; None: D / H.
        norm: "rmsnorm" or "layernorm".
        norm_placement: "pre" normalises what a sublayer reads, "post" the stream after it has added to it, "output"
            what it adds, "sandwich" what it reads and what it adds; "parallel" is as "pre", but both sublayers of a
            block read the same stream, each through its own norm, "shared" through one for both.
        norm_eps: ε of the norms.
        qk_norm: whether queries and keys are normalised before they are compared.
        qk_norm_over: what then is of one size: the vector of each "head", or those of "all" of a token's together.
        score_divisor: what the products of queries and keys are divided by; None: √d.
        score_cap: c, of scores s what goes into the softmax is c · tanh(s / c), within ± c; None: s itself.
        logit_cap: the same of the logits.
        windows: how many tokens a query sees, itself the last of them, None all before it, layer by layer; they begin
            anew where there are more layers.
        position: how order gets in: "rope" turns queries and keys, "sinusoidal" and "learned" add a vector a position
            to the embeddings, "none" leaves it to the causal mask.
        rope_theta: base of the rotary angles.
        local_rope_theta: that of layers in which a query sees a window, whose rotation is not slowed; None: the same.
        rope_layout: which dimensions turn together: "adjacent" ones (2i, 2i + 1) or "half_split" (i, i + d_head / 2).
        rotary_dim: r, how many of each head's dimensions turn: the first r / 2 pairs; None: all do.
        rotary_layers: whether queries and keys turn, layer by layer; they begin anew where there are more layers.
        rope_scaling: how the rotary frequencies are slowed for contexts longer than were trained on.
        ffn: "swiglu", "geglu", the same with GELU's approximation as the gate's function, or two layers with "relu",
            "relu2", its square, "gelu" or its approximation "gelu_tanh" between them.
        bias: whether the blocks' linear maps have biases.
        qkv_bias: whether those that make queries, keys and values have them even if the others do not.
        unbiased_qkv: whether these have none even if the others do.
        unembedding_bias: whether a number a token is added to its logit.
        dropout: probability of dropping an element of the embedding or of a sublayer's output while training.
        attention_dropout: the same for an element of the attention pattern.
        tie_embeddings: whether the unembedding is the embedding table itself.
        scale_embeddings: whether embeddings are multiplied by √D as they are read.
        embedding_multiplier: what else they are multiplied by then.

    Raises:
        ValueError: a field is out of its range; the message says which and what was wanted.
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
        """d: `head_dim`, or D / H where it is None."""
        return self.head_dim or self.d_model // self.num_heads

    @property
    def turned_dims(self) -> int:
        """r: `rotary_dim`, or d where it is None."""
        return self.rotary_dim or self.d_head

    @property
    def divisor(self) -> float:
        """`score_divisor`, or √d where it is None."""
        return self.score_divisor or math.sqrt(self.d_head)

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward multiplies its neurons by a gate's."""
        return self.ffn in GATED

    @property
    def embedding_scale(self) -> float:
        """What embeddings are multiplied by as they are read, in all."""
        return self.embedding_multiplier * (math.sqrt(self.d_model) if self.scale_embeddings else 1.0)

    def window(self, layer: int) -> int | None:
        """How many tokens a query of a layer sees, itself the last; None: all before it."""
        return self.windows[layer % len(self.windows)]

    def rotates(self, layer: int) -> bool:
        """Whether a layer turns queries and keys by their positions."""
        return self.position == "rope" and self.rotary_layers[layer % len(self.rotary_layers)]

    def turns_locally(self, layer: int) -> bool:
        """Whether the angles of a layer are those of `local_rope_theta`."""
        return self.local_rope_theta is not None and self.window(layer) is not None

    @property
    def has_qkv_bias(self) -> bool:
        """Whether the maps that make queries, keys and values have biases."""
        return (self.bias or self.qkv_bias) and not self.unbiased_qkv

    @property
    def kv_heads(self) -> int:
        """G: `num_kv_heads`, or H where it is None."""
        return self.num_kv_heads or self.num_heads

    @classmethod
    def llama_style(cls, **sizes) -> "ModelConfig":
        """RMSNorm, RoPE, SwiGLU, no biases (Touvron et al. 2023); d_ff about 8/3 d_model unless given."""
        if "d_model" in sizes and "d_ff" not in sizes:
            sizes["d_ff"] = -(-8 * sizes["d_model"] // (3 * 64)) * 64
        return cls(**({"norm": "rmsnorm", "position": "rope", "ffn": "swiglu"} | sizes))

    @classmethod
    def gpt_style(cls, **sizes) -> "ModelConfig":
        """LayerNorm, sinusoidal positions, ReLU, biases: the decoder of Vaswani et al. 2017 with its norms moved before
        the sublayers, as in GPT-2 (Radford et al. 2019); d_ff = 4 d_model unless given."""
        if "d_model" in sizes and "d_ff" not in sizes:
            sizes["d_ff"] = 4 * sizes["d_model"]
        return cls(**({"norm": "layernorm", "position": "sinusoidal", "ffn": "relu", "bias": True} | sizes))

    @classmethod
    def from_dict(cls, values: dict) -> "ModelConfig":
        """The config with these fields; ValueError names a field that is unknown or missing."""
        if not isinstance(values, dict):
            raise ModelError("a model config is an object of named settings, got {got}", got=type(values).__name__)
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ModelError(
                "unknown model setting {unknown}; known are {known}",
                unknown=", ".join(unknown),
                known=", ".join(sorted(known)),
            )
        try:
            listed = {name: values[name] for name in ("windows", "rotary_layers") if isinstance(values.get(name), list)}
            values = values | {name: tuple(each) for name, each in listed.items()}
            if isinstance(scaling := values.get("rope_scaling"), dict):
                if isinstance(factors := scaling.get("pair_factors"), list):
                    scaling = scaling | {"pair_factors": tuple(factors)}
                values = values | {"rope_scaling": RopeScaling(**scaling)}
            return cls(**values)
        except TypeError as error:
            raise ModelError("incomplete model config: {why}", why=error) from None

    def __post_init__(self):
        check(self, CHOICES)
        if self.rope_scaling is not None and not isinstance(self.rope_scaling, RopeScaling):
            raise ModelError("rope_scaling must be a RopeScaling or None, got {got!r}", got=self.rope_scaling)
        if self.rope_scaling and self.rope_scaling.pair_factors:
            wanted, got = self.turned_dims // 2, len(self.rope_scaling.pair_factors)
            if wanted != got:
                raise ModelError(
                    "rope_scaling needs {wanted} pair_factors, one a pair, got {got}", wanted=wanted, got=got
                )
