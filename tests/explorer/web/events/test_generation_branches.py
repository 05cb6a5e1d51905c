"""Undo, Regenerate, Compare, and commands on the tree of continuations."""

import pytest

from explorer.state.branches import parse_branches
from explorer.state.generation_settings import RANGES
from explorer.state.limits import UserLimits
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.web.events.generation_events import COMPARED_TOKENS, GenerationHandlers

PROMPT = "the fox asked the owl"
UNDO = {"move": {"kind": "undo"}}


@pytest.fixture
def once(page, state, merged) -> dict:
    """State after six tokens were generated."""
    return merged(state, page.writing.on_generate(state | {"max_new_tokens": 6})) | {"max_new_tokens": 6}


def state_change(page, answer: dict) -> dict:
    return (answer.get(page.layout.update) or answer[page.layout.generation_update])["change"]


def test_undo_takes_tokens_back_until_none_is_left(page, once, shown_warnings, merged):
    now = once
    for left in range(5, -1, -1):
        now = merged(now, [page.writing.on_move(now | UNDO)])
        assert now["generated"] == once["generated"][:left]
        assert now["query"] == len(once["prompt"]) + left - 1
        assert [branch.path for branch in parse_branches(now["branches"])] == [tuple(once["generated"])]
    assert page.writing.on_move(now | UNDO) == {} and "nothing to undo" in shown_warnings[0]


def test_what_was_undone_is_written_again_by_the_same_seed(page, once, merged):
    now = merged(once, [page.writing.on_move(once | UNDO)])
    now = merged(now, [page.writing.on_move(now | UNDO)])
    for _ in range(2):
        now = merged(now, page.writing.on_step(now))
    assert now["generated"] == once["generated"]


def test_regenerate_writes_a_branch_with_the_next_seed(page, once, merged):
    answers = list(page.writing.on_regenerate(once))
    now = merged(once, answers)
    assert now["generated"] != once["generated"] and len(now["generated"]) == 6
    assert now["seed"] == answers[0][page.layout.sampling.seed] == once["seed"] + 1
    assert [branch.path for branch in parse_branches(now["branches"])] == [tuple(once["generated"])]
    afresh = merged(once, page.writing.on_generate(once | {"generated": [], "seed": now["seed"]}))
    assert now["generated"] == afresh["generated"]


def test_regenerate_begins_where_generate_did(page, once, merged):
    twice = merged(once, page.writing.on_generate(once))
    assert twice["began"] == 6
    now = merged(twice, page.writing.on_regenerate(twice))
    assert now["generated"][:6] == once["generated"] and now["generated"][6:] != twice["generated"][6:]
    last = merged(twice | {"seed": RANGES["seed"][1]}, page.writing.on_regenerate(twice | {"seed": RANGES["seed"][1]}))
    assert last["seed"] == 0


def test_regenerate_says_why_it_cannot(page, state, once, shown_warnings):
    assert list(page.writing.on_regenerate(state)) == []
    assert list(page.writing.on_regenerate(once | {"temperature": 0})) == []
    assert "press Generate" in shown_warnings[0] and "temperature 0" in shown_warnings[1]


@pytest.mark.parametrize("prompt", [PROMPT, "\x00" * 40], ids=["within the context", "past the context"])
def test_another_token_is_taken_after_the_selected_one(page, state, once, prompt, merged):
    start = merged(state, [page.events.on_prompt(prompt, "rope", state)]) | {"max_new_tokens": 6}
    once = merged(start, page.writing.on_generate(start))
    num_visible = len(page.writing.run_factory.runs.trace(Run.parse(once)))
    selected = once | {"query": num_visible - 3}
    now = merged(once, [page.writing.on_move(selected | {"move": {"kind": "take", "token": 9}})])
    assert now["generated"] == [*once["generated"][:4], 9] and now["prompt"] == once["prompt"]
    back = merged(now, [page.writing.on_move(now | {"move": {"kind": "go", "path": once["generated"]}})])
    assert back["generated"] == once["generated"]
    assert back["query"] == num_visible - 1
    pruned = merged(back, [page.writing.on_move(back | {"move": {"kind": "prune", "path": now["generated"]}})])
    assert [branch.path for branch in parse_branches(pruned["branches"])] == [tuple(once["generated"])]


@pytest.mark.parametrize("move", [None, {"kind": "take", "token": 10**6}, {"kind": "go", "path": [1]}, {"kind": "<b>"}])
def test_a_move_that_makes_no_sense_changes_nothing_and_says_so(page, once, shown_warnings, move):
    assert page.writing.on_move(once | {"move": move}) == {}
    assert len(shown_warnings) == 1 and "<b>" not in shown_warnings[0]


