from dataclasses import replace

import numpy as np
import pytest

from explorer.state.interventions import ROTATION_OFF
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.state.selection import Selection
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.api import Api
from explorer.web.events.opening import Opening
from explorer.web.events.second_run import SecondRun
from model.checkpoint import CheckpointError
from model.generation.window import window_start
from tests.browser.checkpoints import STEPS, write_series

CONTEXT = 32


def test_the_text_is_exactly_what_was_typed(opening, style, nasty_prompt):
    run = opening.run_of(style, nasty_prompt)
    assert opening.runs.text(run) == (nasty_prompt, "")
    assert opening.runs.text(Run.parse(run.as_dict())) == (nasty_prompt, "")
    assert run.dropped == 0


def test_of_a_long_prompt_the_end_is_kept(opening, library):
    text = "the moon " * 40
    run = opening.run_of("rope", text)
    ids = library.model("rope")[1].encode(text)
    start = window_start(len(ids), CONTEXT)
    assert run.prompt == tuple(ids[start:])
    assert run.dropped == start > 0


def test_a_prompt_as_long_as_the_context_is_whole(opening):
    run = opening.run_of("rope", "\x00" * CONTEXT)
    assert (len(run.prompt), run.dropped) == (CONTEXT, 0)
    assert opening.run_of("rope", "\x00" * (CONTEXT + 1)).dropped == CONTEXT // 4


def test_an_empty_prompt_is_refused_in_a_sentence(opening):
    with pytest.raises(ValueError, match="The prompt is empty"):
        opening.run_of("rope", "")


@pytest.mark.parametrize("checkpoint", ["missing", "../rope", ""])
def test_an_unknown_model_is_refused(opening, checkpoint):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        opening.run_of(checkpoint, "the moon")
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        opening.runs.trace(Run(checkpoint, (1,)))


def test_the_name_of_a_training_is_its_last_step_wherever_a_model_is_named(tmp_path, tiny_tokenizer, monkeypatch):
    monkeypatch.setattr("model.checkpoint.CHECKPOINTS", tmp_path)
    write_series(tmp_path / "fables", tiny_tokenizer)
    opening, last = Opening(Runs(Library("cpu"))), f"fables/step-{STEPS[-1]:06d}"
    linked = opening.restored(
        {"checkpoint": "fables", "text": "the moon", "b.checkpoint": "fables", "view": "training"}
    )
    compared = SecondRun(opening).after(linked, {"kind": "compare", "with": "model", "checkpoint": "fables"})
    assert [linked.run.checkpoint, linked.other.checkpoint, compared.other.checkpoint] == [last] * 3
    assert opening.run_of("fables", "the moon").checkpoint == last
    assert Api(opening, last).explore("the moon", "fables") == Api(opening, last).explore("the moon", last)
    assert opening.restored({"checkpoint": "fables/step-000004", "text": "a"}).run.checkpoint == "fables/step-000004"
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        opening.restored({"checkpoint": "fable", "text": "a"})


@pytest.mark.parametrize("ids", [(), (300,), (10**8,)])
def test_tokens_of_no_model_are_refused(opening, ids):
    with pytest.raises(ValueError, match="run has 1 to 32 tokens|token ids run from 0 to 299"):
        opening.runs.trace(Run("rope", ids))


def test_what_is_asked_is_restored_from_what_was_written(opening, asked):
    assert opening.restored(asked.as_dict()) == asked
    texts = {name: ".".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in asked.as_dict().items()}
    assert opening.restored(texts) == asked


def test_a_text_is_looked_at_from_its_end(opening):
    asked = opening.restored({"checkpoint": "rope", "text": "the fox", "view": "rope"})
    last = len(asked.run.prompt) - 1
    assert (asked.selection.query, asked.selection.key, asked.selection.view) == (last, last - 1, "positions")


def test_a_text_is_looked_at_where_one_was_asked_to(opening):
    asked = opening.restored({"checkpoint": "rope", "text": "the fox", "query": "1", "key": "0"})
    assert (asked.selection.query, asked.selection.key) == (1, 0)


def test_a_text_is_run_with_the_changes_asked_for(opening):
    asked = opening.restored({"checkpoint": "rope", "text": "the fox", "edits": "rope.angles*zero"})
    assert opening.runs.trace(asked.run).edits == (ROTATION_OFF,)


def test_ids_count_more_than_text(opening):
    assert opening.restored({"checkpoint": "rope", "prompt": "5.6", "text": "ignored"}).run.prompt == (5, 6)


def test_a_hostile_selection_is_brought_within_the_run(opening):
    asked = {"checkpoint": "rope", "prompt": "5.6.7", "layer": "999999", "query": "9" * 5000, "tap": "<b>", "dim": -1}
    selection = opening.restored(asked).selection
    assert selection == selection.within(opening.runs.trace(Run("rope", (5, 6, 7))))


def test_at_the_end_the_last_token_looks_at_the_one_before(opening, asked):
    at_end = opening.at_end(asked)
    last = len(asked.run.prompt) - 1
    assert (at_end.selection.query, at_end.selection.key) == (last, last - 1)
    assert at_end.run == asked.run
    assert replace(at_end.selection, query=2, key=1) == asked.selection
    single = opening.at_end(PageState(Run("rope", (5,)), Selection()))
    assert (single.selection.query, single.selection.key) == (0, 0)


def test_where_none_is_named_the_neuron_that_writes_most_is_chosen(opening, style):
    link = {"checkpoint": style, "text": "the fox asked the owl", "layer": "1"}
    asked = opening.restored(link)
    trace, weights = opening.runs.trace(asked.run), opening.runs.trace(asked.run).weights
    lengths = np.linalg.norm(trace["blocks.1.ffn.hidden"][-1] * weights["blocks.1.ffn.down_proj.weight"], axis=0)
    assert asked.selection.neuron == lengths.argmax()
    assert opening.restored(link | {"neuron": "0"}).selection.neuron == 0


def test_where_none_is_named_the_head_that_moves_the_prediction_most_is_chosen(opening):
    asked = {"checkpoint": "rope", "text": "the fox asked the owl"}
    chosen = opening.restored(asked).selection
    lm, _ = opening.runs.library.model("rope")
    trace = opening.runs.trace(opening.restored(asked).run)
    logits, weights = trace["logits"][-1], lm.state_dict()
    scale = np.sqrt((trace["blocks.1.resid_post"][-1] ** 2).mean() + lm.config.norm_eps)
    read = (weights["lm_head.weight"][logits.argmax()] * weights["final_norm.weight"]).numpy() / scale

    def moves(layer: int, head: int) -> float:
        z = np.zeros_like(trace["blocks.0.attn.z"][:, -1])
        z[head] = trace[f"blocks.{layer}.attn.z"][head, -1]
        return abs(float(weights[f"blocks.{layer}.attn.o_proj.weight"].numpy() @ z.ravel() @ read))

    heads = [(layer, head) for layer in range(lm.config.num_layers) for head in range(lm.config.num_heads)]
    assert (chosen.layer, chosen.head) == max(heads, key=lambda place: moves(*place))
    assert opening.restored(asked | {"layer": "0", "head": "1"}).selection.head == 1
