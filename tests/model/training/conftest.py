"""Fixtures for training runs small enough for a test."""

import pytest

from model.training.options import TrainingOptions
from model.training.trainer import Trainer


@pytest.fixture
def options(tmp_path, checkpoints_folder, tiny_tokenizer) -> TrainingOptions:
    """Options that train a model with one block for 40 steps on eight words."""
    text = tmp_path / "text.txt"
    text.write_text("the fox asked the owl and the moon said nothing\n<|endoftext|>\n" * 40, encoding="utf-8")
    tiny_tokenizer.save(tmp_path / "tokenizer.tiktoken")
    return TrainingOptions(
        train=text,
        validation=text,
        out="trained",
        tokenizer=tmp_path / "tokenizer.tiktoken",
        model={"context_length": 16, "d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 32, "dropout": 0.1},
        steps=40,
        batch_size=8,
        warmup_steps=5,
        evaluate_every=20,
        learning_rate=0.01,
        precision="float32",
    )


@pytest.fixture
def interrupt_at_step(monkeypatch):
    """`interrupt_at_step(step)`: training raises KeyboardInterrupt before that step."""

    def kill_before(step: int) -> None:
        take_step = Trainer.take_step

        def take_step_or_interrupt(trainer: Trainer) -> float:
            if trainer.step + 1 == step:
                monkeypatch.setattr(Trainer, "take_step", take_step)
                raise KeyboardInterrupt
            return take_step(trainer)

        monkeypatch.setattr(Trainer, "take_step", take_step_or_interrupt)

    return kill_before
