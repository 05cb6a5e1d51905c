"""Fair comparisons on a machine that has other things to do."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch

NUM_THREADS = 2


def alternate(functions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each function, on two threads.

    They take turns, so that whatever slows the machine slows them all; a first, unmeasured round warms them up. What
    runs on a GPU is waited for.
    """
    torch.set_num_threads(NUM_THREADS)
    seconds = {name: [] for name in functions}
    for round_ in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if torch.accelerator.is_available():
                torch.accelerator.synchronize()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}
