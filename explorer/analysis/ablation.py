"""What each part of the model does to a prediction, by what becomes of it without that part."""

from dataclasses import dataclass

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.jobs import IN_A_CLICK
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Ablation:
    """Changes of log₂ p in bits, where one part alone is silent; below 0 the token is less probable without it.

    Attributes:
        before: log₂ p of the token as the run is.
        heads: (L, H), each head's.
        sublayers: (L, 2), of all heads of a layer, and of all neurons of its feed-forward.
        error: difference from `before` when a run without anything silenced is repeated.
    """

    before: float
    heads: np.ndarray
    sublayers: np.ndarray
    error: float


def ablation(
    trace: Trace, position: int, token_id: int, edits: tuple[Intervention, ...] = (), waited_for: float = IN_A_CLICK
) -> Ablation:
    """Of the probability p of a token after a position.

    The first time it is asked this runs the model's layers again, H + 2 times from each on.

    Args:
        edits: that hold in all these runs, and not in the one that they are compared with; `error` is then what they
            change alone.
        waited_for: of at most so many products an answer of the page waits for.

    Raises:
        ValueError: the trace knows no model to run again.
        NotYet: it takes longer than that, is asked for in an answer of the page, and not there.
    """
    before = log_probability(trace, position, token_id)
    of_nothing, *of_parts = trace.ablate(position, token_id, edits, waited_for) / np.log(2) - before
    changes = np.reshape(of_parts, (trace.config.num_layers, -1))  # (L, H + 2)
    return Ablation(before, changes[:, :-2], changes[:, -2:], float(abs(of_nothing)))


def log_probability(trace: Trace, position: int, token_id: int) -> float:
    """log₂ of the probability of a token after a position, bits."""
    logits = trace.logits.at(position).astype(np.float64)
    largest = logits.max()
    return float((logits[token_id] - largest - np.log(np.exp(logits - largest).sum())) / np.log(2))
