"""Schedules of the learning rate and of snapshots."""

import math

import numpy as np


def learning_rate_factor(step: int, warmup_steps: int, total_steps: int, final_fraction: float) -> float:
    """Return the share of the peak rate at `step`: linear warm-up, then half a cosine down.

    Loshchilov & Hutter 2017, eq. 5, ending at `final_fraction` of the peak.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return final_fraction + (1 - final_fraction) * (1 + math.cos(math.pi * progress)) / 2


def log_spaced_steps(total_steps: int, count: int) -> list[int]:
    """Return `count` different steps: 0, and from 1 to `total_steps` about geometrically spaced; [] for count 0.

    Where the ratio is too small for whole numbers, the first ones are a step apart.
    """
    if count == 0:
        return []
    return [0, *(max(i, round(step)) for i, step in enumerate(np.geomspace(1, total_steps, count - 1), start=1))]
