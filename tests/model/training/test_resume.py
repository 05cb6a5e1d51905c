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
INTERRUPTIONS = ((21, "muon"), (21, "adamw"), (37, "adamw"))


def read_curve_without_times(folder: Path) -> list[dict]:
    """Return the log without the times."""
    records = [json.loads(line) for line in (folder / "training.jsonl").open()]
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


@pytest.mark.parametrize(
    ("step", "optimizer"),
    [(37, "muon"), *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in INTERRUPTIONS)],
)
@pytest.mark.exhaustive
def test_killed_run_resumes_unchanged(options, checkpoints_folder, interrupt_at_step, optimizer, step):
    """Dropout and copied windows are on, so that the state of every random generator matters."""
    options = replace(options, optimizer=optimizer, evaluate_every=10, copy_fraction=0.3, copy_from=0.1)
    options = replace(options, model=options.model | {"dropout": 0.2})
    uninterrupted = train(options)
    expected = read_curve_without_times(checkpoints_folder / "trained")

    interrupt_at_step(step)
    with pytest.raises(KeyboardInterrupt):
        train(options)
    assert (checkpoints_folder / "trained" / "run.safetensors").is_file()
    torch.manual_seed(99)
    continued = train(replace(options, resume=True))
    for (name, one), other in zip(uninterrupted.state_dict().items(), continued.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    assert read_curve_without_times(checkpoints_folder / "trained") == expected
    assert not (checkpoints_folder / "trained" / "run.safetensors").exists()


def test_trained_tokenizer_is_kept_on_resume(options, interrupt_at_step):
    options = replace(options, tokenizer=None, vocab_size=270)
    interrupt_at_step(25)
    with pytest.raises(KeyboardInterrupt):
        train(options)
    options.train.write_text(options.train.read_text(encoding="utf-8") + "a badger " * 99, encoding="utf-8")
    _, before = load_checkpoint("trained")
    train(replace(options, resume=True))
    _, after = load_checkpoint("trained")
    assert [before.token_bytes(i) for i in range(270)] == [after.token_bytes(i) for i in range(270)]


def test_resume_with_other_options_is_refused(options, interrupt_at_step):
    interrupt_at_step(25)
    with pytest.raises(KeyboardInterrupt):
        train(options)
    with pytest.raises(ValueError, match="the run to go on with had learning_rate 0.01, got 0.02, seed 0, got 1"):
        train(replace(options, resume=True, learning_rate=0.02, seed=1))
    with pytest.raises(ValueError, match="the run to go on with had model"):
        train(replace(options, resume=True, model=options.model | {"d_ff": 64}))


def test_resume_without_run_is_refused(options, checkpoints_folder):
    with pytest.raises(ValueError, match="there is no run to go on with at .*run.safetensors"):
        train(replace(options, resume=True))
    (checkpoints_folder / "trained").mkdir()
    (checkpoints_folder / "trained" / "run.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="there is no run to go on with at .*run.safetensors"):
        train(replace(options, resume=True))


@pytest.mark.exhaustive
def test_process_killed_by_sigkill_resumes(options, tmp_path):
    """SIGKILL cannot be caught: the files on disk must be complete at any time."""
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
    begun = read_curve_without_times(out)[-1]["step"]
    process = subprocess.Popen([*map(str, command), "--resume"], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        while curve_length(out) < begun // 10 + 2 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    steps_logged = [record["step"] for record in read_curve_without_times(out)]
    assert steps_logged == list(range(10, 10 * len(steps_logged) + 1, 10)) and len(steps_logged) >= 2
    load_checkpoint(out)


def curve_length(folder: Path) -> int:
    return (folder / "training.jsonl").read_text(encoding="utf-8").count("\n")
