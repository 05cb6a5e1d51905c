"""The norms a `ModelConfig` can name."""

from model.layers.layernorm import LayerNorm
from model.layers.rmsnorm import RMSNorm

NORMS = {"rmsnorm": RMSNorm, "layernorm": LayerNorm}
