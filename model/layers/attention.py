"""Scaled dot-product attention."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from model.layers.softmax import softmax


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
