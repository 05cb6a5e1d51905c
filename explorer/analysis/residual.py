"""The residual stream: its stages, what each sublayer adds to it, and the norms that read it."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.norms import apply_norm, kinds, norm_scale
from explorer.architecture.layout import layout
from explorer.architecture.stream import before_value, input_of, norms_of, sublayers, sum_with, written_by
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace
from model.config import ModelConfig

SUBLAYERS = {"attn": N_("attention"), "ffn": N_("feed-forward")}  # of a block, in their order -> as shown
UPDATES = {"attn": N_("{layer} attention"), "ffn": N_("{layer} feed-forward")}  # what each adds, by its layer
STAGES = {  # what a place along a layer is -> the template of what it is called: a sum with these, or a norm
    ("attn",): UPDATES["attn"],
    ("ffn",): UPDATES["ffn"],
    ("attn", "ffn"): N_("{layer} attention + feed-forward"),
    "attn_norm": N_("{layer} attention norm"),
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
    """The embedding, then the stream after each sublayer: 2 L + 1 places, or L + 1 where both are added at once.

    In a post-norm model each sum is then normalised, and that goes on: with `normed`, 2 L more places.
    """
    sums = layout(trace.config).sums
    places = [place for place in layout(trace.config).stream if place in sums or (normed and place != "resid_pre")]
    blocks = (
        Stage(look_up(STAGES[sums.get(place, place)], layer=layer), f"blocks.{layer}.{place}", layer)
        for layer in range(trace.config.num_layers)
        for place in places
    )
    return [Stage(_("embedding"), "blocks.0.resid_pre", 0), *blocks]


def has_stages(trace: Trace) -> bool:
    """Whether the stream is there at all of them."""
    return all(stage.tap in trace for stage in stages(trace))


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
        stages: the names of the S places: the embedding, then after each sum.
        stream: (S, T), ‖residual stream‖₂ of every token there; in a post-norm model, before it is normalised.
        names: of the 2 L sublayers.
        places: (2 L,) which of the stages each sublayer's update leads to.
        updates: (2 L, T), ‖what each sublayer added‖₂, attention and feed-forward in turn.
    """

    stages: tuple[str, ...]
    stream: np.ndarray
    names: tuple[str, ...]
    places: np.ndarray
    updates: np.ndarray

    @property
    def median(self) -> np.ndarray:
        """(S,) of all tokens' streams."""
        return np.median(self.stream, axis=1)


def residual_norms(trace: Trace) -> ResidualNorms:
    config, every = trace.config, stages(trace, normed=False)
    taps = [stage.tap for stage in every]
    places = np.array([taps.index(sum_with(config, *sublayer)) for sublayer in sublayers(config)])
    updates = [trace[written_by(config, *sublayer)] for sublayer in sublayers(config)]
    lengths = [np.linalg.norm(vectors, axis=-1) for vectors in (stream(trace, normed=False), updates)]
    return ResidualNorms(tuple(stage.name for stage in every), lengths[0], update_names(config), places, lengths[1])


def update_names(config: ModelConfig) -> tuple[str, ...]:
    """Of the 2 L sublayers, as shown."""
    return tuple(look_up(UPDATES[sublayer], layer=layer) for layer, sublayer in sublayers(config))


@dataclass(frozen=True)
class Updates:
    """What the 2 L sublayers add to the stream at one token, attention and feed-forward in turn.

    Attributes:
        names: of the sublayers.
        lengths: (2 L,) ‖update‖₂.
        before: (2 L,) ‖stream‖₂ that each is added to.
        cosines: (2 L,) of the angle between update and stream: 1 writes along it, -1 against it, 0 at right angles.
        error: largest difference of a stream plus its updates from the captured next stream.
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    before: np.ndarray
    cosines: np.ndarray
    error: float


def updates(trace: Trace, query: int) -> Updates:
    config = trace.config
    ends = [sum_with(config, *sublayer) for sublayer in sublayers(config)]
    added = np.stack([trace[written_by(config, *sublayer)][query] for sublayer in sublayers(config)], dtype=np.float64)
    before = np.stack([trace[before_value(config, end)][query] for end in ends], dtype=np.float64)
    sums = {end: trace[before_value(config, end)][query].astype(np.float64) for end in ends}
    for end, update in zip(ends, added, strict=True):
        sums[end] = sums[end] + update
    error = max(float(np.abs(total - trace[end][query]).max()) for end, total in sums.items())
    lengths, sizes = np.linalg.norm(added, axis=-1), np.linalg.norm(before, axis=-1)
    products, scale = (added * before).sum(-1), lengths * sizes
    cosines = np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0).clip(-1, 1)
    return Updates(update_names(config), lengths, sizes, cosines, error)


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
        kinds: (T,) which kind of norm it is at each token (see `analysis.norms.kinds`).
        means: (T,) of the vectors' numbers, which LayerNorm takes off; NaN where another kind leaves them.
        scales: (T,) what the vectors are divided by: √(mean x² + ε), or of LayerNorm √(var x + ε).
        error: largest difference, of all tokens, of the norm worked out again from the captured output.
    """

    name: str
    before: str
    kinds: np.ndarray
    means: np.ndarray
    scales: np.ndarray
    error: float


def norm_readings(trace: Trace, layer: int) -> list[NormReading]:
    """Of a layer's norms, in the order of the data's way."""
    return [norm_reading(trace, name) for name in norms_of(trace.config, layer)]


def norm_reading(trace: Trace, name: str) -> NormReading:
    before = input_of(trace.config, name)
    x = trace[before]
    places = np.arange(len(trace))
    of = kinds(trace, name, places)
    means = np.where(of == "layernorm", x.mean(-1, dtype=np.float64), np.nan)
    error = float(np.abs(apply_norm(trace, name, x, positions=places) - trace[name]).max())
    return NormReading(name, before, of, means, norm_scale(trace, x, name, places), error)
