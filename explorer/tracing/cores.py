"""How many cores a computation takes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

CORES = torch.get_num_threads()  # that PyTorch would take for one product

_lock = threading.Lock()
_computing = 0


@contextmanager
def sharing_cores() -> Iterator[None]:
    """While the block runs, this thread's products take what cores others leave: threads of several products that wait
    for each other on the same cores take longer than one product after another."""
    global _computing
    with _lock:
        _computing += 1
        threads = max(1, CORES // _computing)
    if torch.get_num_threads() != threads:  # of this thread
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        with _lock:
            _computing -= 1
