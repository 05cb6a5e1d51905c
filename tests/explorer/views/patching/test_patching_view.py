"""The patching view: contents and clicks of its figures."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, capture, make_intervention
from explorer.analysis.patching_effects import SMALL_DIFFERENCES
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import (
    escape_text,
    format_contribution,
    format_number,
    format_percent,
    quote_token,
    quote_token_in_text,
)
from explorer.interventions import parse_intervention
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.patching.patching_setup import METRICS
from explorer.views.patching import VIEW, describe_patching
from explorer.views.patching.effect_maps import PALE_FACTOR, make_prompt_pair
from explorer.views.selection import make_selection_dropdowns
from explorer.views.style import shorten_token
from explorer.views.two_run_figures import NoDifferenceError
from tests.sample_models import tokenizer
from tests.subtest_loops import each_style, subtest_each

from .patching_figures import make_patching_case, proposed_answers

PANEL = {panel.name: panel for panel in VIEW.panels}


def draw_panel(name: str, runs: Comparison, **selection):
    return PANEL[name].draw(runs, Selection().replace(**selection).clamp_to_trace(runs.trace))


def cells(figure) -> np.ndarray:
    (trace,), _layout = figure.traces_and_layout
    return np.asarray(trace["z"], float)


def effect_tolerance(runs: Comparison, **chosen) -> float:
    """Return the tolerance of effects from float32 rounding: larger where the runs' metrics differ little."""
    metric = chosen.get("metric", "logit_difference")
    clean, corrupted = make_prompt_pair(runs, Selection().replace(**chosen)).experiment.unpatched_metrics[
        :, METRICS.index(metric)
    ]
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


@each_style
@subtest_each("clean_run", "ab")
@subtest_each("name, chosen, part, direction", CASES)
def test_maps_show_effects_of_chosen_component(lms, style, name, chosen, part, direction, clean_run):
    runs = make_patching_case(style).runs
    chosen = chosen | {"clean_run": clean_run}
    clean, corrupted = (runs.trace, runs.other) if clean_run == "a" else (runs.other, runs.trace)
    answer, wrong = proposed_answers(clean["logits"][-1], corrupted["logits"][-1])
    metric = chosen.get("metric", "logit_difference")
    ids = clean.token_ids, corrupted.token_ids, answer, wrong
    expected = activation_patching(lms[style], *ids, part=part, direction=direction, metric=metric)
    assert_allclose(cells(draw_panel(name, runs, **chosen)), expected, atol=effect_tolerance(runs, **chosen))


@each_style
@subtest_each("clean_run", "ab")
@subtest_each("name, chosen, part, direction", CASES)
def test_click_applies_patch_of_its_cell(lms, style, name, chosen, part, direction, clean_run):
    """Applied to the run that the page would edit, the patch has the cell's effect."""
    runs = make_patching_case(style).runs
    chosen = chosen | {"clean_run": clean_run}
    figure, prompt_pair = draw_panel(name, runs, **chosen), make_prompt_pair(runs, Selection().replace(**chosen))
    values, patches = cells(figure), figure.traces_and_layout[1]["meta"]["changes"]
    into_a = patches["of"] == "edits"
    assert into_a == ((direction == "denoise") == (clean_run == "b"))
    recipient, donor = (runs.trace, runs.other) if into_a else (runs.other, runs.trace)
    m = {run: metric(run, prompt_pair.experiment, chosen) for run in (prompt_pair.clean, prompt_pair.corrupted)}
    base = m[prompt_pair.corrupted] if direction == "denoise" else m[prompt_pair.clean]
    assert np.shape(patches["texts"]) == values.shape
    for cell in ((0, 1), (1, values.shape[1] - 1)):
        edit = replace(parse_intervention(patches["texts"][cell[0]][cell[1]]), source=donor)
        changed = capture(lms[style], recipient.token_ids, [edit], tokenizer=tokenizer())
        effect = (metric(changed, prompt_pair.experiment, chosen) - base) / (
            m[prompt_pair.clean] - m[prompt_pair.corrupted]
        )
        assert effect == pytest.approx(values[cell], abs=effect_tolerance(runs, **chosen))


