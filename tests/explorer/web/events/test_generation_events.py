"""The buttons Step and Generate."""

import pytest

from explorer.state.run import Run

PROMPT = "the fox asked the owl"


@pytest.mark.parametrize("prompt", [PROMPT, "\x00" * 29], ids=["within the context", "past the context"])
@pytest.mark.parametrize("seed", [0, 7])
def test_steps_write_what_generate_writes(page, library, state, prompt, seed, merged):
    start = merged(state, [page.events.on_prompt(prompt, "rope", state)]) | {"seed": seed, "max_new_tokens": 8}
    generated = merged(start, page.writing.on_generate(start))["generated"]
    stepped = start
    for _ in generated:
        stepped = merged(stepped, page.writing.on_step(stepped))
    assert stepped["generated"] == generated
    assert len(generated) == 8 or generated[-1] == library.model("rope")[1].end_of_text


def test_every_kind_of_model_writes_what_its_captured_logits_say(page, library, state, style, merged):
    start = merged(state, [page.events.on_prompt(PROMPT, style, state)]) | {"temperature": 0, "max_new_tokens": 8}
    now = merged(start, page.writing.on_generate(start))
    logits = page.events.run_factory.runs.trace(Run.parse(now))["logits"]
    likeliest = logits.argmax(-1)[len(now["prompt"]) - 1 : -1]
    assert now["generated"] == likeliest.tolist() and now["checkpoint"] == style


def test_generating_on_goes_on(page, state, merged):
    once = merged(state, page.writing.on_generate(state | {"max_new_tokens": 8}))
    half = merged(state, page.writing.on_generate(state | {"max_new_tokens": 4}))
    twice = merged(half, page.writing.on_generate(half | {"max_new_tokens": 4}))
    assert twice["generated"] == once["generated"]


def test_each_new_token_is_shown_and_looked_at(page, state):
    answers = list(page.writing.on_generate(state | {"max_new_tokens": 4}))
    assert [len(answer[page.layout.generation_update]["change"]["generated"]) for answer in answers] == [1, 2, 3, 4]
    assert [answer[page.layout.generation_update]["ask"] for answer in answers] == ["token", "token", "token", "show"]
    for done, answer in enumerate(answers, start=1):
        tokens = len(state["prompt"]) + done
        assert answer[page.layout.generation_update]["change"]["query"] == tokens - 1
        assert answer[page.layout.generation_update]["change"]["prompt"] == state["prompt"]


def test_what_is_written_follows_the_changes_of_the_model(page, state, merged):
    """Each token is the likeliest by the modified model's logits in one pass over the whole text."""
    start = state | {"edits": "rope.angles*zero~blocks.0.attn.z.1*zero", "temperature": 0, "max_new_tokens": 8}
    changed = merged(start, page.writing.on_generate(start))
    trace = page.writing.run_factory.runs.trace(Run.parse(changed))
    assert trace.edits
    assert changed["generated"] == trace["logits"].argmax(-1)[len(state["prompt"]) - 1 : -1].tolist()
    assert changed["edits"] == start["edits"]


def test_writing_ends_with_the_text(page, library, state, monkeypatch):
    start = state | {"temperature": 0}
    (answer,) = page.writing.on_step(start)
    (likeliest,) = answer[page.layout.update]["change"]["generated"]
    monkeypatch.setattr(library.model("rope")[1], "end_of_text", likeliest)
    (only,) = page.writing.on_generate(start | {"max_new_tokens": 5})
    assert only[page.layout.generation_update]["ask"] == "show"


def test_writing_ends_where_a_link_would_grow_too_long(page, state, shown_warnings, monkeypatch):
    monkeypatch.setattr("explorer.web.events.generation_events.MAX_TOKENS", 3)
    full = list(page.writing.on_generate(state | {"max_new_tokens": 8}))[-1][page.layout.generation_update]["change"]
    assert len(full["generated"]) == 3
    assert list(page.writing.on_generate(state | full)) == []
    assert len(shown_warnings) == 1


@pytest.mark.parametrize("handler", ["on_step", "on_generate", "on_compare"])
def test_where_learned_positions_end_writing_ends_with_a_sentence(page, state, shown_warnings, merged, handler):
    start = merged(state, [page.events.on_prompt(PROMPT, "learned", state)])
    room = 32 - len(start["prompt"])
    start |= {"edits": f"position_embed*shift*{room - 2}", "max_new_tokens": 8}
    widget = page.layout.update if handler == "on_step" else page.layout.generation_update
    continuations = [answer[widget]["change"]["generated"] for answer in getattr(page.writing, handler)(start)]
    if handler == "on_step":
        assert len(continuations) == 1 and not shown_warnings
        start = merged(start, page.writing.on_step(start | {"generated": continuations[0]}))
        continuations = list(page.writing.on_step(start))
        assert not continuations
    assert len(continuations) <= 2
    assert "learned positions 0 to 31 and knows no others" in shown_warnings[0]
