"""Ablation effects equal those of separate runs with ablations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.interventions import Intervention, make_intervention, parse_interventions
from explorer.tracing.attribution import ablate, num_ablation_runs
from explorer.tracing.capture import capture
from explorer.tracing.jobs import RequestBudget, ResultNotReadyError, run_to_completion
from tests.subtest_loops import each_style, subtest_each

IDS, POSITION, TOKEN = tuple(range(40, 52)), 7, 33


def log_probability(lm, edits) -> float:
    logits = capture(lm, IDS, edits)["logits"][POSITION].astype(np.float64)
    return float(logits[TOKEN] - np.log(np.exp(logits).sum()))


def component_ablations(config, layer: int, operation: str) -> list[tuple[Intervention, ...]]:
    heads = [(make_intervention(f"blocks.{layer}.attn.z", operation, index=head),) for head in range(config.num_heads)]
    return [
        *heads,
        (make_intervention(f"blocks.{layer}.attn.z", operation),),
        (make_intervention(f"blocks.{layer}.ffn.hidden", operation),),
    ]


INTERVENTION_TEXTS = [
    "",
    "blocks.0.attn.z.1*scale*0.5~blocks.1.ffn.hidden*scale*2~embed*scale*1.5",
    "blocks.0.attn.z.1*mean~blocks.0.resid_post.3*mean~blocks.1.attn.pattern@5-*mask*1~blocks.1.resid_post@3*add*unembed.2*1",
]


@each_style
@subtest_each("text", INTERVENTION_TEXTS)
def test_each_component_is_ablated_alone(lms, style, text):
    lm, edits = lms[style], parse_interventions(text)
    for operation in ("zero", "mean"):
        log_probabilities = run_to_completion(ablate(lm, IDS, edits, POSITION, TOKEN, operation))
        layers = [component_ablations(lm.config, layer, operation) for layer in range(lm.config.num_layers)]
        changes = [(), *(ablation for ablations in layers for ablation in ablations)]
        assert_allclose(log_probabilities, [log_probability(lm, edits + ablation) for ablation in changes], atol=1e-4)
        assert np.ptp(log_probabilities) > 1e-3


@each_style
@subtest_each("position", [0, 11])
def test_first_and_last_positions_work(lms, style, position):
    lm = lms[style]
    log_probabilities = run_to_completion(ablate(lm, IDS, (), position, TOKEN))
    logits = capture(lm, IDS)["logits"][position].astype(np.float64)
    assert log_probabilities.shape == (num_ablation_runs(lm),)
    assert log_probabilities[0] == pytest.approx(logits[TOKEN] - np.log(np.exp(logits).sum()), abs=1e-4)


@each_style
def test_model_is_left_unchanged(lms, style):
    pieces = ablate(lms[style], IDS, parse_interventions("embed*scale*2"), POSITION, TOKEN)
    for _done in pieces:
        assert not any(module._forward_hooks for module in lms[style].modules())
    assert not any(module._forward_hooks for module in lms[style].modules())


def yield_one_piece():
    yield 1
    return np.zeros((2, 7))


@each_style
def test_pieces_give_same_result(lms, style, monkeypatch):
    whole = run_to_completion(ablate(lms[style], IDS, (), POSITION, TOKEN))
    monkeypatch.setattr("explorer.tracing.attribution.chunk_tokens", lambda config: 1)
    done, pieces = [], ablate(lms[style], IDS, (), POSITION, TOKEN)
    assert_allclose(run_to_completion(pieces, done.append), whole, atol=1e-5)
    assert done == list(range(1, num_ablation_runs(lms[style]) + 1))


def test_only_small_models_are_ablated_within_a_request(tiny_lm, monkeypatch):
    trace = capture(tiny_lm, IDS)
    with RequestBudget(max_tokens=10**6, max_seconds=100).activate():
        assert np.isfinite(trace.ablate(POSITION, 8)).all()
        with pytest.raises(ResultNotReadyError) as not_yet:
            trace.ablate(POSITION, 9, max_wait_macs=1)
        assert not_yet.value.job.units == num_ablation_runs(tiny_lm)
        assert np.isfinite(trace.ablate(POSITION, 9, max_wait_macs=np.inf)).all()
        assert np.isfinite(trace.ablate(POSITION, 9, max_wait_macs=1)).all()  # cached


def test_trace_caches_ablations(tiny_lm, monkeypatch):
    calls = []
    monkeypatch.setattr("explorer.tracing.trace.ablate", lambda *args: calls.append(args) or yield_one_piece())
    trace = capture(tiny_lm, IDS)
    assert calls == []
    for token_id in (TOKEN, TOKEN, 5):
        trace.ablate(POSITION, token_id)
    assert all(lm is tiny_lm for lm, *_ in calls)
    assert [args[1:] for args in calls] == [(IDS, (), POSITION, TOKEN, "zero"), (IDS, (), POSITION, 5, "zero")]
