"""Restoring a slide."""

import pytest

from explorer.errors import UserError
from explorer.tracing.model_catalog import CheckpointError
from explorer.web.actions.page_actions import restore_saved_state
from tests.subtest_loops import subtest_each

STATE = {"checkpoint": "sinusoidal", "prompt": "1", "turn": 4, "lesson": "order", "step": 3, "reply": "3:1"}


def test_slide_restores_its_url_fields(builder):
    words = {
        "checkpoint": "rope",
        "text": "the owl sat",
        "view": "residual",
        "layer": "1",
        "query": "0",
        "top_p": "0.5",
    }
    page_state, settings = restore_saved_state(builder, STATE, {"words": words})
    selection = page_state.selection
    assert (page_state.run.checkpoint, selection.view, selection.layer, selection.query) == ("rope", "residual", 1, 0)
    assert settings.top_p == 0.5
    assert (selection.lesson, selection.step, selection.reply) == ("", 0, "")


def test_slide_restores_no_lesson(builder):
    words = {"checkpoint": "rope", "text": "the owl", "lesson": "order", "step": "2", "reply": "2:x"}
    page_state, _settings = restore_saved_state(builder, STATE, {"words": words})
    assert (page_state.selection.lesson, page_state.selection.step, page_state.selection.reply) == ("", 0, "")


def test_missing_model_is_reported(builder):
    for name in ("gone", ""):
        with pytest.raises((UserError, CheckpointError)):
            restore_saved_state(builder, STATE, {"words": {"checkpoint": name, "text": "x"}})


@subtest_each("words", [{}, {"a": "1"}, {"a": "x" * 9000}, {str(i): "" for i in range(300)}])
def test_invalid_slide_is_refused(builder, words):
    with pytest.raises((UserError, CheckpointError)):
        restore_saved_state(builder, STATE, {"words": words})


def test_restoring_slide_is_page_action(load, move):
    update = load().change
    after = move(update, "place", words={"checkpoint": "rope", "text": "the owl sat", "view": "tokens"})
    assert (after["view"], after["checkpoint"]) == ("tokens", "rope") and after["turn"] > update["turn"]
