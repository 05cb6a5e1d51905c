"""Norms by their names in a `ModelConfig`, and norms of the vectors of all heads together."""

from torch import Tensor

from model.layers.layernorm import LayerNorm
from model.layers.rmsnorm import RMSNorm


class NormOverHeadsMixin:
    """Mixin that applies a norm to the vectors of all heads together: (..., H, T, d) as vectors of width H d."""

    def forward(self, x: Tensor) -> Tensor:
        together = super().forward(x.transpose(-3, -2).flatten(-2))  # (..., T, H d)
        return together.unflatten(-1, (x.shape[-3], -1)).transpose(-3, -2)


class RMSNormOverHeads(NormOverHeadsMixin, RMSNorm):
    """RMSNorm of a token's queries, or keys, as one vector (OLMo 2: Walsh et al. 2025)."""


class LayerNormOverHeads(NormOverHeadsMixin, LayerNorm):
    """LayerNorm of a token's queries, or keys, as one vector."""


NORMS = {"rmsnorm": RMSNorm, "layernorm": LayerNorm}
QK_NORMS = {"head": NORMS, "all": {"rmsnorm": RMSNormOverHeads, "layernorm": LayerNormOverHeads}}
