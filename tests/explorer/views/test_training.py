"""The tab Training: what is drawn of files, and what of the model at every step."""

from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.chance import chance
from explorer.explain.notation import number
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views import VIEW_NAMED
from explorer.views.training import VIEW
from explorer.views.training.steps import ticked
from explorer.views.training.worked_out import in_order
from explorer.views.two_runs.bases import bases_told
from explorer.web.answers.open_view import OpenView
from tests.drawn import Picture
from tests.specimens import RECORD, SCORES, STEPS, TRAINED, trace_of

PANELS = {panel.name: panel for panel in VIEW.panels}
KEPT = ("rope", "gpt")  # styles of models that were kept on the way


def drawn(name: str, style: str, **selection) -> Picture:
    trace = trace_of(style)
    return Picture(PANELS[name].draw(trace, Selection(layer=1, head=2, **selection).within(trace)))


def marked_step(picture: Picture) -> float:
    lines = [shape for shape in picture.layout["shapes"] if shape["x0"] == shape["x1"]]
    assert len(lines) == 1
    return lines[0]["x0"]


def loss_by_hand(trace) -> float:
    logits = trace["logits"].astype(float)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return float(np.mean([-np.log(p[i, token]) for i, token in enumerate(trace.token_ids[1:])]))


def score_by_hand(trace, layer: int, head: int) -> float:
    weights = trace[f"blocks.{layer}.attn.pattern"][head]
    return float(np.mean([weights[query, query - 1] for query in range(1, len(trace))]))


@pytest.mark.parametrize("style", KEPT)
def test_what_training_wrote_is_drawn_as_it_is_and_leads_to_the_nearest_step(style):
    picture = drawn("loss", style)
    assert [part["name"] for part in picture.parts] == [
        "on training text, mean since the point before",
        "on text held out",
    ]
    for part, name in zip(picture.parts, ("train_loss", "validation_loss"), strict=True):
        assert list(part["x"]) == RECORD["step"]
        np.testing.assert_array_equal(np.array(part["y"], float), RECORD[name])
        assert list(part["customdata"]) == [f"{style}/step-0000{step}" for step in ("08", "08", "64")]
    assert picture.layout["xaxis"]["type"] == "log"
    if style == "rope":
        assert marked_step(picture) == 8
        assert "step 4" in picture.points()[0].told and "5.5" in picture.points()[0].told


def test_what_training_wrote_of_its_heads_is_drawn_as_it_is():
    picture = drawn("copying", "rope")
    assert [part["name"] for part in picture.parts] == ["best previous-token head", "best induction head"]
    for part, name in zip(picture.parts, ("previous_token_score", "induction_score"), strict=True):
        np.testing.assert_array_equal(np.array(part["y"], float), SCORES[name])
    assert picture.layout["yaxis"]["title"]["text"] == "head score"


def test_of_a_model_that_was_kept_once_a_click_leads_nowhere():
    picture = drawn("loss", "learned")
    assert all(part.get("customdata") is None for part in picture.parts) and not picture.layout.get("shapes")
    assert not any(PANELS[name].applies_to(trace_of("learned")) for name in ("text", "scores", "copying"))
    assert not PANELS["loss"].applies_to(trace_of("none")) and PANELS["text"].applies_to(trace_of("none"))
    assert not any(panel.applies_to(trace_of("post")) for panel in VIEW.panels)


@pytest.mark.parametrize("style", KEPT)
def test_the_text_is_read_by_the_model_at_every_step(style):
    trace, picture = trace_of(style), drawn("text", style)
    runs = [run for _lm, run in trace.at_steps().values()]
    (line,) = picture.parts
    assert list(line["x"]) == [0.5, *STEPS[1:]]
    np.testing.assert_allclose(line["y"], [loss_by_hand(run) for run in runs], rtol=1e-5)
    assert len(set(np.round(line["y"], 4))) == len(STEPS)
    for point, step, run in zip(picture.points(), STEPS, runs, strict=True):
        assert f"step {step}" in point.told and number(loss_by_hand(run) / np.log(2)) in point.told
    assert list(line["customdata"]) == [f"{style}/step-{step:06d}" for step in STEPS]
    assert marked_step(picture) == TRAINED[style].step


