"""Restoring a slide."""

import pytest

from explorer.errors import UserError
from explorer.tracing.model_catalog import CheckpointError
from explorer.web.actions.page_actions import restore_saved_state

STATE = {"checkpoint": "sinusoidal", "prompt": "1", "turn": 4, "lesson": "order", "step": 3, "reply": "3:1"}


def test_a_place_is_what_its_address_says(opening):
    words = {
        "checkpoint": "rope",
        "text": "the owl sat",
        "view": "residual",
        "layer": "1",
        "query": "0",
        "top_p": "0.5",
    }
    page_state, settings = restore_saved_state(opening, STATE, {"words": words})
    selection = page_state.selection
    assert (page_state.run.checkpoint, selection.view, selection.layer, selection.query) == ("rope", "residual", 1, 0)
    assert settings.top_p == 0.5
    assert (selection.lesson, selection.step, selection.reply) == ("", 0, "")


def test_a_place_brings_no_lesson_along(opening):
    words = {"checkpoint": "rope", "text": "the owl", "lesson": "order", "step": "2", "reply": "2:x"}
    page_state, _settings = restore_saved_state(opening, STATE, {"words": words})
    assert (page_state.selection.lesson, page_state.selection.step, page_state.selection.reply) == ("", 0, "")


def test_a_model_that_is_not_here_is_said(opening):
    for name in ("gone", ""):
        with pytest.raises((UserError, CheckpointError)):
            restore_saved_state(opening, STATE, {"words": {"checkpoint": name, "text": "x"}})


@pytest.mark.parametrize(
    "words", [None, 7, "x", ["a"], {}, {"a": 1}, {1: "a"}, {"a": "x" * 9000}, {str(i): "" for i in range(300)}]
)
def test_what_is_no_place_is_refused(opening, words):
    with pytest.raises((UserError, CheckpointError)):
        restore_saved_state(opening, STATE, {"words": words})


def test_it_is_a_move_of_the_page(load, move):
    update = load().change
    after = move(update, "place", words={"checkpoint": "rope", "text": "the owl sat", "view": "tokens"})
    assert (after["view"], after["checkpoint"]) == ("tokens", "rope") and after["turn"] > update["turn"]
