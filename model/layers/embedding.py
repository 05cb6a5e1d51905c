"""Token embedding."""

import torch
from torch import Tensor, nn


class Embedding(nn.Module):
    """Embedding table with one row per token id.

    `weight` is (vocab_size, d_model), drawn from N(0, 1) cut at 3.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.trunc_normal_(self.weight, std=1.0, a=-3.0, b=3.0)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.weight[token_ids]  # (B, T) -> (B, T, D)
