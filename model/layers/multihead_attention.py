"""Multi-head causal self-attention."""

from torch import Tensor, nn

from model.kv_cache import KVCache
from model.layers.attention import attention_pattern, attention_scores, causal_mask, fused_attention
from model.layers.dropout import Dropout
from model.layers.linear import Linear
from model.layers.rope import rotate
from model.tap import Tap


class MultiHeadSelfAttention(nn.Module):
    """Heads look back independently; `o_proj` mixes what they bring (Vaswani et al. 2017, §3.2.2).

    The heads are a reshape of one projection: rows h·d to (h+1)·d of `q_proj.weight` belong to head h.
    Where a hook watches `scores` or `pattern` they are computed as written; otherwise a fused kernel gives the
    same z without forming them.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = Linear(d_model, d_model)
        self.k_proj = Linear(d_model, d_model)
        self.v_proj = Linear(d_model, d_model)
        self.o_proj = Linear(d_model, d_model)
        self.dropout = Dropout(dropout)
        self.q, self.k, self.v = Tap(), Tap(), Tap()
        self.q_rot, self.k_rot = Tap(), Tap()
        self.scores, self.pattern, self.z, self.out = Tap(), Tap(), Tap(), Tap()

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> Tensor:
        """(B, T, D) -> (B, T, D).

        Args:
            x: the normalised residual stream.
            rotation: cosines and sines of the positions' angles, (1, T, F) each; None leaves q and k as they are.
            cache: keys and values of the positions before these; extended by these.
            layer: which layer's part of the cache to use.
        """
        q = self.q(self.split_heads(self.q_proj(x)))  # (B, H, T, d)
        k = self.k(self.split_heads(self.k_proj(x)))
        v = self.v(self.split_heads(self.v_proj(x)))
        if rotation is not None:
            q, k = self.q_rot(rotate(q, *rotation)), self.k_rot(rotate(k, *rotation))
        if cache is not None:
            k, v = cache.append(layer, k, v)  # (B, H, K, d)
        z = self.z(self.attend(q, k, v))  # (B, H, T, d)
        return self.out(self.dropout(self.o_proj(z.transpose(1, 2).flatten(-2))))  # (B, T, D)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """softmax(q kᵀ / √d) v over the positions up to each query's own: (B, H, T, d)."""
        if not (self.scores.is_watched or self.pattern.is_watched):
            return fused_attention(q, k, v)
        scores = self.scores(attention_scores(q, k))  # (B, H, T, K)
        mask = causal_mask(q.shape[-2], k.shape[-2], q.device)
        return self.pattern(attention_pattern(scores, mask)) @ v

    def split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, T, H d) -> (B, H, T, d)