def test_greedy_beam_and_sampling_become_branches(page, library, once, merged):
    answers = list(page.writing.on_compare(once | {"top_k": 1}))
    assert len(answers) == 3
    now = merged(once, answers)
    assert now["generated"] == once["generated"]
    paths = {branch.origin: branch.path for branch in parse_branches(now["branches"])}
    room = library.model("rope")[0].config.context_length + 1 - len(once["prompt"]) - 6
    assert set(paths) == {"greedy", "beam", "sampling"}
    assert all(
        len(path) <= 6 + min(COMPARED_TOKENS, room) and path[:6] == (*once["generated"],) for path in paths.values()
    )
    assert paths["greedy"] == paths["sampling"]  # with top-k 1
    trace = page.writing.run_factory.runs.trace(Run.parse(now | {"generated": list(paths["greedy"])[:-1]}))
    assert list(paths["greedy"][6:]) == trace["logits"].argmax(-1)[len(once["prompt"]) + 5 :].tolist()


def test_every_kind_of_model_can_be_compared_changed_or_not(page, state, style, merged):
    start = merged(state, [page.events.on_prompt(PROMPT, style, state)])
    plain, changed = (
        state_change(page, list(page.writing.on_compare(start | {"edits": edits}))[-1])
        for edits in ("", "blocks.0.attn.z*zero~blocks.1.attn.z*zero~blocks.0.ffn.hidden*scale*9")
    )
    assert plain["branches"].count("~") == changed["branches"].count("~") == 2
    assert plain["branches"] != changed["branches"]


def test_what_changes_the_run_has_a_later_turn_than_what_it_follows(page, once, merged):
    """The browser discards answers of an older turn (`merge` in writing.js)."""
    writing, now = page.writing, once
    for handler in (writing.on_regenerate, writing.on_step, writing.on_compare):
        answers = list(handler(now))
        assert {state_change(page, answer)["turn"] for answer in answers} == {now["turn"] + 1}
        now = merged(now, answers)
    take_command = now | {"move": {"kind": "take", "token": 5}}
    for answer in (
        writing.on_move(now | UNDO),
        writing.on_move(take_command),
        page.events.on_prompt(PROMPT, "rope", now),
    ):
        assert state_change(page, answer)["turn"] == now["turn"] + 1


def test_a_new_prompt_or_model_has_no_branches(page, once, merged):
    grown = merged(once, page.writing.on_compare(once))
    for prompt, checkpoint in (("the owl", "rope"), (PROMPT, "none")):
        now = merged(grown, [page.events.on_prompt(prompt, checkpoint, grown)])
        assert (now["branches"], now["began"], now["generated"]) == ("", 0, [])


def test_a_link_brings_the_tree_back(page, once, load, merged):
    grown = merged(once, page.writing.on_regenerate(once))
    query = {name: ".".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in grown.items()}
    restored = state_change(page, load(**query))
    assert PageState.parse(restored).branches == PageState.parse(grown).branches != ()
    assert (restored["generated"], restored["began"]) == (grown["generated"], grown["began"])


@pytest.mark.parametrize("branches", ["1.x", "<b>", "~" * 999, "-1"])
def test_a_hostile_tree_is_told_and_not_shown(shown_warnings, load, branches, page):
    assert state_change(page, load(branches=branches))["branches"] == ""
    assert len(shown_warnings) == 1 and "<" not in shown_warnings[0]


def make_handlers(page, limits: UserLimits) -> GenerationHandlers:
    layout = page.layout
    outputs = layout.update, layout.generation_update, layout.prompt, layout.sampling.seed
    return GenerationHandlers(*outputs, page.writing.run_factory, limits)


def test_no_more_is_written_than_a_deployment_allows(page, state, shown_warnings, merged):
    writing = make_handlers(page, UserLimits(tokens=3))
    now = merged(state, writing.on_generate(state | {"max_new_tokens": 8}))
    assert len(now["generated"]) == 3 and "Limit of 3 tokens" in shown_warnings[0]
    merged(state, writing.on_generate(state | {"max_new_tokens": 3}))
    assert len(shown_warnings) == 1
    assert len(parse_branches(merged(state, writing.on_compare(state))["branches"])[0].path) == 3


def test_nothing_is_written_longer_than_a_deployment_allows(page, state, shown_warnings, merged):
    writing = make_handlers(page, UserLimits(seconds=1e-9))
    answers = list(writing.on_generate(state | {"max_new_tokens": 8}))
    assert [answer[page.layout.generation_update]["ask"] for answer in answers] == ["show"]
    assert "Limit of 1e-09 seconds" in shown_warnings[0]
