"""Sizes and shapes of captured values."""

from dataclasses import dataclass

import numpy as np

from explorer.trace import Trace


@dataclass(frozen=True)
class Statistics:
    """Of all elements of an array."""

    mean: float
    std: float
    rms: float
    smallest: float
    largest: float
    zeros: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Statistics":
        """`zeros` is the share of elements that are exactly 0."""
        values = values.astype(np.float64)
        return cls(
            mean=float(values.mean()),
            std=float(values.std()),
            rms=float(np.sqrt((values**2).mean())),
            smallest=float(values.min()),
            largest=float(values.max()),
            zeros=float((values == 0).mean()),
        )


def matrix_at(trace: Trace, tap: str, head: int) -> np.ndarray:
    """The value at a tap as tokens × dimensions: (T, N); of a value a head, the one the chosen head works with."""
    return trace.of_head(tap, head) if trace[tap].ndim == 3 else trace[tap]


@dataclass(frozen=True)
class ResidualNorms:
    """Lengths along the depth of the model.

    Attributes:
        stages: the names of the 2 L + 1 places: the embedding, then after each sublayer.
        stream: (2 L + 1, T), ‖residual stream‖₂ of every token there; in a post-norm model, before it is normalised.
        updates: (2 L, T), ‖what each sublayer added‖₂, attention and feed-forward in turn.
    """

    stages: tuple[str, ...]
    stream: np.ndarray
    updates: np.ndarray


def residual_norms(trace: Trace) -> ResidualNorms:
    stages, stream, updates = ["embed"], [trace["blocks.0.resid_pre"]], []
    for layer in range(trace.config.num_layers):
        for sublayer, after in (("attn", "resid_mid"), ("ffn", "resid_post")):
            stages.append(f"{layer} {sublayer}")
            stream.append(trace[f"blocks.{layer}.{after}"])
            updates.append(trace[f"blocks.{layer}.{sublayer}.out"])
    return ResidualNorms(tuple(stages), np.linalg.norm(stream, axis=-1), np.linalg.norm(updates, axis=-1))
