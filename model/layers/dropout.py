"""Dropout."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Dropout: each element is 0 with probability p, the rest is scaled by 1 / (1 - p); identity in eval mode.

    Srivastava et al. 2014, in the "inverted" form that leaves inference untouched.
    """

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        keep = torch.rand_like(x) >= self.p
        return x * keep / (1 - self.p)
