"""Actions of the page: prompts, examples, models, navigation; refused actions change nothing."""

import json
import re
from copy import deepcopy

import pytest

from explorer.analysis.embedding import nearest_tokens
from explorer.analysis.feed_forward import layer_neurons
from explorer.lessons.example_prompts import MAX_SIMILAR, PROMPT_PAIRS
from explorer.state.generation_settings import UserLimits
from explorer.state.page_state import PageState, RunRequest
from explorer.web.actions.generation_actions import GenerationActions
from explorer.web.actions.page_actions import PageUpdate

PROMPT = "the fox asked the owl"
REFUSED = PageUpdate(is_done=False)


def read_text(page, state: dict) -> str:
    return page.actions.state_builder.runs.text(RunRequest.parse(state))[0]


def test_new_prompt_selects_last_token_and_strongest_key(page, state, move):
    now = move(state | {"generated": [4, 5]}, "prompt", text="the owl", checkpoint="none")
    last = len(now["prompt"]) - 1
    assert (now["checkpoint"], now["generated"], now["layer"]) == ("none", [], state["layer"])
    pattern = page.actions.state_builder.runs.trace(RunRequest.parse(now))[f"blocks.{now['layer']}.attn.pattern"]
    assert (now["query"], now["key"]) == (last, pattern[now["head"], last].argmax())


def test_example_selects_most_informative_head(page, state, move):
    now = move(state | {"layer": 9, "target": 3}, "example", text="the owl", checkpoint="none")
    expected = page.actions.state_builder.select_top_head(PageState.parse(now))
    fields = ("layer", "head", "query", "key", "target")
    assert {name: now[name] for name in fields} == {name: expected.selection.as_dict()[name] for name in fields}
    assert now["target"] == 1 and now["view"] == state["view"]


def test_new_text_closes_open_part_and_new_token_its_cell(state, move):
    opened = state | {"open": "cell"}
    assert move(opened, "prompt", text="the owl", checkpoint="none")["open"] == ""
    assert move(opened, "step")["open"] == "head"
    assert move(state | {"open": "block"}, "step")["open"] == "block"


def test_comparison_views_open_with_prompt_pair(page, move):
    opened = page.actions.apply({"kind": "load", "query": {"view": "patching"}}, {}).change
    pair = [
        read_text(page, opened),
        read_text(page, {"checkpoint": opened["b.checkpoint"], "prompt": opened["b.prompt"]}),
    ]
    for text, whole in zip(pair, (PROMPT_PAIRS[0].clean, PROMPT_PAIRS[0].corrupted), strict=True):
        assert text and whole.endswith(text)  # truncated to these models' context
    of_other_model = page.actions.apply({"kind": "load", "query": {"view": "patching", "checkpoint": "gpt"}}, {}).change
    assert (of_other_model["prompt"], of_other_model["b.prompt"]) == (opened["prompt"], opened["b.prompt"])
    first = dict(page.actions.apply({"kind": "load", "query": {"view": "attention"}}, {}).change)
    assert not first.get("b.checkpoint")
    compared = move(first | {"view": "compare"}, "example_pair")
    assert compared["b.checkpoint"] and compared["view"] == "compare" and compared["prompt"] == opened["prompt"]
    changed = move(first | {"view": "compare", "edits": "blocks.0.attn.z.0*zero"}, "example_pair")
    assert not changed.get("b.checkpoint") and changed["prompt"] == first["prompt"]


