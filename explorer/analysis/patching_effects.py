"""Activation patching: normalised effects, and agreement of estimates with exact effects."""

from dataclasses import dataclass, replace

import numpy as np

from explorer.explain.derivation import Calculation, Derivation, Input, RecomputationCheck
from explorer.explain.notation import (
    format_factor,
    format_number,
    format_six_digits,
    format_token_position,
    quote_token,
    token_formatter,
)
from explorer.explain.source_code import SourceLine
from explorer.interventions import Intervention, parse_intervention
from explorer.state.token_alignment import Alignment
from explorer.tracing.patching.experiment import PatchingExperiment
from explorer.tracing.patching.patching_setup import (
    BY_POSITION,
    DIRECTIONS,
    METRICS,
    MIN_DIFFERENCE,
    Receiver,
    normalise_changes,
    normalised_effect,
)
from explorer.tracing.trace import Trace
from explorer.translations import _


@dataclass(frozen=True)
class CleanAndCorruptedRuns:
    """Two prompts, each with its run without interventions.

    Attributes:
        experiment: the patching experiment.
        clean, corrupted: their runs, with any tokens after the prompts.
        clean_run: the page's run that is clean, "a" or "b".
        alignment: of the prompts' tokens, A's first.
    """

    experiment: PatchingExperiment
    clean: Trace
    corrupted: Trace
    clean_run: str
    alignment: Alignment

    @property
    def last_logits(self) -> tuple[np.ndarray, np.ndarray]:
        """The captured logits (V,) at the end of the clean prompt, and of the corrupted one."""
        clean, corrupted = self.experiment.clean, self.experiment.corrupted
        return self.clean.logits.row(len(clean) - 1), self.corrupted.logits.row(len(corrupted) - 1)

    @property
    def captured_metrics(self) -> np.ndarray:
        """Every metric of the clean and of the corrupted run, (2, M)."""
        answers = self.experiment.answer, self.experiment.wrong
        return np.array([logit_metrics(logits, *answers) for logits in self.last_logits])

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the clean prompt."""
        return self.clean.tokens[: len(self.experiment.clean)]

    def to_clean_position(self, position: int) -> int:
        """Return the position of the clean prompt aligned with one of A, or with the nearest before it."""
        clean_position = position if self.clean_run == "a" else self.alignment.nearest_aligned(position)
        return min(clean_position, len(self.tokens) - 1)

    @property
    def answer_in_a(self) -> int:
        """The position in A before the answer."""
        return len(self.experiment.clean if self.clean_run == "a" else self.experiment.corrupted) - 1

    @property
    def unaligned_positions(self) -> tuple[int, ...]:
        """Positions of the clean prompt that are patched in neither direction."""
        return tuple(
            position
            for position, targets in enumerate(zip(*map(self.experiment.target_positions, DIRECTIONS), strict=True))
            if targets == (None, None)
        )

    def patched_run_field(self, direction: str) -> str:
        """Return the field of the page's state with the interventions of the run that is patched."""
        into_a = (direction == "denoise") == (self.clean_run == "b")
        return "edits" if into_a else "b.edits"

    def token_text(self, token_id: int) -> str:
        """Return a token's text in quotes."""
        return quote_token(self.clean.vocabulary[token_id])


def patching_effects(experiment: PatchingExperiment, measured: np.ndarray, metric: str, direction: str) -> np.ndarray:
    """Return the normalised effects of nodes on one metric, from all metrics (M, …) measured after patching each node.

    See `normalised_effect`.
    """
    row = METRICS.index(metric)
    clean, corrupted = experiment.unpatched_metrics[:, row]
    return normalised_effect(measured[row], clean, corrupted, direction)


def component_effects(experiment: PatchingExperiment, component: str, metric: str, direction: str) -> np.ndarray:
    """Return the effects of all nodes of a component, (L, P)."""
    return patching_effects(
        experiment, experiment.component_metrics(component)[DIRECTIONS.index(direction)], metric, direction
    )


def neuron_effects(experiment: PatchingExperiment, layer: int, metric: str) -> np.ndarray:
    """Return the effects of all neurons of a layer in both directions, (2, F)."""
    metrics_by_direction = zip(experiment.neuron_metrics(layer), DIRECTIONS, strict=True)
    return np.stack(
        [patching_effects(experiment, measured, metric, direction) for measured, direction in metrics_by_direction]
    )


