"""Other devices compute the CPU's values: in every dtype, on demand, and with models spread over devices."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from explorer import activation_patching, attribution_patching, path_patching
from explorer.explain.captured import check_captured_value
from explorer.explain.derivation import HALF_UNIT, RUN_UNITS
from explorer.interventions import parse_interventions
from explorer.tracing.attribution import ablate, token_contributions
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import logit_and_log_probability, mean_stream
from explorer.tracing.jobs import run_to_completion
from model.checkpoint import load_checkpoint, save_checkpoint
from model.generation.autoregressive import generate
from model.transformer_lm import TransformerLM
from tests.devices import on_each_device
from tests.exhaustive import first_in_core, pairwise_params
from tests.sample_models import CORE, STYLES, models, tokenizer
from tests.subtest_loops import subtest_each

IDS, OTHER_IDS = [3, 7, 1, 4, 2, 9, 6], [3, 7, 8, 4, 2, 9, 6]
DTYPES = torch.float32, torch.bfloat16, torch.float16
EDITS = parse_interventions("blocks.0.attn.z.1*scale*0.5~blocks.1.resid_post*add*unembed.7*2")
for_each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def rounding_tolerance(dtype: torch.dtype) -> float:
    """Return the tolerance for two runs, relative to the largest number; GPUs may round float32 products to 19 bits."""
    kind = str(dtype).removeprefix("torch.")
    return max(1e-3, RUN_UNITS[kind] * HALF_UNIT[kind])


@on_each_device
@subtest_each(("kind", "dtype"), pairwise_params(list(STYLES), DTYPES), ids=str)
def test_values_agree_with_cpu(kind, dtype, device):
    lm = deepcopy(models()[kind]).to(dtype)
    on_cpu, device_trace = capture(lm, IDS), capture(deepcopy(lm).to(device), IDS)
    assert device_trace.dtype == on_cpu.dtype
    for name, value in on_cpu.values.items():
        assert device_trace[name].dtype == np.float32
        allowed = rounding_tolerance(dtype) * max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(device_trace[name], value, atol=allowed, rtol=0, err_msg=name)


@on_each_device
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_verification_passes_on_device(dtype, device):
    for kind in ("rope", "gpt", "grouped"):
        lm = deepcopy(models()[kind]).to(device, dtype)
        trace = capture(lm, IDS)
        assert [name for name in trace.values if not check_captured_value(trace, name).is_within_tolerance] == []
        assert np.array_equal(trace.weights["lm_head.weight"][3], lm.lm_head.weight[3].float().cpu().numpy())


@on_each_device
@for_each_dtype
@pytest.mark.parametrize("text", ["", "blocks.1.attn.z.1*zero", "blocks.0.resid_post*add*unembed.17*0.5"])
def test_lazy_values_equal_captured_ones(dtype, device, text):
    lm = deepcopy(models()["rope"]).to(device, dtype)
    at_once, on_demand = (capture(lm, IDS, parse_interventions(text), max_bytes=most) for most in (float("inf"), 0))
    assert on_demand.is_lazy
    for name in at_once.values:
        allowed = rounding_tolerance(dtype) * max(1.0, float(np.abs(at_once[name]).max()))
        np.testing.assert_allclose(on_demand[name], at_once[name], atol=allowed, rtol=0, err_msg=name)


@on_each_device
@for_each_dtype
def test_greedy_generation_picks_likeliest_tokens(dtype, device):
    lm = deepcopy(models()["rope"]).to(device, dtype)
    check_is_likeliest(lm, lm, rounding_tolerance(dtype))


@torch.inference_mode()
def check_is_likeliest(writes: TransformerLM, reads: TransformerLM, share: float):
    """Check that each token one model generates is the most likely one of the other, up to rounding."""
    ids = list(IDS)
    for step in generate(writes, IDS, max_new_tokens=8, temperature=0):
        logits = reads(torch.tensor([ids], device=reads.device))[0, -1].float()
        assert logits[step.token_id] >= logits.max() - share * logits.abs().max()
        ids.append(step.token_id)


@on_each_device
@pytest.mark.parametrize("style", CORE)
def test_model_functions_agree_with_cpu(lms, style, device):
    device_lm, on_cpu = deepcopy(lms[style]).to(device), lms[style]
    for ask in (
        lambda lm: run_to_completion(ablate(lm, IDS, EDITS, 4, 5)),
        lambda lm: logit_and_log_probability(lm, IDS, EDITS, 4, 5),
        lambda lm: mean_stream(lm, 1, (tuple(IDS),)),
    ):
        np.testing.assert_allclose(ask(device_lm), ask(on_cpu), rtol=1e-2, atol=1e-2)
    actual, expected = (run_to_completion(token_contributions(lm, IDS, EDITS, 4, 5, 8)) for lm in (device_lm, on_cpu))
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-2, atol=1e-2, err_msg=name)


@on_each_device
@pytest.mark.parametrize("dtype", first_in_core(DTYPES), ids=str)
def test_offloaded_model_agrees_with_whole_model(checkpoints_folder, dtype, device):
    whole, spread = load_whole_and_spread(device, dtype)
    assert spread.offloaded and spread.device.type == device
    for text in ("", "blocks.1.attn.z.1*zero", "blocks.1.attn_norm*norm*none"):
        one, other = capture(whole, IDS, parse_interventions(text)), capture(spread, IDS, parse_interventions(text))
        for name in one.values:
            allowed = rounding_tolerance(dtype) * max(1.0, float(np.abs(one[name]).max()))
            np.testing.assert_allclose(other[name], one[name], atol=allowed, rtol=0, err_msg=name)
        for name in ("token_embedding.weight", "blocks.0.attn.q_proj.weight", "blocks.1.ffn.down_proj.weight"):
            assert np.array_equal(one.weights[name][:], other.weights[name][:])
    check_is_likeliest(spread, whole, rounding_tolerance(dtype))


@on_each_device
def test_offloaded_model_functions_agree_with_whole_model(checkpoints_folder, device):
    whole, spread = load_whole_and_spread(device, torch.float32)
    for ask in (
        lambda lm: activation_patching(lm, IDS, OTHER_IDS, answer=5, wrong=8, part="attn.z"),
        lambda lm: attribution_patching(lm, IDS, OTHER_IDS, answer=5, wrong=8, part="resid_pre"),
        lambda lm: path_patching(lm, IDS, OTHER_IDS, answer=5, wrong=8, receiver=(1, 0, "q")),
        lambda lm: run_to_completion(ablate(lm, IDS, (), 4, 5)),
        lambda lm: run_to_completion(token_contributions(lm, IDS, (), 4, 5, 8))["mean_slope"],
    ):
        np.testing.assert_allclose(ask(spread), ask(whole), rtol=1e-2, atol=1e-2)


def load_whole_and_spread(device: str, dtype: torch.dtype) -> tuple[TransformerLM, TransformerLM]:
    """Return the model on the device alone, and with one block on disk and one on the CPU where possible."""
    pytest.importorskip("accelerate")
    save_checkpoint(models()["rope"], tokenizer(), "some", dtype=torch.float32)
    whole, _tokenizer = load_checkpoint("some", device, dtype)
    first = 0 if device == "cuda" else device  # as accelerate names it
    device_map = {"": first, "blocks.0": "disk", "blocks.1": "cpu" if device == "cuda" else "disk"}
    spread, _tokenizer = load_checkpoint("some", dtype=dtype, device_map=device_map)
    return whole, spread
