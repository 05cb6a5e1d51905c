import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint import load_checkpoint
from model.training.trainer import train

ROOT = Path(__file__).parents[3]
KILLED = ((21, "muon"), (21, "adamw"), (37, "adamw"))


def curve(folder: Path) -> list[dict]:
    """Return the log without the times."""
    records = [json.loads(line) for line in (folder / "training.jsonl").open()]
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


@pytest.mark.parametrize(
    ("step", "optimizer"),
    [(37, "muon"), *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in KILLED)],
)
@pytest.mark.exhaustive
def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(options, checkpoints_folder, killed_at, optimizer, step):
    """Dropout and copied windows are on, so that every generator matters."""
    options = replace(options, optimizer=optimizer, evaluate_every=10, copy_fraction=0.3, copy_from=0.1)
    options = replace(options, model=options.model | {"dropout": 0.2})
    uninterrupted = train(options)
    expected = curve(checkpoints_folder / "trained")

    killed_at(step)
    with pytest.raises(KeyboardInterrupt):
        train(options)
    assert (checkpoints_folder / "trained" / "run.safetensors").is_file()
    torch.manual_seed(99)
    continued = train(replace(options, resume=True))
    for (name, one), other in zip(uninterrupted.state_dict().items(), continued.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    assert curve(checkpoints_folder / "trained") == expected
    assert not (checkpoints_folder / "trained" / "run.safetensors").exists()


def test_a_learnt_tokenizer_is_kept(options, killed_at):
    options = replace(options, tokenizer=None, vocab_size=270)
    killed_at(25)
    with pytest.raises(KeyboardInterrupt):
        train(options)
    options.train.write_text(options.train.read_text(encoding="utf-8") + "a badger " * 99, encoding="utf-8")
    _, before = load_checkpoint("trained")
    train(replace(options, resume=True))
    _, after = load_checkpoint("trained")
    assert [before.token_bytes(i) for i in range(270)] == [after.token_bytes(i) for i in range(270)]


def test_other_options_are_another_run(options, killed_at):
    killed_at(25)
    with pytest.raises(KeyboardInterrupt):
        train(options)
    with pytest.raises(ValueError, match="the run to go on with had learning_rate 0.01, got 0.02, seed 0, got 1"):
        train(replace(options, resume=True, learning_rate=0.02, seed=1))
    with pytest.raises(ValueError, match="the run to go on with had model"):
        train(replace(options, resume=True, model=options.model | {"d_ff": 64}))


def test_where_nothing_was_begun_there_is_nothing_to_go_on_with(options, checkpoints_folder):
    with pytest.raises(ValueError, match="there is no run to go on with at .*run.safetensors"):
        train(replace(options, resume=True))
    (checkpoints_folder / "trained").mkdir()
    (checkpoints_folder / "trained" / "run.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="there is no run to go on with at .*run.safetensors"):
        train(replace(options, resume=True))


@pytest.mark.exhaustive
def test_a_process_killed_outright_goes_on(options, tmp_path):
    """SIGKILL cannot be caught; the files on disk must still be complete."""
    out = tmp_path / "out"
    sizes = ["--context-length", "16", "--d-model", "16", "--num-layers", "1", "--num-heads", "2", "--batch-size", "8"]
    steps = ["--steps", "100000", "--evaluate-every", "10", "--precision", "float32"]
    files = ["--train", options.train, "--validation", options.validation, "--tokenizer", options.tokenizer]
    command = [sys.executable, "-m", "model.training", "--out", out, *files, *sizes, *steps]
    process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (out / "run.safetensors").is_file() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    begun = curve(out)[-1]["step"]
    process = subprocess.Popen([*map(str, command), "--resume"], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        while curve_length(out) < begun // 10 + 2 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    steps_logged = [record["step"] for record in curve(out)]
    assert steps_logged == list(range(10, 10 * len(steps_logged) + 1, 10)) and len(steps_logged) >= 2
    load_checkpoint(out)


def curve_length(folder: Path) -> int:
    return (folder / "training.jsonl").read_text(encoding="utf-8").count("\n")
