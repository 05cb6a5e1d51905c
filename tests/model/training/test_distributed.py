import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from model.training.trainer import train

ROOT = Path(__file__).parents[3]


def read_curve(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "training.jsonl").open()]


@pytest.mark.exhaustive
def test_two_processes_have_loss_curve_of_one(options, tmp_path):
    """Both runs read the same global batches; dropout is off, because each process draws its own."""
    options = replace(options, model=options.model | {"dropout": 0.0}, steps=20, evaluate_every=5)
    train(replace(options, out=str(tmp_path / "one")))

    config = {name: getattr(options, name) for name in ("steps", "evaluate_every", "batch_size", "warmup_steps")}
    config |= {"learning_rate": options.learning_rate, "precision": options.precision, **options.model}
    config |= {name: str(getattr(options, name)) for name in ("train", "validation", "tokenizer")}
    (tmp_path / "two.json").write_text(json.dumps(config | {"out": str(tmp_path / "two"), "accumulation": 2}))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m"]
    command += ["model.training", "--config", str(tmp_path / "two.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]

    single_process, two_processes = read_curve(tmp_path / "one"), read_curve(tmp_path / "two")
    assert [record["step"] for record in two_processes] == [5, 10, 15, 20]
    for record, other in zip(single_process, two_processes, strict=True):
        for name in ("train_loss", "validation_loss", "bits_per_byte", "learning_rate", "tokens"):
            assert other[name] == pytest.approx(record[name], rel=5e-4), (record["step"], name)
    assert single_process[-1]["train_loss"] < single_process[0]["train_loss"] - 0.5
