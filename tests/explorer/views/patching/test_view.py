"""The tab of patching: what its pictures are of, and what a click on them does."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import Edit, activation_patching, capture
from explorer.explain.notation import quoted
from explorer.explain.point import Point
from explorer.state.interventions import parse_edit
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching_question import METRICS
from explorer.views.patching import VIEW, formula
from explorer.views.patching.two_prompts import two_prompts
from explorer.views.two_runs.difference import Incomparable
from tests.specimens import tokenizer

PANEL = {panel.name: panel for panel in VIEW.panels}


@pytest.fixture
def runs(lms, style, trace_of) -> Comparison:
    trace = trace_of(style)
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    return Comparison.of(trace, capture(lms[style], ids, tokenizer=tokenizer()))


def drawn(name: str, runs: Comparison, **selection):
    return PANEL[name].draw(runs, Selection(**selection).within(runs.trace))


def cells(figure) -> np.ndarray:
    (trace,), _layout = figure.parts
    return np.asarray(trace["z"], float)


def rounding(runs: Comparison, **chosen) -> float:
    """What float32 leaves open of effects: as a share of both runs’ difference, small in small models."""
    metric = chosen.get("metric", "logit_difference")
    clean, corrupted = two_prompts(runs, Selection(**chosen)).question.unpatched[:, METRICS.index(metric)]
    return 2e-5 / abs(clean - corrupted)


CASES = [
    ("positions_denoise", {"patch_position": "attn.out"}, "attn.out", "denoise"),
    ("positions_noise", {}, "resid_pre", "noise"),
    ("heads_denoise", {"patch_head": "attn.k"}, "attn.k", "denoise"),
    ("heads_noise", {"patch_head": "attn.pattern", "metric": "log_probability"}, "attn.pattern", "noise"),
]
ESTIMATES = [
    ("estimate", {}, "attn.z", "denoise"),
    ("estimate_positions", {"patch_direction": "noise"}, "resid_pre", "noise"),
]


@pytest.mark.parametrize("clean_run", "ab")
@pytest.mark.parametrize(("name", "chosen", "part", "direction"), CASES)
def test_a_map_has_the_effects_of_the_chosen_part(lms, style, runs, name, chosen, part, direction, clean_run):
    chosen = chosen | {"clean_run": clean_run}
    clean, corrupted = (runs.trace, runs.other) if clean_run == "a" else (runs.other, runs.trace)
    answer = int(clean["logits"][-1].argmax())
    wrong = next(int(i) for i in np.argsort(-corrupted["logits"][-1], kind="stable") if i != answer)
    metric = chosen.get("metric", "logit_difference")
    ids = clean.token_ids, corrupted.token_ids, answer, wrong
    expected = activation_patching(lms[style], *ids, part=part, direction=direction, metric=metric)
    assert_allclose(cells(drawn(name, runs, **chosen)), expected, atol=rounding(runs, **chosen))


@pytest.mark.parametrize("clean_run", "ab")
@pytest.mark.parametrize(("name", "chosen", "part", "direction"), CASES)
def test_a_click_makes_the_change_that_the_cell_is_about(lms, style, runs, name, chosen, part, direction, clean_run):
    """Put into the run that the page would put it into, the effect is the cell's."""
    chosen = chosen | {"clean_run": clean_run}
    figure, two = drawn(name, runs, **chosen), two_prompts(runs, Selection(**chosen))
    values, patches = cells(figure), figure.parts[1]["meta"]["changes"]
    into_a = patches["of"] == "edits"
    assert into_a == ((direction == "denoise") == (clean_run == "b"))
    recipient, donor = (runs.trace, runs.other) if into_a else (runs.other, runs.trace)
    m = {run: metric(run, two.question, chosen) for run in (two.clean, two.corrupted)}
    base = m[two.corrupted] if direction == "denoise" else m[two.clean]
    assert np.shape(patches["texts"]) == values.shape and not patches["adds"]
    for cell in ((0, 1), (1, values.shape[1] - 1)):
        edit = replace(parse_edit(patches["texts"][cell[0]][cell[1]]), source=donor)
        changed = capture(lms[style], recipient.token_ids, [edit], tokenizer=tokenizer())
        effect = (metric(changed, two.question, chosen) - base) / (m[two.clean] - m[two.corrupted])
        assert effect == pytest.approx(values[cell], abs=rounding(runs, **chosen))


@pytest.mark.parametrize("clean_run", "ab")
@pytest.mark.parametrize(("name", "chosen", "part", "direction"), [*CASES, *ESTIMATES])
def test_a_click_takes_the_value_and_leaves_the_query_at_the_answer(
    lms, style, trace_of, name, chosen, part, direction, clean_run
):
    """Also on an estimate, and where text was written after the prompts."""
    trace = trace_of(style)
    other = capture(lms[style], (*trace.token_ids[:5], 70, *trace.token_ids[6:]), tokenizer=tokenizer())
    more = capture(lms[style], (*trace.token_ids, 5, 6), tokenizer=tokenizer())
    two, panel = replace(Comparison.of(more, other), prompts=(len(trace), len(trace))), PANEL[name]
    figure = drawn(name, two, clean_run=clean_run, query=11, key=4, layer=1, **chosen)
    changes = figure.parts[1]["meta"]["changes"]
    assert changes["texts"][1][1] == (f"blocks.1.{part}@1*patch" if "positions" in name else f"blocks.1.{part}.1*patch")
    assert changes["looks_from"] == len(trace) - 1 and "query" not in panel.selects.values()
    if "positions" in name:
        (frame,) = (shape for shape in figure.parts[1]["shapes"] if shape["type"] == "rect" and "line" in shape)
        assert (frame["x0"], frame["y0"]) == (3.5, 0.5)


