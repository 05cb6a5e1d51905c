"""The residual stream: its stages, the updates of each sublayer, and recomputation of the norms that read it."""

import math
from dataclasses import dataclass
from statistics import median

import numpy as np

from explorer.architecture.residual_stream import (
    block_layout,
    norm_input_tap,
    norms_in_layer,
    output_norm,
    previous_residual_tap,
    residual_sum_tap,
    residual_update_tap,
    sublayers,
)
from explorer.errors import PointNotFoundError
from explorer.explain import arithmetic
from explorer.explain.captured import recompute
from explorer.explain.captured.formulas import (
    added_constant,
    adds_constant,
    apply_intervention_linear_part,
    mean_square_or_variance,
    norm_kinds,
)
from explorer.explain.derivation import Calculation, Derivation, get_element, get_item, read_input
from explorer.explain.notation import format_six_digits, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, ngettext, translate
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
        error: largest difference of a stream plus its updates, and the run's changes, from the captured next stream.
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
    sums = {tap: recompute(trace, tap, (query,)).value for tap in sum_taps}
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


FILE = "explorer/analysis/residual.py"


def residual_norm(trace: Trace, row: int, position: int) -> Derivation:
    """Derive ‖stream‖ of a token at one of the `stages`."""
    stage = get_item(residual_stages(trace), row)
    displayed_value = get_element(residual_norms_by_stage(trace), row, position)
    x, read = read_input(trace, stage.tap, position)
    return Derivation(
        _("length of the stream at {stage}", stage=stage.name),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,), with_square=True),
        SourceLine(FILE, "return np.linalg.norm(residual_stream(trace), axis=-1)"),
    )


def unnormed_stage_residual_norm(trace: Trace, row: int, position: int) -> Derivation:
    """Derive ‖stream‖ of a token at one of the `stages`, not counting those after a post-norm."""
    all_stages = residual_stages(trace)
    return residual_norm(trace, all_stages.index(get_item(residual_stages(trace, normed=False), row)), position)


def median_residual_norm(trace: Trace, row: int) -> Derivation:
    """Derive the median norm of all tokens' streams at one of the `stages` without norms."""
    stage = get_item(residual_stages(trace, normed=False), row)
    x, read = read_input(trace, stage.tap)
    sizes = [arithmetic.norm(vector, ()).value for vector in x]
    value = median(sizes)
    numbers = {
        "least": format_six_digits(min(sizes)),
        "most": format_six_digits(max(sizes)),
        "value": format_six_digits(value),
    }
    working = Calculation(
        _("median of ‖x‖₂ = √Σx²"), lambda: _("the middle of {least} to {most}: {value}", **numbers), value, (read,)
    )
    return Derivation(
        _("median length of the stream at {stage}", stage=stage.name),
        format_all_tokens(trace),
        float(residual_norms(trace).median[row]),
        working,
        SourceLine(FILE, "return np.median(self.stream, axis=1)"),
    )


def format_all_tokens(trace: Trace) -> str:
    """Format the number of tokens that a statistic is over."""
    return ngettext("over {count} token", "over all {count} tokens", len(trace))


def sublayer_output_norm(trace: Trace, sublayer: int, position: int) -> Derivation:
    """Derive the norm of a sublayer's output for a token, attention and feed-forward in turn."""
    displayed_value = get_element(residual_norms(trace).updates, sublayer, position)
    name = residual_update_tap(trace.config, *sublayers(trace.config)[sublayer])
    x, read = read_input(trace, name, position)
    return Derivation(
        _("length of {value}", value=name),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.norm(x, (read,)),
        SourceLine(FILE, "norms = [np.linalg.norm(vectors, axis=-1) for vectors in"),
    )


