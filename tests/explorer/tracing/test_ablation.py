"""An ablation is a run with the edit that silences the part."""

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.state.interventions import Edit, Intervention, parse_edits
from explorer.tracing.ablation import ablate, num_runs
from explorer.tracing.capture import capture
from explorer.tracing.jobs import NotYet, finished
from explorer.tracing.work import Work

IDS, POSITION, TOKEN = tuple(range(40, 52)), 7, 33


def log_probability(lm, edits) -> float:
    logits = capture(lm, IDS, edits)["logits"][POSITION].astype(np.float64)
    return float(logits[TOKEN] - np.log(np.exp(logits).sum()))


def silenced(config, layer: int) -> list[tuple[Intervention, ...]]:
    heads = [(Edit(f"blocks.{layer}.attn.z", "zero", index=head),) for head in range(config.num_heads)]
    return [*heads, (Edit(f"blocks.{layer}.attn.z", "zero"),), (Edit(f"blocks.{layer}.ffn.hidden", "zero"),)]


CHANGED = [
    "",
    "blocks.0.attn.z.1*scale*0.5~blocks.1.ffn.hidden*scale*2~embed*scale*1.5",
    "blocks.0.attn.z.1*mean~blocks.0.resid_post.3*mean~blocks.1.attn.pattern@5-*mask*1~blocks.1.resid_post@3*add*unembed.2*1",
]


@pytest.mark.parametrize("text", CHANGED)
def test_each_part_alone_is_silenced_in_its_run(lms, style, text):
    lm, edits = lms[style], parse_edits(text)
    found = finished(ablate(lm, IDS, edits, POSITION, TOKEN))
    changes = [(), *(more for layer in range(lm.config.num_layers) for more in silenced(lm.config, layer))]
    assert_allclose(found, [log_probability(lm, edits + more) for more in changes], atol=1e-4)
    assert np.ptp(found) > 1e-3


@pytest.mark.parametrize("position", [0, 11])
def test_the_first_and_the_last_position_have_one_too(lms, style, position):
    lm = lms[style]
    found = finished(ablate(lm, IDS, (), position, TOKEN))
    logits = capture(lm, IDS)["logits"][position].astype(np.float64)
    assert found.shape == (num_runs(lm),)
    assert found[0] == pytest.approx(logits[TOKEN] - np.log(np.exp(logits).sum()), abs=1e-4)


def test_the_model_is_left_as_it_was(lms, style):
    pieces = ablate(lms[style], IDS, parse_edits("embed*scale*2"), POSITION, TOKEN)
    for _done in pieces:
        assert not any(module._forward_hooks for module in lms[style].modules())
    assert not any(module._forward_hooks for module in lms[style].modules())


def one_piece():
    yield 1
    return np.zeros((2, 7))


def test_in_pieces_it_is_the_same(lms, style, monkeypatch):
    whole = finished(ablate(lms[style], IDS, (), POSITION, TOKEN))
    monkeypatch.setattr("explorer.tracing.ablation.tokens_at_once", lambda config: 1)
    done, pieces = [], ablate(lms[style], IDS, (), POSITION, TOKEN)
    assert_allclose(finished(pieces, done.append), whole, atol=1e-5)
    assert done == list(range(1, num_runs(lms[style]) + 1))


def test_an_answer_waits_for_a_small_models_alone(tiny_lm, monkeypatch):
    trace = capture(tiny_lm, IDS)
    with Work(most_tokens=10**6, most_seconds=100).counted():
        assert np.isfinite(trace.ablate(POSITION, 8)).all()
        with pytest.raises(NotYet) as not_yet:
            trace.ablate(POSITION, 9, waited_for=1)
        assert not_yet.value.job.units == num_runs(tiny_lm)
        assert np.isfinite(trace.ablate(POSITION, 9, waited_for=np.inf)).all()
        assert np.isfinite(trace.ablate(POSITION, 9, waited_for=1)).all()  # it is kept


def test_a_trace_asks_the_model_once(tiny_lm, monkeypatch):
    calls = []
    module = import_module("explorer.tracing.capture")  # by the name in the package goes the function
    monkeypatch.setattr(module, "ablate", lambda *args: calls.append(args) or one_piece())
    trace = capture(tiny_lm, IDS)
    assert calls == []
    for token_id in (TOKEN, TOKEN, 5):
        trace.ablate(POSITION, token_id)
    assert all(lm is tiny_lm for lm, *_ in calls)
    assert [args[1:] for args in calls] == [(IDS, (), POSITION, TOKEN), (IDS, (), POSITION, 5)]
