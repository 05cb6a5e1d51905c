"""RMSNorm and LayerNorm in replaceable pieces, so that a bug can change one of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class NormPieces:
    """The norm c / root(mean c², ε) · g + β, where c = x or x − mean x.

    Attributes:
        scaled: (c, gain) -> the dividend, where the gain is applied before the division.
        centre: x -> c.
        measured: (x, c) -> the values to be squared.
        mean: squares -> (…, 1).
        epsilon: (ε of the config, D) -> the ε used.
        root: (mean, ε) -> the divisor.
        applied: (quotient, gain, shift or None) -> the norm's output.
        times: number of times the norm is applied.
        weights: full name of the norm -> that of the norm whose gain and shift it uses.
    """

    centre: Callable[[Tensor], Tensor]
    applied: Callable[[Tensor, Tensor, Tensor | None], Tensor]
    measured: Callable[[Tensor, Tensor], Tensor] = lambda x, c: c
    mean: Callable[[Tensor], Tensor] = lambda squares: squares.mean(-1, keepdim=True)
    epsilon: Callable[[float, int], float] = lambda eps, width: eps
    root: Callable[[Tensor, float], Tensor] = lambda mean, eps: torch.sqrt(mean + eps)

    scaled: Callable[[Tensor, Tensor], Tensor] = lambda x, gain: x
    times: int = 1
    weights: Callable[[str], str] = lambda name: name

    def __call__(self, x: Tensor, gain: Tensor, shift: Tensor | None, eps: float) -> Tensor:
        for _time in range(self.times):
            c = self.scaled(self.centre(x), gain)
            divisor = self.root(self.mean(self.measured(x, c).square()), self.epsilon(eps, x.shape[-1]))
            x = self.applied(c / divisor, gain, shift)
        return x

    def replace(self, **changed) -> "NormPieces":
        return replace(self, **changed)


def subtract_mean(x: Tensor) -> Tensor:
    """Return the vectors minus their means."""
    return x - x.mean(-1, keepdim=True)


def identity(x: Tensor) -> Tensor:
    """Return the argument."""
    return x


def with_gain(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    """Return the normalised vectors times the gain, plus the shift if there is one."""
    return y * gain if shift is None else y * gain + shift


RMS_NORM = NormPieces(centre=identity, applied=with_gain)
LAYER_NORM = NormPieces(centre=subtract_mean, applied=with_gain)
