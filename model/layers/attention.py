"""Scaled dot-product attention, multi-head self-attention as a reshape and head by head, and the key-value cache."""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.layers.basic_layers import Dropout, Linear, Tap
from model.layers.positions import ROTATIONS


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Softmax along `dim`: exp(xᵢ - max x) / Σⱼ exp(xⱼ - max x); same shape as `x`.

    Subtracting the maximum changes nothing in the quotient and keeps exp from overflowing. Where everything is -∞,
    as in a row that is masked throughout, the result is 0. If x has fewer bits than float32, only the result is
    rounded.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    limits = torch.finfo(wide.dtype)
    exps = torch.exp(wide - wide.amax(dim, keepdim=True).clamp(min=limits.min))
    return (exps / exps.sum(dim, keepdim=True).clamp(min=limits.tiny)).to(x.dtype)


def softcap(x: Tensor, cap: float | None) -> Tensor:
    """Soft-cap: c · tanh(x / c), about x where |x| is well below c, never beyond ± c; x itself where c is None.

    Bello et al. 2017, arXiv:1611.09940; of scores and logits in Gemma 2, Riviere et al. 2024.
    """
    return x if cap is None else cap * torch.tanh(x / cap)


def causal_mask(
    num_queries: int,
    num_keys: int,
    padding: Tensor | None = None,
    device: torch.device | str = "cpu",
    window: int | None = None,
) -> Tensor:
    """Return (Q, K) booleans, True where a query may attend to a key: at its own position and before.

    With a window, only the last `window` of these positions ("local" attention: Child et al. 2019). The queries
    are the last `num_queries` of the `num_keys` positions. With `padding`, (B, K) booleans that are False where a
    position holds no token, those keys are masked too: (B, 1, Q, K).
    """
    last = num_keys - num_queries  # position of the first query
    allowed = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(last)
    allowed = allowed if window is None else allowed.triu(last - window + 1)
    return allowed if padding is None else allowed & padding[:, None, None, :]


@lru_cache(2)  # all layers of a pass ask for the same one, or for two where some see a window
@torch.inference_mode(False)
def additive_causal_mask(
    num_queries: int, num_keys: int, device: torch.device, dtype: torch.dtype, window: int | None = None
) -> Tensor:
    """Return the `causal_mask` as a read-only (Q, K) term of the scores: 0 where it allows, −∞ elsewhere."""
    return torch.where(causal_mask(num_queries, num_keys, device=device, window=window), 0.0, -math.inf).to(dtype)


def padding_mask(lengths: Tensor, num_keys: int) -> Tensor:
    """Return (B, K) booleans, True at the first `lengths` (B,) positions of each sequence, False at padding."""
    return torch.arange(num_keys, device=lengths.device) < lengths[:, None]


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, divisor: float | None = None
) -> Tensor:
    """Return softmax(Q Kᵀ / √d) V, masked (Vaswani et al. 2017, eq. 1); √d, or another divisor.

    Args:
        q: queries (..., Q, d).
        k: keys (..., K, d).
        v: values (..., K, d).
        mask: see `attention_pattern`.

    Returns:
        (..., Q, d), for each query the average of the values weighted by its attention pattern; 0 where the mask
        allows no key.
    """
    return attention_pattern(attention_scores(q, k, divisor), mask) @ v


def attention_scores(q: Tensor, k: Tensor, divisor: float | None = None) -> Tensor:
    """Attention scores Q Kᵀ / √d, or with another divisor: (..., Q, d), (..., K, d) -> (..., Q, K)."""
    divisor = divisor or math.sqrt(q.shape[-1])
    return (q / divisor) @ k.transpose(-2, -1)  # scaling q touches fewer numbers than scaling the scores


