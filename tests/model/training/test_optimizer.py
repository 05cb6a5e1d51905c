from dataclasses import replace

import pytest
import torch

from model.training.trainer import build_optimizers
from model.transformer_lm import TransformerLM


@pytest.fixture(params=[False, True], ids=["untied", "tied"])
def lm(request, tiny_config):
    return TransformerLM(replace(tiny_config, tie_embeddings=request.param))


@pytest.fixture(params=["adamw", "muon"])
def optimizers(request, lm):
    return build_optimizers(lm, request.param, learning_rate=0.01, weight_decay=0.1, betas=(0.9, 0.95))


def parameter_groups(optimizers):
    return [group for optimizer in optimizers for group in optimizer.param_groups]


def test_every_weight_is_in_exactly_one_group(lm, optimizers):
    held = [id(parameter) for group in parameter_groups(optimizers) for parameter in group["params"]]
    assert sorted(held) == sorted(id(parameter) for parameter in lm.parameters())


def test_only_matrices_have_weight_decay(optimizers):
    for group in parameter_groups(optimizers):
        assert {parameter.ndim for parameter in group["params"]} == ({2} if group["weight_decay"] else {1})


def test_every_group_has_peak_learning_rate(optimizers):
    assert all(group["peak_lr"] == group["lr"] == 0.01 for group in parameter_groups(optimizers))


def test_muon_optimises_block_matrices(lm):
    muon, adamw = build_optimizers(lm, "muon", 0.01, 0.1, (0.9, 0.95))
    assert isinstance(muon, torch.optim.Muon)
    assert isinstance(adamw, torch.optim.AdamW)
    held = {id(parameter) for parameter in muon.param_groups[0]["params"]}
    names = {name for name, parameter in lm.named_parameters() if id(parameter) in held}
    assert names == {name for name in dict(lm.named_parameters()) if name.startswith("blocks.") and "proj" in name}


def test_step_changes_every_weight(lm, optimizers, token_ids):
    before = {name: parameter.detach().clone() for name, parameter in lm.named_parameters()}
    lm(token_ids).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
    assert [name for name, parameter in lm.named_parameters() if torch.equal(parameter, before[name])] == []
