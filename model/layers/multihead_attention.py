"""Multi-head causal self-attention."""

import math
from collections.abc import Callable

from torch import Tensor, nn

from model.kv_cache import KVCache
from model.layers.attention import (
    additive_causal_mask,
    attention_pattern,
    attention_scores,
    causal_mask,
    fused_attention,
)
from model.layers.dropout import Dropout
from model.layers.linear import Linear
from model.layers.rope import ROTATIONS
from model.layers.softcap import softcap
from model.tap import Tap


class MultiHeadSelfAttention(nn.Module):
    """Multi-head causal self-attention: independent heads, whose outputs `o_proj` mixes (Vaswani et al. 2017, §3.2.2).

    The heads are a reshape of one projection: rows h·d to (h+1)·d of `q_proj.weight` belong to head h. With fewer
    heads of keys and values than of queries, each serves a group of neighbours (Ainslie et al. 2023).
    If `scores` or `pattern` has a hook, or scores are capped, they are computed explicitly; otherwise a fused
    kernel computes the same z without forming them.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = False,
        qkv_bias: bool | None = None,
        qk_norm: Callable[[int], nn.Module] | None = None,
        qk_norm_over: str = "head",
        score_divisor: float | None = None,
        score_cap: float | None = None,
        window: int | None = None,
        rotates: bool = True,
        rope_layout: str = "adjacent",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ):
        """Initialise from fields of `ModelConfig`, except three.

        `qk_norm` makes a norm of a given width; `window` and `rotates` are the layer's own.
        """
        super().__init__()
        qkv_bias = bias if qkv_bias is None else qkv_bias
        d_head = head_dim or d_model // num_heads
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads or num_heads
        self.q_proj = Linear(d_model, num_heads * d_head, qkv_bias)
        self.k_proj = Linear(d_model, self.num_kv_heads * d_head, qkv_bias)
        self.v_proj = Linear(d_model, self.num_kv_heads * d_head, qkv_bias)
        self.o_proj = Linear(num_heads * d_head, d_model, bias)
        q_width, k_width = d_head, d_head
        if qk_norm_over == "all":
            q_width, k_width = num_heads * d_head, self.num_kv_heads * d_head
        self.q_norm = qk_norm(q_width) if qk_norm else nn.Identity()
        self.k_norm = qk_norm(k_width) if qk_norm else nn.Identity()
        self.score_divisor, self.score_cap, self.window = score_divisor or math.sqrt(d_head), score_cap, window
        self.rotate = ROTATIONS[rope_layout] if rotates else skip_rotation
        self.pattern_dropout = Dropout(attention_dropout)
        self.dropout = Dropout(dropout)
        self.q, self.k, self.v = Tap(), Tap(), Tap()
        self.q_rot, self.k_rot = Tap(), Tap()
        self.scores, self.pattern, self.z, self.out = Tap(), Tap(), Tap(), Tap()

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        padding: Tensor | None = None,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> Tensor:
        """Attend: (B, T, D) -> (B, T, D).

        Args:
            x: the normalised residual stream.
            rotation: cosines and sines of the positions' angles, (B or 1, T, F) each; None leaves q and k as they
                are.
            padding: (B, K) booleans, True where a position holds a token; None: everywhere.
            cache: keys and values of earlier positions; extended by these.
            layer: index of the layer in the cache.
        """
        q = self.q(self.q_norm(split_heads(self.q_proj(x), self.num_heads)))  # (B, H, T, d)
        k = self.k(self.k_norm(split_heads(self.k_proj(x), self.num_kv_heads)))  # (B, G, T, d)
        v = self.v(split_heads(self.v_proj(x), self.num_kv_heads))
        if rotation is not None:
            cos, sin = (part.unsqueeze(-3) for part in rotation)  # (B, 1, T, F): the same for all heads
            q, k = self.q_rot(self.rotate(q, cos, sin)), self.k_rot(self.rotate(k, cos, sin))
        if cache is not None:
            k, v = cache.append(layer, k, v)  # (B, G, K, d)
        z = self.z(self.attend(q, k, v, padding))  # (B, H, T, d)
        return self.out(self.dropout(self.o_proj(z.transpose(1, 2).flatten(-2))))  # (B, T, D)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None = None) -> Tensor:
        """Return softmax(q kᵀ / √d) v over the tokens up to each query's own position: (B, H, T, d)."""
        if not (self.scores.has_hooks or self.pattern.has_hooks or self.score_cap):
            dropout = self.pattern_dropout.p if self.training else 0.0
            return fused_attention(q, k, v, padding, dropout, self.score_divisor, self.window)
        k, v = repeat_heads(k, self.num_heads), repeat_heads(v, self.num_heads)
        scores = self.scores(attention_scores(q, k, self.score_divisor))  # (B, H, T, K)
        is_within_window = self.window is None or k.shape[-2] <= self.window
        attends_everywhere = q.shape[-2] == 1 and padding is None and is_within_window  # the last position, alone
        mask = None if attends_everywhere else self.mask(scores, padding)
        return self.pattern_dropout(self.pattern(attention_pattern(softcap(scores, self.score_cap), mask))) @ v

    def mask(self, scores: Tensor, padding: Tensor | None) -> Tensor:
        """Return the mask for `attention_pattern`: additive without padding, else boolean."""
        if padding is None:
            return additive_causal_mask(*scores.shape[-2:], scores.device, scores.dtype, self.window)
        return causal_mask(*scores.shape[-2:], padding, scores.device, self.window)


def skip_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return x unchanged: the `rotate` of layers without rotary positions."""
    return x


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Split (B, T, H d) into heads (B, H, T, d)."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (B, T, H d) -> (B, H, T, d)


def repeat_heads(x: Tensor, num_heads: int) -> Tensor:
    """Repeat each of G heads for its whole group: (B, G, K, d) -> (B, H, K, d)."""
    return x if x.shape[1] == num_heads else x.repeat_interleave(num_heads // x.shape[1], dim=1)
