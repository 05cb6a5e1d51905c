"""The residual stream: its stages, the updates of each sublayer, and the norms that read it."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.norms import apply_norm, compute_norm_divisor
from explorer.architecture.block_layout import block_layout
from explorer.architecture.residual_stream import (
    norm_input_tap,
    norms_in_layer,
    previous_residual_tap,
    residual_sum_tap,
    residual_update_tap,
    sublayers,
)
from explorer.explain.captured.norms import norm_kinds
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from model.config import ModelConfig

SUBLAYERS = {"attn": N_("attention"), "ffn": N_("feed-forward")}  # of a block, in their order -> as shown
UPDATES = {"attn": N_("{layer} attention"), "ffn": N_("{layer} feed-forward")}  # what each adds, by its layer
STAGES = {  # sublayers that a sum adds, or a norm -> template of the label
    ("attn",): UPDATES["attn"],
    ("ffn",): UPDATES["ffn"],
    ("attn", "ffn"): N_("{layer} attention + feed-forward"),
    "attn_norm": N_("{layer} attention norm"),
    "ffn_norm": N_("{layer} feed-forward norm"),
}


@dataclass(frozen=True)
class ResidualStage:
    """A stage of the residual stream.

    Attributes:
        name: label: "embedding", "3 attention" for the stream after layer 3's attention.
        tap: the captured value.
        layer: index of the layer; 0 for the embedding.
    """

    name: str
    tap: str
    layer: int


def residual_stages(trace: Trace, normed: bool = True) -> list[ResidualStage]:
    """Return the stages: the embedding, then the stream after each sublayer.

    These are 2 L + 1, or L + 1 if attention and feed-forward are added at once. In a post-norm model each sum
    is then normalised; `normed` includes these 2 L stages too.
    """
    sums = block_layout(trace.config).sums
    value_names = [
        value_name
        for value_name in block_layout(trace.config).stream
        if value_name in sums or (normed and value_name != "resid_pre")
    ]
    blocks = (
        ResidualStage(
            translate(STAGES[sums.get(value_name, value_name)], layer=layer), f"blocks.{layer}.{value_name}", layer
        )
        for layer in range(trace.config.num_layers)
        for value_name in value_names
    )
    return [ResidualStage(_("embedding"), "blocks.0.resid_pre", 0), *blocks]


def has_residual_stages(trace: Trace) -> bool:
    """Return whether the trace contains the stream at all stages."""
    return all(stage.tap in trace for stage in residual_stages(trace))


def residual_stream(trace: Trace, normed: bool = True) -> np.ndarray:
    """Return the residual stream at its `residual_stages`, (S, T, D)."""
    return np.stack([trace[stage.tap] for stage in residual_stages(trace, normed)])


def residual_norms_by_stage(trace: Trace) -> np.ndarray:
    """Return ‖residual stream‖₂ of every token at its `residual_stages`, (S, T)."""
    return np.linalg.norm(residual_stream(trace), axis=-1)


@dataclass(frozen=True)
class ResidualNorms:
    """Norms of the residual stream and its updates by depth.

    Attributes:
        stages: names of the S stages: the embedding, then after each sum.
        stream: (S, T), ‖residual stream‖₂ of every token; in a post-norm model, before it is normalised.
        names: of the 2 L sublayers.
        stage_indices: (2 L,) index of the stage after each sublayer's update.
        updates: (2 L, T), ‖update of each sublayer‖₂, attention and feed-forward in turn.
    """

    stages: tuple[str, ...]
    stream: np.ndarray
    names: tuple[str, ...]
    stage_indices: np.ndarray
    updates: np.ndarray

    @property
    def median(self) -> np.ndarray:
        """Median over all tokens' streams, (S,)."""
        return np.median(self.stream, axis=1)


def residual_norms(trace: Trace) -> ResidualNorms:
    """Return the norms of the residual stream and of its updates at every token."""
    config, all_stages = trace.config, residual_stages(trace, normed=False)
    taps = [stage.tap for stage in all_stages]
    stage_indices = np.array([taps.index(residual_sum_tap(config, *sublayer)) for sublayer in sublayers(config)])
    updates = [trace[residual_update_tap(config, *sublayer)] for sublayer in sublayers(config)]
    norms = [np.linalg.norm(vectors, axis=-1) for vectors in (residual_stream(trace, normed=False), updates)]
    return ResidualNorms(
        tuple(stage.name for stage in all_stages), norms[0], sublayer_labels(config), stage_indices, norms[1]
    )


def sublayer_labels(config: ModelConfig) -> tuple[str, ...]:
    """Return the labels of the 2 L sublayers."""
    return tuple(translate(UPDATES[sublayer], layer=layer) for layer, sublayer in sublayers(config))


