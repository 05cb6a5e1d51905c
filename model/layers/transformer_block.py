"""Transformer blocks, one class for each placement of the norms."""

from functools import partial

from torch import Tensor, nn

from model.config import ModelConfig
from model.layers.attention import MultiHeadSelfAttention
from model.layers.basic_layers import NORMS, QK_NORMS, Tap
from model.layers.feed_forward import GEGLU, KERNELS, FeedForward, SwiGLU

FEED_FORWARDS = {"swiglu": SwiGLU, "geglu": GEGLU} | {
    name: partial(FeedForward, KERNELS[name]) for name in ("relu", "relu2", "gelu", "gelu_tanh")
}


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each reading a normalised copy of the residual stream and adding to it.

    "Pre-norm": the stream itself is never normalised (Xiong et al. 2020, fig. 1b).
    """

    def __init__(self, config: ModelConfig, layer: int = 0):
        super().__init__()
        self.attn_norm = build_norm(config)
        self.attn = build_attention(config, layer)
        self.ffn_norm = build_norm(config)
        self.ffn = build_feed_forward(config)
        self.resid_pre, self.resid_mid, self.resid_post = Tap(), Tap(), Tap()

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        """Apply the block: (B, T, D) -> (B, T, D); further arguments go to `MultiHeadSelfAttention`."""
        x = self.resid_pre(x)
        x = self.resid_mid(x + self.attn(self.attn_norm(x), *args, **kwargs))
        return self.resid_post(x + self.ffn(self.ffn_norm(x)))


class PostNormBlock(TransformerBlock):
    """Attention, then feed-forward, each adding to the stream, which is normalised after each.

    "Post-norm" (Vaswani et al. 2017, §3.1; Xiong et al. 2020, fig. 1a): the next block reads the output of
    `ffn_norm`.
    """

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        x = self.resid_pre(x)
        x = self.attn_norm(self.resid_mid(x + self.attn(x, *args, **kwargs)))
        return self.ffn_norm(self.resid_post(x + self.ffn(x)))


class OutputNormBlock(TransformerBlock):
    """Attention, then feed-forward, each reading the stream itself; the output of each is normalised, then added.

    Liu et al. 2022, arXiv:2111.09883; OLMo 2: Walsh et al. 2025, arXiv:2501.00656.
    """

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        x = self.resid_pre(x)
        x = self.resid_mid(x + self.attn_norm(self.attn(x, *args, **kwargs)))
        return self.resid_post(x + self.ffn_norm(self.ffn(x)))


class SandwichBlock(TransformerBlock):
    """Attention, then feed-forward, each with a norm of its input and a norm of its output, which is added.

    "Sandwich" (Ding et al. 2021, arXiv:2105.13290; Gemma 2: Riviere et al. 2024).
    """

    def __init__(self, config: ModelConfig, layer: int = 0):
        super().__init__(config, layer)
        self.attn_out_norm, self.ffn_out_norm = build_norm(config), build_norm(config)

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        x = self.resid_pre(x)
        fetched = self.attn(self.attn_norm(x), *args, **kwargs)
        x = self.resid_mid(x + self.attn_out_norm(fetched))
        return self.resid_post(x + self.ffn_out_norm(self.ffn(self.ffn_norm(x))))


class ParallelBlock(nn.Module):
    """Attention and feed-forward in parallel: each reads its own normalised copy of the same stream.

    x + attention(norm x) + feed-forward(norm x) (Wang & Komatsuzaki 2021; GPT-NeoX: Black et al. 2022, §2.1.2).
    """

    def __init__(self, config: ModelConfig, layer: int = 0):
        super().__init__()
        self.attn_norm = build_norm(config)
        self.attn = build_attention(config, layer)
        self.ffn_norm = build_norm(config)
        self.ffn = build_feed_forward(config)
        self.resid_pre, self.resid_post = Tap(), Tap()

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        x = self.resid_pre(x)
        fetched = self.attn(self.attn_norm(x), *args, **kwargs)
        return self.resid_post(x + fetched + self.ffn(self.ffn_norm(x)))


class SharedNormBlock(nn.Module):
    """Attention and feed-forward in parallel: both read the same normalised copy of the stream.

    x + attention(y) + feed-forward(y), y = norm x (Wang & Komatsuzaki 2021; Phi: Li et al. 2023).
    """

    def __init__(self, config: ModelConfig, layer: int = 0):
        super().__init__()
        self.attn_norm = build_norm(config)
        self.attn = build_attention(config, layer)
        self.ffn = build_feed_forward(config)
        self.resid_pre, self.resid_post = Tap(), Tap()

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        x = self.resid_pre(x)
        y = self.attn_norm(x)
        fetched = self.attn(y, *args, **kwargs)
        return self.resid_post(x + fetched + self.ffn(y))


BLOCKS = {
    "pre": TransformerBlock,
    "post": PostNormBlock,
    "parallel": ParallelBlock,
    "shared": SharedNormBlock,
    "output": OutputNormBlock,
    "sandwich": SandwichBlock,
}


def build_norm(config: ModelConfig) -> nn.Module:
    """Return a new norm of the residual stream."""
    return NORMS[config.norm](config.d_model, config.norm_eps)


def build_attention(config: ModelConfig, layer: int) -> MultiHeadSelfAttention:
    """Build a layer's attention by the config."""
    return MultiHeadSelfAttention(
        config.d_model,
        config.num_heads,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        bias=config.bias,
        qkv_bias=config.has_qkv_bias,
        qk_norm=partial(QK_NORMS[config.qk_norm_over][config.norm], eps=config.norm_eps) if config.qk_norm else None,
        qk_norm_over=config.qk_norm_over,
        score_divisor=config.score_divisor,
        score_cap=config.score_cap,
        window=config.window(layer),
        rotates=config.has_rope(layer),
        rope_layout=config.rope_layout,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
    )


def build_feed_forward(config: ModelConfig) -> nn.Module:
    """Build a feed-forward by the config."""
    return FEED_FORWARDS[config.ffn](config.d_model, config.d_ff, config.has_ffn_bias, config.dropout)