def test_a_clicked_estimate_names_its_place(runs):
    for name, chosen, place in (
        ("estimate", {}, "head 1 of layer 1, m ="),
        ("estimate", {"patch_head": "attn.q"}, "head 1 of attn.q of layer 1, m ="),
        ("estimate_positions", {}, f"resid_pre of layer 1, {quoted(runs.other.tokens[1])} (1), m ="),
    ):
        assert PANEL[name].inspect(runs, Selection(**chosen), Point(x=1, y=1)).place.startswith(place)


def metric(run, question, chosen) -> float:
    logits = run["logits"][-1].astype(np.float64)
    if chosen.get("metric") == "log_probability":
        return float(logits[question.answer] - np.log(np.exp(logits).sum()))
    return float(logits[question.answer] - logits[question.wrong])


def test_every_picture_is_vouched_for(style, runs):
    for selection in (Selection(), Selection(layer=1, head=2, receiver="v", patch_direction="noise", clean_run="a")):
        for panel in VIEW.panels:
            assert panel.mark(runs, selection.within(runs.trace)).state == "recomputed", panel.name


def test_wrong_logits_are_warned_of(style, runs):
    values = dict(runs.other.values)
    values["logits"] = values["logits"] * 1.01
    wrong = Comparison.of(runs.trace, replace(runs.other, values=values))
    chosen = {"answer": runs.trace.vocabulary[100], "wrong": runs.trace.vocabulary[101]}
    for panel in VIEW.panels:
        assert panel.mark(wrong, Selection(**chosen).within(runs.trace)).state == "off", panel.name


def test_a_clicked_effect_tells_its_three_measured_values(style, runs):
    for name, direction in (("heads_denoise", "corrupted"), ("heads_noise", "clean")):
        derivation = PANEL[name].inspect(runs, Selection(), Point(x=1, y=1))
        told = "\n".join(derivation.lines())
        assert f"(m(patched) − m({direction})) / (m(clean) − m(corrupted))" in told
        assert derivation.recomputed == pytest.approx(derivation.value, abs=rounding(runs))
        assert all(f"{word} " in told for word in ("clean", "corrupted", "patched")) and "head 1 of layer 1" in told
        assert derivation.value == cells(drawn(name, runs))[1, 1]
    bars = drawn("neurons", runs, layer=1).parts[0]
    derivation = PANEL["neurons"].inspect(runs, Selection(layer=1), Point(x=0, y=0, curve=1, item=2))
    assert derivation.value == pytest.approx(bars[1]["y"][2]) and f"neuron {bars[1]['x'][2]} " in derivation.place


def test_the_strongest_neurons_come_first(runs):
    denoised, noised = drawn("neurons", runs, layer=1).parts[0]
    largest = np.maximum(np.abs(denoised["y"]), np.abs(noised["y"]))
    assert len(largest) == 20 and (np.diff(largest) <= 1e-12).all()


def test_runs_that_measure_the_same_say_so(lms, trace_of):
    """Of prompts that differ in a token which the model takes for the other."""
    lm, ids = deepcopy(lms["rope"]), trace_of("rope").token_ids
    lm.token_embedding.weight.data[70] = lm.token_embedding.weight.data[ids[5]]
    alike = Comparison.of(*(capture(lm, (*ids[:5], token, *ids[6:]), tokenizer=tokenizer()) for token in (ids[5], 70)))
    for panel in VIEW.panels:
        figure = panel.draw(alike, Selection())
        assert "no effect to share out" in str(figure.parts[1]["annotations"]).replace("<br>", " "), panel.name
    assert "no effect to share out" in formula(alike, Selection())


def test_runs_of_two_models_say_so(lms, trace_of):
    two = Comparison.of(trace_of("rope"), trace_of("gpt"))
    assert "different models" in formula(two, Selection())


def test_the_answers_are_proposed_and_can_be_others(runs):
    vocabulary = runs.trace.vocabulary
    token = next(text for text in vocabulary[256:] if text.startswith(" ") and text[1:] not in vocabulary)
    proposed = two_prompts(runs, Selection()).question
    assert proposed.answer == runs.other["logits"][-1].argmax() and proposed.wrong != proposed.answer
    for written in (token, token.replace(" ", "·"), token[1:]):
        assert two_prompts(runs, Selection(wrong=written)).question.wrong == vocabulary.index(token)
    with pytest.raises(Incomparable, match="no token of this model"):
        two_prompts(runs, Selection(answer="no such token"))
    with pytest.raises(Incomparable, match="the same token"):
        two_prompts(runs, Selection(answer=token, wrong=token))


def test_what_is_written_after_the_prompts_counts_for_nothing(lms, runs, style):
    more = capture(lms[style], (*runs.trace.token_ids, 5, 6), tokenizer=tokenizer())
    two = replace(Comparison.of(more, runs.other), prompts=(12, 12))
    assert_allclose(cells(drawn("heads_denoise", two)), cells(drawn("heads_denoise", runs)), atol=1e-9)


def test_a_run_that_took_a_value_is_mapped_as_it_was(lms, runs, style):
    edit = Edit("blocks.0.attn.z", "patch", index=1, source=runs.other)
    changed = capture(lms[style], runs.trace.token_ids, [edit], tokenizer=tokenizer())
    two = Comparison.of(replace(changed, baseline=runs.trace), runs.other)
    assert_allclose(cells(drawn("heads_noise", two)), cells(drawn("heads_noise", runs)), atol=1e-9)
    assert PANEL["heads_noise"].mark(two, Selection()).state == "recomputed"
