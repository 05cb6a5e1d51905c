"""The training view: figures of training records, and of the model at every step."""

from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.head_scores import chance_head_scores
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views import VIEW_BY_NAME
from explorer.views.training import VIEW, line_draw_order, tick_steps
from explorer.views.two_run_figures import FigurePlaceholder, different_model_warning
from explorer.web.browser_api.open_view import OpenView
from tests.rendered_figures import RenderedFigure
from tests.sample_models import RECORD, SCORES, STEPS, TRAINING_HISTORIES, capture_style
from tests.subtest_loops import each_style, subtest_each

PANELS = {panel.name: panel for panel in VIEW.panels}
SERIES_STYLES = ("rope", "gpt")  # styles with intermediate checkpoints


def draw_panel(name: str, style: str, **selection) -> RenderedFigure:
    trace = capture_style(style)
    return RenderedFigure(PANELS[name].draw(trace, Selection(layer=1, head=2, **selection).clamp_to_trace(trace)))


def marked_step(figure: RenderedFigure) -> float:
    lines = [shape for shape in figure.layout["shapes"] if shape["x0"] == shape["x1"]]
    assert len(lines) == 1
    return lines[0]["x0"]


def mean_loss(trace) -> float:
    logits = trace["logits"].astype(float)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return float(np.mean([-np.log(p[i, token]) for i, token in enumerate(trace.token_ids[1:])]))


def previous_token_mean(trace, layer: int, head: int) -> float:
    weights = trace[f"blocks.{layer}.attn.pattern"][head]
    return float(np.mean([weights[query, query - 1] for query in range(1, len(trace))]))


@subtest_each("style", SERIES_STYLES)
def test_loss_curve_shows_record_and_links_steps(style):
    figure = draw_panel("loss", style)
    assert [plot_trace["name"] for plot_trace in figure.parts] == [
        "on training text (mean)",
        "on text held out",
    ]
    for plot_trace, name in zip(figure.parts, ("train_loss", "validation_loss"), strict=True):
        assert list(plot_trace["x"]) == RECORD["step"]
        np.testing.assert_array_equal(np.array(plot_trace["y"], float), RECORD[name])
        assert list(plot_trace["customdata"]) == [f"{style}/step-0000{step}" for step in ("08", "08", "64")]
    assert figure.layout["xaxis"]["type"] == "log"
    if style == "rope":
        assert marked_step(figure) == 8
        assert "step 4" in figure.points()[0].hover_text and "5.5" in figure.points()[0].hover_text


def test_head_score_curves_show_record():
    figure = draw_panel("copying", "rope")
    assert [plot_trace["name"] for plot_trace in figure.parts] == ["best previous-token head", "best induction head"]
    for plot_trace, name in zip(figure.parts, ("previous_token_score", "induction_score"), strict=True):
        np.testing.assert_array_equal(np.array(plot_trace["y"], float), SCORES[name])
    assert figure.layout["yaxis"]["title"]["text"] == "head score"


def test_single_checkpoint_has_no_clickable_steps():
    figure = draw_panel("loss", "learned")
    assert all(plot_trace.get("customdata") is None for plot_trace in figure.parts) and not figure.layout.get("shapes")
    assert not any(PANELS[name].is_applicable(capture_style("learned")) for name in ("text", "scores", "copying"))
    assert not PANELS["loss"].is_applicable(capture_style("none")) and PANELS["text"].is_applicable(
        capture_style("none")
    )
    assert not any(panel.is_applicable(capture_style("post")) for panel in VIEW.panels)


@subtest_each("style", SERIES_STYLES)
def test_text_loss_is_computed_at_every_step(style):
    trace, figure = capture_style(style), draw_panel("text", style)
    runs = [run for _lm, run in trace.at_training_steps().values()]
    (line,) = figure.parts
    assert list(line["x"]) == [0.5, *STEPS[1:]]
    np.testing.assert_allclose(line["y"], [mean_loss(run) for run in runs], rtol=1e-5)
    assert len(set(np.round(line["y"], 4))) == len(STEPS)
    for point, step, run in zip(figure.points(), STEPS, runs, strict=True):
        assert f"step {step}" in point.hover_text and format_number(mean_loss(run) / np.log(2)) in point.hover_text
    assert list(line["customdata"]) == [f"{style}/step-{step:06d}" for step in STEPS]
    assert marked_step(figure) == TRAINING_HISTORIES[style].step


