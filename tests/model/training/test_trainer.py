import json
import runpy
from dataclasses import replace

import pytest
import torch

from model.checkpoint import list_checkpoints, load_checkpoint
from model.training import trainer
from model.training.data import encode_documents, read_documents
from model.training.evaluation import evaluate
from model.training.options import TrainingOptions
from model.training.trainer import train


@pytest.fixture
def options(tmp_path, checkpoints_folder, tiny_tokenizer) -> TrainingOptions:
    """A model of one block, 40 steps on eight words."""
    text = tmp_path / "text.txt"
    text.write_text("the fox asked the owl and the moon said nothing\n<|endoftext|>\n" * 40, encoding="utf-8")
    tiny_tokenizer.save(tmp_path / "tokenizer.tiktoken")
    return TrainingOptions(
        train=text,
        validation=text,
        out="trained",
        tokenizer=tmp_path / "tokenizer.tiktoken",
        context_length=16,
        d_model=16,
        num_layers=1,
        num_heads=2,
        d_ff=32,
        steps=40,
        batch_size=8,
        warmup_steps=5,
        evaluate_every=20,
        learning_rate=0.01,
        precision="float32",
    )


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_training_lowers_the_loss_and_leaves_a_checkpoint(options, checkpoints_folder, optimizer, precision):
    train(replace(options, optimizer=optimizer, precision=precision))
    curve = [json.loads(line) for line in (checkpoints_folder / "trained" / "training.jsonl").open()]
    assert [record["step"] for record in curve] == [20, 40]
    assert curve[1]["tokens"] == 40 * 8 * 16
    assert curve[1]["validation_loss"] < curve[0]["validation_loss"] < 4
    assert curve[1]["train_loss"] < curve[0]["train_loss"] < 5.7  # ln 300
    assert curve[1]["learning_rate"] < curve[0]["learning_rate"] < options.learning_rate

    assert list_checkpoints() == ["trained"]
    lm, tokenizer = load_checkpoint("trained")
    documents = read_documents(options.validation)
    score = evaluate(lm, encode_documents(documents, tokenizer), sum(len(d.encode()) for d in documents))
    assert score.loss == pytest.approx(curve[1]["validation_loss"], abs=0.01)  # weights are rounded to 16 bits
    assert score.bits_per_byte == pytest.approx(curve[1]["bits_per_byte"], abs=0.01)


def test_the_seed_fixes_the_result(options):
    options = replace(options, steps=5)
    first, again, other = train(options), train(options), train(replace(options, seed=1))
    assert torch.equal(first.lm_head.weight, again.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)


def test_the_learning_rate_follows_the_schedule(options, monkeypatch):
    monkeypatch.setattr(trainer, "learning_rate_factor", lambda step, *others: 1.0 if step == 0 else 0.0)
    one, five = train(replace(options, steps=1)), train(replace(options, steps=5))
    assert torch.equal(one.lm_head.weight, five.lm_head.weight)


def test_gradients_are_cleared_after_every_step(options):
    lm = train(replace(options, steps=1))
    assert all(parameter.grad is None for parameter in lm.parameters())


def test_without_a_tokenizer_one_is_trained_on_the_text(options):
    train(replace(options, tokenizer=None, vocab_size=270, steps=1))
    _, tokenizer = load_checkpoint("trained")
    assert tokenizer.vocab_size == 270
    assert len(tokenizer.encode("the the the")) < 11


def test_a_loss_that_is_no_number_ends_the_run(options, monkeypatch):
    monkeypatch.setattr(trainer.F, "cross_entropy", lambda logits, targets: logits.sum() * torch.nan)
    with pytest.raises(FloatingPointError, match="the loss is nan at step 1: lower the learning rate"):
        train(options)


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--train", "nowhere.txt", "training text must be a readable UTF-8 file: nowhere.txt"),
        ("--tokenizer", "nowhere.tiktoken", "No such file or directory: 'nowhere.tiktoken'"),
        ("--batch-size", "1000", "needs 17016 tokens of text"),
        ("--num-heads", "5", "num_heads must divide d_model"),
        ("--vocab-size", "100", "at least 257 tokens, got vocab_size 100"),
        ("--learning-rate", "-1", "Learning rate should be >= 0"),
        ("--optimizer", "sgd", "optimizer must be one of adamw, muon"),
        ("--device", "quantum", "cannot train on the device 'quantum'"),
    ],
)
def test_the_command_line_says_what_is_wrong_in_one_line(options, monkeypatch, flag, value, message):
    arguments = ["--train", options.train, "--validation", options.validation, "--out", "trained", "--vocab-size", 265]
    arguments += ["--context-length", 16]
    monkeypatch.setattr("sys.argv", ["training", *map(str, arguments), flag, value])
    with pytest.raises(SystemExit) as exit:
        runpy.run_module("model.training", run_name="__main__")
    assert str(exit.value).startswith("error: ")
    assert message in str(exit.value)
