"""A model in training: its weights, its optimizers, and its progress in the text."""

import json
import math
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from model.checkpoint import weights_to_save
from model.initialisation import initialise
from model.training.data import Batches, TrainingText
from model.training.distributed import ProcessGroup
from model.training.optimizer import build_optimizers
from model.training.options import TrainingOptions
from model.training.schedule import learning_rate_factor
from model.training.training_state import (
    load_training_state,
    optimizer_tensors,
    random_state,
    restore_optimizers,
    restore_random_state,
    save_training_state,
)
from model.transformer_lm import TransformerLM

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
