"""RMSNorm and LayerNorm piece by piece, so that a slip in one leaves the others as they are."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Norm:
    """c / root(mean c², ε) · g + β of c = x or x − mean x.

    Attributes:
        scaled: (c, gain) -> what is divided, where the gain comes before the division.
        centre: x -> c.
        measured: (x, c) -> what is squared.
        mean: squares -> (…, 1).
        epsilon: (ε of the config, D) -> that which is used.
        root: (mean, ε) -> what c is divided by.
        applied: (the quotient, gain, shift or None) -> what the norm gives.
        times: how often the norm is applied.
        weights: whole name of the norm -> of that whose gain and shift it has.
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

    def but(self, **changed) -> "Norm":
        return replace(self, **changed)


def centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def as_it_is(x: Tensor) -> Tensor:
    return x


def with_gain(y: Tensor, gain: Tensor, shift: Tensor | None) -> Tensor:
    return y * gain if shift is None else y * gain + shift


RMS_NORM = Norm(centre=as_it_is, applied=with_gain)
LAYER_NORM = Norm(centre=centred, applied=with_gain)
