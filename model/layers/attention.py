"""Scaled dot-product attention."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def causal_mask(num_queries: int, num_keys: int, device: torch.device | str = "cpu") -> Tensor:
    """(Q, K) booleans, True where a query may look: at its own position and before.

    The queries are the last `num_queries` of the `num_keys` positions.
    """
    allowed = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return allowed.tril(num_keys - num_queries)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d) V, masked (Vaswani et al. 2017, eq. 1).

    Args:
        q: queries (..., Q, d).
        k: keys (..., K, d).
        v: values (..., K, d).
        mask: (Q, K) booleans, True where a query may look; None lets it look everywhere.

    Returns:
        (..., Q, d), for each query the average of the values weighted by its attention pattern.
    """
    return attention_pattern(attention_scores(q, k), mask) @ v


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """Q Kᵀ / √d: (..., Q, d), (..., K, d) -> (..., Q, K)."""
    return (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # scaling q touches fewer numbers than scaling the scores


def attention_pattern(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax of the scores over the keys, 0 where the mask is False: (..., Q, K) -> (..., Q, K), rows sum to 1.

    PyTorch's kernel stands in for `softmax`, which takes five passes over the scores where it takes one.
    """
    if mask is not None:
        scores = scores.where(mask, -math.inf)
    return torch.softmax(scores, dim=-1)


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal `scaled_dot_product_attention` by PyTorch's fused kernel, which never forms the scores.

    The queries are the last Q of the K positions.
    """
    num_queries, num_keys = q.shape[-2], k.shape[-2]
    if num_queries == num_keys:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    mask = None if num_queries == 1 else causal_mask(num_queries, num_keys, q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
