"""Zero ablation: the effect of each component on a prediction, measured by running the model without it."""

from dataclasses import dataclass

import numpy as np

from explorer.state.interventions import Intervention
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