def stage_cosine(trace: Trace, query: int, row: int, column: int) -> Derivation:
    """Derive the cosine of a token's stream between two of the `stages`."""
    all_stages = residual_stages(trace)
    displayed_value = get_element(stage_similarities(trace, query), row, column)
    return Derivation(
        _("cosine of the stream at {one} and at {other}", one=all_stages[row].name, other=all_stages[column].name),
        format_token_position(trace, query),
        displayed_value,
        arithmetic.cosine(*(read_input(trace, all_stages[i].tap, query) for i in (row, column))),
        SourceLine(FILE, "return (units @ units.T)"),
    )


def sublayer_output_cosine(trace: Trace, sublayer: int, position: int) -> Derivation:
    """Derive the cosine of a sublayer's output with the stream that it is added to."""
    displayed_value = get_element(sublayer_updates(trace, position).cosines, sublayer)
    config, layer_and_sublayer = trace.config, sublayers(trace.config)[sublayer]
    added = read_input(trace, residual_update_tap(config, *layer_and_sublayer), position)
    before = read_input(trace, previous_residual_tap(config, residual_sum_tap(config, *layer_and_sublayer)), position)
    return Derivation(
        _("cosine of what {stage} adds and the stream", stage=sublayer_labels(config)[sublayer]),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.cosine(added, before, (_("added"), "x")),
        SourceLine(FILE, "cosines = np.divide(products, scale"),
    )


def outlier_ratio(trace: Trace, row: int, column: int) -> Derivation:
    """Derive the size of a dimension at one of the `stages`, relative to the median dimension."""
    outlier_dimensions = find_outlier_dimensions(trace)
    displayed_value = get_element(outlier_dimensions.ratios, row, column)
    stage, dimension = residual_stages(trace)[row], int(outlier_dimensions.dimensions[column])
    x, read = read_input(trace, stage.tap)
    sizes = [math.fsum(abs(x[:, i])) / len(x) for i in range(x.shape[1])]
    symbols = _("mean |value| of the dimension / median of the mean |value| of all")
    name = _(
        "dimension {dimension} at {stage}, in multiples of the median dimension", dimension=dimension, stage=stage.name
    )
    return Derivation(
        name,
        format_all_tokens(trace),
        displayed_value,
        arithmetic.quotient(symbols, sizes[dimension], median(sizes), (read,)),
        SourceLine(FILE, "ratios = np.divide(sizes, typical"),
    )


def layernorm_mean(trace: Trace, norm: str, position: int) -> Derivation:
    """Derive the mean that LayerNorm subtracts from a token's vector."""
    reading = norm_statistics(trace, norm)
    displayed_value = get_element(reading.means, position)
    if reading.kinds[position] != "layernorm":
        raise PointNotFoundError(_("at this token the norm is of another kind, which takes nothing off"))
    x, read = read_input(trace, reading.before, position)
    return Derivation(
        _("mean that {norm} takes off", norm=norm.rpartition(".")[2]),
        format_token_position(trace, position),
        displayed_value,
        arithmetic.mean(_("mean x = Σx / D"), x, (read,)),
        SourceLine(FILE, "means = np.where("),
    )


def compute_norm_divisor(
    trace: Trace, x: np.ndarray, name: str, positions: int | np.ndarray | None = None
) -> np.ndarray:
    """Return the divisor of a norm, (..., D) -> (...): √(mean(x²) + ε), or √(var(x) + ε) for LayerNorm.

    Args:
        name: of the norm; interventions may replace its kind.
        positions: position of the vectors, or (T,) positions for x (..., T, D); required if interventions replace
            the norm at some positions only.
    """
    kind = norm_kinds(trace, name, positions)
    x = subtract_layernorm_mean(x.astype(np.float64), kind)
    return np.where(kind == "none", 1.0, np.sqrt((x**2).mean(-1) + trace.config.norm_eps))


