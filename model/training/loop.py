"""The training loop: steps, evaluations, snapshots, and the log."""

import json
import sys
import time

import torch
from tqdm import tqdm

from model.checkpoint import TOKENIZER, checkpoint_folder, save_checkpoint, write_atomically
from model.training.data import prepare_training_text
from model.training.evaluation import copying_head_scores, evaluate
from model.training.options import TrainingOptions
from model.training.trainer import ProcessGroup, Trainer, log_spaced_steps, process_group
from model.transformer_lm import TransformerLM


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
