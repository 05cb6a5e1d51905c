"""Undo, Another ending, Compare, and commands on the tree of continuations."""

import pytest

from explorer.state.generation_settings import RANGES, UserLimits
from explorer.state.page_state import PageState, RunRequest, parse_branches
from explorer.web.actions.generation_actions import COMPARED_TOKENS, GenerationActions
from explorer.web.actions.page_actions import PageUpdate
from tests.subtest_loops import each_style

PROMPT = "the fox asked the owl"
REFUSED = PageUpdate(is_done=False)


@pytest.fixture
def generated_state(page, state, merge) -> dict:
    """State after six tokens were generated."""
    return merge(state, page.generation.generate(state | {"max_new_tokens": 6})) | {"max_new_tokens": 6}


def test_undo_removes_tokens_until_none_is_left(generated_state, notices, act, move):
    now = generated_state
    for left in range(5, -1, -1):
        now = move(now, "undo")
        assert now["generated"] == generated_state["generated"][:left]
        assert now["query"] == len(generated_state["prompt"]) + left - 1
        assert [branch.path for branch in parse_branches(now["branches"])] == [tuple(generated_state["generated"])]
    assert act(now, "undo") == REFUSED and "nothing to undo" in notices[0]


def test_step_after_undo_repeats_tokens_with_same_seed(generated_state, move):
    now = move(generated_state, "undo")
    now = move(now, "undo")
    for _ in range(2):
        now = move(now, "step")
    assert now["generated"] == generated_state["generated"]


def test_regenerate_adds_branch_with_next_seed(page, generated_state, merge):
    answers = list(page.generation.regenerate(generated_state))
    now = merge(generated_state, answers)
    assert now["generated"] != generated_state["generated"] and len(now["generated"]) == 6
    assert now["seed"] == answers[0]["change"]["seed"] == generated_state["seed"] + 1
    assert [branch.path for branch in parse_branches(now["branches"])] == [tuple(generated_state["generated"])]
    afresh = merge(generated_state, page.generation.generate(generated_state | {"generated": [], "seed": now["seed"]}))
    assert now["generated"] == afresh["generated"]


def test_regenerate_starts_where_generate_started(page, generated_state, merge):
    twice = merge(generated_state, page.generation.generate(generated_state))
    assert twice["began"] == 6
    now = merge(twice, page.generation.regenerate(twice))
    assert now["generated"][:6] == generated_state["generated"] and now["generated"][6:] != twice["generated"][6:]
    last = merge(twice | {"seed": RANGES["seed"][1]}, page.generation.regenerate(twice | {"seed": RANGES["seed"][1]}))
    assert last["seed"] == 0


def test_regenerate_explains_refusal(page, state, notices, merge):
    assert merge(state, page.generation.regenerate(state)) == state
    assert "press Generate" in notices[0]


def test_regenerate_at_temperature_0_says_so_only_if_the_ending_is_the_same(page, generated_state, notices, merge):
    colder = generated_state | {"temperature": 0}
    likeliest = merge(colder, page.generation.regenerate(colder))
    assert likeliest["generated"] != generated_state["generated"] and not notices
    assert parse_branches(likeliest["branches"])[0].path == tuple(generated_state["generated"])
    again = merge(likeliest, page.generation.regenerate(likeliest))
    assert again["generated"] == likeliest["generated"] and again["seed"] == generated_state["seed"]
    assert "temperature 0" in notices[0] and "seed" not in notices[0]


@pytest.mark.parametrize("prompt", [PROMPT, "\x00" * 40], ids=["within the context", "past the context"])
def test_alternative_token_follows_selected_position(page, state, generated_state, prompt, merge, move):
    start = move(state, "prompt", text=prompt, checkpoint="rope") | {"max_new_tokens": 6}
    generated_state = merge(start, page.generation.generate(start))
    num_visible = len(page.actions.state_builder.runs.trace(RunRequest.parse(generated_state)))
    now = move(generated_state | {"query": num_visible - 3}, "take", token=9)
    assert now["generated"] == [*generated_state["generated"][:4], 9] and now["prompt"] == generated_state["prompt"]
    back = move(now, "go", path=generated_state["generated"])
    assert back["generated"] == generated_state["generated"]
    assert back["query"] == num_visible - 1
    pruned = move(back, "prune", path=now["generated"])
    assert [branch.path for branch in parse_branches(pruned["branches"])] == [tuple(generated_state["generated"])]


