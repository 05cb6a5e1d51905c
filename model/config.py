"""The shape of a model."""

import math
from dataclasses import dataclass, fields

CHOICES = {"norm": ("rmsnorm",), "position": ("rope", "none"), "ffn": ("swiglu",)}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything that fixes a `TransformerLM` but its weights.

    Attributes:
        vocab_size: V, number of token ids.
        context_length: C, the most positions the model sees at once.
        d_model: D, width of the residual stream.
        num_layers: L, number of blocks.
        num_heads: H, attention heads a block; each is d_head = D / H wide.
        d_ff: F, neurons of the feed-forward's hidden layer.
        rope_theta: base of the rotary angles.
        norm: "rmsnorm".
        position: how order gets in: "rope" turns queries and keys, "none" leaves it to the causal mask.
        ffn: "swiglu".
        dropout: probability of dropping an element of the embedding or of a sublayer's output while training.
        norm_eps: ε of the norms.
        tie_embeddings: whether the unembedding is the embedding table itself.

    Raises:
        ValueError: a field is out of its range; the message says which and what was wanted.
    """

    vocab_size: int
    context_length: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    rope_theta: float = 10000.0
    norm: str = "rmsnorm"
    position: str = "rope"
    ffn: str = "swiglu"
    dropout: float = 0.0
    norm_eps: float = 1e-5
    tie_embeddings: bool = False

    @property
    def d_head(self) -> int:
        return self.d_model // self.num_heads

    @classmethod
    def llama_style(cls, **sizes) -> "ModelConfig":
        """RMSNorm, RoPE, SwiGLU, no biases (Touvron et al. 2023); d_ff about 8/3 d_model unless given."""
        if "d_model" in sizes and "d_ff" not in sizes:
            sizes["d_ff"] = -(-8 * sizes["d_model"] // (3 * 64)) * 64
        return cls(**({"norm": "rmsnorm", "position": "rope", "ffn": "swiglu"} | sizes))

    @classmethod
    def from_dict(cls, values: dict) -> "ModelConfig":
        """The config with these fields; ValueError names a field that is unknown or missing."""
        if not isinstance(values, dict):
            raise ValueError(f"a model config is an object of named settings, got {type(values).__name__}")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"unknown model setting {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(f"incomplete model config: {error}") from None

    def __post_init__(self):
        for name in ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")
        if self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model, got {self.num_heads} heads for d_model {self.d_model}")
        if self.position == "rope" and self.d_head % 2:
            raise ValueError(f"RoPE needs an even head width, got d_model / num_heads = {self.d_head}")
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be a number in [0, 1), got {self.dropout!r}")
        for name in ("rope_theta", "norm_eps"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        if not isinstance(self.tie_embeddings, bool):
            raise ValueError(f"tie_embeddings must be true or false, got {self.tie_embeddings!r}")
