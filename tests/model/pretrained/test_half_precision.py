"""16-bit weights keep their dtype, and logits agree with transformers up to rounding."""

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
from tests.model.pretrained.model_kinds import KINDS
from tests.subtest_loops import subtest_each

IDS = torch.arange(7, 26)[None]
HALF_UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
CORE_KINDS = ["Llama 3.1", "Qwen2", "GPT-2", "Gemma 2"]
# The core suite has one dtype for some families, the exhaustive one both dtypes for all kinds.
CASES = [(kind, torch.bfloat16) for kind in CORE_KINDS] + [
    pytest.param(kind, dtype, marks=pytest.mark.exhaustive)
    for dtype in HALF_UNIT
    for kind in KINDS
    if (kind, dtype) not in [(some, torch.bfloat16) for some in CORE_KINDS]
]


@subtest_each(("kind", "dtype"), CASES, per_case=30)
@torch.no_grad()
def test_logits_are_as_accurate_as_transformers(save_random_model, kind, dtype):
    """Measured over all kinds: errors at most 1.7 times transformers', differences at most 10 half units."""
    model, folder = save_random_model(kind)
    model.to(dtype).save_pretrained(folder)
    lm, _tokenizer = load_checkpoint(folder)
    assert lm.dtype == dtype
    our_logits, hf_logits = lm(IDS).float(), model(IDS).logits.float()
    exact = load_checkpoint(folder, dtype=torch.float32)[0](IDS)
    assert_close(exact, type(model).from_pretrained(folder, dtype=torch.float32)(IDS).logits, rtol=0, atol=1e-4)
    assert (our_logits - exact).norm() <= 2 * (hf_logits - exact).norm()
    assert (our_logits - hf_logits).norm() <= 16 * HALF_UNIT[dtype] * exact.norm()


@pytest.mark.parametrize("kind", first_in_core(["Llama 2", "Gemma 2", "Granite", "nanochat", "GPT-2"]))
def test_matrices_keep_half_precision(save_random_model, kind):
    """Only gains may have a finer dtype than stored, not products of stored weights, such as Granite's."""
    model, folder = save_random_model(kind)
    model.to(torch.bfloat16).save_pretrained(folder)
    lm, _tokenizer = load_checkpoint(folder)
    types = {name: weight.dtype for name, weight in lm.state_dict().items()}
    finer = [name for name, dtype in types.items() if dtype != torch.bfloat16]
    assert all(name.endswith("norm.weight") for name in finer)
    assert bool(finer) == (kind in ("Gemma 2", "nanochat"))
    assert {weight.dtype for weight in load_checkpoint(folder, dtype=torch.float32)[0].parameters()} == {torch.float32}


@torch.no_grad()
def test_gains_stored_minus_1_lose_no_precision(save_random_model):
    """In bfloat16, 1 + w is 1 for small w."""
    model, folder = save_random_model("Gemma 2")
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.fill_(2.0**-9)
    model.to(torch.bfloat16).save_pretrained(folder)
    for dtype in (None, torch.bfloat16):
        assert (load_checkpoint(folder, dtype=dtype)[0].final_norm.weight == 1 + 2.0**-9).all()


@pytest.mark.parametrize("kept", ["lm_head.weight", "model.layers.1.mlp.up_proj.weight"])
def test_mixed_dtypes_become_float32(save_random_model, kept):
    model, folder = save_random_model("Llama 2")
    model.to(torch.bfloat16).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {kept: weights[kept].float()}, folder / "model.safetensors")
    assert {weight.dtype for weight in load_checkpoint(folder)[0].parameters()} == {torch.float32}


def test_float32_gain_stays_among_half_precision_weights(save_random_model):
    model, folder = save_random_model("Llama 2")
    model.to(torch.bfloat16).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"model.norm.weight": weights["model.norm.weight"].float()}, folder / "model.safetensors")
    lm, _tokenizer = load_checkpoint(folder)
    assert lm.final_norm.weight.dtype == torch.float32 and lm.lm_head.weight.dtype == torch.bfloat16
    assert lm(IDS).dtype == torch.bfloat16


def test_float64_becomes_float32(save_random_model):
    model, folder = save_random_model("Llama 2")
    model.double().save_pretrained(folder)
    assert load_checkpoint(folder)[0].dtype == torch.float32


@pytest.mark.parametrize("dtype", HALF_UNIT, ids=str)
@pytest.mark.parametrize("kind", ["Llama 3.1", "GPT-2"])
def test_generated_tokens_match_full_pass(save_random_model, kind, dtype):
    model, folder = save_random_model(kind)
    model.to(dtype).save_pretrained(folder)
    lm, _tokenizer = load_checkpoint(folder)
    ids = IDS[0, :5].tolist()
    for step in generate(lm, ids, max_new_tokens=8, temperature=0):
        logits = lm(torch.tensor([ids]))[0, -1].float()
        assert logits[step.token_id] >= logits.max() - 32 * HALF_UNIT[dtype] * logits.abs().max()
        ids.append(step.token_id)


@pytest.mark.parametrize("kind", ["Llama 3.1", "GPT-2", "Gemma 2", "Phi-3"])
def test_loading_draws_no_random_numbers(save_random_model, kind, monkeypatch):
    _model, folder = save_random_model(kind)
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
def test_config_with_too_many_layers_is_refused_early(save_random_model, claimed, sentence):
    _model, folder = save_random_model("Llama 2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": claimed}))
    with pytest.raises(ValueError, match=sentence):
        load_checkpoint(folder)
