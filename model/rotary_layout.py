"""The order of the rows of a query or key projection: which two dimensions of a head are rotated together."""

import torch
from torch import Tensor

from model.config import ModelConfig


def reorder_rotary_rows(weight: Tensor, config: ModelConfig) -> Tensor:
    """Reorder the rows of q_proj or k_proj, or of their biases, to our layout: (heads · d, …), same shape.

    If only r dimensions of a head are rotated, the file has them first, in two halves, then the others; we have
    them first in each half of all d. Scores do not depend on the order of dimensions.
    """
    num_rotated, num_fixed = config.num_rotary_dims // 2, (config.d_head - config.num_rotary_dims) // 2
    first, second, rest, last = weight.unflatten(0, (-1, config.d_head)).split(
        (num_rotated, num_rotated, num_fixed, num_fixed), dim=1
    )
    return torch.cat((first, rest, second, last), dim=1).flatten(0, 1)


def convert_to_half_split(weight: Tensor, d_head: int) -> Tensor:
    """Reorder (H d, …) from adjacent to half-split rotary pairs: each head's even rows, then its odd ones.

    Pairs that were neighbours are then d/2 apart.
    """
    heads = weight.reshape(-1, d_head // 2, 2, *weight.shape[1:])  # (H, d/2, 2, …)
    return heads.transpose(1, 2).reshape(weight.shape)


def convert_to_adjacent(weight: Tensor, d_head: int) -> Tensor:
    """Reorder (H d, …) from half-split to adjacent rotary pairs, the inverse of `convert_to_half_split`."""
    heads = weight.reshape(-1, 2, d_head // 2, *weight.shape[1:])  # (H, 2, d/2, …)
    return heads.transpose(1, 2).reshape(weight.shape)