@each_style
@subtest_each("clean_run", "ab")
@subtest_each("name, chosen, part, direction", [*CASES, *ESTIMATES])
def test_click_patches_and_keeps_query_at_answer(lms, style, name, chosen, part, direction, clean_run):
    """Holds for estimates too, and for runs with a continuation after the prompts."""
    trace, other = make_patching_case(style).runs.runs
    longer = capture(lms[style], (*trace.token_ids, 5, 6), tokenizer=tokenizer())
    comparison, panel = replace(Comparison.from_traces(longer, other), prompts=(len(trace), len(trace))), PANEL[name]
    figure = draw_panel(name, comparison, clean_run=clean_run, query=11, key=4, layer=1, **chosen)
    changes = figure.traces_and_layout[1]["meta"]["changes"]
    assert changes["texts"][1][1] == (f"blocks.1.{part}@1*patch" if "positions" in name else f"blocks.1.{part}.1*patch")
    assert changes["looks_from"] == len(trace) - 1 and "query" not in panel.click_selects.values()
    if "positions" in name:
        (frame,) = (
            shape for shape in figure.traces_and_layout[1]["shapes"] if shape["type"] == "rect" and "line" in shape
        )
        assert (frame["x0"], frame["y0"]) == (3.5, 0.5)


@each_style
def test_clicked_estimate_names_its_location(style):
    runs = make_patching_case(style).runs
    for name, chosen, label in (
        ("estimate", {}, "layer 1 head 1, m ="),
        ("estimate", {"patch_head": "attn.q"}, "head 1 of attn.q of layer 1, m ="),
        ("estimate_positions", {}, f"resid_pre of layer 1, {quote_token(runs.trace.tokens[1])} (1), m ="),
    ):
        assert (
            PANEL[name].inspect(runs, Selection().replace(**chosen), ClickedPoint(x=1, y=1)).location.startswith(label)
        )


def metric(run, question, chosen) -> float:
    logits = run["logits"][-1].astype(np.float64)
    if chosen.get("metric") == "log_probability":
        return float(logits[question.answer] - np.log(np.exp(logits).sum()))
    return float(logits[question.answer] - logits[question.wrong])


@each_style
def test_every_figure_is_verified(style):
    runs = make_patching_case(style).runs
    for selection in (
        Selection(),
        Selection().replace(layer=1, head=2, receiver="v", patch_direction="noise", clean_run="b"),
    ):
        for panel in VIEW.panels:
            assert panel.verify(runs, selection.clamp_to_trace(runs.trace)).state == "recomputed", panel.name


@each_style
def test_wrong_logits_fail_verification(style):
    runs = make_patching_case(style).runs
    values = dict(runs.other.values)
    values["logits"] = values["logits"] * 1.01
    wrong = Comparison.from_traces(runs.trace, replace(runs.other, values=values))
    chosen = {"answer": runs.trace.vocabulary[100], "wrong": runs.trace.vocabulary[101]}
    for panel in VIEW.panels:
        assert panel.verify(wrong, Selection().replace(**chosen).clamp_to_trace(runs.trace)).state == "off", panel.name


@each_style
def test_clicked_effect_names_its_three_metrics(style):
    runs = make_patching_case(style).runs
    for name, direction in (("heads_denoise", "corrupted"), ("heads_noise", "clean")):
        derivation = PANEL[name].inspect(runs, Selection(), ClickedPoint(x=1, y=1))
        text = "\n".join(derivation.lines())
        assert f"(m(patched) − m({direction})) / (m(clean) − m(corrupted))" in text
        assert derivation.recomputed_value == pytest.approx(derivation.value, abs=effect_tolerance(runs))
        assert all(f"{word} " in text for word in ("clean", "corrupted", "patched"))
        source = "clean" if name == "heads_denoise" else "corrupted"
        assert f"layer 1 head 1 as in the {source} run, m = " in text
        assert derivation.value == cells(draw_panel(name, runs))[1, 1]
    bars = draw_panel("neurons", runs, layer=1).traces_and_layout[0]
    derivation = PANEL["neurons"].inspect(runs, Selection(layer=1), ClickedPoint(x=0, y=0, curve=1, item=2))
    assert derivation.value == pytest.approx(bars[1]["y"][2]) and f"neuron {bars[1]['x'][2]} " in derivation.location


