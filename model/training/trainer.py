"""A model in training: its weights, optimizers, schedule and progress, and its state on disk; by several processes.

`torchrun --nproc_per_node=N -m model.training ...` starts N processes that communicate, each with its share of every
batch; without it there is one, and `ProcessGroup` does nothing.
"""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from model.checkpoint import weights_to_save, write_atomically
from model.initialisation import initialise
from model.training.data import Batches, TrainingText
from model.training.options import TrainingOptions
from model.transformer_lm import TransformerLM


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


def build_optimizers(
    lm: nn.Module, name: str, learning_rate: float, weight_decay: float, betas: tuple[float, float]
) -> list[torch.optim.Optimizer]:
    """Return the optimizers that together cover every parameter, each group with its `peak_lr`.

    "adamw": AdamW (Loshchilov & Hutter 2019) for all; only matrices decay.
    "muon": Muon (Jordan et al. 2024) for the blocks' matrices, scaled so that AdamW's learning rate suits it
    (Liu et al. 2025); AdamW for the embeddings and gains.
    """
    parameters = dict(lm.named_parameters())
    in_blocks = [p for key, p in parameters.items() if p.ndim == 2 and key.startswith("blocks.")]
    other_matrices = [p for key, p in parameters.items() if p.ndim == 2 and not key.startswith("blocks.")]
    vectors = [p for p in parameters.values() if p.ndim < 2]
    optimizers = []
    if name == "muon":
        optimizers.append(
            torch.optim.Muon(in_blocks, lr=learning_rate, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
        )
    else:
        other_matrices = in_blocks + other_matrices
    groups = [{"params": other_matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizers.append(torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=True))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers


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


def save_training_state(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write tensors and JSON values to one file atomically: a failure leaves the old file as it was."""
    metadata = {"values": json.dumps(values)}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, lambda temporary_path: save_file(tensors, temporary_path, metadata))


def load_training_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and values that `save_training_state` wrote.

    Raises:
        ValueError: there is no such file, or it is damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            values = json.loads(file.metadata()["values"])
            return {name: file.get_tensor(name) for name in file.keys()}, values  # noqa: SIM118 it is no dict
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"there is no run to go on with at {path}: {error}") from None


def optimizer_tensors(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return the optimizers' state of each parameter, by the name "optimizer.parameter.key"."""
    return {
        f"{i}.{parameter}.{key}": tensor
        for i, optimizer in enumerate(optimizers)
        for parameter, memory in optimizer.state_dict()["state"].items()
        for key, tensor in memory.items()
    }


def restore_optimizers(optimizers: list[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """Restore the state from `optimizer_tensors`; the settings of the groups stay as they are."""
    memories: list[dict[int, dict[str, Tensor]]] = [{} for _ in optimizers]
    for name, tensor in tensors.items():
        i, parameter, key = name.split(".")
        memories[int(i)].setdefault(int(parameter), {})[key] = tensor
    for optimizer, memory in zip(optimizers, memories, strict=True):
        optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})


def random_state(device: str) -> Tensor:
    """Return the state (bytes,) of the CPU's random generator, followed by the device's own, if it has one."""
    return torch.cat([torch.get_rng_state(), *(state.cpu() for state in device_random_states(device))])


def restore_random_state(device: str, state: Tensor) -> None:
    """Restore the state from `random_state`."""
    cpu_state_size = len(torch.get_rng_state())
    torch.set_rng_state(state[:cpu_state_size].clone())
    kind = torch.device(device).type
    if kind != "cpu":
        getattr(torch, kind).set_rng_state(state[cpu_state_size:].clone())


def device_random_states(device: str) -> list[Tensor]:
    """Return the random state of a device in a list; empty for the CPU."""
    kind = torch.device(device).type
    return [] if kind == "cpu" else [getattr(torch, kind).get_rng_state()]


# Options that may differ between a run and its continuation.
CHANGEABLE_OPTIONS = ("out", "train", "validation", "tokenizer", "device", "compile", "resume")


class Trainer:
    """A model with its optimizers and batches, trained step by step; `step` counts the steps taken.

    Raises:
        ValueError: an option or the text does not fit; the message says how.
    """

    def __init__(self, options: TrainingOptions, text: TrainingText, processes: ProcessGroup, device: str):
        self.options, self.processes, self.device = options, processes, device
        num_parts = processes.count * options.accumulation
        if options.batch_size % num_parts:
            raise ValueError(
                f"batch_size must be a multiple of processes × accumulation, got {options.batch_size} for {num_parts}"
            )
        torch.manual_seed(options.seed)
        self.config = options.model_config(text.tokenizer.vocab_size)
        self.lm = TransformerLM(self.config)
        if options.initialisation != "truncated_normal":  # which a new model has
            initialise(self.lm, options.initialisation)
        self.lm.to(device).train()
        betas = (options.beta1, options.beta2)
        self.optimizers = build_optimizers(
            self.lm, options.optimizer, options.learning_rate, options.weight_decay, betas
        )
        self.batches = Batches(
            text.train_ids, self.config.context_length, options.batch_size, self.config.vocab_size, options.seed
        )
        self.compute_loss = self.build_loss()
        self.step = 0
        if processes.count > 1:
            torch.manual_seed(options.seed + processes.rank)  # every process drops other elements

    def build_loss(self):
        """Return the function (inputs, targets), each (B, T) -> mean cross-entropy in nats."""
        lm, smoothing = self.processes.wrap_ddp(self.lm), self.options.label_smoothing

        def compute_loss(inputs: Tensor, targets: Tensor) -> Tensor:
            logits = lm(inputs)  # (B, T, V)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing)

        return torch.compile(compute_loss) if self.options.compile else compute_loss

    def take_step(self) -> float:
        """Update all weights once, by one batch; return its loss.

        Raises:
            FloatingPointError: the loss is not a number.
        """
        options = self.options
        self.step += 1
        self.set_learning_rate()
        copying = self.step > options.copy_from * options.steps
        inputs, targets = self.batches.next(options.copy_fraction if copying else 0.0)
        loss = self.backward(self.processes.shard_batch(inputs), self.processes.shard_batch(targets))
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss} at step {self.step}: lower the learning rate")
        torch.nn.utils.clip_grad_norm_(self.lm.parameters(), options.clip)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss

    def set_learning_rate(self) -> None:
        """Set the learning rate of all parameter groups for the current step."""
        options = self.options
        factor = learning_rate_factor(self.step - 1, options.warmup_steps, options.steps, options.final_learning_rate)
        self.learning_rate = options.learning_rate * factor
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * factor

    def backward(self, inputs: Tensor, targets: Tensor) -> float:
        """Accumulate the gradients of the mean loss of a batch, in `accumulation` parts; return the loss."""
        num_parts, total = self.options.accumulation, torch.zeros((), device=self.device)
        for some_inputs, some_targets in zip(inputs.chunk(num_parts), targets.chunk(num_parts), strict=True):
            with self.mixed_precision():
                loss = self.compute_loss(some_inputs.to(self.device), some_targets.to(self.device)) / num_parts
            loss.backward()
            total += loss.detach()
        return self.processes.mean(total).item()

    def mixed_precision(self):
        """Return a context: matrix products in bfloat16 and the rest in float32, or everything in float32."""
        if self.options.precision == "float32":
            return nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16)

    def save(self, path: Path, values: dict[str, Any]) -> None:
        """Write everything needed to resume, and `values`; to be called by all processes."""
        random_states = self.processes.gather(random_state(self.device))
        if not self.processes.is_main:
            return
        tensors = {f"model.{name}": tensor for name, tensor in weights_to_save(self.lm).items()}
        tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer_tensors(self.optimizers).items()}
        tensors |= {f"random.{rank}": state for rank, state in enumerate(random_states)}
        progress = {"step": self.step, "batches": self.batches.state, "options": self.fixed_options()}
        save_training_state(path, tensors, progress | values)

    def restore(self, path: Path) -> dict[str, Any]:
        """Resume from the file that `save` wrote; return the `values` passed to it.

        Raises:
            ValueError: there is no run, or it was another: other options, another model, more or fewer processes.
        """
        tensors, values = load_training_state(path)
        saved_options, options = values.pop("options"), self.fixed_options()
        if changed := [name for name in options if saved_options.get(name) != options[name]]:
            differences = ", ".join(f"{name} {saved_options.get(name)!r}, got {options[name]!r}" for name in changed)
            raise ValueError(f"the run to go on with had {differences}")
        self.lm.load_state_dict(
            select_and_strip_prefix("model.", tensors), strict=False
        )  # a tied unembedding is stored once
        restore_optimizers(self.optimizers, select_and_strip_prefix("optimizer.", tensors))
        restore_random_state(self.device, tensors[f"random.{self.processes.rank}"])
        self.step, self.batches.state = values.pop("step"), values.pop("batches")
        return values

    def fixed_options(self) -> dict[str, Any]:
        """Return the options that a continuation must share, as JSON."""
        options = asdict(self.options) | {"processes": self.processes.count, "model": asdict(self.config)}
        return json.loads(
            json.dumps({name: value for name, value in options.items() if name not in CHANGEABLE_OPTIONS}, default=str)
        )


def select_and_strip_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