def attention_pattern(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the softmax of the scores over the keys, 0 where the mask is False: (..., Q, K) -> (..., Q, K).

    Rows sum to 1, except rows without an allowed key, which are 0. Without padding PyTorch's kernel replaces
    `softmax`: it takes one pass over the scores instead of five.

    Args:
        mask: (Q, K) or (B, 1, Q, K) booleans, True where a query may attend, or an `additive_causal_mask`; None allows
            every key.
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    if mask.ndim > 2:  # padding may leave a query nowhere to look
        return softmax(scores.where(mask, -math.inf))
    # To add one mask to all heads is several times as fast as to choose among all their scores.
    penalty = torch.where(mask, 0.0, -math.inf).to(scores.dtype) if mask.dtype == torch.bool else mask  # (Q, K)
    return torch.softmax(scores + penalty, dim=-1)


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    padding: Tensor | None = None,
    dropout: float = 0.0,
    divisor: float | None = None,
    window: int | None = None,
) -> Tensor:
    """Compute causal `scaled_dot_product_attention` by PyTorch's fused kernel, which never forms the scores.

    Args:
        q: the queries of the last Q positions (B, H, Q, d).
        k: keys (B, G, K, d), each for H / G heads of queries.
        v: values (B, G, K, d).
        padding: (B, K) booleans, True where a position holds a token; None: everywhere.
        dropout: probability of dropping an element of the pattern.
        divisor: of the scores; None: √d.
        window: number of positions that a query attends to, its own the last; None: all up to its own.
    """
    num_queries, num_keys = q.shape[-2], k.shape[-2]
    kwargs = {"dropout_p": dropout, "enable_gqa": q.shape[1] != k.shape[1], "scale": 1 / divisor if divisor else None}
    if window is not None and window < num_keys:
        mask = causal_mask(num_queries, num_keys, padding, q.device, window)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **kwargs)
    if padding is None and num_queries == num_keys:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, **kwargs)
    if padding is None and num_queries == 1:
        return F.scaled_dot_product_attention(q, k, v, **kwargs)
    mask = causal_mask(num_queries, num_keys, padding, q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **kwargs)


class KVCache:
    """Rotated keys and values of all positions so far, so that a new token attends to them without recomputation.

    Args:
        config: the model's configuration.
        batch_size: number of sequences.
        device, dtype: of the model's weights.

    Attributes:
        length: number of positions filled.
        entries: (num_layers, 2, B, G, context_length, d_head), G = kv_heads; keys are [:, 0], values [:, 1].
    """

    def __init__(self, config, batch_size: int = 1, device: torch.device | str = "cpu", dtype=torch.float32):
        shape = (config.num_layers, 2, batch_size, config.kv_heads, config.context_length, config.d_head)
        self.entries = torch.empty(shape, device=device, dtype=dtype)
        self.length = 0

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store k and v, each (B, G, T, d), after the filled positions; return those of all positions (B, G, K, d).

        The caller advances `length` when every layer has stored its part.
        """
        end = self.length + k.shape[-2]
        keys, values = self.entries[layer].unbind(0)  # (B, G, C, d) each
        keys[..., self.length : end, :] = k
        values[..., self.length : end, :] = v
        # If a model is sharded over several GPUs, layers compute on other devices than the cache's.
        return keys[..., :end, :].to(k.device), values[..., :end, :].to(v.device)

    def extend(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Add one more position of a single sequence, to be filled by the caller.

        Returns:
            for each layer the slot for the new key and value (2, G, d), then the keys and the values of all
            positions, including the new one, (G, K, d) each.

        Raises:
            ValueError: the cache is full.
        """
        if self.length == self.entries.shape[-2]:
            raise ValueError(f"the cache is full: it holds {self.length} positions")
        single = self.entries[:, :, 0]  # (L, 2, G, C, d)
        slots = single.select(-2, self.length)  # (L, 2, G, d)
        self.length += 1
        keys, values = single.narrow(-2, 0, self.length).unbind(1)  # (L, G, K, d) each
        return zip(slots.unbind(), keys.unbind(), values.unbind(), strict=True)


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