def subtract_layernorm_mean(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return x (..., D) minus its mean over the last axis for LayerNorm, and x itself for other norms."""
    is_layernorm = (kinds == "layernorm")[..., None]
    return np.where(is_layernorm, x - x.mean(-1, keepdims=True), x) if is_layernorm.any() else x


def norm_bias(trace: Trace, name: str, positions: int | np.ndarray | None = None) -> np.ndarray | float:
    """Return β of a norm at a position (D,), or at several (T, D); 0 if it has none."""
    beta = trace.weights.get(f"{name}.bias")
    return 0.0 if beta is None else np.where((norm_kinds(trace, name, positions) == "none")[..., None], 0.0, beta)


def apply_norm(
    trace: Trace,
    name: str,
    x: np.ndarray,
    scale: np.ndarray | None = None,
    positions: int | np.ndarray | None = None,
) -> np.ndarray:
    """Apply a norm ("final_norm", "blocks.0.attn_norm") to vectors, (..., D) -> (..., D) in float64.

    A model with post-norm blocks has no `final_norm`, which then returns x. The run's interventions on the norm's
    output are applied.

    Args:
        x: (..., D).
        scale: (...), divisor instead of x's own `compute_norm_divisor`. With a fixed scale the norm is linear except
            for β of LayerNorm, so that the terms of a sum can be normalised one by one.
        positions: position of the vectors, or (T,) positions for x (..., T, D); required if interventions act at
            some positions only.
    """
    y = apply_norm_without_interventions(trace, name, x.astype(np.float64), positions, scale)
    changed = apply_intervention_linear_part(trace, name, y, positions)
    if not adds_constant(trace, name):
        return changed
    before = apply_norm_without_interventions(
        trace, name, trace[norm_input_tap(trace.config, name)][positions].astype(np.float64), positions
    )
    return changed + added_constant(trace, name, before, positions)


def apply_norm_without_interventions(
    trace: Trace,
    name: str,
    x: np.ndarray,
    positions: int | np.ndarray | None = None,
    scale: np.ndarray | None = None,
) -> np.ndarray:
    """Apply a norm without the interventions on its output."""
    if f"{name}.weight" not in trace.weights:
        return x
    scale = compute_norm_divisor(trace, x, name, positions) if scale is None else scale
    centre = subtract_layernorm_mean(x, norm_kinds(trace, name, positions))
    return centre / scale[..., None] * trace.weights[f"{name}.weight"] + norm_bias(trace, name, positions)


def apply_linearised_output_norm(trace: Trace, layer: int, sublayer: str, x: np.ndarray, position: int) -> np.ndarray:
    """Return the contribution of vectors (..., D) in a sublayer's output at a position to the residual stream.

    These are the vectors themselves, or the vectors after the output norm, with the scale of the whole output
    and without β.
    """
    norm = output_norm(trace.config, layer, sublayer)
    if norm is None:
        return x
    scale = compute_norm_divisor(trace, trace[norm_input_tap(trace.config, norm)][position], norm, position)
    return subtract_layernorm_mean(x, norm_kinds(trace, norm, position)) / scale * trace.weights[f"{norm}.weight"]


def norm_divisor(trace: Trace, norm: str, position: int) -> Derivation:
    """Derive the divisor of a norm for a token's vector."""
    tap, positions = norm_input_tap(trace.config, norm), np.arange(len(trace))
    displayed_value, kind = (
        get_element(compute_norm_divisor(trace, trace[tap], norm, positions), position),
        str(norm_kinds(trace, norm, position)),
    )
    x, read = read_input(trace, tap, position)
    squares, eps = float(mean_square_or_variance(x, norm_kinds(trace, norm, position))), trace.config.norm_eps
    value = math.sqrt(squares + eps) if kind != "none" else 1.0
    symbols = {"layernorm": _("√(var x + ε)"), "rmsnorm": _("√(mean x² + ε)"), "none": _("1: it does not divide")}[kind]
    numbers = (
        f"√({format_six_digits(squares)} + {format_six_digits(eps)}) = {format_six_digits(value)}"
        if kind != "none"
        else "= 1"
    )
    working = Calculation(symbols, lambda: numbers, value, (read,))
    source = SourceLine("explorer/analysis/residual.py", "np.sqrt((x**2).mean(-1) + trace.config.norm_eps)")
    return Derivation(
        _("what the norm divides by"), format_token_position(trace, position), displayed_value, working, source
    )