@pytest.mark.parametrize("style", SERIES_STYLES)
def test_every_head_has_a_score_line(style, monkeypatch):
    """One head at one step scores above the chance level."""
    trace, steps = capture_style(style), capture_style(style).at_training_steps()
    lm, last = steps[0]
    pattern = last["blocks.0.attn.pattern"].copy()
    pattern[1] = np.eye(len(trace), k=-1)
    steps = steps | {0: (lm, replace(last, values=last.values | {"blocks.0.attn.pattern": pattern}))}
    monkeypatch.setattr(type(trace), "at_training_steps", lambda self: steps)
    figure, runs = draw_panel("scores", style), [run for _lm, run in steps.values()]
    heads = line_draw_order((2, 3), (1, 2))
    assert heads[-1] == (1, 2) and len(figure.parts) == len(set(heads)) == 6
    within = [chance_head_scores(run, "previous_token") for run in runs]
    hollow = 0
    for (layer, head), line in zip(heads, figure.parts, strict=True):
        expected = [previous_token_mean(run, layer, head) for run in runs]
        np.testing.assert_allclose(line["y"], expected, rtol=1e-5)
        symbols = [
            "circle" if v > c.quantiles[layer, head] + 1e-6 else "circle-open"
            for v, c in zip(expected, within, strict=True)
        ]
        assert list(line["marker"]["symbol"]) == symbols
        hollow += symbols.count("circle-open")
        assert (line["line"]["color"] == "#D81B60") is ((layer, head) == (1, 2))
    assert 0 < hollow < 6 * len(STEPS)
    assert f"layer 1 head 2\nscore {previous_token_mean(runs[-1], 1, 2):.3f}\nstep 64" in figure.points()[-1].hover_text
    even = np.mean([1 / (query + 1) for query in range(1, len(trace))])
    dashed = [shape["y0"] for shape in figure.layout["shapes"] if shape["y0"] == shape["y1"]]
    assert dashed == [pytest.approx(even)] and format_number(even) in figure.layout["xaxis"]["title"]["text"]


def test_scores_without_queries_have_a_message():
    trace = capture_style("rope", 2)
    selection = Selection().replace(head_score="induction").clamp_to_trace(trace)
    figure = RenderedFigure(PANELS["scores"].draw(trace, selection))
    assert not figure.parts and "no token of this prompt occurs twice" in figure.layout["annotations"][0]["text"]


@pytest.mark.parametrize("panel", ["text", "scores"])
def test_wrong_value_at_another_step_fails_verification(panel, monkeypatch):
    trace = capture_style("rope")
    selection = Selection().clamp_to_trace(trace)
    assert PANELS[panel].verify(trace, selection).state == "recomputed"
    name = {"text": "logits", "scores": "blocks.1.attn.pattern"}[panel]
    steps = dict(trace.at_training_steps())
    lm, last = steps[64]
    steps[64] = lm, replace(last, values=last.values | {name: last[name] * np.float32(1.01)})
    monkeypatch.setattr(type(trace), "at_training_steps", lambda self: steps)
    mark = PANELS[panel].verify(trace, selection)
    assert mark.state == "off" and "at step 64" in mark.words


def test_formula_describes_step():
    def formula(style):
        return VIEW.formula(capture_style(style), Selection())

    assert "rope after step 8, one of 3 that it was kept at, 0 to 64" in formula("rope")
    assert "the training log has no entry for step 8" in formula("rope")
    assert "written down after step 64: loss on text held out = 4.30" in formula("gpt")
    assert "no record of its training" in formula("none")
    assert "learned has no other saved training steps" in formula(
        "learned"
    ) and "written down last, after step 64" in formula("learned")
    assert "training cannot be shown" in formula("post")
    assert f"= {format_number(mean_loss(capture_style('post')))} nats" in formula("post")


def test_ticks_are_spaced_and_include_first():
    doubling = [0, *(2**i for i in range(13))]
    assert tick_steps(doubling) == [0, 4, 16, 64, 256, 1024, 4096]
    assert tick_steps(range(500, 8001, 500)) == [500, 1500, 2500, 4500, 8000]
    assert tick_steps([7]) == [7] and tick_steps([]) == []


def test_different_models_give_a_warning():
    rope, gpt = capture_style("rope"), capture_style("gpt")
    _lm, later = rope.at_training_steps()[64]
    assert different_model_warning(Comparison.from_traces(rope, rope)) == ""
    assert "steps of one training" in different_model_warning(Comparison.from_traces(rope, later))
    assert "two models" in different_model_warning(Comparison.from_traces(rope, gpt))
    assert "two models" in different_model_warning(Comparison.from_traces(rope, capture_style("post")))


@subtest_each("view, shown, said", [("compare", "a", True), ("residual", "a", False), ("residual", "difference", True)])
def test_warning_is_shown_with_differences(view, shown, said):
    trace, other = capture_style("rope"), capture_style("gpt")
    selection = replace(Selection(), shown=shown).clamp_to_trace(trace)
    view = OpenView(VIEW_BY_NAME[view], trace, selection, None, Comparison.from_traces(trace, other), has_other=True)
    assert ("two models" in view.description) is said


def test_curves_of_one_training_have_no_difference():
    trace = capture_style("rope")
    selection = replace(Selection(), view="training", shown="difference").clamp_to_trace(trace)
    view = OpenView(VIEW, trace, selection, None, Comparison.from_traces(trace, trace), has_other=True)
    figures = {panel.name: view.draw(panel) for panel in VIEW.panels if view.has(panel)}
    assert "text" in figures
    assert {name for name, figure in figures.items() if isinstance(figure, FigurePlaceholder)} == set(figures)
    assert figures["text"].message == "A and B lie on the same curve: choose A to see it."


@each_style
def test_sentence_has_loss_of_text(trace):
    logits = trace["logits"][:-1].astype(np.float64)
    targets = logits[np.arange(len(logits)), list(trace.token_ids[1:])]
    loss = np.mean(np.log(np.exp(logits).sum(-1)) - targets)
    words = VIEW.sentence(trace, Selection())
    assert f"loss is {format_number(loss)} nats" in words
    assert f"even guesses: {format_number(np.log(trace.config.vocab_size))}." in words
