"""Training on other devices: the same loss curve as on the CPU, and resuming."""

import json
from dataclasses import replace

import pytest
import torch
from numpy.testing import assert_allclose

from model.training.trainer import train
from tests.devices import on_each_device
from tests.exhaustive import first_in_core


@on_each_device
@pytest.mark.parametrize("optimizer", first_in_core(["adamw", "muon"]))
def test_losses_match_cpu(options, checkpoints_folder, optimizer, device):
    options = replace(options, steps=20, evaluate_every=5, optimizer=optimizer)
    options = replace(options, model=options.model | {"dropout": 0.0})
    curves = []
    for where in ("cpu", device):
        train(replace(options, device=where, out=f"on-{where}"))
        lines = (checkpoints_folder / f"on-{where}" / "training.jsonl").read_text(encoding="utf-8").splitlines()
        names = ("train_loss", "validation_loss", "induction_score", "previous_token_score")
        curves.append([[json.loads(line)[name] for name in names] for line in lines])
    assert len(curves[0]) == 4
    assert_allclose(curves[1], curves[0], atol=1e-2)


@on_each_device
@pytest.mark.exhaustive
def test_killed_run_resumes_unchanged(options, interrupt_at_step, device):
    """Dropout is on, so that the device's own generator matters."""
    options = replace(options, steps=20, evaluate_every=10, device=device, model=options.model | {"dropout": 0.2})
    expected = train(options).state_dict()
    interrupt_at_step(17)
    with pytest.raises(KeyboardInterrupt):
        train(options)
    torch.manual_seed(99)
    for name, value in train(replace(options, resume=True)).state_dict().items():
        assert_allclose(value.cpu().numpy(), expected[name].cpu().numpy(), atol=1e-5, err_msg=name)