def test_comparison_view_adds_similar_prompt(page, state, move):
    """Covers the most surprising word replaced by one with a near embedding, and the other prompt of a pair."""
    written = move(state, "prompt", text="the owl") | {"view": "compare"}
    compared = move(written, "example_pair")
    assert compared["prompt"] == written["prompt"] and compared["shown"] == "a"
    differing = [
        i for i, pair in enumerate(zip(compared["prompt"], compared["b.prompt"], strict=True)) if len({*pair}) > 1
    ]
    trace = page.actions.state_builder.runs.trace(RunRequest.parse(written))
    (position,) = differing
    nearest, _cosines = nearest_tokens(trace, written["prompt"][position], MAX_SIMILAR)
    assert compared["b.prompt"][position] in nearest
    following = move(compared, "prompt", text="the fox")
    differing = [a != b for a, b in zip(following["prompt"], following["b.prompt"], strict=True)]
    assert read_text(page, following) == "the fox" and sum(differing) == 1
    own = move(compared, "compare", text="a hen", **{"with": "prompt"})
    assert move(own, "prompt", text="the fox")["b.prompt"] == own["b.prompt"]
    pair = PROMPT_PAIRS[1]
    example = move(move(state, "prompt", text=pair.clean) | {"view": "compare"}, "example_pair")
    partner = read_text(page, {"checkpoint": example["b.checkpoint"], "prompt": example["b.prompt"]})
    assert partner and pair.corrupted.endswith(partner) and pair.clean.endswith(read_text(page, example))


def test_model_change_keeps_selection(state, move):
    selected = state | {"query": 2, "key": 1, "layer": 1, "head": 5, "tap": "blocks.1.attn.k"}
    for checkpoint, head in (("grouped", 5), ("gpt", 2)):
        now = move(selected, "model", text=PROMPT, checkpoint=checkpoint)
        assert now == selected | {"checkpoint": checkpoint, "head": head, "turn": selected["turn"] + 1}
    again = move(selected, "model", text=PROMPT + ".", checkpoint="gpt")
    assert again["query"] == len(again["prompt"]) - 1


def test_model_change_keeps_generated_tokens(page, state, move):
    continued_state = state | {"generated": [4, 5, 6], "branches": "4.9", "began": 1, "query": 3}
    now = move(continued_state, "model", text=PROMPT, checkpoint="gpt", own=None)
    assert (now["generated"], now["branches"], now["began"], now["query"]) == ([4, 5, 6], "", 3, 3)
    typed = move(continued_state, "model", text="the owl", checkpoint="gpt")
    assert typed["generated"] == [] and read_text(page, typed) == "the owl"


def test_neuron_that_nobody_chose_is_the_strongest_after_each_prompt(state, move, page):
    def strongest(now: dict) -> int:
        trace = page.actions.state_builder.runs.trace(PageState.parse(now).run)
        return int(layer_neurons(trace, now["layer"], now["query"]).top(1)[0])

    assert state["neuron"] == strongest(state)
    now = move(state, "prompt", text="a bird sang to the moon")
    assert now["neuron"] == strongest(now) != state["neuron"]
    chosen = state | {"neuron": (state["neuron"] + 1) % 8}
    assert move(chosen, "prompt", text="a bird sang to the moon")["neuron"] == chosen["neuron"]
    in_view = state | {"view": "feed_forward"}
    assert move(in_view, "prompt", text="a bird sang to the moon")["neuron"] == state["neuron"]


def test_model_restores_its_own_continuations(state, move):
    continued_state = state | {"generated": [4, 5, 6], "checkpoint": "gpt"}
    saved_fields = {"prompt": state["prompt"], "generated": [7, 8], "branches": "7.9~beam:3", "began": 1, "dropped": 0}
    now = move(continued_state, "model", text=PROMPT, checkpoint="rope", own=saved_fields)
    assert now["checkpoint"] == "rope" and saved_fields.items() <= now.items() and "own" not in now
    nothing = saved_fields | {"generated": [], "branches": ""}
    for nonsense in (
        nothing,
        saved_fields | {"prompt": state["prompt"][:-1]},
        saved_fields | {"generated": "x"},
        {},
        None,
    ):
        now = move(continued_state, "model", text=PROMPT, checkpoint="rope", own=nonsense)
        assert (now["checkpoint"], now["generated"], now["branches"]) == ("rope", [4, 5, 6], "")


