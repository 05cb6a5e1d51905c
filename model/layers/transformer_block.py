"""One block of the transformer."""

from torch import Tensor, nn

from model.config import ModelConfig
from model.kv_cache import KVCache
from model.layers.multihead_attention import MultiHeadSelfAttention
from model.layers.rmsnorm import RMSNorm
from model.layers.swiglu import SwiGLU
from model.tap import Tap

NORMS = {"rmsnorm": RMSNorm}
FEED_FORWARDS = {"swiglu": SwiGLU}


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each reading a normalised copy of the residual stream and adding to it.

    "Pre-norm": the stream itself is never normalised (Xiong et al. 2020, fig. 1b).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.attn_norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.attn = MultiHeadSelfAttention(config.d_model, config.num_heads, config.dropout)
        self.ffn_norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.ffn = FEED_FORWARDS[config.ffn](config.d_model, config.d_ff, config.dropout)
        self.resid_pre, self.resid_mid, self.resid_post = Tap(), Tap(), Tap()

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> Tensor:
        """(B, T, D) -> (B, T, D); the arguments are those of `MultiHeadSelfAttention`."""
        x = self.resid_pre(x)
        x = self.resid_mid(x + self.attn(self.attn_norm(x), rotation, cache, layer))
        return self.resid_post(x + self.ffn(self.ffn_norm(x)))
