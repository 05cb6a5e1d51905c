"""Learning-rate schedule."""

import math


def learning_rate_factor(step: int, warmup_steps: int, total_steps: int, final_fraction: float) -> float:
    """Share of the peak rate at `step`: up in a line over the warm-up, then down in half a cosine.

    Loshchilov & Hutter 2017, eq. 5, ending at `final_fraction` of the peak.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return final_fraction + (1 - final_fraction) * (1 + math.cos(math.pi * progress)) / 2
