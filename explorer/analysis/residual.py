"""The residual stream: its stages, what each sublayer adds to it, and the norms that read it."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.norms import apply_norm, norm_scale
from explorer.architecture.stream import input_of
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace

SUBLAYERS = {"attn": N_("attention"), "ffn": N_("feed-forward")}  # of a block, in their order -> as shown
STAGES = {  # places along a layer -> templates of what they are called; the norms' those of a post-norm model
    "resid_mid": N_("{layer} attention"),
    "attn_norm": N_("{layer} attention norm"),
    "resid_post": N_("{layer} feed-forward"),
    "ffn_norm": N_("{layer} feed-forward norm"),
}


@dataclass(frozen=True)
class Stage:
    """A place along the stream.

    Attributes:
        name: as shown: "embedding", "3 attention" for after layer 3's attention.
        tap: the captured value.
        layer: whose it is; 0 for the embedding.
    """

    name: str
    tap: str
    layer: int


def stages(trace: Trace, normed: bool = True) -> list[Stage]:
    """The embedding, then the stream after each sublayer: 2 L + 1 places.

    In a post-norm model each sum is then normalised, and that goes on: with `normed`, 2 L more places.
    """
    places = STAGES if normed and trace.config.norm_placement == "post" else ("resid_mid", "resid_post")
    blocks = (
        Stage(look_up(STAGES[place], layer=layer), f"blocks.{layer}.{place}", layer)
        for layer in range(trace.config.num_layers)
        for place in places
    )
    return [Stage(_("embedding"), "blocks.0.resid_pre", 0), *blocks]


def stream(trace: Trace, normed: bool = True) -> np.ndarray:
    """(S, T, D), the stream at its `stages`."""
    return np.stack([trace[stage.tap] for stage in stages(trace, normed)])


def stream_lengths(trace: Trace) -> np.ndarray:
    """(S, T), ‖residual stream‖₂ of every token at its `stages`."""
    return np.linalg.norm(stream(trace), axis=-1)


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

    @property
    def median(self) -> np.ndarray:
        """(2 L + 1,) of all tokens' streams."""
        return np.median(self.stream, axis=1)


def residual_norms(trace: Trace) -> ResidualNorms:
    names = tuple(stage.name for stage in stages(trace, normed=False))
    updates = [trace[f"blocks.{layer}.{part}.out"] for layer in range(trace.config.num_layers) for part in SUBLAYERS]
    lengths = (np.linalg.norm(vectors, axis=-1) for vectors in (stream(trace, normed=False), updates))
    return ResidualNorms(names, *lengths)


@dataclass(frozen=True)
class Updates:
    """What the 2 L sublayers add to the stream at one token, attention and feed-forward in turn.

    Attributes:
        names: as in `stages`.
        lengths: (2 L,) ‖update‖₂.
        before: (2 L,) ‖stream‖₂ that each is added to.
        cosines: (2 L,) of the angle between update and stream: 1 writes along it, -1 against it, 0 at right angles.
        error: largest difference of a stream plus its update from the captured next stream.
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    before: np.ndarray
    cosines: np.ndarray
    error: float


def updates(trace: Trace, query: int) -> Updates:
    ends = stages(trace, normed=False)[1:]
    outs = [f"blocks.{layer}.{part}.out" for layer in range(trace.config.num_layers) for part in SUBLAYERS]
    added = np.stack([trace[out][query] for out in outs], dtype=np.float64)
    # What an update is added to is the last stage there is before its sum: in a post-norm model, a normalised one.
    taps = [stage.tap for stage in stages(trace)]
    before = np.stack([trace[taps[taps.index(end.tap) - 1]][query] for end in ends], dtype=np.float64)
    after = np.stack([trace[end.tap][query] for end in ends])
    lengths, sizes = np.linalg.norm(added, axis=-1), np.linalg.norm(before, axis=-1)
    products, scale = (added * before).sum(-1), lengths * sizes
    cosines = np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0).clip(-1, 1)
    return Updates(tuple(e.name for e in ends), lengths, sizes, cosines, float(np.abs(before + added - after).max()))


def similarity(trace: Trace, query: int) -> np.ndarray:
    """(S, S) cosines between the stream of one token at any two of its `stages`."""
    vectors = np.stack([trace[stage.tap][query] for stage in stages(trace)], dtype=np.float64)  # (S, D)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return (units @ units.T).clip(-1, 1)


@dataclass(frozen=True)
class Outliers:
    """The dimensions that stand out.

    Attributes:
        dimensions: (n,) those that stand out most at any stage, most first.
        sizes: (S, n) mean |value| over the tokens, by stage.
        times: (S, n) the same, as a multiple of the median dimension's at that stage.
    """

    dimensions: np.ndarray
    sizes: np.ndarray
    times: np.ndarray


def outliers(trace: Trace, most: int = 16) -> Outliers:
    sizes = np.stack([np.abs(trace[stage.tap]).mean(0, dtype=np.float64) for stage in stages(trace)])  # (S, D)
    typical = np.median(sizes, axis=-1, keepdims=True)
    times = np.divide(sizes, typical, out=np.zeros_like(sizes), where=typical > 0)
    top = np.argsort(-times.max(0), kind="stable")[:most]
    return Outliers(top, sizes[:, top], times[:, top])


@dataclass(frozen=True)
class NormReading:
    """One norm at work, over all tokens.

    Attributes:
        name: of the norm, and of the value it leaves.
        before: name of the value it reads.
        means: (T,) of the vectors' numbers, which LayerNorm takes off; RMSNorm leaves them.
        scales: (T,) what the vectors are divided by: √(mean x² + ε), or of LayerNorm √(var x + ε).
        error: largest difference, of all tokens, of the norm worked out again from the captured output.
    """

    name: str
    before: str
    means: np.ndarray
    scales: np.ndarray
    error: float


def norm_reading(trace: Trace, layer: int, sublayer: str) -> NormReading:
    """Of the norm of a layer's "attn" or "ffn"."""
    name = f"blocks.{layer}.{sublayer}_norm"
    before = input_of(trace.config, name)
    x = trace[before]
    error = float(np.abs(apply_norm(trace, name, x, positions=np.arange(len(trace))) - trace[name]).max())
    scales = norm_scale(trace, x, name)
    return NormReading(name, before, x.mean(-1, dtype=np.float64), scales, error)
