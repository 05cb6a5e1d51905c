"""Step and Generate."""

import pytest

from explorer.run import Run

PROMPT = "the fox asked the owl"


@pytest.mark.parametrize("prompt", [PROMPT, "\x00" * 29], ids=["within the context", "past the context"])
@pytest.mark.parametrize("seed", [0, 7])
def test_steps_write_what_generate_writes(page, library, state, prompt, seed, merged):
    start = merged(state, [page.events.on_prompt(prompt, "rope", state)]) | {"seed": seed, "max_new_tokens": 8}
    at_once = merged(start, page.events.on_generate(start))["generated"]
    stepped = start
    for _ in at_once:
        stepped = merged(stepped, page.events.on_step(stepped))
    assert stepped["generated"] == at_once
    assert len(at_once) == 8 or at_once[-1] == library.model("rope")[1].end_of_text


def test_every_kind_of_model_writes_what_its_captured_logits_say(page, library, state, style, merged):
    start = merged(state, [page.events.on_prompt(PROMPT, style, state)]) | {"temperature": 0, "max_new_tokens": 8}
    now = merged(start, page.events.on_generate(start))
    logits = page.events.presenter.trace(Run.parse(now))["logits"]
    likeliest = logits.argmax(-1)[len(now["prompt"]) - 1 : -1]
    assert now["generated"] == likeliest.tolist() and now["checkpoint"] == style


def test_generating_on_goes_on(page, state, merged):
    once = merged(state, page.events.on_generate(state | {"max_new_tokens": 8}))
    half = merged(state, page.events.on_generate(state | {"max_new_tokens": 4}))
    twice = merged(half, page.events.on_generate(half | {"max_new_tokens": 4}))
    assert twice["generated"] == once["generated"]


def test_each_new_token_is_shown_and_looked_at(page, state):
    answers = list(page.events.on_generate(state | {"max_new_tokens": 4}))
    assert [len(answer[page.layout.update]["change"]["generated"]) for answer in answers] == [1, 2, 3, 4]
    assert [answer[page.layout.update]["ask"] for answer in answers] == ["tune", "tune", "tune", "show"]
    for done, answer in enumerate(answers, start=1):
        tokens = len(state["prompt"]) + done
        assert len(answer[page.layout.strip]["tokens"]) == tokens
        assert answer[page.layout.update]["change"]["query"] == tokens - 1
        assert answer[page.layout.story]["prompt"] == PROMPT
    assert {answer[page.layout.update]["change"]["prompt"] == state["prompt"] for answer in answers} == {True}


def test_writing_ends_with_the_text(page, library, state, monkeypatch):
    start = state | {"temperature": 0}
    (answer,) = page.events.on_step(start)
    (likeliest,) = answer[page.layout.update]["change"]["generated"]
    monkeypatch.setattr(library.model("rope")[1], "end_of_text", likeliest)
    (only,) = page.events.on_generate(start | {"max_new_tokens": 5})
    assert only[page.layout.update]["ask"] == "show"


def test_writing_ends_where_a_link_would_grow_too_long(page, state, told, monkeypatch):
    monkeypatch.setattr("explorer.events.MOST_TOKENS", 3)
    full = list(page.events.on_generate(state | {"max_new_tokens": 8}))[-1][page.layout.update]["change"]
    assert len(full["generated"]) == 3
    assert list(page.events.on_generate(state | full)) == []
    assert len(told) == 1