def test_prompt_box_follows_changes_within_prompt(page, state, act):
    update = act(state | {"query": 1}, "take", token=9)
    assert update.prompt == read_text(page, update.change)
    assert PROMPT.startswith(update.prompt) and update.prompt != PROMPT
    later = act(state | {"query": len(state["prompt"]) - 1}, "take", token=9)
    assert later.is_done and later.prompt is None


def test_prompt_box_follows_browser_back(state, act):
    there = state | {"view": "tokens", "temperature": 0.3, "checkpoint": "gpt", "prompt": state["prompt"][:2]}
    update = act(there, "follow")
    assert update.is_done and PROMPT.startswith(update.prompt) and update.prompt != PROMPT
    assert update.change == {}  # the state is the browser's


def test_prompt_longer_than_context_is_reported(state, notices, move):
    assert move(state, "prompt", text="\x00" * 40, checkpoint="rope")["dropped"] == 8
    assert notices == ["The prompt has 40 tokens; the model sees 32 at once: the last 32 are used."]


@pytest.mark.parametrize("kind", ["prompt", "example", "model"])
@pytest.mark.parametrize(("text", "checkpoint"), [("", "rope"), ("the owl", "<b>missing</b>"), ("", "gpt")])
def test_invalid_prompt_changes_nothing_and_is_reported(state, notices, act, kind, text, checkpoint):
    assert act(state, kind, text=text, checkpoint=checkpoint) == REFUSED
    assert len(notices) == 1 and len(notices[0].split()) > 3


def test_internal_error_is_logged_and_reported(page, state, act, merge, notices, monkeypatch, caplog):
    def slip(run):
        raise ValueError("could not broadcast <shapes>")

    monkeypatch.setattr(page.actions.state_builder.runs, "trace", slip)
    for kind, action in {"prompt": {"text": "the owl", "checkpoint": "rope"}, "undo": {}}.items():
        with pytest.raises(ValueError, match="broadcast"):  # browser_routes.py logs it
            act(state, kind, **action)
    assert notices == []
    assert merge(state, page.generation.generate(state)) == state
    (notice,) = notices
    name = re.search("It was logged as ([0-9a-f]{8})", notice)[1]
    assert "broadcast" not in notice and name in caplog.records[-1].message and "def slip" not in notice
    assert "could not broadcast <shapes>" in caplog.text


@pytest.mark.parametrize(
    "broken",
    [{}, {"checkpoint": 1}, {"checkpoint": "missing", "prompt": [1]}, {"checkpoint": "rope", "prompt": [10**6]}],
)
def test_invalid_state_is_reported(page, act, merge, notices, broken):
    for kind in ("undo", "follow", "step", "beginning", "swap"):
        assert act(broken, kind) == REFUSED
    for write in (page.generation.generate, page.generation.regenerate, page.generation.compare):
        assert merge(broken, write(broken)) == broken
    assert len(notices) == 8


def test_actions_do_not_modify_given_state(page, state, act, merge):
    before = deepcopy(state)
    act(state, "step")
    act(state, "prompt", text=PROMPT, checkpoint="gpt")
    act(state, "compare", text="the owl", **{"with": "prompt"})
    merge(state, page.generation.generate(state | {"max_new_tokens": 2}))
    assert state == before


def test_all_updates_are_json(page, state, act, load):
    updates = [load(), load(checkpoint="missing"), act(state, "prompt", text=PROMPT, checkpoint="none")]
    updates += [act(state, "prompt", text="", checkpoint="rope"), act(state, "step"), act(state, "take", token=5)]
    for update in updates:
        assert json.loads(json.dumps(update.as_dict(), allow_nan=False)) == update.as_dict()
    generation = GenerationActions(page.actions.state_builder, UserLimits(tokens=3))
    continued = state | {"generated": [5], "max_new_tokens": 3}
    for write in (generation.generate, generation.regenerate, generation.compare):
        updates = list(write(continued))
        assert updates and all(page.layout.update.postprocess(update) == update for update in updates)
        assert json.loads(json.dumps(updates, allow_nan=False)) == updates
