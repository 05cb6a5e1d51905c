"""A model in training: its weights, what moves them, and where it is in the text."""

import json
import math
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from model.checkpoint import stored_weights
from model.initialisation import initialise
from model.training.data import Batches, TrainingText
from model.training.distributed import Processes
from model.training.optimizer import build_optimizers
from model.training.options import TrainingOptions
from model.training.resume import (
    load_run,
    optimizer_tensors,
    random_state,
    restore_optimizers,
    restore_random_state,
    save_run,
)
from model.training.schedule import learning_rate_factor
from model.transformer_lm import TransformerLM

# Options that may differ between a run and its continuation.
FREE = ("out", "train", "validation", "tokenizer", "device", "compile", "resume")


class Trainer:
    """Takes one step after another; `step` counts those taken.

    Raises:
        ValueError: an option or the text does not fit; the message says how.
    """

    def __init__(self, options: TrainingOptions, text: TrainingText, processes: Processes, device: str):
        self.options, self.processes, self.device = options, processes, device
        parts = processes.count * options.accumulation
        if options.batch_size % parts:
            raise ValueError(
                f"batch_size must be a multiple of processes × accumulation, got {options.batch_size} for {parts}"
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
        self.loss_of = self.build_loss()
        self.step = 0
        if processes.count > 1:
            torch.manual_seed(options.seed + processes.rank)  # every process drops other elements

    def build_loss(self):
        """The function (inputs, targets), each (B, T) -> mean cross-entropy in nats."""
        lm, smoothing = self.processes.averaging(self.lm), self.options.label_smoothing

        def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
            logits = lm(inputs)  # (B, T, V)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing)

        return torch.compile(loss_of) if self.options.compile else loss_of

    def take_step(self) -> float:
        """Move all weights once, by one batch; return its loss.

        Raises:
            FloatingPointError: the loss is not a number.
        """
        options = self.options
        self.step += 1
        self.set_learning_rate()
        copying = self.step > options.copy_from * options.steps
        inputs, targets = self.batches.next(options.copy_fraction if copying else 0.0)
        loss = self.backward(self.processes.share(inputs), self.processes.share(targets))
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss} at step {self.step}: lower the learning rate")
        torch.nn.utils.clip_grad_norm_(self.lm.parameters(), options.clip)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss

    def set_learning_rate(self) -> None:
        options = self.options
        factor = learning_rate_factor(self.step - 1, options.warmup_steps, options.steps, options.final_learning_rate)
        self.learning_rate = options.learning_rate * factor
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * factor

    def backward(self, inputs: Tensor, targets: Tensor) -> float:
        """Leave the gradients of the mean loss of a batch, taken in `accumulation` parts; return the loss."""
        parts, total = self.options.accumulation, torch.zeros((), device=self.device)
        for some_inputs, some_targets in zip(inputs.chunk(parts), targets.chunk(parts), strict=True):
            with self.mixed_precision():
                loss = self.loss_of(some_inputs.to(self.device), some_targets.to(self.device)) / parts
            loss.backward()
            total += loss.detach()
        return self.processes.mean(total).item()

    def mixed_precision(self):
        """Matrix products in bfloat16, the rest in float32; or everything in float32."""
        if self.options.precision == "float32":
            return nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16)

    def save(self, path: Path, values: dict[str, Any]) -> None:
        """Write everything needed to go on, and `values`; to be called by all processes."""
        random_states = self.processes.gather(random_state(self.device))
        if not self.processes.is_first:
            return
        tensors = {f"model.{name}": tensor for name, tensor in stored_weights(self.lm).items()}
        tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer_tensors(self.optimizers).items()}
        tensors |= {f"random.{rank}": state for rank, state in enumerate(random_states)}
        own = {"step": self.step, "batches": self.batches.state, "options": self.fixed_options()}
        save_run(path, tensors, own | values)

    def restore(self, path: Path) -> dict[str, Any]:
        """Go on from what `save` wrote; return the `values` it was given.

        Raises:
            ValueError: there is no run, or it was another: other options, another model, more or fewer processes.
        """
        tensors, values = load_run(path)
        before, now = values.pop("options"), self.fixed_options()
        if changed := [name for name in now if before.get(name) != now[name]]:
            differences = ", ".join(f"{name} {before.get(name)!r}, got {now[name]!r}" for name in changed)
            raise ValueError(f"the run to go on with had {differences}")
        self.lm.load_state_dict(under("model.", tensors), strict=False)  # a tied unembedding is stored once
        restore_optimizers(self.optimizers, under("optimizer.", tensors))
        restore_random_state(self.device, tensors[f"random.{self.processes.rank}"])
        self.step, self.batches.state = values.pop("step"), values.pop("batches")
        return values

    def fixed_options(self) -> dict[str, Any]:
        """What a continuation must share, as JSON has it."""
        options = asdict(self.options) | {"processes": self.processes.count, "model": asdict(self.config)}
        return json.loads(json.dumps({name: value for name, value in options.items() if name not in FREE}, default=str))


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those whose names begin so, without the prefix."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