@each_style
def test_note_names_strongest_cell_and_metric(style):
    runs = make_patching_case(style).runs
    figure = draw_panel("positions_denoise", runs, metric="log_probability")
    values = cells(figure)
    layer, position = np.unravel_index(np.abs(values).argmax(), values.shape)
    (note,) = figure.layout.annotations
    assert note.text.startswith(f"strongest: layer {layer}, {position} ")
    assert note.text.endswith(format_contribution(values[layer, position]))
    assert figure.data[0].colorbar.title.text == "share of the log-probability restored"


@each_style
def test_sentence_of_layers_that_tie_has_the_range_of_their_probabilities(style, monkeypatch):
    """The two bounds are those that the cells' own derivations name."""
    runs = make_patching_case(style).runs
    monkeypatch.setattr("explorer.analysis.patching_effects.MAX_TIE", np.inf)
    monkeypatch.setattr("explorer.analysis.patching_effects.MAIN_EFFECT", np.inf)  # no effect moves to the end
    monkeypatch.setitem(SMALL_DIFFERENCES, "logit_difference", 0)  # a warning comes after the sentence
    values = cells(draw_panel("positions_denoise", runs))
    position = np.unravel_index(np.abs(values).argmax(), values.shape)[1]
    metrics = make_prompt_pair(runs, Selection()).experiment.component_metrics("resid_pre")
    shares = metrics[0, METRICS.index("probability"), :, position]
    texts = list(dict.fromkeys(format_percent(float(share)) for share in (shares.min(), shares.max())))
    assert VIEW.sentence(runs, Selection()).split(" → ")[1].startswith(" to ".join(texts) + ".")


@each_style
def test_answers_that_do_not_tell_the_prompts_apart_give_a_warning(style, monkeypatch):
    """With answers chosen by their logits: both prompts favour one, each its own, and each the other's."""
    runs = make_patching_case(style).runs
    monkeypatch.setitem(SMALL_DIFFERENCES, "logit_difference", 0)
    rows = tuple(run["logits"][-1] for run in (runs.trace, runs.other))
    texts = [escape_text(text) for text in runs.trace.vocabulary]
    usable = [i for i, text in enumerate(texts) if texts.count(text) == 1 and text.strip() and text.isalnum()]
    pairs = [(a, b, *(float(row[a] - row[b]) for row in rows)) for a in usable for b in usable if a != b]
    expectations = (
        (lambda clean, corrupted: clean > corrupted > 0.01, "Both prompts favour {answer} over {wrong}"),
        (lambda clean, corrupted: corrupted < clean < -0.01, "Both prompts favour {wrong} over {answer}"),
        (lambda clean, corrupted: corrupted < 0 < clean, "Most comes from"),
        (lambda clean, corrupted: corrupted - clean > 0.01, "The corrupted prompt favours {answer} more"),
    )
    for fits, beginning in expectations:
        answer, wrong = next((a, b) for a, b, clean, corrupted in pairs if fits(clean, corrupted))
        selection = Selection().replace(answer=texts[answer], wrong=texts[wrong])
        quoted = {name: quote_token(runs.trace.vocabulary[i]) for name, i in (("answer", answer), ("wrong", wrong))}
        assert VIEW.sentence(runs, selection).startswith(beginning.format(**quoted))


def test_effect_that_moves_to_the_end_is_told_by_its_layers(monkeypatch):
    """Only that of the residual stream, whose first layer restores everything by itself."""
    runs = make_patching_case("rope").runs
    monkeypatch.setitem(SMALL_DIFFERENCES, "logit_difference", 0)
    shape = cells(draw_panel("positions_denoise", runs)).shape
    effects = np.zeros(shape)
    effects[0, 1] = effects[1:, -1] = 1.0
    monkeypatch.setattr("explorer.views.patching.component_effects", lambda *_args: effects)
    tokens = runs.trace.tokens
    expected = f"Patched alone, {quote_token_in_text(tokens, 1)} restores more than half up to layer 0; "
    expected += f"{quote_token_in_text(tokens, len(tokens) - 1)} does from layer 1."
    assert VIEW.sentence(runs, Selection()).endswith(expected)
    assert "Patched" not in VIEW.sentence(runs, Selection().replace(patch_position="attn.out"))


