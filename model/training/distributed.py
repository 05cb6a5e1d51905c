"""Several processes that train one model, each on its share of every batch.

`torchrun --nproc_per_node=N -m model.training ...` starts N processes that communicate; without it there is one,
and everything here does nothing.
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
class ProcessGroup:
    """The processes that train one model, as seen from this one.

    Attributes:
        rank: its number, from 0.
        count: number of processes.
    """

    rank: int = 0
    count: int = 1

    @property
    def is_main(self) -> bool:
        """True for the process that writes files and messages."""
        return self.rank == 0

    def shard_batch(self, batch: Tensor) -> Tensor:
        """Return this process's rows of a batch (B, ...): (B / count, ...)."""
        return batch.chunk(self.count)[self.rank]

    def wrap_ddp(self, lm: nn.Module) -> nn.Module:
        """Wrap the model so that its gradients are averaged over the processes as they are computed."""
        return DistributedDataParallel(lm) if self.count > 1 else lm

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean of a number over the processes."""
        if self.count > 1:
            dist.all_reduce(value)
        return value / self.count

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return every process's tensor, on the CPU, in order of rank."""
        gathered = [None] * self.count
        if self.count == 1:
            return [tensor.cpu()]
        dist.all_gather_object(gathered, tensor.cpu())
        return gathered

    def broadcast_flag(self, value: bool) -> bool:
        """Return the first process's value, so that all processes act alike."""
        values = [value]
        if self.count > 1:
            dist.broadcast_object_list(values)
        return values[0]


@contextmanager
def process_group(device: str) -> Iterator[tuple[ProcessGroup, str]]:
    """Yield the group of processes that `torchrun` started, and the device of this one: of several GPUs, its own."""
    count = int(os.environ.get("WORLD_SIZE", 1))
    if count == 1:
        yield ProcessGroup(), device
        return
    on_cuda = torch.device(device).type == "cuda"
    if on_cuda:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_cuda else "gloo")
    try:
        yield ProcessGroup(dist.get_rank(), count), device
    finally:
        dist.destroy_process_group()
