"""Effects of interventions on a run: of each ablation, of those that are set, and of several together."""

from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import next_token_distribution, surprisal
from explorer.analysis.residual import residual_stream
from explorer.architecture.attention import ANGLES, LOCAL_ANGLES
from explorer.explain.tolerance import Check
from explorer.explain.tolerance import rounding_threshold as rounding_resolution
from explorer.interventions import Intervention
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import MAX_CLICK_MACS
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class AblationEffects:
    """Changes of log₂ p of a token in bits when one component alone is ablated.

    Below 0 the token is less probable without the component.

    Attributes:
        before: log₂ p of the token as the run is.
        heads: (L, H), one per head.
        sublayers: (L, 2), all heads of a layer together, and all neurons of its feed-forward.
        error: difference from `before` when the run is repeated without any ablation.
    """

    before: float
    heads: np.ndarray
    sublayers: np.ndarray
    error: float


def ablation_effects(
    trace: Trace,
    position: int,
    token_id: int,
    interventions: tuple[Intervention, ...] = (),
    max_wait_macs: float = MAX_CLICK_MACS,
) -> AblationEffects:
    """Return the effect of ablating each component on the log probability of a token after a position.

    The first call runs the model's layers again, H + 2 times from each layer on.

    Args:
        interventions: active in all these runs, but not in the run that they are compared with; `error` is
            then the effect of these interventions alone.
        max_wait_macs: multiply-accumulate operations above which a page request does not wait for the result.

    Raises:
        ValueError: the trace has no model to run again.
        ResultNotReadyError: a page request needs a result that exceeds `max_wait_macs` and is not computed yet.
    """
    before = log2_probability(trace, position, token_id)
    baseline_change, *component_changes = (
        trace.ablate(position, token_id, interventions, max_wait_macs) / np.log(2) - before
    )
    changes = np.reshape(component_changes, (trace.config.num_layers, -1))  # (L, H + 2)
    return AblationEffects(before, changes[:, :-2], changes[:, -2:], float(abs(baseline_change)))


def log2_probability(trace: Trace, position: int, token_id: int) -> float:
    """Return log₂ of the probability of a token after a position, in bits."""
    logits = trace.logits.row(position).astype(np.float64)
    largest = logits.max()
    return float((logits[token_id] - largest - np.log(np.exp(logits - largest).sum())) / np.log(2))


def comparison_rounding_threshold(comparison: Comparison) -> float:
    """Return the smallest difference between the runs that rounding does not explain, for numbers of size 1.

    If the runs rotate q and k by different angles, it is that of the largest angle: equal distances between two
    angles are then rounded differently.
    """
    largest = 0.0
    for name in (ANGLES, LOCAL_ANGLES):
        angles = [run[name] for run in comparison.runs if name in run]
        if len(angles) == 2 and not np.array_equal(*angles):
            largest = max(largest, *(float(np.abs(values).max()) for values in angles))
    return rounding_resolution(comparison.trace.dtype, largest)


def pattern_change(comparison: Comparison, layer: int, head: int) -> np.ndarray:
    """Return changed − unchanged attention weights, (T, T) in [-1, 1], row = query, column = key.

    Each row sums to 0.
    """
    name = f"blocks.{layer}.attn.pattern"
    return comparison.trace[name][head] - comparison.other[name][head]


def largest_score_change(comparison: Comparison, layer: int, head: int) -> float:
    """Return the largest |changed score − unchanged score| of a head, over the causally visible keys."""
    name = f"blocks.{layer}.attn.scores"
    return float(np.abs(np.tril(comparison.trace[name][head] - comparison.other[name][head])).max())


def largest_score(comparison: Comparison, layer: int, head: int) -> float:
    """Return the largest |score| of a head in either run, over the same keys, as the scale of its changes."""
    name = f"blocks.{layer}.attn.scores"
    return float(max(np.abs(np.tril(run[name][head])).max() for run in comparison.runs))


@dataclass(frozen=True)
class NextTokenChange:
    """Next-token distributions after one position, without and with interventions.

    Attributes:
        before, after: (V,) probabilities without and with the interventions.
        total_variation: ½ Σ |after − before| in [0, 1], the probability that moved to other tokens.
    """

    before: np.ndarray
    after: np.ndarray
    total_variation: float

    def top(self, n: int) -> np.ndarray:
        """Return the ids of the n tokens most probable in either run, most probable first; ties by lower id."""
        return np.argsort(-np.maximum(self.before, self.after), kind="stable")[:n]


