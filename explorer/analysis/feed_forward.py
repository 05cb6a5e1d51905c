"""The feed-forward's neurons: what each one computes at a token, what it writes, and how many take part."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from explorer.analysis.interventions import as_edited
from explorer.analysis.kept import kept_by_trace
from explorer.analysis.norms import added_of, centred, kinds, norm_scale
from explorer.analysis.unembedding import unembed_part
from explorer.architecture.stream import norms_among, read_by, way_of
from explorer.tracing.trace import Trace


def gelu(x: np.ndarray) -> np.ndarray:
    """x · Φ(x); NumPy has no erf."""
    return x / 2 * (1 + np.array([math.erf(value) for value in np.ravel(x) / math.sqrt(2)]).reshape(np.shape(x)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Its approximation."""
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# kind of feed-forward -> its activation's name, and the function (of float64 arrays)
ACTIVATIONS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "swiglu": ("SiLU", lambda x: x * (1 + np.tanh(x / 2)) / 2),
    "geglu": ("GELU", gelu_tanh),
    "relu": ("ReLU", lambda x: np.maximum(x, 0)),
    "relu2": ("ReLU²", lambda x: np.maximum(x, 0) ** 2),
    "gelu": ("GELU", gelu),
    "gelu_tanh": ("GELU", gelu_tanh),
}


@dataclass(frozen=True)
class Neurons:
    """All F neurons of a layer at one token.

    Attributes:
        pre: (F,) what the activation function is applied to.
        active: (F,) what it makes of it.
        up: (F,) what `active` is multiplied by, None where there is no gate.
        hidden: (F,) their product, or `active` itself.
        written: (F,) |hidden| · ‖column of W_down‖, or of what a norm makes of that column: the length of the vector
            that each neuron adds to the stream.
    """

    pre: np.ndarray
    active: np.ndarray
    up: np.ndarray | None
    hidden: np.ndarray
    written: np.ndarray

    def top(self, most: int) -> np.ndarray:
        """The neurons that write most, most first; of equal ones the lower number first."""
        return np.argsort(-self.written, kind="stable")[:most]


def neurons(trace: Trace, layer: int, query: int) -> Neurons:
    block = f"blocks.{layer}.ffn"
    up, hidden = trace[f"{block}.up"][query], trace[f"{block}.hidden"][query]
    gated = f"{block}.gate" in trace
    columns = added_of(trace, layer, "ffn", trace.weights[f"{block}.down_proj.weight"][:].T, query)  # (F, D)
    written = np.abs(hidden) * np.linalg.norm(columns, axis=-1)
    if gated:
        return Neurons(trace[f"{block}.gate_pre"][query], trace[f"{block}.gate"][query], up, hidden, written)
    return Neurons(up, hidden, None, hidden, written)


@dataclass(frozen=True)
class Neuron:
    """One neuron at one token, worked out again in float64 from what the layer read and the neuron's own weights.

    Attributes:
        read: name of the value that the layer reads.
        pre, active, up, hidden: as in `Neurons`.
        error: |hidden - captured|.
    """

    read: str
    pre: float
    active: float
    up: float | None
    hidden: float
    error: float


def neuron(trace: Trace, layer: int, number: int, query: int) -> Neuron:
    block = f"blocks.{layer}.ffn"
    read = read_by(trace.config, layer, "ffn")
    x = trace[read][query].astype(np.float64)

    def projected(name: str) -> float:
        weight, bias = (trace.weights.get(f"{block}.{name}_proj.{part}") for part in ("weight", "bias"))
        return float(weight[number] @ x + (0.0 if bias is None else bias[number]))

    _, activation = ACTIVATIONS[trace.config.ffn]
    gated = trace.config.is_gated
    pre = projected("gate" if gated else "up")
    up = projected("up") if gated else None
    active = float(activation(np.array(pre)))
    hidden = active * up if gated else active
    return Neuron(read, pre, active, up, hidden, abs(hidden - float(trace[f"{block}.hidden"][query, number])))


EXACT = ("relu", "relu2")  # the feed-forwards whose activation is exactly 0 below 0
NEAR = 0.1  # of the layer's root mean square


@dataclass(frozen=True)
class Sparsity:
    """How many hidden values do next to nothing, by layer.

    A value counts as near zero if it is at most `NEAR` of the root mean square of its layer's values in this run; of
    ReLU, if it is exactly 0. `BELL` of normally distributed values would be.

    Attributes:
        near_zero: (L,) share of the layer's T · F values.
        silent: (L,) share of its neurons that are near zero at every token of this run (of ReLU: dead, in this run).
    """

    near_zero: np.ndarray
    silent: np.ndarray


BELL = math.erf(NEAR / math.sqrt(2))


@kept_by_trace
def sparsity(trace: Trace) -> Sparsity:
    shares = []
    for layer in range(trace.config.num_layers):
        size = np.abs(trace[f"blocks.{layer}.ffn.hidden"])  # (T, F)
        limit = 0.0 if trace.config.ffn in EXACT else NEAR * np.sqrt(np.mean(size**2, dtype=np.float64))
        near = size <= limit
        shares.append((near.mean(), near.all(0).mean()))
    return Sparsity(*np.transpose(shares))


def pushed(trace: Trace, layer: int, number: int, query: int) -> np.ndarray:
    """(V,) what a neuron adds to every token's logit after `query` for each 1 of its hidden value.

    That is its output direction, its column of W_down, along its way to the unembedding: through the norms there, gains
    folded in and divided by what they divided by in this run, and edits; what later sublayers make of it is not in it.
    """
    direction = trace.weights[f"blocks.{layer}.ffn.down_proj.weight"][:, number].astype(np.float64)  # (D,)
    way = way_of(trace.config, layer, "ffn")
    norms = norms_among(trace.config, way)
    for tap in way:
        if tap in norms:
            direction = centred(direction, kinds(trace, tap, query)) * trace.weights[f"{tap}.weight"]
            direction = direction / norm_scale(trace, trace[norms[tap]][query], tap, query)
        direction = as_edited(trace, tap, direction, query)
    return unembed_part(trace, direction, query)