@each_style
def test_small_metric_difference_gives_a_warning(style, monkeypatch):
    """The warning with the number is in the sentence, after the finding, the formula and each derivation."""
    runs = make_patching_case(style).runs
    clean, corrupted = runs.trace["logits"][-1], runs.other["logits"][-1]
    experiment = make_prompt_pair(runs, Selection()).experiment
    difference = np.subtract(*(logits[experiment.answer] - logits[experiment.wrong] for logits in (clean, corrupted)))
    number = f"m(clean) − m(corrupted) = {format_number(difference)}"
    panels = ("heads_denoise", "neurons", "paths", "estimate")

    def texts() -> list[str]:
        points = (ClickedPoint(x=1, y=1, curve=0, item=0) for _panel in panels)
        inspected = [PANEL[name].inspect(runs, Selection(), point) for name, point in zip(panels, points, strict=True)]
        derivations = ["\n".join(derivation.lines()) for derivation in inspected]
        return [VIEW.sentence(runs, Selection()), describe_patching(runs, Selection()), *derivations]

    monkeypatch.setitem(SMALL_DIFFERENCES, "logit_difference", 1.01 * abs(difference))
    sentence, *others = texts()
    assert all(number in text for text in others) and len(sentence.split()) <= 30  # three are numbers or signs
    finding, careful = sentence.split(" Careful: ")
    assert format_number(abs(difference)) in careful and "patched alone" in finding.lower()
    pale = draw_panel("heads_denoise", runs).traces_and_layout[0][0]
    monkeypatch.setitem(SMALL_DIFFERENCES, "logit_difference", 0.99 * abs(difference))
    assert finding in VIEW.sentence(runs, Selection()) and not any("Careful" in text for text in texts())
    normal = draw_panel("heads_denoise", runs).traces_and_layout[0][0]
    assert pale["zmax"] == PALE_FACTOR * normal["zmax"]


@each_style
def test_clicked_effect_gives_answer_probability(lms, style):
    runs = make_patching_case(style).runs
    edit = make_intervention("blocks.1.attn.z", "patch", index=1, source=runs.trace)
    patched = capture(lms[style], runs.other.token_ids, [edit], tokenizer=tokenizer())
    answer = make_prompt_pair(runs, Selection()).experiment.answer
    weights = [np.exp(run["logits"][-1].astype(np.float64)) for run in (runs.other, patched)]
    before, after = (100 * row[answer] / row.sum() for row in weights)
    derivation = PANEL["heads_denoise"].inspect(runs, Selection(), ClickedPoint(x=1, y=1))
    assert f"from {format_number(before)}% to {format_number(after)}%." in derivation.note


@each_style
def test_strongest_neurons_come_first(style):
    runs = make_patching_case(style).runs
    denoised, noised = draw_panel("neurons", runs, layer=1).traces_and_layout[0]
    largest = np.maximum(np.abs(denoised["y"]), np.abs(noised["y"]))
    assert len(largest) == 20 and (np.diff(largest) <= 1e-12).all()


def test_runs_with_equal_metric_have_a_message(lms, capture_trace):
    """The prompts differ in one token, which the model embeds like the other."""
    lm, ids = deepcopy(lms["rope"]), capture_trace("rope").token_ids
    lm.token_embedding.weight.data[70] = lm.token_embedding.weight.data[ids[5]]
    comparison = Comparison.from_traces(
        *(capture(lm, (*ids[:5], token, *ids[6:]), tokenizer=tokenizer()) for token in (ids[5], 70))
    )
    for panel in VIEW.panels:
        figure = panel.draw(comparison, Selection())
        assert "no effect to share out" in str(figure.traces_and_layout[1]["annotations"]).replace("<br>", " "), (
            panel.name
        )
    assert "no effect to share out" in describe_patching(comparison, Selection())


