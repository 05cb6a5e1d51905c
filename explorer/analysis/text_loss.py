"""Mean loss of a text."""

import numpy as np

from explorer.analysis.next_token import surprisal
from explorer.tracing.trace import Trace

NATS_PER_BIT = float(np.log(2))


def mean_text_loss(trace: Trace) -> float:
    """Return the mean of −ln p over the run's tokens without the first, in nats per token.

    This is the training loss on this text. NaN for a single token.
    """
    bits = surprisal(trace)[1:]
    return float(np.mean(bits, dtype=np.float64)) * NATS_PER_BIT if len(bits) else float("nan")
