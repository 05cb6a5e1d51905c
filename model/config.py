"""The shape of a model."""

import math
from dataclasses import dataclass, fields

from model.errors import ModelError

CHOICES = {
    "norm": ("rmsnorm", "layernorm"),
    "norm_placement": ("pre", "post", "parallel", "shared", "output", "sandwich"),
    "qk_norm_over": ("head", "all"),
    "position": ("rope", "sinusoidal", "learned", "none"),
    "rope_layout": ("adjacent", "half_split"),
    "ffn": ("swiglu", "geglu", "relu", "relu2", "gelu", "gelu_tanh"),
}
ROPE_SCALINGS = ("linear", "ntk", "llama3")
GATED = ("swiglu", "geglu")  # the feed-forwards with a gate
LARGEST = 1 << 28  # of any size: so large no product of two overflows, and no model can be
SWITCHES = ("bias", "qkv_bias", "unbiased_qkv", "unembedding_bias", "qk_norm", "tie_embeddings", "scale_embeddings")


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_window(value) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


@dataclass(frozen=True, kw_only=True)
class RopeScaling:
    """How to slow rotary frequencies, so that later positions turn no further than the trained ones did.

    Attributes:
        kind: "linear" divides all by `factor`, as if positions were (Chen et al. 2023); "ntk" enlarges the base so that
            the slowest is divided by `factor` and the fastest stays (bloc97 2023, "NTK-aware"); "llama3" leaves the
            fast, divides the slow by `factor` and goes over from one to the other in between (Llama 3.1).
        factor: s ≥ 1, how many times longer contexts become.
        low_frequency_factor: llama3: slow are those that turn fewer times than this in the original context.
        high_frequency_factor: llama3: fast are those that turn more times than this in the original context.
        original_context_length: llama3: positions in training.

    Raises:
        ValueError: a field is out of its range.
    """

    kind: str
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context_length: int = 8192

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
                values = values | {"rope_scaling": RopeScaling(**scaling)}
            return cls(**values)
        except TypeError as error:
            raise ModelError("incomplete model config: {why}", why=error) from None

    def __post_init__(self):
        sizes = ["vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff"]
        sizes += [name for name in ("num_kv_heads", "head_dim", "rotary_dim") if getattr(self, name) is not None]
        for name in sizes:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ModelError("{name} must be a positive integer, got {got!r}", name=name, got=value)
            if value > LARGEST:
                raise ModelError("{name} must be at most {most:,}, got {got:,}", name=name, most=LARGEST, got=value)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ModelError(
                    "{name} must be one of {known}, got {got!r}",
                    name=name,
                    known=", ".join(choices),
                    got=getattr(self, name),
                )
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ModelError("{name} must be true or false, got {got!r}", name=name, got=getattr(self, name))
        for name in ("dropout", "attention_dropout"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < 1:
                raise ModelError("{name} must be a number in [0, 1), got {got!r}", name=name, got=value)
        numbers = "rope_theta", "norm_eps", "embedding_multiplier"
        optional = "score_divisor", "score_cap", "logit_cap", "local_rope_theta"
        for name in (*numbers, *(name for name in optional if getattr(self, name) is not None)):
            value = getattr(self, name)
            if not is_number(value) or not 0 < value < math.inf:
                raise ModelError("{name} must be a positive number, got {got!r}", name=name, got=value)
        if not isinstance(self.windows, tuple) or not self.windows or not all(map(is_window, self.windows)):
            raise ModelError(
                "windows must be a list of positive integers, or null where a layer has none, got {got!r}",
                got=self.windows,
            )
        turning = self.rotary_layers
        if not isinstance(turning, tuple) or not turning or not all(isinstance(each, bool) for each in turning):
            raise ModelError("rotary_layers must be a list of true or false, got {got!r}", got=turning)
        if self.rope_scaling is not None and not isinstance(self.rope_scaling, RopeScaling):
            raise ModelError("rope_scaling must be a RopeScaling or None, got {got!r}", got=self.rope_scaling)
        if self.head_dim is None and self.d_model % self.num_heads:
            raise ModelError(
                "num_heads must divide d_model, got {heads} heads for d_model {width}",
                heads=self.num_heads,
                width=self.d_model,
            )
        if self.num_heads % self.kv_heads:
            raise ModelError(
                "num_kv_heads must divide num_heads, got {groups} for {heads} heads",
                groups=self.num_kv_heads,
                heads=self.num_heads,
            )
        if self.position == "rope" and self.d_head % 2:
            raise ModelError("RoPE needs an even head width, got {got}", got=self.d_head)
        if self.position == "rope" and (self.turned_dims % 2 or self.turned_dims > self.d_head):
            raise ModelError(
                "rotary_dim must be even and at most the head width {width}, got {got}",
                width=self.d_head,
                got=self.rotary_dim,
            )
        if self.position == "sinusoidal" and self.d_model % 2:
            raise ModelError("sinusoidal positions need an even d_model, got {got}", got=self.d_model)
