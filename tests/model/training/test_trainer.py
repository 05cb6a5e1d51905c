import json
import math
import runpy
from dataclasses import replace

import pytest
import torch
from safetensors import SafetensorError

from model.checkpoint import list_checkpoints, load_checkpoint
from model.training import trainer
from model.training.data import encode_documents, prepare_training_text, read_documents
from model.training.evaluation import Evaluation, evaluate
from model.training.trainer import ProcessGroup, Trainer, train
from tests.exhaustive import pairwise_params


@pytest.mark.parametrize(("optimizer", "precision"), pairwise_params(["adamw", "muon"], ["float32", "bf16"]))
def test_training_lowers_loss_and_saves_checkpoint(options, checkpoints_folder, optimizer, precision):
    train(replace(options, optimizer=optimizer, precision=precision))
    curve = read_curve(checkpoints_folder)
    assert [record["step"] for record in curve] == [20, 40]
    assert curve[1]["tokens"] == 40 * 8 * 16
    assert curve[1]["validation_loss"] < curve[0]["validation_loss"] < 4
    assert curve[1]["train_loss"] < curve[0]["train_loss"] < 5.7  # ln 300
    assert curve[1]["perplexity"] == pytest.approx(math.exp(curve[1]["validation_loss"]), rel=1e-3)
    assert curve[1]["learning_rate"] < curve[0]["learning_rate"] < options.learning_rate

    assert list_checkpoints() == ["trained"]
    lm, tokenizer = load_checkpoint("trained")
    documents = read_documents(options.validation)
    score = evaluate(lm, encode_documents(documents, tokenizer), sum(len(d.encode()) for d in documents))
    assert score.loss == pytest.approx(curve[1]["validation_loss"], abs=0.01)  # weights are rounded to 16 bits
    assert score.bits_per_byte == pytest.approx(curve[1]["bits_per_byte"], abs=0.01)


def test_seed_determines_result(options):
    options = replace(options, steps=5)
    first, again, other = train(options), train(options), train(replace(options, seed=1))
    assert torch.equal(first.lm_head.weight, again.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)


def test_learning_rate_follows_schedule(options, monkeypatch):
    monkeypatch.setattr(trainer, "learning_rate_factor", lambda step, *others: 1.0 if step == 0 else 0.0)
    one, five = train(replace(options, steps=1)), train(replace(options, steps=5))
    assert torch.equal(one.lm_head.weight, five.lm_head.weight)


def test_gradients_are_cleared_after_each_step(options):
    lm = train(replace(options, steps=1))
    assert all(parameter.grad is None for parameter in lm.parameters())


def test_tokenizer_is_trained_if_none_is_given(options):
    train(replace(options, tokenizer=None, vocab_size=270, steps=1))
    _, tokenizer = load_checkpoint("trained")
    assert tokenizer.vocab_size == 270
    assert len(tokenizer.encode("the the the")) < 11


def test_nan_loss_stops_training(options, monkeypatch):
    monkeypatch.setattr(trainer.F, "cross_entropy", lambda logits, targets, **others: logits.sum() * torch.nan)
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
        ("--context-length", "100000", "windows of 100000 tokens needs"),
        ("--config", "nowhere.json", "the config must be a readable JSON file: nowhere.json"),
    ],
)
def test_command_line_errors_are_one_line(options, monkeypatch, flag, value, message):
    arguments = ["--train", options.train, "--validation", options.validation, "--out", "trained", "--vocab-size", 265]
    arguments += ["--context-length", 16]
    monkeypatch.setattr("sys.argv", ["training", *map(str, arguments), flag, value])
    with pytest.raises(SystemExit) as exit:
        runpy.run_module("model.training", run_name="__main__")
    assert str(exit.value).startswith("error: ")
    assert message in str(exit.value)


def test_accumulated_gradients_match_whole_batch(options):
    """Gradients are equal, to rounding, and so is the model."""
    options = replace(options, steps=10, model=options.model | {"dropout": 0.0})
    whole, parts = train(options), train(replace(options, accumulation=4))
    torch.testing.assert_close(whole.lm_head.weight, parts.lm_head.weight, atol=1e-5, rtol=1e-4)