def strongest_neuron_indices(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the neurons with the largest |effect| in either direction, (2, F) -> (count,)."""
    return np.argsort(-np.nan_to_num(np.abs(values)).max(axis=0), kind="stable")[:count]


MAX_TIE = 0.02  # by how much effects differ that are as good as equal


def layers_of_largest_effect(effects: np.ndarray) -> tuple[range, int]:
    """Return the position of the largest |effect| in a map (L, T), and the layers around it that tie with it there."""
    layer, position = map(int, np.unravel_index(np.nan_to_num(np.abs(effects)).argmax(), effects.shape))
    others = np.flatnonzero(~(np.abs(effects[:, position] - effects[layer, position]) <= MAX_TIE))
    first = max((int(other) + 1 for other in others if other < layer), default=0)
    end = min((int(other) for other in others if other > layer), default=len(effects))
    return range(first, end), position


MAIN_EFFECT = 0.5  # more than half of the measure is restored


@dataclass(frozen=True)
class EffectMove:
    """The layers between which an effect moves from a token to the last one.

    Attributes:
        position: of the token that restores more than half in layer 0.
        last_layer: the last one up to which it does in every layer.
        first_layer_at_end: from which the last token does in every layer.
    """

    position: int
    last_layer: int
    first_layer_at_end: int


def layers_of_move(effects: np.ndarray) -> EffectMove | None:
    """Return how the effect moves in a map (L, T) of the residual stream; None if more or fewer tokens have a part."""
    is_main = np.nan_to_num(effects) > MAIN_EFFECT
    starts = np.flatnonzero(is_main[0])
    if len(starts) != 1 or starts[0] == is_main.shape[1] - 1 or not is_main[-1, -1]:
        return None
    position = int(starts[0])
    last = int(np.append(is_main[:, position], False).argmin()) - 1
    first = len(is_main) - int(np.append(is_main[::-1, -1], False).argmin())
    if first <= last or is_main[last + 1 :, position].any() or is_main[:first, -1].any():
        return None
    return EffectMove(position, last, first)


@dataclass(frozen=True)
class EstimateAgreement:
    """Agreement of an estimate with the exact values.

    Attributes:
        correlation: Pearson correlation, NaN if one of them is constant.
        worst: (row, column) of the cells with the largest errors, largest first.
        errors: estimate − exact at these cells.
    """

    correlation: float
    worst: tuple[tuple[int, int], ...]
    errors: tuple[float, ...]


def compare_estimate(exact: np.ndarray, estimate: np.ndarray, count: int = 3) -> EstimateAgreement:
    """Compare two maps (L, P) where both are defined."""
    is_defined = np.isfinite(exact) & np.isfinite(estimate)
    finite_values = exact[is_defined], estimate[is_defined]
    varies = all(values.size and np.ptp(values) > 0 for values in finite_values)
    correlation = float(np.corrcoef(*finite_values)[0, 1]) if varies else float("nan")
    errors = np.nan_to_num(estimate - exact)
    order = np.argsort(-np.where(is_defined, np.abs(errors), -1), axis=None, kind="stable")[:count]
    worst = tuple((int(i), int(j)) for i, j in zip(*np.unravel_index(order, errors.shape), strict=True))
    return EstimateAgreement(correlation, worst, tuple(float(errors[cell]) for cell in worst))


def logit_metrics(logits: np.ndarray, answer: int, wrong: int) -> np.ndarray:
    """Return every metric of next-token logits (V,), (M,), in float64.

    Computed independently of the code that measures the runs.
    """
    logits = logits.astype(np.float64)
    largest = logits.max()
    ln = logits[answer] - largest - np.log(np.exp(logits - largest).sum())
    return np.array([logits[answer] - logits[wrong], ln, np.exp(ln)])


SMALL_DIFFERENCES = {"logit_difference": 0.5, "log_probability": 0.5, "probability": 0.05}  # of clean and corrupted


def small_difference_warning(pair: CleanAndCorruptedRuns, metric: str) -> str:
    """Return a warning if the difference that every effect is divided by is small; "" otherwise."""
    difference = _small_difference(pair, metric)
    if not difference:
        return ""
    return _(
        "Careful: every effect is divided by m(clean) − m(corrupted) = {difference}. That is small, so a tiny change "
        "looks like a large effect.",
        difference=format_number(difference),
    )


def small_difference_note(pair: CleanAndCorruptedRuns, metric: str) -> str:
    """Return the same warning in short, to stand beside a finding."""
    difference = _small_difference(pair, metric)
    if not difference:
        return ""
    return _(
        "Careful: clean and corrupted differ by only {difference}; tiny changes look large.",
        difference=format_number(abs(difference)),
    )


def _small_difference(pair: CleanAndCorruptedRuns, metric: str) -> float:
    clean, corrupted = pair.captured_metrics[:, METRICS.index(metric)]
    is_small = MIN_DIFFERENCE <= abs(clean - corrupted) < SMALL_DIFFERENCES[metric]
    return float(clean - corrupted) if is_small else 0.0


SYMBOLS = {
    "denoise": "(m(patched) − m(corrupted)) / (m(clean) − m(corrupted))",
    "noise": "(m(patched) − m(clean)) / (m(clean) − m(corrupted))",
}


def patch_effect(
    pair: CleanAndCorruptedRuns, intervention: Intervention, measured: np.ndarray, metric: str, direction: str
) -> Derivation | None:
    """Derive the effect of patching one node, by running the model with the patch.

    None if the metrics of the clean and the corrupted run are equal, which leaves the effect undefined.

    Args:
        measured: (M,) metrics of the node in the map.
    """
    experiment, row, probability_row = pair.experiment, METRICS.index(metric), METRICS.index("probability")
    captured_metrics, patched_metrics = pair.captured_metrics, experiment.rerun_with_patch(direction, intervention)
    displayed_value = float(patching_effects(experiment, measured[:, None], metric, direction)[0])
    if not np.isfinite(displayed_value):
        return None
    source_name = _("the clean run") if direction == "denoise" else _("the corrupted run")
    location = _(
        "{edit}, m = {metric}: clean {clean}, corrupted {corrupted}, patched {patched}",
        edit=replace(intervention, source_name=source_name).describe(pair.clean.config, token_formatter(pair.clean)),
        metric=metric_label(metric),
        clean=format_six_digits(captured_metrics[0, row]),
        corrupted=format_six_digits(captured_metrics[1, row]),
        patched=format_six_digits(patched_metrics[row]),
    )
    answer_change = _(
        "The patch takes the probability of {answer} from {before}% to {after}%.",
        answer=pair.token_text(experiment.answer),
        before=format_number(100 * captured_metrics[int(direction == "denoise"), probability_row]),
        after=format_number(100 * patched_metrics[probability_row]),
    )
    last = len(experiment.corrupted if direction == "denoise" else experiment.clean) - 1
    patched_run = _("logits of a run with {edit}, at [{query}]", edit=intervention, query=last)
    effect = _derive_effect(pair, displayed_value, patched_metrics[row], patched_run, location, metric, direction)
    return replace(effect, note="\n".join(filter(None, (answer_change, effect.note))))


def _derive_effect(
    pair: CleanAndCorruptedRuns,
    displayed_value: float,
    patched: float,
    patched_run: str,
    location: str,
    metric: str,
    direction: str,
) -> Derivation:
    """Derive an effect from the metric of a patched run; `patched_run` names its logits."""
    clean, corrupted = pair.captured_metrics[:, METRICS.index(metric)]
    recomputed = float(normalised_effect(np.array(patched), clean, corrupted, direction))
    base, size = corrupted if direction == "denoise" else clean, len(pair.clean.vocabulary)
    clean_end, corrupted_end = len(pair.experiment.clean) - 1, len(pair.experiment.corrupted) - 1
    working = Calculation(
        SYMBOLS[direction],
        lambda: (
            f"({format_six_digits(patched)} − {format_factor(base)}) / ({format_six_digits(clean)} "
            f"− {format_factor(corrupted)}) = {format_six_digits(recomputed)}"
        ),
        recomputed,
        (
            Input(patched_run, (), (size,)),
            Input(_("logits of the clean run, at [{query}]", query=clean_end), (), (size,)),
            Input(_("logits of the corrupted run, at [{query}]", query=corrupted_end), (), (size,)),
        ),
    )
    source = SourceLine("explorer/tracing/patching/patching_setup.py", "return changes / (clean - corrupted)")
    warning = small_difference_warning(pair, metric)
    return Derivation(_("effect"), location, displayed_value, working, source, note=warning)


def patch_estimate(
    pair: CleanAndCorruptedRuns,
    component: str,
    node: tuple[int, int],
    metric: str,
    direction: str,
) -> Derivation | None:
    """Derive the attribution-patching estimate of one node, (layer, position or head).

    Σ difference of the values × gradient of the metric; None if the effect is undefined.
    """
    displayed_value = float(pair.experiment.estimate(direction, component, metric)[node])
    if not np.isfinite(displayed_value):
        return None
    clean, corrupted = (metrics[METRICS.index(metric)] for metrics in pair.captured_metrics)
    step, slope = pair.experiment.estimate_terms(direction, component, metric, *node)
    change = float(step @ slope)
    recomputed = float(normalise_changes(np.array(change), clean, corrupted))
    is_query_or_key, shape = component in ("attn.q", "attn.k"), step.shape
    working = Calculation(
        _("Σ (x of the pattern that follows − x) ∂m/∂x / (m(clean) − m(corrupted))")
        if is_query_or_key
        else _("Σ (x of the other run − x) ∂m/∂x / (m(clean) − m(corrupted))"),
        lambda: (
            f"{format_six_digits(change)} / ({format_six_digits(clean)} − "
            f"{format_factor(corrupted)}) = {format_six_digits(recomputed)}"
        ),
        recomputed,
        (
            Input(_("differences of the values"), (), shape),
            Input(_("gradient of m at the values"), (), shape),
        ),
    )
    layer, column = node
    if component in BY_POSITION:
        value = parse_intervention(f"blocks.{layer}.{component}*patch").component_label()
        value = _("{value}, {token}", value=value, token=format_token_position(pair.clean, column))
    else:
        value = parse_intervention(f"blocks.{layer}.{component}.{column}*patch").component_label()
    location = _("{value}, m = {metric}", value=value, metric=metric_label(metric))
    source = SourceLine("explorer/tracing/patching/patching_methods.py", "changes = torch.stack([(step * slope)")
    warning = small_difference_warning(pair, metric)
    return Derivation(_("estimated effect"), location, displayed_value, working, source, note=warning)


def path_effect(
    pair: CleanAndCorruptedRuns,
    receiver: Receiver,
    node: tuple[int, int],
    metric: str,
    direction: str,
) -> Derivation | None:
    """Derive the effect of path patching from one head, (layer, head), to the receiver; None if undefined."""
    displayed_value = float(
        patching_effects(pair.experiment, pair.experiment.path_metrics(direction, receiver), metric, direction)[node]
    )
    if not np.isfinite(displayed_value):
        return None
    patched = float(pair.experiment.path(direction, receiver, *node)[METRICS.index(metric)])
    patched_run = _("logits once the receiver alone has read what the head sends")
    location = _(
        "direct path of head {head} of layer {layer}, m = {metric}",
        head=node[1],
        layer=node[0],
        metric=metric_label(metric),
    )
    return _derive_effect(pair, displayed_value, patched, patched_run, location, metric, direction)


def metric_label(metric: str) -> str:
    """Return the label of a patching metric."""
    return {
        "logit_difference": _("logit of the answer − logit of the wrong answer"),
        "log_probability": _("ln of the answer’s probability"),
        "probability": _("the answer’s probability"),
    }[metric]


def check_unpatched(pair: CleanAndCorruptedRuns) -> RecomputationCheck:
    """Check the metrics of the clean and the corrupted run against their captured logits."""
    return RecomputationCheck.from_arrays(
        pair.clean.dtype, pair.experiment.unpatched_metrics, pair.captured_metrics, _size(pair)
    )


def check_patched_run(
    pair: CleanAndCorruptedRuns, intervention: Intervention, measured: np.ndarray, direction: str
) -> RecomputationCheck:
    """Check the metrics of a node in the map, (M,), against running the model with the patch."""
    recomputed = pair.experiment.rerun_with_patch(direction, intervention)
    return RecomputationCheck.from_arrays(pair.clean.dtype, measured, recomputed, _size(pair))


def _size(pair: CleanAndCorruptedRuns) -> float:
    return 2 * max(1.0, *(float(np.abs(logits).max()) for logits in pair.last_logits))
