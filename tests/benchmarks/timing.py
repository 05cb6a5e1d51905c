"""Fair comparisons of running times on a busy machine."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch

NUM_THREADS = 2


def alternate(functions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each function, on two threads.

    The functions alternate, so that other load slows all of them; a first, unmeasured round warms them up. Work
    on a GPU is awaited.
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
