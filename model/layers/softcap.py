"""Soft-capping."""

import torch
from torch import Tensor


def softcap(x: Tensor, cap: float | None) -> Tensor:
    """c · tanh(x / c): about x where |x| is well below c, and never beyond ± c (Bello et al. 2017, arXiv:1611.09940; of
    scores and logits in Gemma 2, Riviere et al. 2024). x itself where c is None."""
    return x if cap is None else cap * torch.tanh(x / cap)
