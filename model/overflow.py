"""Detection of numbers that overflow in a model, before they are taken for probabilities."""

import math

import torch
from torch import Tensor

from model.errors import ModelError


class OverflowedRunError(ModelError):
    """A run whose logits are infinite or NaN; the message proposes a remedy."""


def check_finite(values: Tensor, dtype: torch.dtype) -> None:
    """Raise OverflowedRunError unless all values are finite numbers.

    Args:
        values: logits, or the input of the unembedding.
        dtype: the type that the model computes with.
    """
    if not values.numel() or all(map(math.isfinite, values.detach().aminmax())):
        return
    name = str(dtype).removeprefix("torch.")
    if dtype == torch.float16:
        reason = ModelError(
            "the numbers of this model overflow in {dtype}, which ends at 65,504: open it in float32 (python app.py "
            "--dtype float32, or load_checkpoint(…, dtype=torch.float32))",
            dtype=name,
        )
    else:
        reason = ModelError(
            "the numbers of this run overflow in {dtype}: weaken its interventions, or check the model’s weights",
            dtype=name,
        )
    raise OverflowedRunError("{why}", why=reason)