def next_token_change(comparison: Comparison, position: int) -> NextTokenChange:
    """Return the next-token distributions after a position, without and with the interventions."""
    before, after = (next_token_distribution(run, position).plain for run in reversed(comparison.runs))
    return NextTokenChange(before, after, float(np.abs(after - before).sum() / 2))


def surprisal_change(comparison: Comparison) -> np.ndarray:
    """Return changed − unchanged surprisal of each token in bits, (T,); NaN for the first.

    Above 0 the token is harder to predict.
    """
    return surprisal(comparison.trace) - surprisal(comparison.other)


def relative_stream_change(comparison: Comparison) -> np.ndarray:
    """Return ‖x' − x‖ / ‖x‖ of the residual stream at its `stages`, (S, T)."""
    before = residual_stream(comparison.other)  # (S, T, D)
    distances, norms = (
        np.linalg.norm(vectors, axis=-1) for vectors in (residual_stream(comparison.trace) - before, before)
    )
    return np.divide(distances, norms, out=np.zeros_like(distances), where=norms > 0)


def attention_shift(comparison: Comparison) -> np.ndarray:
    """Return the fraction of each head's attention that moved to other keys, (L, H) in [0, 1].

    ½ Σ |change|, averaged over queries.
    """
    name = "blocks.*.attn.pattern"
    pattern_pairs = zip(comparison.trace.layers(name), comparison.other.layers(name), strict=True)
    return np.stack([np.abs(changed - unchanged).sum(-1).mean(-1) / 2 for changed, unchanged in pattern_pairs])


MEASURES = ("logit", "probability")


@dataclass(frozen=True)
class InterventionInteraction:
    """A measure of a next token without, with each, and with all interventions.

    Attributes:
        before: without interventions.
        single_values: (N,), with each of N interventions alone.
        joint_value: with all of them.
    """

    before: float
    single_values: np.ndarray
    joint_value: float

    @property
    def effects(self) -> np.ndarray:
        """Effect of each intervention alone, (N,)."""
        return self.single_values - self.before

    @property
    def sum(self) -> float:
        """Sum of the single effects."""
        return float(self.effects.sum())

    @property
    def joint(self) -> float:
        """Effect of all interventions together."""
        return self.joint_value - self.before

    @property
    def interaction(self) -> float:
        """joint − sum; 0 if the effects add up."""
        return self.joint - self.sum


def intervention_interaction(
    comparison: Comparison, position: int, token_id: int, measure: str
) -> InterventionInteraction:
    """Measure the interventions of a run on the "logit" or "probability" of a token after a position.

    The first call runs the model once for every intervention.

    Raises:
        ValueError: the trace has no model to run again.
    """
    changed, unchanged = comparison.runs
    index = MEASURES.index(measure)

    def apply_measure(outcome: np.ndarray) -> float:
        return float(np.exp(outcome[1]) if index else outcome[0])

    single_values = [
        apply_measure(unchanged.outcome(position, token_id, (intervention,))) for intervention in changed.edits
    ]
    before, joint_value = (apply_measure(captured_outcome(run, position, token_id)) for run in (unchanged, changed))
    return InterventionInteraction(before, np.array(single_values), joint_value)


def captured_outcome(trace: Trace, position: int, token_id: int) -> np.ndarray:
    """Return the logit and ln p of a token from the captured logits, (2,)."""
    logits = trace.logits.row(position).astype(np.float64)
    return np.array([logits[token_id], logits[token_id] - np.logaddexp.reduce(logits)])


def check_recomputed_outcomes(comparison: Comparison, position: int, token_id: int) -> Check:
    """Check logit and ln p of both runs, computed by running the model again, against the captured logits."""
    recomputed = [run.outcome(position, token_id, run.edits) for run in comparison.runs]
    captured = [captured_outcome(run, position, token_id) for run in comparison.runs]
    largest = max(float(np.abs(run.logits.row(position)).max()) for run in comparison.runs)
    return Check.from_arrays(comparison.trace.dtype, np.array(recomputed), np.array(captured), largest)
