"""Second run: its creation, and the commands on two runs."""

import pytest

from explorer.lessons.example_prompts import PROMPT_PAIRS
from explorer.state.page_state import PageState
from explorer.tracing.comparison import Comparison
from explorer.web.actions.page_actions import PageUpdate


def make_comparison(page, state: dict) -> Comparison | None:
    return page.actions.state_builder.runs.comparison(PageState.parse(state))


def test_run_is_compared_with_itself_without_interventions(page, state, move):
    changed = state | {"edits": "blocks.0.attn.z.1*zero"}
    now = move(changed, "compare", **{"with": "unchanged"})
    assert now["b.checkpoint"] == state["checkpoint"] and now["b.prompt"] == [] and now["shown"] == "difference"
    comparison = make_comparison(page, now)
    assert (
        comparison.is_unchanged and comparison.trace.edits and comparison.other.token_ids == comparison.trace.token_ids
    )


def test_run_is_compared_with_another_prompt(page, state, move, notices):
    move(state, "compare", **{"with": "similar"})
    assert notices == []  # no changes to say so of
    changed = state | {"edits": "blocks.0.attn.z.1*zero"}
    now = move(changed, "compare", text="the moon asked the owl", **{"with": "prompt"})
    assert notices == ["B has A’s changes, too. To compare without them, remove them from B."]
    runs = page.actions.state_builder.runs
    assert runs.text(runs.second_run(PageState.parse(now)))[0] == "the moon asked the owl"
    assert now["b.edits"] == changed["edits"]  # only the text of the two prompts differs
    assert now["prompt"] == state["prompt"]


def test_b_reads_new_prompt_with_its_own_model(page, state, move):
    two_run_state = state | {
        "b.checkpoint": "gpt",
        "b.prompt": [5, 6],
        "b.edits": "blocks.0.attn.z.1*zero",
        "b.pins": "1.1",
    }
    now = move(two_run_state | {"shown": "b"}, "compare", text="the moon asked the owl", **{"with": "prompt"})
    runs = page.actions.state_builder.runs
    assert runs.text(runs.second_run(PageState.parse(now)))[0] == "the moon asked the owl"
    assert (now["b.checkpoint"], now["b.edits"], now["b.pins"], now["shown"]) == (
        "gpt",
        two_run_state["b.edits"],
        "",
        "b",
    )
    assert (now["prompt"], now["edits"]) == (state["prompt"], state["edits"])


def test_b_without_own_prompt_follows_a(page, state, move, merge):
    """A second run without a prompt of its own always has the first run's tokens."""
    now = move(state, "compare", checkpoint=state["checkpoint"], **{"with": "model"})
    now = merge(now, page.generation.generate(now | {"max_new_tokens": 3}))
    comparison = make_comparison(page, now)
    assert comparison.alignment.kind == "same" and len(comparison.other) == len(state["prompt"]) + 3


def test_swapping_twice_restores_both(state, move):
    now = move(state, "compare", text="the moon asked the owl", **{"with": "prompt"})
    swapped = move(now, "swap")
    assert (swapped["prompt"], swapped["b.prompt"]) == (now["b.prompt"], now["prompt"])
    back = move(swapped, "swap")
    assert {name: back[name] for name in back if name not in ("turn", "query", "key")} == {
        name: now[name] for name in back if name not in ("turn", "query", "key")
    }


def test_copy_to_b_keeps_state_of_a(state, move):
    now = move(state, "compare", text="the moon asked the owl", **{"with": "prompt"})
    now = move(now, "copy")
    assert now["b.prompt"] == state["prompt"]
    further = move(now, "step")
    assert further["b.prompt"] == state["prompt"] and len(further["generated"]) == 1
    closed = move(further, "close")
    assert PageState.parse(closed).other is None and closed["shown"] == "a"


def test_tokens_can_be_aligned_manually(page, state, move):
    now = move(state, "compare", text="the moon asked the owl, the owl", **{"with": "prompt"})
    pinned = move(now, "pin", a=2, b=4)
    assert pinned["b.pins"] == "2.4" and make_comparison(page, pinned).alignment.partners[2] == 4
    assert move(pinned, "swap")["b.pins"] == "4.2"
    moved = move(pinned, "pin", a=2, b=3)
    assert moved["b.pins"] == "2.3"
    assert move(moved, "unpin")["b.pins"] == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"kind": "compare", "with": "nothing"}, "compared with one of"),
        ({"kind": "compare", "with": "prompt", "text": ""}, "prompt is empty"),
        ({"kind": "compare", "with": "prompt", "text": 7}, "must be text"),
        ({"kind": "compare", "with": "model", "checkpoint": "../etc"}, "there is no checkpoint"),
        ({"kind": "compare", "with": "model"}, "must be a name"),
        ({"kind": "swap"}, "no second run"),
        ({"kind": "pin", "a": 1, "b": 1}, "aligning two tokens"),
    ],
    ids=str,
)
def test_invalid_command_changes_nothing(state, notices, command, words, act):
    assert act(state, **command) == PageUpdate(is_done=False) and words in notices[0]


