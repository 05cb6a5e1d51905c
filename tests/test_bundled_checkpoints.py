"""The checkpoints that come with the repository."""

import json

import pytest
import torch

from model.checkpoint import CHECKPOINTS, list_checkpoints, load_checkpoint
from model.config import num_parameters

MAX_BYTES = 60_000_000

every_checkpoint = pytest.mark.parametrize("name", list_checkpoints())


def test_checkpoints_are_small():
    assert 0 < sum(path.stat().st_size for path in CHECKPOINTS.rglob("*") if path.is_file()) < MAX_BYTES


@every_checkpoint
@torch.inference_mode()
def test_checkpoint_loads_and_predicts_its_training_text(name):
    """Later steps of a training run have lower loss; step 0 is untrained."""
    lm, tokenizer = load_checkpoint(name)
    assert num_parameters(lm.config) == sum(parameter.numel() for parameter in lm.parameters())
    ids = torch.tensor([tokenizer.encode("Once upon a time, there was a little girl named Lily.")])
    loss = torch.nn.functional.cross_entropy(lm(ids)[0, :-1], ids[0, 1:])
    step = int(name.partition("/step-")[2] or 10**9)
    assert loss < (9 if step < 100 else 6 if step < 1000 else 3)


@pytest.mark.parametrize("folder", sorted({name.partition("/")[0] for name in list_checkpoints()}))
def test_checkpoint_has_a_card_and_a_training_curve(folder):
    card = (CHECKPOINTS / folder / "README.md").read_text(encoding="utf-8")
    assert "Built with Llama" in card
    curve = [json.loads(line) for line in (CHECKPOINTS / folder / "training.jsonl").open(encoding="utf-8")]
    assert f"{curve[-1]['bits_per_byte']:.3f}" in card


def test_licence_of_training_text_is_included():
    licence = (CHECKPOINTS / "LICENSE").read_text(encoding="utf-8")
    notice = (CHECKPOINTS / "NOTICE").read_text(encoding="utf-8").strip()
    assert "LLAMA 3.1 COMMUNITY LICENSE AGREEMENT" in licence.splitlines()[0]
    assert "California" in licence.splitlines()[-1]  # the last clause, so the licence is complete
    assert f"“{notice}”" in licence  # the licence prescribes the notice
    for card in CHECKPOINTS.parent.glob("README.md"), CHECKPOINTS.glob("*/README.md"):
        for path in card:
            front_matter = path.read_text(encoding="utf-8").split("---\n")[1]
            assert "license:\n- mit\n- llama3.1\n" in front_matter