@pytest.mark.parametrize("action", [{}, {"kind": "take", "token": 10**6}, {"kind": "go", "path": [1]}, {"kind": "<b>"}])
def test_invalid_command_changes_nothing_and_is_reported(page, generated_state, notices, action):
    assert page.actions.apply(action, generated_state) == REFUSED
    assert len(notices) == 1 and len(notices[0].split()) > 3


def test_greedy_beam_and_sampling_become_branches(page, library, generated_state, merge):
    answers = list(page.generation.compare(generated_state | {"top_k": 1}))
    assert len(answers) == 3
    now = merge(generated_state, answers)
    assert now["generated"] == generated_state["generated"]
    paths = {branch.origin: branch.path for branch in parse_branches(now["branches"])}
    room = library.model("rope")[0].config.context_length + 1 - len(generated_state["prompt"]) - 6
    assert set(paths) == {"greedy", "beam", "sampling"}
    assert all(
        len(path) <= 6 + min(COMPARED_TOKENS, room) and path[:6] == (*generated_state["generated"],)
        for path in paths.values()
    )
    assert paths["greedy"] == paths["sampling"]  # because top-k is 1
    trace = page.actions.state_builder.runs.trace(RunRequest.parse(now | {"generated": list(paths["greedy"])[:-1]}))
    assert list(paths["greedy"][6:]) == trace["logits"].argmax(-1)[len(generated_state["prompt"]) + 5 :].tolist()


@each_style
def test_methods_are_compared_for_every_model(page, state, style, merge, move):
    start = move(state, "prompt", text=PROMPT, checkpoint=style)
    plain, changed = (
        merge(start, page.generation.compare(start | {"edits": edits}))
        for edits in ("", "blocks.0.attn.z*zero~blocks.1.attn.z*zero~blocks.0.ffn.hidden*scale*9")
    )
    assert plain["branches"].count("~") == changed["branches"].count("~") == 2
    assert plain["branches"] != changed["branches"]


def test_commands_that_change_run_increment_turn(page, generated_state, merge, move):
    """The browser discards answers of an older turn (`applyUpdate` in page_actions.js)."""
    now = generated_state
    for write in (page.generation.regenerate, page.generation.compare):
        updates = list(write(now))
        assert {update["change"]["turn"] for update in updates} == {now["turn"] + 1}
        now = merge(now, updates)
    actions = {"undo": {}, "take": {"token": 5}, "step": {}, "prompt": {"text": PROMPT, "checkpoint": "rope"}}
    for kind, action in actions.items():
        assert move(now, kind, **action)["turn"] == now["turn"] + 1


def test_new_prompt_or_model_has_no_branches(page, generated_state, merge, move):
    grown = merge(generated_state, page.generation.compare(generated_state))
    for prompt, checkpoint in (("the owl", "rope"), (PROMPT, "none")):
        now = move(grown, "prompt", text=prompt, checkpoint=checkpoint)
        assert (now["branches"], now["began"], now["generated"]) == ("", 0, [])


def test_link_restores_tree(page, generated_state, load, merge):
    grown = merge(generated_state, page.generation.regenerate(generated_state))
    query = {name: ".".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in grown.items()}
    restored = load(**query).change
    assert PageState.parse(restored).branches == PageState.parse(grown).branches != ()
    assert (restored["generated"], restored["began"]) == (grown["generated"], grown["began"])


@pytest.mark.parametrize("branches", ["1.x", "<b>", "~" * 999, "-1"])
def test_hostile_tree_is_reported_and_ignored(notices, load, branches):
    assert load(branches=branches).change["branches"] == ""
    assert len(notices) == 1 and notices[0].endswith("the tree of continuations is left out.")


def test_generation_respects_token_limit(page, state, notices, merge):
    generation = GenerationActions(page.actions.state_builder, UserLimits(tokens=3))
    now = merge(state, generation.generate(state | {"max_new_tokens": 8}))
    assert len(now["generated"]) == 3 and "Limit of 3 tokens" in notices[0]
    merge(state, generation.generate(state | {"max_new_tokens": 3}))
    assert len(notices) == 1
    assert len(parse_branches(merge(state, generation.compare(state))["branches"])[0].path) == 3


def test_generation_respects_time_limit(page, state, notices, merge):
    generation = GenerationActions(page.actions.state_builder, UserLimits(seconds=1e-9))
    updates = list(generation.generate(state | {"max_new_tokens": 8}))
    assert [update["ask"] for update in updates] == ["show"]
    merge(state, updates)
    assert "Limit of 1e-09 seconds" in notices[0]
