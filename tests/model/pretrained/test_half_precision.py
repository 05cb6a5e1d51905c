"""16-bit weights stay so, and logits agree with transformers up to rounding."""

import json
from collections import Counter
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from model.checkpoint import load_checkpoint
from model.generation.autoregressive import generate
from tests.exhaustive import first_in_core
from tests.model.pretrained.kinds import KINDS

IDS = torch.arange(7, 26)[None]
HALF_UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
SOME = ["Llama 3.1", "Qwen2", "GPT-2", "Gemma 2"]
# One dtype of the families named in the issue in every run, all of both in the exhaustive one.
EACH = [(kind, torch.bfloat16) for kind in SOME] + [
    pytest.param(kind, dtype, marks=pytest.mark.exhaustive)
    for dtype in HALF_UNIT
    for kind in KINDS
    if (kind, dtype) not in [(some, torch.bfloat16) for some in SOME]
]


@pytest.mark.parametrize(("kind", "dtype"), EACH)
@torch.no_grad()
def test_logits_are_as_near_to_the_exact_ones_as_those_of_transformers(saved, kind, dtype):
    """Measured over all kinds: errors at most 1.7 times transformers', differences at most 10 half units."""
    model, folder = saved(kind)
    model.to(dtype).save_pretrained(folder)
    lm, _tokenizer = load_checkpoint(folder)
    assert lm.dtype == dtype
    our_logits, hf_logits = lm(IDS).float(), model(IDS).logits.float()
    exact = load_checkpoint(folder, dtype=torch.float32)[0](IDS)
    assert_close(exact, type(model).from_pretrained(folder, dtype=torch.float32)(IDS).logits, rtol=0, atol=1e-4)
    assert (our_logits - exact).norm() <= 2 * (hf_logits - exact).norm()
    assert (our_logits - hf_logits).norm() <= 16 * HALF_UNIT[dtype] * exact.norm()


@pytest.mark.parametrize("kind", first_in_core(["Llama 2", "Gemma 2", "Granite", "nanochat", "GPT-2"]))
def test_no_matrix_is_widened(saved, kind):
    """Only gains may be of a finer type than stored, not products of stored weights, such as Granite's."""
    model, folder = saved(kind)
    model.to(torch.bfloat16).save_pretrained(folder)
    lm, _tokenizer = load_checkpoint(folder)
    types = {name: weight.dtype for name, weight in lm.state_dict().items()}
    finer = [name for name, dtype in types.items() if dtype != torch.bfloat16]
    assert all(name.endswith("norm.weight") for name in finer)
    assert bool(finer) == (kind in ("Gemma 2", "nanochat"))
    assert {weight.dtype for weight in load_checkpoint(folder, dtype=torch.float32)[0].parameters()} == {torch.float32}


@torch.no_grad()
def test_gains_that_are_stored_less_1_lose_nothing(saved):
    """In bfloat16, 1 + w of a small w would be 1."""
    model, folder = saved("Gemma 2")
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.fill_(2.0**-9)
    model.to(torch.bfloat16).save_pretrained(folder)
    for dtype in (None, torch.bfloat16):
        assert (load_checkpoint(folder, dtype=dtype)[0].final_norm.weight == 1 + 2.0**-9).all()


@pytest.mark.parametrize("kept", ["lm_head.weight", "model.layers.1.mlp.up_proj.weight"])
def test_weights_of_several_types_become_float32(saved, kept):
    model, folder = saved("Llama 2")
    model.to(torch.bfloat16).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {kept: weights[kept].float()}, folder / "model.safetensors")
    assert {weight.dtype for weight in load_checkpoint(folder)[0].parameters()} == {torch.float32}


def test_a_gain_of_a_finer_type_stays_it_and_the_rest_as_it_is(saved):
    model, folder = saved("Llama 2")
    model.to(torch.bfloat16).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"model.norm.weight": weights["model.norm.weight"].float()}, folder / "model.safetensors")
    lm, _tokenizer = load_checkpoint(folder)
    assert lm.final_norm.weight.dtype == torch.float32 and lm.lm_head.weight.dtype == torch.bfloat16
    assert lm(IDS).dtype == torch.bfloat16


def test_other_types_become_float32(saved):
    model, folder = saved("Llama 2")
    model.double().save_pretrained(folder)
    assert load_checkpoint(folder)[0].dtype == torch.float32


@pytest.mark.parametrize("dtype", HALF_UNIT, ids=str)
@pytest.mark.parametrize("kind", ["Llama 3.1", "GPT-2"])
def test_a_text_is_written_on_as_by_the_whole_pass(saved, kind, dtype):
    model, folder = saved(kind)
    model.to(dtype).save_pretrained(folder)
    lm, _tokenizer = load_checkpoint(folder)
    ids = IDS[0, :5].tolist()
    for step in generate(lm, ids, max_new_tokens=8, temperature=0):
        logits = lm(torch.tensor([ids]))[0, -1].float()
        assert logits[step.token_id] >= logits.max() - 32 * HALF_UNIT[dtype] * logits.abs().max()
        ids.append(step.token_id)


@pytest.mark.parametrize("kind", ["Llama 3.1", "GPT-2", "Gemma 2", "Phi-3"])
def test_nothing_is_drawn_at_random_on_the_way(saved, kind, monkeypatch):
    _model, folder = saved(kind)
    before, num_draws = torch.get_rng_state(), Counter()

    def count_draws(draw, weight, *args, **options):
        num_draws[weight.device.type] += weight.numel()
        return draw(weight, *args, **options)

    for name in ("trunc_normal_", "normal_", "uniform_", "xavier_uniform_", "kaiming_normal_", "kaiming_uniform_"):
        monkeypatch.setattr(torch.nn.init, name, partial(count_draws, getattr(torch.nn.init, name)))
    load_checkpoint(folder)
    assert num_draws["meta"] and not num_draws["cpu"]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("claimed", "sentence"),
    [
        (10**8, "num_hidden_layers must be at most 10,000, got 100,000,000"),
        (10**4, r"its weights lack blocks\.3\.attn\.q_proj\.weight"),
    ],
)
def test_a_config_that_claims_more_layers_than_there_are_is_refused_at_once(saved, claimed, sentence):
    _model, folder = saved("Llama 2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": claimed}))
    with pytest.raises(ValueError, match=sentence):
        load_checkpoint(folder)
