"""GEGLU feed-forward."""

from model.layers.activations import KERNELS
from model.layers.swiglu import SwiGLU


class GEGLU(SwiGLU):
    """GEGLU feed-forward: down(GELU(gate x) ⊙ up x) (Shazeer 2020, eq. 6), with GELU's approximation by tanh.

    (..., D) -> (..., D), through a hidden layer of F = `d_ff` neurons.
    """

    activation = staticmethod(KERNELS["gelu_tanh"])
