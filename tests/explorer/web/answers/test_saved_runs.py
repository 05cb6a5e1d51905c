"""Runs that were saved, in every view: as before where their model is there, and else with a sentence for each lack."""

import gc
from contextlib import suppress

import pytest

from explorer.explain.point import Point
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views import VIEWS
from explorer.views.two_runs.picture import Instead
from explorer.web.answers.inspecting import inspect
from explorer.web.answers.open_view import OpenView
from explorer.web.answers.view_contents import packed, view_contents
from model.transformer_lm import TransformerLM
from tests.specimens import edited_trace_of, models, tokenizer, trace_of

IDS = tuple(range(3, 15))
every_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)


def opened(view, trace: Trace) -> OpenView:
    selection = Selection(view=view.name, layer=1, head=1, query=9, key=3, rival=2).within(trace)
    return OpenView(view, trace, selection)


@every_view
@pytest.mark.parametrize("trace_of", [trace_of, edited_trace_of], ids=["plain", "changed"])
@pytest.mark.exhaustive
def test_where_its_model_is_there_it_is_drawn_as_before(view, trace_of, tmp_path):
    before = trace_of("rope", 12)
    after = Trace.load(before.save(tmp_path / "run.safetensors"))
    first, second = (opened(view, trace) for trace in (before, after))
    for panel in view.panels:
        if panel.name not in ("course", "loss") and view.name != "training":  # a training that nobody knows any more
            assert packed(first.draw(panel)) == packed(second.draw(panel)), panel.name
            assert first.mark(panel) == second.mark(panel), panel.name


@pytest.fixture(scope="module", params=[float("inf"), 0], ids=["all values", "on demand"])
def alone(request, tmp_path_factory) -> Trace:
    """A run whose model is gone."""
    lm = TransformerLM(models()["rope"].config).eval()
    run = capture(lm, IDS, tokenizer=tokenizer(), most_bytes=request.param)
    path = run.save(tmp_path_factory.mktemp("saved") / "run.safetensors")
    del lm, run
    gc.collect()
    return Trace.load(path)


@every_view
@pytest.mark.exhaustive
def test_without_its_model_each_panel_is_drawn_or_says_what_it_needs(view, alone):
    shown = opened(view, alone)
    for part in range(3):
        view_contents(shown, True, part)
    for panel in view.panels:
        picture = shown.draw(panel)
        if isinstance(picture, Instead) and picture.job is None:
            assert "load" in picture.words and "run the text again" in picture.words
        mark = shown.mark(panel)
        assert mark is None or mark.state != "off"
        if panel.inspect and shown.has(panel):
            with suppress(NoSuchPoint):
                inspect(shown, panel.name, Point(1, 1, layer=1, head=1, curve=0, item=1))


def test_what_was_kept_is_drawn_and_what_was_not_is_named(alone):
    views = {view.name: view for view in VIEWS}
    heads, *_others = views["attention"].panels
    shown = opened(views["attention"], alone).draw(heads)
    if alone.is_on_demand:
        assert shown.words.startswith("This needs blocks.0.attn.pattern, which the model of this run has")
    else:
        assert packed(shown)["pixels"] == len(alone)
    selection = Selection(view="activations", tap="blocks.1.resid_post").within(alone)
    activations = OpenView(views["activations"], alone, selection)
    assert not any(isinstance(activations.draw(panel), Instead) for panel in activations.view.panels)
