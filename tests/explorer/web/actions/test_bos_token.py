"""The beginning-of-sequence token that a model expects: added to every prompt, and removable by the user."""

import pytest

from explorer.web.browser_api.page_contents import PageContents
from explorer.web.public_api import PublicApi
from explorer.web.shared_constants import STRIP
from tests.sample_models import STORIES


@pytest.fixture(scope="module")
def bos_model(page) -> str:
    """Name of a model that expects the token <s>, id 1."""
    return page.library.catalog.open(STORIES)


@pytest.fixture
def bos_state(bos_model, state, move) -> dict:
    return move(state, "prompt", text="Once upon a time", checkpoint=bos_model)


@pytest.fixture
def read_bos_field(page):
    """Function that returns the BOS token in a state's token strip, and whether the text starts with it."""

    def strip_beginning(now: dict) -> list:
        page_state = page.actions.state_builder.clamp_selection(page.actions.state_builder.next_revision(now))
        trace = page.actions.state_builder.runs.trace(page_state.run)
        return PageContents(page.actions.state_builder.runs).tokens(page_state, trace)[STRIP]["beginning"]

    return strip_beginning


def test_bos_is_added_and_text_reads_as_typed(page, bos_state, bos_model, read_bos_field):
    text = page.library.model(bos_model)[1].encode("Once upon a time")
    assert bos_state["prompt"] == [1, *text]
    assert page.actions.state_builder.runs.text(page.actions.state_builder.next_revision(bos_state).run) == (
        "Once upon a time",
        "",
    )
    assert read_bos_field(bos_state) == ["<s>", True]


def test_bos_can_be_removed_and_restored_with_continuation(bos_state, read_bos_field, move):
    continued = move(bos_state, "step")
    without = move(continued, "beginning")
    assert without["prompt"] == bos_state["prompt"][1:] and without["generated"] == continued["generated"]
    assert without["query"] == len(without["prompt"]) and read_bos_field(without) == ["<s>", False]
    again = move(without, "beginning")
    assert again["prompt"] == bos_state["prompt"] and read_bos_field(again) == ["<s>", True]


def test_next_prompt_keeps_bos_choice(page, bos_state, bos_model, move):
    without = move(bos_state, "beginning")
    for before, beginning in ((bos_state, [1]), (without, [])):
        now = move(before, "prompt", text="A dog", checkpoint=bos_model)
        assert now["prompt"] == [*beginning, *page.library.model(bos_model)[1].encode("A dog")]
        with_second_run = move(before, "compare", text="A cat", **{"with": "prompt"})
        ids = [*beginning, *page.library.model(bos_model)[1].encode("A cat")]
        assert with_second_run["b.prompt"] == ids


def test_other_model_gets_its_own_bos(page, bos_state, bos_model, move):
    expected_ids = page.library.model("rope")[1].encode("Once upon a time")
    switched = move(bos_state, "model", text="Once upon a time", checkpoint="rope", own=None)
    assert switched["prompt"] == expected_ids
    back = move(switched, "model", text="Once upon a time", checkpoint=bos_model, own=None)
    assert back["prompt"] == bos_state["prompt"]


def test_model_without_bos_has_nothing_to_remove(state, notices, read_bos_field, act):
    assert read_bos_field(state) == ["", True]
    act(state, "beginning")
    assert notices == ["This model has no beginning-of-text (BOS) token."]


def test_api_returns_text_without_bos(page, bos_model):
    api = PublicApi(page.actions.state_builder, bos_model)
    answer = api.generate("Once upon a time", max_new_tokens=5, temperature=0)
    assert answer["text"].startswith(", there was")
