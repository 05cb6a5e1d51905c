"""Soft-capping."""

import torch
from torch import Tensor


def softcap(x: Tensor, cap: float | None) -> Tensor:
    """Soft-cap: c · tanh(x / c), about x where |x| is well below c, never beyond ± c; x itself where c is None.

    Bello et al. 2017, arXiv:1611.09940; of scores and logits in Gemma 2, Riviere et al. 2024.
    """
    return x if cap is None else cap * torch.tanh(x / cap)
