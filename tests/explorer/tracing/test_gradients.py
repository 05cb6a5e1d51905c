"""Gradients against finite differences; completeness; a linear model in closed form; masked edges."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.profiler import ProfilerActivity, profile

from explorer.interventions import make_intervention, parse_interventions
from explorer.tracing import attribution
from explorer.tracing.attribution import embedding_gradients, num_job_units, token_contributions
from explorer.tracing.capture import capture
from explorer.tracing.jobs import run_to_completion
from tests.sample_models import ALL_KINDS_INTERVENTIONS, applicable_interventions
from tests.subtest_loops import each_style, subtest_each

IDS, POSITION, TOKEN, RIVAL = tuple(range(40, 52)), 8, 33, 7


def contribution_arrays(lm, edits=(), rival=RIVAL, **options) -> dict[str, np.ndarray]:
    return run_to_completion(token_contributions(lm, IDS, edits, POSITION, TOKEN, rival, **options))


def logit_difference(lm, edits=(), rival=RIVAL) -> float:
    logits = capture(lm, IDS, edits)["logits"][POSITION].astype(np.float64)
    return logits[TOKEN] - (0 if rival is None else logits[rival])


@each_style
@subtest_each("rival", [None, RIVAL])
@subtest_each("edits", ["", "blocks.0.attn.z.1*zero~embed*scale*1.5"])
def test_gradient_equals_finite_differences(lms, style, edits, rival):
    lm = deepcopy(lms[style]).double()
    edits, ids = parse_interventions(edits), IDS[: POSITION + 1]
    x, f, slope = embedding_gradients(lm, ids, edits, POSITION, TOKEN, rival)
    assert_allclose(x[0].numpy(), capture(lms[style], ids, edits)["embed"], atol=1e-5)
    assert float(f) == pytest.approx(logit_difference(lms[style], edits, rival), abs=1e-4)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        step = torch.randn(x.shape, generator=generator, dtype=x.dtype) * 3e-3  # norms are computed in float32
        up, down = (embedding_gradients(lm, ids, edits, POSITION, TOKEN, rival, x + sign * step)[1] for sign in (1, -1))
        assert float((slope * step).sum()) == pytest.approx(float(up - down) / 2, rel=1e-2, abs=1e-5)


@each_style
def test_completeness_improves_with_steps(lms, style):
    errors = []
    for steps in (5, 400):
        arrays = contribution_arrays(lms[style], steps=steps)
        sums = ((arrays["embed"] - arrays["baseline"]) * arrays["mean_slope"]).sum()
        errors.append(abs(sums - (arrays["f"] - arrays["f_baseline"])))
    assert errors[1] < 2e-3 and errors[1] <= errors[0]


def test_linear_model_has_closed_form_gradients(lms):
    """Without norms and feed-forward layers, and with fixed patterns, f is linear in the embedding."""
    lm = deepcopy(lms["rope"])
    for block in lm.blocks:
        block.attn.o_proj.weight.data.zero_()
        block.ffn.down_proj.weight.data.zero_()
    edits = parse_interventions("final_norm*norm*none")
    arrays = contribution_arrays(lm, edits)
    row = (lm.lm_head.weight[TOKEN] - lm.lm_head.weight[RIVAL]) * lm.final_norm.weight
    expected = np.zeros((POSITION + 1, lm.config.d_model))
    expected[-1] = row.detach().double().numpy()
    assert_allclose(arrays["slope"], expected, atol=1e-6)
    assert_allclose(arrays["mean_slope"], expected, atol=1e-6)
    assert arrays["without"][:-1] == pytest.approx(float(arrays["f"]), abs=1e-5)


@each_style
def test_baseline_is_mean_embedding_at_each_position(lms, style):
    lm = lms[style]
    baseline, mean = contribution_arrays(lm)["baseline"], lm.token_embedding.weight.double().mean(0).numpy()
    mean = mean * (lm.config.d_model**0.5 if lm.config.scale_embeddings else lm.config.embedding_multiplier)
    trace = capture(lm, IDS)
    added = trace["position_embed"][: POSITION + 1] if "position_embed" in trace else 0
    assert_allclose(baseline, np.broadcast_to(mean + added, baseline.shape), atol=1e-5)


def test_bfloat16_mean_embedding_copies_no_table(tiny_lm, monkeypatch):
    lm = deepcopy(tiny_lm).to(torch.bfloat16)
    table = lm.token_embedding.weight
    monkeypatch.setattr(attribution, "MAX_CHUNK_NUMBERS", table.numel() // 8)
    x = torch.zeros(1, 4, lm.config.d_model, dtype=torch.bfloat16)
    with torch.inference_mode(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as work:
        mean = attribution.mean_embedding(lm, x, 4)
    assert_allclose(mean[0].double(), table.detach().double().mean(0), rtol=2**-8, atol=1e-6)
    assert max(event.cpu_memory_usage for event in work.events()) <= table.numel() * 4 / 2


@each_style
@subtest_each("edits", ["", ALL_KINDS_INTERVENTIONS.format(other="none")])
def test_knockout_equals_masking_key(lms, style, edits):
    lm, edits = lms[style], applicable_interventions(lms[style], edits)
    without = contribution_arrays(lm, edits)["without"]
    for key in (0, 5):
        hidden = [make_intervention(f"blocks.{i}.attn.pattern", "mask", key, positions=f"{key + 1}-") for i in (0, 1)]
        assert without[key] == pytest.approx(logit_difference(lm, (*edits, *hidden)), abs=1e-4)
    assert np.isnan(without[-1])


def test_model_is_unchanged_between_pieces(tiny_lm):
    pieces = token_contributions(tiny_lm, IDS, (), POSITION, TOKEN)
    done = []
    for units in pieces:
        done.append(units)
        assert not any(module._forward_hooks for module in tiny_lm.modules())
        assert torch.is_grad_enabled()
    assert done == sorted(done) and done[-1] == num_job_units(POSITION)
    assert all(parameter.grad is None for parameter in tiny_lm.parameters())
