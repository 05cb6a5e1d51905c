"""Saved runs in every view: as before if their model is loaded, otherwise with a message for each missing value."""

import gc
from contextlib import suppress

import pytest

from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views import VIEWS
from explorer.views.two_run_figures import FigurePlaceholder
from explorer.web.browser_api.open_view import OpenView, point_derivation_text
from explorer.web.browser_api.page_contents import figure_payload, view_contents
from model.transformer_lm import TransformerLM
from tests.sample_models import capture_edited_style, capture_style, models, tokenizer
from tests.subtest_loops import subtest_each

IDS = tuple(range(3, 15))
every_view = subtest_each("view", VIEWS, ids=lambda view: view.name)


def make_view(view, trace: Trace) -> OpenView:
    selection = Selection(view=view.name, layer=1, head=1, query=9, key=3, rival=2).clamp_to_trace(trace)
    return OpenView(view, trace, selection)


@pytest.mark.parametrize("capture_trace", [capture_style, capture_edited_style], ids=["plain", "changed"])
@every_view
@pytest.mark.exhaustive
def test_saved_run_with_its_model_is_drawn_as_before(view, capture_trace, tmp_path):
    before = capture_trace("rope", 12)
    after = Trace.load(before.save(tmp_path / "run.safetensors"))
    first, second = (make_view(view, trace) for trace in (before, after))
    for panel in view.panels:
        if panel.name not in ("course", "loss") and view.name != "training":  # a saved run has no training history
            assert figure_payload(first.draw(panel)) == figure_payload(second.draw(panel)), panel.name
            assert first.verify(panel) == second.verify(panel), panel.name


@pytest.fixture(scope="module", params=[float("inf"), 0], ids=["all values", "on demand"])
def run_without_model(request, tmp_path_factory) -> Trace:
    """Loaded run whose model has been unloaded."""
    lm = TransformerLM(models()["rope"].config).eval()
    run = capture(lm, IDS, tokenizer=tokenizer(), max_bytes=request.param)
    path = run.save(tmp_path_factory.mktemp("saved") / "run.safetensors")
    del lm, run
    gc.collect()
    return Trace.load(path)


@every_view
@pytest.mark.exhaustive
def test_run_without_model_draws_or_names_missing_values(view, run_without_model):
    open_view = make_view(view, run_without_model)
    for stage in range(3):
        view_contents(open_view, True, stage)
    for panel in view.panels:
        figure = open_view.draw(panel)
        if isinstance(figure, FigurePlaceholder) and figure.job is None:
            assert "Load" in figure.message and "run the prompt again" in figure.message
        mark = open_view.verify(panel)
        assert mark is None or mark.state != "off"
        if panel.inspect and open_view.has(panel):
            with suppress(PointNotFoundError):
                point_derivation_text(open_view, panel.name, ClickedPoint(1, 1, layer=1, head=1, curve=0, item=1))


def test_stored_values_are_drawn_and_missing_ones_named(run_without_model):
    views = {view.name: view for view in VIEWS}
    heads, *_others = views["attention"].panels
    heads_figure = make_view(views["attention"], run_without_model).draw(heads)
    if run_without_model.is_lazy:
        assert heads_figure.message.startswith("This needs blocks.0.attn.pattern, which the run did not store")
    else:
        assert figure_payload(heads_figure)["pixels"] == len(run_without_model)
    selection = Selection(view="activations", tap="blocks.1.resid_post").clamp_to_trace(run_without_model)
    activations = OpenView(views["activations"], run_without_model, selection)
    assert not any(isinstance(activations.draw(panel), FigurePlaceholder) for panel in activations.view.panels)