def test_runs_of_two_models_have_a_message(lms, capture_trace):
    comparison = Comparison.from_traces(capture_trace("rope"), capture_trace("gpt"))
    assert "different models" in describe_patching(comparison, Selection())


@each_style
def test_answers_are_proposed_and_can_be_changed(style):
    runs = make_patching_case(style).runs
    vocabulary = runs.trace.vocabulary
    token = next(text for text in vocabulary[256:] if text.startswith(" ") and text[1:] not in vocabulary)
    proposed = make_prompt_pair(runs, Selection()).experiment
    logits, other = (run["logits"][-1] for run in runs.runs)
    assert (proposed.answer, proposed.wrong) == proposed_answers(logits, other)
    reason = f"Both runs say {quote_token(vocabulary[logits.argmax()])}, so the measure takes "
    is_same, is_chosen = logits.argmax() == other.argmax(), Selection().replace(wrong=token)
    assert (reason in describe_patching(runs, Selection())) == is_same, is_same
    assert reason not in describe_patching(runs, is_chosen)
    for written in (token, token.replace(" ", "·"), token[1:]):
        assert make_prompt_pair(runs, Selection().replace(wrong=written)).experiment.wrong == vocabulary.index(token)
    with pytest.raises(NoDifferenceError, match="no token of this model"):
        make_prompt_pair(runs, Selection().replace(answer="no such token"))
    with pytest.raises(NoDifferenceError, match="the same token"):
        make_prompt_pair(runs, Selection().replace(answer=token, wrong=token))


@each_style
def test_dropdowns_name_proposed_tokens(style):
    runs = make_patching_case(style).runs
    fields = {
        field.field: field for field in make_selection_dropdowns(("answer", "wrong"), runs.trace, Selection(), runs)
    }
    experiment, vocabulary = make_prompt_pair(runs, Selection()).experiment, runs.trace.vocabulary
    assert fields["answer"].options[0] == ("", shorten_token(vocabulary[experiment.answer]))
    assert fields["wrong"].options[0] == ("", shorten_token(vocabulary[experiment.wrong]))
    chosen = Selection().replace(answer=vocabulary[experiment.wrong])  # another wrong answer is then proposed
    proposed = make_prompt_pair(runs, chosen).experiment.wrong
    (wrong,) = make_selection_dropdowns(("wrong",), runs.trace, chosen, runs)
    assert proposed != experiment.wrong and wrong.options[0][1] == shorten_token(vocabulary[proposed])
    token = next(text for text in vocabulary[256:] if text.startswith(" ") and text[1:] not in vocabulary)
    (written,) = make_selection_dropdowns(("wrong",), runs.trace, Selection().replace(wrong=token[1:]), runs)
    assert written.options[0] == ("", shorten_token(token))  # with the space that was not written


@each_style
def test_continuation_does_not_change_effects(lms, style):
    runs = make_patching_case(style).runs
    longer = capture(lms[style], (*runs.trace.token_ids, 5, 6), tokenizer=tokenizer())
    comparison = replace(Comparison.from_traces(longer, runs.other), prompts=(12, 12))
    assert_allclose(cells(draw_panel("heads_denoise", comparison)), cells(draw_panel("heads_denoise", runs)), atol=1e-9)


@each_style
def test_patched_run_is_mapped_by_its_baseline(lms, style):
    runs = make_patching_case(style).runs
    edit = make_intervention("blocks.0.attn.z", "patch", index=1, source=runs.other)
    changed = capture(lms[style], runs.trace.token_ids, [edit], tokenizer=tokenizer())
    comparison = Comparison.from_traces(replace(changed, baseline=runs.trace), runs.other)
    assert_allclose(cells(draw_panel("heads_noise", comparison)), cells(draw_panel("heads_noise", runs)), atol=1e-9)
    assert PANEL["heads_noise"].verify(comparison, Selection()).state == "recomputed"