@pytest.mark.parametrize("style", KEPT)
def test_every_head_has_a_line_of_its_scores(style, monkeypatch):
    """Of one head, at one step, more than by chance."""
    trace, steps = trace_of(style), trace_of(style).at_steps()
    lm, last = steps[0]
    pattern = last["blocks.0.attn.pattern"].copy()
    pattern[1] = np.eye(len(trace), k=-1)
    steps = steps | {0: (lm, replace(last, values=last.values | {"blocks.0.attn.pattern": pattern}))}
    monkeypatch.setattr(type(trace), "at_steps", lambda self: steps)
    picture, runs = drawn("scores", style), [run for _lm, run in steps.values()]
    heads = in_order((2, 3), (1, 2))
    assert heads[-1] == (1, 2) and len(picture.parts) == len(set(heads)) == 6
    within = [chance(run, "previous_token") for run in runs]
    hollow = 0
    for (layer, head), line in zip(heads, picture.parts, strict=True):
        expected = [score_by_hand(run, layer, head) for run in runs]
        np.testing.assert_allclose(line["y"], expected, rtol=1e-5)
        symbols = [
            "circle" if v > c.within[layer, head] + 1e-6 else "circle-open"
            for v, c in zip(expected, within, strict=True)
        ]
        assert list(line["marker"]["symbol"]) == symbols
        hollow += symbols.count("circle-open")
        assert (line["line"]["color"] == "#D81B60") is ((layer, head) == (1, 2))
    assert 0 < hollow < 6 * len(STEPS)
    assert f"layer 1 head 2\nscore {score_by_hand(runs[-1], 1, 2):.3f}\nstep 64" in picture.points()[-1].told
    even = np.mean([1 / (query + 1) for query in range(1, len(trace))])
    dashed = [shape["y0"] for shape in picture.layout["shapes"] if shape["y0"] == shape["y1"]]
    assert dashed == [pytest.approx(even)] and number(even) in picture.layout["xaxis"]["title"]["text"]


def test_where_no_query_counts_it_is_told():
    trace = trace_of("rope", 2)
    selection = Selection(head_score="induction").within(trace)
    picture = Picture(PANELS["scores"].draw(trace, selection))
    assert not picture.parts and "no token of this prompt occurs twice" in picture.layout["annotations"][0]["text"]


@pytest.mark.parametrize("panel", ["text", "scores"])
def test_a_mark_warns_where_another_step_is_wrong(panel, monkeypatch):
    trace = trace_of("rope")
    selection = Selection().within(trace)
    assert PANELS[panel].mark(trace, selection).state == "recomputed"
    name = {"text": "logits", "scores": "blocks.1.attn.pattern"}[panel]
    others = dict(trace.at_steps())
    lm, last = others[64]
    others[64] = lm, replace(last, values=last.values | {name: last[name] * np.float32(1.01)})
    monkeypatch.setattr(type(trace), "at_steps", lambda self: others)
    mark = PANELS[panel].mark(trace, selection)
    assert mark.state == "off" and "at step 64" in mark.words


def test_the_words_are_of_the_step():
    def told(style):
        return VIEW.formula(trace_of(style), Selection())

    assert "rope after step 8, one of 3 that it was kept at, 0 to 64" in told("rope")
    assert "training wrote nothing down after step 8" in told("rope")
    assert "written down after step 64: loss on text held out = 4.30" in told("gpt")
    assert "no record of its training" in told("none")
    assert "learned was kept once alone" in told("learned") and "written down last, after step 64" in told("learned")
    assert "nothing is known here" in told("post")
    assert f"= {number(loss_by_hand(trace_of('post')))} nats" in told("post")


def test_ticks_have_room_and_the_beginning_is_among_them():
    doubling = [0, *(2**i for i in range(13))]
    assert ticked(doubling) == [0, 4, 16, 64, 256, 1024, 4096]
    assert ticked(range(500, 8001, 500)) == [500, 1500, 2500, 4500, 8000]
    assert ticked([7]) == [7] and ticked([]) == []


def test_what_differences_of_two_models_mean_is_told():
    rope, gpt = trace_of("rope"), trace_of("gpt")
    _lm, later = rope.at_steps()[64]
    assert bases_told(Comparison.of(rope, rope)) == ""
    assert "steps of one training" in bases_told(Comparison.of(rope, later))
    assert "two models" in bases_told(Comparison.of(rope, gpt))
    assert "two models" in bases_told(Comparison.of(rope, trace_of("post")))


@pytest.mark.parametrize(
    ("view", "shown", "said"), [("compare", "a", True), ("residual", "a", False), ("residual", "difference", True)]
)
def test_it_is_told_wherever_they_are_subtracted(view, shown, said):
    trace, other = trace_of("rope"), trace_of("gpt")
    selection = replace(Selection(), shown=shown).within(trace)
    view = OpenView(VIEW_NAMED[view], trace, selection, None, Comparison.of(trace, other), has_other=True)
    assert ("two models" in view.words) is said
