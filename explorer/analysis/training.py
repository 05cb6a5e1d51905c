"""How a model came about, in numbers."""

import numpy as np

from explorer.analysis.next_token import surprisal
from explorer.tracing.trace import Trace

NATS_A_BIT = float(np.log(2))


def loss_of_text(trace: Trace) -> float:
    """Nats a token, the mean of −ln p over the run's tokens, the first left out as nothing precedes it: what training
    makes small, of this text. NaN of a single token."""
    bits = surprisal(trace)[1:]
    return float(np.mean(bits, dtype=np.float64)) * NATS_A_BIT if len(bits) else float("nan")
