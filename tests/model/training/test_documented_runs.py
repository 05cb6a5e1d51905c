"""The training commands of `docs/training.md`, run as written except for sizes."""

import json
import re
import shlex
from pathlib import Path

import pytest

from model.checkpoint import load_checkpoint
from model.training.options import parse_options
from model.training.trainer import Trainer, train

GUIDE = Path(__file__).parents[3] / "docs" / "training.md"
SMALL = "--context-length 16 --d-model 16 --num-layers 1 --num-heads 2 --batch-size 8 --evaluate-every 2 --steps 6"


@pytest.fixture
def guide_commands() -> list[list[str]]:
    """Arguments of each line of the guide that begins with `python -m model.training`."""
    text = GUIDE.read_text(encoding="utf-8")
    return [shlex.split(line, comments=True)[3:] for line in re.findall(r"^python -m model\.training .+", text, re.M)]


def test_documented_run_starts_and_resumes(guide_commands, options, checkpoints_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "stories.txt").write_bytes(options.train.read_bytes())
    settings = re.search(r"^echo '(.+)' > run\.json$", GUIDE.read_text(encoding="utf-8"), re.M)[1]
    (tmp_path / "run.json").write_text(settings + "\n")
    begin, resume = (line for line in guide_commands if "--config" in line)
    assert resume == [*begin, "--resume"]
    small = [*SMALL.split(), "--tokenizer", str(options.tokenizer)]
    take_step = Trainer.take_step

    def take_step_or_interrupt(trainer: Trainer) -> float:
        if trainer.step == 4:
            raise KeyboardInterrupt
        return take_step(trainer)

    monkeypatch.setattr(Trainer, "take_step", take_step_or_interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(parse_options([*begin, *small]))
    monkeypatch.setattr(Trainer, "take_step", take_step)
    train(parse_options([*resume, *small]))
    curve = (checkpoints_folder / "my-gpt" / "training.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in curve] == [2, 4, 6]
    assert load_checkpoint("my-gpt")[0].config.ffn == "relu"  # the style named in the config


def test_every_documented_command_is_parsed(guide_commands, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    assert len(guide_commands) == 3
    for line in guide_commands:
        assert parse_options(line).out.startswith("my-")
