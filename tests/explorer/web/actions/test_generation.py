"""The buttons Step and Generate."""

import pytest

from explorer.state.page_state import RunRequest
from tests.subtest_loops import each_style

PROMPT = "the fox asked the owl"


@pytest.mark.parametrize("prompt", [PROMPT, "\x00" * 29], ids=["within the context", "past the context"])
@pytest.mark.parametrize("seed", [0, 7])
def test_step_and_generate_agree(page, library, state, prompt, seed, merge, move):
    start = move(state, "prompt", text=prompt, checkpoint="rope") | {"seed": seed, "max_new_tokens": 8}
    generated = merge(start, page.generation.generate(start))["generated"]
    stepped = start
    for _ in generated:
        stepped = move(stepped, "step")
    assert stepped["generated"] == generated
    assert len(generated) == 8 or generated[-1] == library.model("rope")[1].end_of_text


@each_style
def test_greedy_tokens_match_captured_logits(page, library, state, style, merge, move):
    start = move(state, "prompt", text=PROMPT, checkpoint=style) | {"temperature": 0, "max_new_tokens": 8}
    now = merge(start, page.generation.generate(start))
    logits = page.actions.state_builder.runs.trace(RunRequest.parse(now))["logits"]
    likeliest = logits.argmax(-1)[len(now["prompt"]) - 1 : -1]
    assert now["generated"] == likeliest.tolist() and now["checkpoint"] == style


def test_generating_twice_continues(page, state, merge):
    once = merge(state, page.generation.generate(state | {"max_new_tokens": 8}))
    half = merge(state, page.generation.generate(state | {"max_new_tokens": 4}))
    twice = merge(half, page.generation.generate(half | {"max_new_tokens": 4}))
    assert twice["generated"] == once["generated"]


def test_each_new_token_is_sent_and_selected(page, state):
    answers = list(page.generation.generate(state | {"max_new_tokens": 4}))
    assert [len(answer["change"]["generated"]) for answer in answers] == [1, 2, 3, 4]
    assert [answer["ask"] for answer in answers] == ["token", "token", "token", "show"]
    for done, answer in enumerate(answers, start=1):
        tokens = len(state["prompt"]) + done
        assert answer["change"]["query"] == tokens - 1
        assert answer["change"]["prompt"] == state["prompt"]


def test_generation_uses_interventions(page, state, merge):
    """Each token is the most probable by the modified model's logits in one pass over the whole text."""
    start = state | {"edits": "rope.angles*zero~blocks.0.attn.z.1*zero", "temperature": 0, "max_new_tokens": 8}
    changed = merge(start, page.generation.generate(start))
    trace = page.actions.state_builder.runs.trace(RunRequest.parse(changed))
    assert trace.edits
    assert changed["generated"] == trace["logits"].argmax(-1)[len(state["prompt"]) - 1 : -1].tolist()
    assert changed["edits"] == start["edits"]


def test_generation_stops_at_end_of_text_token(page, library, state, monkeypatch, move):
    start = state | {"temperature": 0}
    (likeliest,) = move(start, "step")["generated"]
    monkeypatch.setattr(library.model("rope")[1], "eos_ids", (likeliest,))
    (only,) = page.generation.generate(start | {"max_new_tokens": 5})
    assert only["ask"] == "show"


def test_generation_stops_before_link_becomes_too_long(page, state, notices, monkeypatch, merge):
    monkeypatch.setattr("explorer.web.actions.generation_actions.MAX_TOKENS", 3)
    full = list(page.generation.generate(state | {"max_new_tokens": 8}))[-1]["change"]
    assert len(full["generated"]) == 3
    assert merge(full, page.generation.generate(state | full)) == full
    assert len(notices) == 1


@pytest.mark.parametrize("way", ["step", "generate", "compare"])
def test_generation_stops_after_last_learned_position(page, state, notices, merge, move, act, way):
    start = move(state, "prompt", text=PROMPT, checkpoint="learned")
    room = 32 - len(start["prompt"])
    start |= {"edits": f"position_embed*shift*{room - 2}", "max_new_tokens": 8}
    if way == "step":
        for _ in range(2):
            assert notices == []
            start = move(start, "step")
        assert not act(start, "step").is_done
    else:
        assert len(merge(start, getattr(page.generation, way)(start))["generated"]) <= 2
    assert "learned positions 0 to 31 and knows no others" in notices[0]