def test_indivisible_batch_size_is_refused(options):
    with pytest.raises(ValueError, match="multiple of processes × accumulation, got 8 for 3"):
        train(replace(options, accumulation=3))


def test_label_smoothing_matches_formula(options):
    options = replace(options, label_smoothing=0.3, model=options.model | {"dropout": 0.0})
    text = prepare_training_text(options.train, options.validation, options.tokenizer, options.vocab_size)
    trainer = Trainer(options, text, ProcessGroup(), "cpu")
    trainer.lm.lm_head.weight.data *= 20  # far from uniform
    inputs, targets = trainer.batches.next()
    logs = trainer.lm(inputs).log_softmax(-1)  # (B, T, V)
    expected = -(0.7 * logs.gather(-1, targets[..., None])[..., 0] + 0.3 * logs.mean(-1)).mean()
    torch.testing.assert_close(trainer.compute_loss(inputs, targets), expected)


def test_style_and_initialisation_are_used(options):
    lm = train(replace(options, style="gpt", initialisation="gpt2", steps=1, learning_rate=1e-9))
    assert (lm.config.norm, lm.config.position, lm.config.ffn) == ("layernorm", "sinusoidal", "relu")
    assert lm.blocks[0].ffn.up_proj.weight.std().item() == pytest.approx(0.02, rel=0.2)


@pytest.mark.exhaustive
def test_snapshots_are_checkpoints_with_shared_tokenizer(options, checkpoints_folder):
    train(replace(options, snapshots=4))
    names = [f"trained/step-{step:06d}" for step in (0, 1, 6, 40)]
    assert list_checkpoints() == ["trained", *names]
    models = [load_checkpoint(name)[0] for name in names]
    fresh, last = models[0].lm_head.weight, models[-1].lm_head.weight
    assert not torch.equal(fresh, models[1].lm_head.weight)
    assert torch.equal(last, load_checkpoint("trained")[0].lm_head.weight)
    assert load_checkpoint(names[0])[1].encode("the fox") == load_checkpoint("trained")[1].encode("the fox")
    assert [path.name for path in (checkpoints_folder / names[0]).iterdir()].count("tokenizer.tiktoken") == 0


def test_early_stopping_keeps_best_model(options, checkpoints_folder, monkeypatch):
    losses = iter([3.0, 2.0, 2.5, 2.2, 1.0])
    monkeypatch.setattr(trainer, "evaluate", lambda *args: Evaluation(loss=next(losses), bits_per_byte=1.0))
    saved = []
    monkeypatch.setattr(trainer, "save_checkpoint", lambda lm, *args: saved.append(lm.lm_head.weight.detach().clone()))
    lm = train(replace(options, evaluate_every=4, patience=2))
    assert [record["validation_loss"] for record in read_curve(checkpoints_folder)] == [3.0, 2.0, 2.5, 2.2]
    assert len(saved) == 2
    assert not torch.equal(saved[-1], lm.lm_head.weight)


def test_full_disk_is_reported_and_keeps_old_checkpoint(options, checkpoints_folder, monkeypatch):
    train(replace(options, steps=5))
    before = (checkpoints_folder / "trained" / "model.safetensors").read_bytes()

    def full(weights, path, *args):
        path.write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("model.checkpoint.save_file", full)
    with pytest.raises(OSError, match="cannot write .*model.safetensors: .*No space left on device"):
        train(options)
    assert (checkpoints_folder / "trained" / "model.safetensors").read_bytes() == before
    assert [path.name for path in (checkpoints_folder / "trained").iterdir() if path.suffix == ".part"] == []


def test_folder_of_texts_is_trained_on(options, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.txt").write_text("the fox asked the owl and the moon\n" * 40, encoding="utf-8")
    assert train(replace(options, train=folder, validation=None, steps=2)).config.vocab_size == 300


def read_curve(checkpoints_folder) -> list[dict]:
    return [json.loads(line) for line in (checkpoints_folder / "trained" / "training.jsonl").open()]