@dataclass(frozen=True)
class SublayerUpdates:
    """Updates of the 2 L sublayers to the stream of one token, attention and feed-forward in turn.

    Attributes:
        names: of the sublayers.
        norms: (2 L,) ‖update‖₂.
        before: (2 L,) ‖stream‖₂ before each update.
        cosines: (2 L,) cosine similarity of update and stream: 1 parallel, -1 opposite, 0 orthogonal.
        error: largest difference of a stream plus its updates from the captured next stream.
    """

    names: tuple[str, ...]
    norms: np.ndarray
    before: np.ndarray
    cosines: np.ndarray
    error: float


def sublayer_updates(trace: Trace, query: int) -> SublayerUpdates:
    """Return the norms and directions of all sublayers' updates to a token's stream."""
    config = trace.config
    sum_taps = [residual_sum_tap(config, *sublayer) for sublayer in sublayers(config)]
    added = np.stack(
        [trace[residual_update_tap(config, *sublayer)][query] for sublayer in sublayers(config)], dtype=np.float64
    )
    before = np.stack([trace[previous_residual_tap(config, tap)][query] for tap in sum_taps], dtype=np.float64)
    sums = {tap: trace[previous_residual_tap(config, tap)][query].astype(np.float64) for tap in sum_taps}
    for tap, update in zip(sum_taps, added, strict=True):
        sums[tap] = sums[tap] + update
    error = max(float(np.abs(total - trace[tap][query]).max()) for tap, total in sums.items())
    norms, sizes = np.linalg.norm(added, axis=-1), np.linalg.norm(before, axis=-1)
    products, scale = (added * before).sum(-1), norms * sizes
    cosines = np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0).clip(-1, 1)
    return SublayerUpdates(sublayer_labels(config), norms, sizes, cosines, error)


def stage_similarities(trace: Trace, query: int) -> np.ndarray:
    """Return the cosine similarities of one token's stream at all pairs of `residual_stages`, (S, S)."""
    vectors = np.stack([trace[stage.tap][query] for stage in residual_stages(trace)], dtype=np.float64)  # (S, D)
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return (units @ units.T).clip(-1, 1)


@dataclass(frozen=True)
class OutlierDimensions:
    """Outlier dimensions of the residual stream.

    Attributes:
        dimensions: (n,) those with the largest ratio at any stage, largest first.
        sizes: (S, n) mean |value| over the tokens, by stage.
        ratios: (S, n) the sizes divided by the median dimension's size at that stage.
    """

    dimensions: np.ndarray
    sizes: np.ndarray
    ratios: np.ndarray


def find_outlier_dimensions(trace: Trace, max_count: int = 16) -> OutlierDimensions:
    """Return at most `max_count` dimensions, those largest in relation to the median dimension."""
    sizes = np.stack([np.abs(trace[stage.tap]).mean(0, dtype=np.float64) for stage in residual_stages(trace)])  # (S, D)
    typical = np.median(sizes, axis=-1, keepdims=True)
    ratios = np.divide(sizes, typical, out=np.zeros_like(sizes), where=typical > 0)
    top = np.argsort(-ratios.max(0), kind="stable")[:max_count]
    return OutlierDimensions(top, sizes[:, top], ratios[:, top])


@dataclass(frozen=True)
class NormStatistics:
    """A norm's kind, mean and divisor at every token, and the error of its recomputation.

    Attributes:
        name: of the norm, and of its output.
        before: tap of its input.
        kinds: (T,) kind of the norm at each token (see `analysis.norms.norm_kinds`).
        means: (T,) means of the vectors, which LayerNorm subtracts; NaN for other kinds.
        scales: (T,) divisors: √(mean x² + ε), or √(var x + ε) for LayerNorm.
        error: largest difference of the recomputed norm from the captured output.
    """

    name: str
    before: str
    kinds: np.ndarray
    means: np.ndarray
    scales: np.ndarray
    error: float


def norm_statistics_in_layer(trace: Trace, layer: int) -> list[NormStatistics]:
    """Return the statistics of a layer's norms, in the order of computation."""
    return [norm_statistics(trace, name) for name in norms_in_layer(trace.config, layer)]


def norm_statistics(trace: Trace, name: str) -> NormStatistics:
    """Return a norm's means and divisors at every token, and the error of its recomputation."""
    before = norm_input_tap(trace.config, name)
    x = trace[before]
    positions = np.arange(len(trace))
    kinds_by_position = norm_kinds(trace, name, positions)
    means = np.where(kinds_by_position == "layernorm", x.mean(-1, dtype=np.float64), np.nan)
    error = float(np.abs(apply_norm(trace, name, x, positions=positions) - trace[name]).max())
    return NormStatistics(
        name, before, kinds_by_position, means, compute_norm_divisor(trace, x, name, positions), error
    )
