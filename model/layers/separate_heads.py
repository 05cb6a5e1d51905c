"""Multi-head attention with a projection of its own for every head."""

import torch
from torch import Tensor, nn

from model.layers.attention import causal_mask, scaled_dot_product_attention
from model.layers.linear import Linear
from model.layers.multihead_attention import MultiHeadSelfAttention
from model.layers.rope import rotate_adjacent


class AttentionHead(nn.Module):
    """A single head: softmax(q kᵀ / √d) v with its own projections (Vaswani et al. 2017, §3.2.1)."""

    def __init__(self, d_model: int, d_head: int):
        super().__init__()
        self.q_proj = Linear(d_model, d_head)
        self.k_proj = Linear(d_model, d_head)
        self.v_proj = Linear(d_model, d_head)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Attend causally: (B, T, D) -> (B, T, d); `rotation` as in `MultiHeadSelfAttention`."""
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, T, d) each
        if rotation is not None:
            q, k = rotate_adjacent(q, *rotation), rotate_adjacent(k, *rotation)
        return scaled_dot_product_attention(q, k, v, causal_mask(x.shape[-2], x.shape[-2], device=x.device))


class SeparateHeadsSelfAttention(nn.Module):
    """`MultiHeadSelfAttention` as papers draw it: H separate heads, their outputs concatenated and mixed.

    The same function with the same number of parameters; slower, because H small products replace a large one. For
    reading and comparison: it has no cache and no taps.
    """

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.heads = nn.ModuleList(AttentionHead(d_model, d_model // num_heads) for _ in range(num_heads))
        self.o_proj = Linear(d_model, d_model)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Attend with every head and mix the outputs: (B, T, D) -> (B, T, D)."""
        return self.o_proj(torch.cat([head(x, rotation) for head in self.heads], dim=-1))  # H times (B, T, d)


def separate_heads(joined: MultiHeadSelfAttention) -> SeparateHeadsSelfAttention:
    """Copy attention into separate heads; rows h·d to (h+1)·d of each projection go to head h.

    Raises:
        ValueError: it has biases, norms of queries and keys, shared keys, a window, a cap, another divisor or
            layout.
    """
    d_model, num_heads = joined.o_proj.weight.shape[0], joined.num_heads
    plain = MultiHeadSelfAttention(d_model, num_heads)
    if (joined.score_divisor, joined.score_cap, joined.window) != (plain.score_divisor, None, None):
        raise ValueError("only attention to all tokens, its scores divided by √d and not capped, can be taken apart")
    if joined.state_dict().keys() != plain.state_dict().keys() or joined.num_kv_heads != num_heads:
        raise ValueError("only attention without biases, norms and shared keys can be taken apart")
    if joined.rotate is not rotate_adjacent:
        raise ValueError("only attention that rotates adjacent dimensions can be taken apart")
    separate = SeparateHeadsSelfAttention(d_model, num_heads).to(joined.o_proj.weight.device)
    weights = {"o_proj.weight": joined.o_proj.weight}
    for name in ("q_proj", "k_proj", "v_proj"):
        for h, rows in enumerate(getattr(joined, name).weight.chunk(num_heads)):  # (d, D) each
            weights[f"heads.{h}.{name}.weight"] = rows
    separate.load_state_dict(weights)
    return separate


def join_heads(separate: SeparateHeadsSelfAttention) -> MultiHeadSelfAttention:
    """Copy separate heads into one `MultiHeadSelfAttention`; inverse of `separate_heads`."""
    joined = MultiHeadSelfAttention(separate.o_proj.weight.shape[0], len(separate.heads))
    joined.to(separate.o_proj.weight.device)
    weights = {"o_proj.weight": separate.o_proj.weight}
    for name in ("q_proj", "k_proj", "v_proj"):
        weights[f"{name}.weight"] = torch.cat([getattr(head, name).weight for head in separate.heads])
    joined.load_state_dict(weights)
    return joined
