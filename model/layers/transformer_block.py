"""One block of the transformer."""

from functools import partial

from torch import Tensor, nn

from model.config import ModelConfig
from model.kv_cache import KVCache
from model.layers.activations import KERNELS
from model.layers.feed_forward import FeedForward
from model.layers.multihead_attention import MultiHeadSelfAttention
from model.layers.norms import NORMS
from model.layers.swiglu import SwiGLU
from model.tap import Tap

FEED_FORWARDS = {"swiglu": SwiGLU} | {
    name: partial(FeedForward, KERNELS[name]) for name in ("relu", "gelu", "gelu_tanh")
}


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each reading a normalised copy of the residual stream and adding to it.

    "Pre-norm": the stream itself is never normalised (Xiong et al. 2020, fig. 1b).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        norm = partial(NORMS[config.norm], eps=config.norm_eps)
        self.attn_norm = norm(config.d_model)
        self.attn = MultiHeadSelfAttention(
            config.d_model,
            config.num_heads,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            bias=config.bias,
            qkv_bias=config.qkv_bias,
            qk_norm=norm if config.qk_norm else None,
            rope_layout=config.rope_layout,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
        )
        self.ffn_norm = norm(config.d_model)
        self.ffn = FEED_FORWARDS[config.ffn](config.d_model, config.d_ff, config.bias, config.dropout)
        self.resid_pre, self.resid_mid, self.resid_post = Tap(), Tap(), Tap()

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        padding: Tensor | None = None,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> Tensor:
        """(B, T, D) -> (B, T, D); the arguments are those of `MultiHeadSelfAttention`."""
        x = self.resid_pre(x)
        x = self.resid_mid(x + self.attn(self.attn_norm(x), rotation, padding, cache, layer))
        return self.resid_post(x + self.ffn(self.ffn_norm(x)))


class PostNormBlock(TransformerBlock):
    """Attention, then feed-forward, each adding to the stream, which is normalised after either.

    "Post-norm" (Vaswani et al. 2017, §3.1; Xiong et al. 2020, fig. 1a): the next block reads the output of `ffn_norm`.
    """

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        padding: Tensor | None = None,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> Tensor:
        x = self.resid_pre(x)
        x = self.attn_norm(self.resid_mid(x + self.attn(x, rotation, padding, cache, layer)))
        return self.ffn_norm(self.resid_post(x + self.ffn(x)))


BLOCKS = {"pre": TransformerBlock, "post": PostNormBlock}
