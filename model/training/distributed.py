"""Several processes that train one model, each on its share of every batch.

`torchrun --nproc_per_node=N -m model.training ...` starts N processes that know of each other; started plainly there is
one, and everything here does nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Processes:
    """This process among all.

    Attributes:
        rank: its number, from 0.
        count: how many there are.
    """

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes files and messages."""
        return self.rank == 0

    def share(self, batch: Tensor) -> Tensor:
        """This process's rows of a batch (B, ...): (B / count, ...)."""
        return batch.chunk(self.count)[self.rank]

    def averaging(self, lm: nn.Module) -> nn.Module:
        """The model, its gradients averaged over the processes as they are computed."""
        return DistributedDataParallel(lm) if self.count > 1 else lm

    def mean(self, value: Tensor) -> Tensor:
        """The mean over the processes of a number each has."""
        if self.count > 1:
            dist.all_reduce(value)
        return value / self.count

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """What each process has, on the CPU, in order of rank."""
        gathered = [None] * self.count
        if self.count == 1:
            return [tensor.cpu()]
        dist.all_gather_object(gathered, tensor.cpu())
        return gathered

    def as_the_first_says(self, value: bool) -> bool:
        """The first process's value, for all to do the same."""
        values = [value]
        if self.count > 1:
            dist.broadcast_object_list(values)
        return values[0]


@contextmanager
def joined_processes(device: str) -> Iterator[tuple[Processes, str]]:
    """This process among those `torchrun` started, and the device it is to use: of several GPUs, its own."""
    count = int(os.environ.get("WORLD_SIZE", 1))
    if count == 1:
        yield Processes(), device
        return
    on_cuda = torch.device(device).type == "cuda"
    if on_cuda:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_cuda else "gloo")
    try:
        yield Processes(dist.get_rank(), count), device
    finally:
        dist.destroy_process_group()