def test_crossing_alignments_are_refused(state, notices, move, act):
    now = move(state, "compare", text="the moon asked the owl, the owl", **{"with": "prompt"})
    pinned = move(now, "pin", a=2, b=4)
    assert act(pinned, "pin", a=3, b=1) == PageUpdate(is_done=False) and "cross" in notices[0]


def test_new_prompt_keeps_second_run(state, move):
    now = move(state, "compare", text="the moon asked the owl", **{"with": "prompt"})
    further = move(now, "prompt", text="the owl said", checkpoint=now["checkpoint"])
    assert further["b.prompt"] == now["b.prompt"] and further["prompt"] != now["prompt"]


def test_page_state_has_both_runs(state):
    """Fields are text, as in a URL."""
    both = state | {
        "b.checkpoint": state["checkpoint"],
        "b.prompt": "1.2.3",
        "b.edits": "blocks.0.attn.z.1*zero",
        "b.pins": "1.2",
    }
    page_state = PageState.parse(both)
    assert page_state.other.prompt == (1, 2, 3) and page_state.pins == ((1, 2),)
    assert PageState.parse(page_state.as_dict()) == page_state
    single_run_state = PageState.parse(state)
    assert single_run_state.other is None and not any(
        v for k, v in single_run_state.as_dict().items() if k.startswith("b.")
    )
    assert PageState.parse(single_run_state.as_dict()) == single_run_state


def test_prompt_pair_starts_with_clean_prompt_in_a(page, state, move):
    runs = page.actions.state_builder.runs
    raw_state = state | {"answer": " the", "wrong": " a", "clean_run": "b", "shown": "difference"}
    now = move(raw_state, "pair", pair=1)
    page_state = PageState.parse(now)
    assert (
        runs.text(page_state.run)[0] == PROMPT_PAIRS[1].clean
        and runs.text(page_state.other)[0] == PROMPT_PAIRS[1].corrupted
    )
    assert (now["clean_run"], now["answer"], now["wrong"], now["shown"]) == ("a", "", "", "a")


TEXT = "the fox asked the owl"


@pytest.mark.parametrize(
    ("said", "text", "edits"),
    [
        ({"b.text": "the moon asked"}, "the moon asked", ""),
        ({"b.edits": "blocks.0.attn.z.1*zero"}, TEXT, "blocks.0.attn.z.1*zero"),
        ({"b.text": "the moon", "b.edits": "blocks.0.attn.z.1*zero"}, "the moon", "blocks.0.attn.z.1*zero"),
        ({"b.prompt": "5.6", "b.generated": "7"}, None, ""),
        ({"b.text": "the moon asked", "b.pins": "1.2"}, "the moon asked", ""),
    ],
    ids=str,
)
def test_link_without_model_of_b_uses_model_of_a(page, load, notices, said, text, edits):
    change = load(text=TEXT, checkpoint="none", edits="blocks.0.attn.z.0*zero", **said).change
    page_state = PageState.parse(change)
    runs = page.actions.state_builder.runs
    assert notices == []
    assert page_state.other.checkpoint == "none" and change["b.edits"] == edits
    if text is None:
        assert (page_state.other.prompt, page_state.other.generated) == ((5, 6), (7,))
    else:
        assert runs.text(runs.second_run(page_state))[0] == text
    assert change["b.pins"] == said.get("b.pins", "")
    assert change["edits"] == "blocks.0.attn.z.0*zero"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"b.pins": "1.2"}, "an address with b.pins needs b.text, b.prompt, b.edits or b.checkpoint"),
        ({"b.generated": "7"}, "an address with b.generated needs b.text"),
        ({"b.text": "the moon", "b.generated": "7"}, "an address with b.generated needs b.prompt"),
        ({"b.checkpoint": "rope", "b.dropped": "3"}, "an address with b.dropped needs b.prompt"),
        ({"b.text": ""}, "The prompt is empty"),
        ({"b.checkpoint": "rope", "b.text": ""}, "The prompt is empty"),
    ],
    ids=str,
)
def test_incomplete_second_run_in_link_is_reported(load, notices, said, words):
    change = load(text=TEXT, **said).change
    assert PageState.parse(change).other is None
    (sentence,) = notices
    assert words in sentence and "second run is left out" in sentence


def test_unknown_fields_of_b_in_link_are_reported(load, notices):
    change = load(text=TEXT, **{"b.text": "the moon", "b.seed": "3", "b.<b>": ""}).change
    assert PageState.parse(change).other is not None
    (sentence,) = notices
    assert "b.text" in sentence and "b.seed was ignored" in sentence


def test_link_to_one_run_has_no_second_run(load, notices, state):
    change = load(**{name: str(value) for name, value in state.items() if name.startswith("b.") and not value}).change
    assert PageState.parse(change).other is None
    assert notices == []
