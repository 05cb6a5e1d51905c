"""Training of a model: its optimizers, schedule, progress and state on disk; the loop, evaluations, snapshots, log.

`torchrun --nproc_per_node=N -m model.training ...` starts N processes that communicate, each with its share of every
batch; without it there is one, and `ProcessGroup` does nothing.
"""

import json
import math
import os
import sys
import time
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
from tqdm import tqdm

from model.checkpoint import TOKENIZER, checkpoint_folder, save_checkpoint, weights_to_save, write_atomically
from model.training.data import TrainingBatches, TrainingText, prepare_training_text
from model.training.evaluation import copying_head_scores, evaluate
from model.training.options import TrainingOptions
from model.transformer_lm import TransformerLM, initialise


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
        self.batches = TrainingBatches(
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


def train(options: TrainingOptions) -> TransformerLM:
    """Train a model and write it to `options.out`, with its loss curve in `training.jsonl`.

    Every evaluation writes the checkpoint and `run.safetensors`, from which a run that was killed resumes with
    `--resume` as if it had not been; it is removed at the end. Snapshots are checkpoints in folders `step-…`
    inside.

    Raises:
        OSError: the tokenizer's file cannot be read, or `options.out` not written.
        ValueError: an option or the text does not fit; the message says how.
        FloatingPointError: the loss is no longer a number.
    """
    try:
        torch.empty(0, device=options.device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"cannot train on the device {options.device!r}: {error}") from None
    with process_group(options.device) as (processes, device):
        return TrainingLoop(options, processes, device).run()


class TrainingLoop:
    """A `Trainer` and the files of its run."""

    def __init__(self, options: TrainingOptions, processes: ProcessGroup, device: str):
        self.options, self.processes = options, processes
        self.folder = checkpoint_folder(options.out)
        self.run_file, self.log = self.folder / "run.safetensors", self.folder / "training.jsonl"
        saved_tokenizer = self.folder / TOKENIZER
        tokenizer = saved_tokenizer if options.resume and saved_tokenizer.is_file() else options.tokenizer
        self.text = prepare_training_text(options.train, options.validation, tokenizer, options.vocab_size)
        self.trainer = Trainer(options, self.text, processes, device)
        self.best_loss, self.evaluations_since_best, self.seconds = float("inf"), 0, 0.0
        if options.resume:
            values = self.trainer.restore(self.run_file)
            self.best_loss, self.seconds = values["best_loss"], values["seconds"]
            self.evaluations_since_best = values["evaluations_since_best"]
        if processes.is_main:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / TOKENIZER, self.text.tokenizer.save)
            self.begin_log()

    def run(self) -> TransformerLM:
        """Take the remaining steps, with the snapshots and evaluations that are due after each."""
        options, trainer, losses = self.options, self.trainer, []
        snapshot_steps = log_spaced_steps(options.steps, options.snapshots)
        if trainer.step == 0 and 0 in snapshot_steps:
            self.save_snapshot()
        started = time.monotonic() - self.seconds
        with self.progress_bar() as bar:
            while trainer.step < options.steps:
                losses.append(trainer.take_step())
                self.seconds = time.monotonic() - started
                bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
                bar.update()
                if trainer.step in snapshot_steps:
                    self.save_snapshot()
                if trainer.step % options.evaluate_every == 0 or trainer.step == options.steps:
                    self.evaluate(sum(losses) / len(losses))
                    losses = []
                    if self.processes.broadcast_flag(self.is_out_of_patience()):
                        break
        if self.processes.is_main:
            self.run_file.unlink(missing_ok=True)
        return trainer.lm.eval()

    def evaluate(self, train_loss: float) -> None:
        """Score the model, add a line to the log, save the checkpoint and the run."""
        if self.processes.is_main:
            record = self.score(train_loss)
            loss = record["validation_loss"]
            self.evaluations_since_best = 0 if loss < self.best_loss else self.evaluations_since_best + 1
            self.best_loss = min(loss, self.best_loss)
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            tqdm.write(json.dumps(record), file=sys.stderr)
            if (
                self.options.patience is None or self.evaluations_since_best == 0
            ):  # with early stopping only the best is saved
                save_checkpoint(self.trainer.lm, self.text.tokenizer, self.folder)
        values = ("best_loss", "evaluations_since_best", "seconds")
        self.trainer.save(self.run_file, {name: getattr(self, name) for name in values})

    def is_out_of_patience(self) -> bool:
        """Return True if the loss has not improved for `patience` evaluations."""
        return self.options.patience is not None and self.evaluations_since_best >= self.options.patience

    def score(self, train_loss: float) -> dict[str, float]:
        """Return a line of `training.jsonl`: losses in nats per token, learning rate, seconds since the start."""
        trainer, lm = self.trainer, self.trainer.lm
        held_out = evaluate(lm, self.text.validation_ids, self.text.validation_bytes)
        heads = copying_head_scores(lm)
        return {
            "step": trainer.step,
            "tokens": trainer.step * self.tokens_per_step,
            "train_loss": round(train_loss, 4),
            "validation_loss": round(held_out.loss, 4),
            "perplexity": round(held_out.perplexity, 3),
            "bits_per_byte": round(held_out.bits_per_byte, 4),
            "previous_token_score": round(heads["previous_token"].max().item(), 3),
            "induction_score": round(heads["induction"].max().item(), 3),
            "learning_rate": trainer.learning_rate,
            "seconds": round(self.seconds, 1),
        }

    @property
    def tokens_per_step(self) -> int:
        return self.options.batch_size * self.trainer.config.context_length

    def save_snapshot(self) -> None:
        """Save the checkpoint in a folder of its own; its tokenizer is the parent folder's."""
        if self.processes.is_main:
            save_checkpoint(self.trainer.lm, None, self.folder / f"step-{self.trainer.step:06d}")

    def begin_log(self) -> None:
        """Remove log lines of later steps: all of them for a new run, the lost ones for a resumed run."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.is_file() else []
        retained = [line for line in lines if json.loads(line)["step"] <= self.trainer.step]
        write_atomically(
            self.log,
            lambda temporary_path: temporary_path.write_text(
                "".join(f"{line}\n" for line in retained), encoding="utf-8"
            ),
        )

    def progress_bar(self) -> tqdm:
        """Return a progress bar with tokens per second and time left, updated rarely if written to a file."""
        return tqdm(
            total=self.options.steps,
            initial=self.trainer.step,
            unit=" tokens",
            unit_scale=self.tokens_per_step,
            mininterval=0.5 if sys.stderr.isatty() else 60,
            disable=not self.processes.is_main,
        )
