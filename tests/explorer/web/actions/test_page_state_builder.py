from dataclasses import replace

import numpy as np
import pytest

from explorer.interventions import ROTATION_OFF
from explorer.state.page_state import PageState, RunRequest
from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder, SecondRunCommands
from explorer.web.public_api import PublicApi
from model.checkpoint import CheckpointError
from model.config import window_start
from tests.browser.checkpoints import STEPS, write_training_checkpoints
from tests.nasty_prompts import NASTY_PROMPTS
from tests.subtest_loops import each_style, subtest_each

CONTEXT = 32


@each_style
@subtest_each("nasty_prompt", NASTY_PROMPTS, ids=ascii)
def test_run_text_is_exactly_prompt(builder, style, nasty_prompt):
    run = builder.create_run(style, nasty_prompt)
    assert builder.runs.text(run) == (nasty_prompt, "")
    assert builder.runs.text(RunRequest.parse(run.as_dict())) == (nasty_prompt, "")
    assert run.dropped == 0


def test_long_prompt_keeps_its_end(builder, library):
    text = "the moon " * 40
    run = builder.create_run("rope", text)
    ids = library.model("rope")[1].encode(text)
    start = window_start(len(ids), CONTEXT)
    assert run.prompt == tuple(ids[start:])
    assert run.dropped == start > 0


def test_prompt_of_context_length_is_kept_whole(builder):
    run = builder.create_run("rope", "\x00" * CONTEXT)
    assert (len(run.prompt), run.dropped) == (CONTEXT, 0)
    assert builder.create_run("rope", "\x00" * (CONTEXT + 1)).dropped == CONTEXT // 4


def test_empty_prompt_is_refused(builder):
    with pytest.raises(ValueError, match="The prompt is empty"):
        builder.create_run("rope", "")


@pytest.mark.parametrize("checkpoint", ["missing", "../rope", ""])
def test_unknown_model_is_refused(builder, checkpoint):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        builder.create_run(checkpoint, "the moon")
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        builder.runs.trace(RunRequest(checkpoint, (1,)))


def test_name_of_training_means_its_last_step(tmp_path, tiny_tokenizer, monkeypatch):
    monkeypatch.setattr("model.checkpoint.CHECKPOINTS", tmp_path)
    write_training_checkpoints(tmp_path / "fables", tiny_tokenizer)
    builder, last = PageStateBuilder(RunService(ModelLibrary("cpu"))), f"fables/step-{STEPS[-1]:06d}"
    linked = builder.state_from_query(
        {"checkpoint": "fables", "text": "the moon", "b.checkpoint": "fables", "view": "training"}
    )
    compared = SecondRunCommands(builder).apply_command(
        linked, {"kind": "compare", "with": "model", "checkpoint": "fables"}
    )
    assert [linked.run.checkpoint, linked.other.checkpoint, compared.other.checkpoint] == [last] * 3
    assert builder.create_run("fables", "the moon").checkpoint == last
    assert PublicApi(builder, last).explore("the moon", "fables") == PublicApi(builder, last).explore("the moon", last)
    assert (
        builder.state_from_query({"checkpoint": "fables/step-000004", "text": "a"}).run.checkpoint
        == "fables/step-000004"
    )
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        builder.state_from_query({"checkpoint": "fable", "text": "a"})


@pytest.mark.parametrize("ids", [(), (300,), (10**8,)])
def test_ids_outside_vocabulary_are_refused(builder, ids):
    with pytest.raises(ValueError, match="run has 1 to 32 tokens|token ids run from 0 to 299"):
        builder.runs.trace(RunRequest("rope", ids))


def test_page_state_survives_round_trip(builder, page_state):
    assert builder.state_from_query(page_state.as_dict()) == page_state
    texts = {name: ".".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in page_state.as_dict().items()}
    assert builder.state_from_query(texts) == page_state


def test_text_is_selected_at_last_token_by_default(builder):
    page_state = builder.state_from_query({"checkpoint": "rope", "text": "the fox", "view": "rope"})
    last, selection = len(page_state.run.prompt) - 1, page_state.selection
    pattern = builder.runs.trace(page_state.run)[f"blocks.{selection.layer}.attn.pattern"]
    assert (selection.query, selection.key) == (last, pattern[selection.head, last].argmax())
    assert selection.view == "positions"


def test_query_and_key_of_url_are_selected(builder):
    page_state = builder.state_from_query({"checkpoint": "rope", "text": "the fox", "query": "1", "key": "0"})
    assert (page_state.selection.query, page_state.selection.key) == (1, 0)


def test_interventions_of_url_apply(builder):
    page_state = builder.state_from_query({"checkpoint": "rope", "text": "the fox", "edits": "rope.angles*zero"})
    assert builder.runs.trace(page_state.run).edits == (ROTATION_OFF,)


def test_ids_take_precedence_over_text(builder):
    assert builder.state_from_query({"checkpoint": "rope", "prompt": "5.6", "text": "ignored"}).run.prompt == (5, 6)


def test_hostile_selection_is_clamped_to_run(builder):
    query = {"checkpoint": "rope", "prompt": "5.6.7", "layer": "999999", "query": "9" * 5000, "tap": "<b>", "dim": -1}
    selection = builder.state_from_query(query).selection
    assert selection == selection.clamp_to_trace(builder.runs.trace(RunRequest("rope", (5, 6, 7))))


def test_last_token_is_selected_with_previous_key(builder, page_state):
    at_end = builder.select_last_token(page_state)
    last = len(page_state.run.prompt) - 1
    assert (at_end.selection.query, at_end.selection.key) == (last, last - 1)
    assert at_end.run == page_state.run
    assert replace(at_end.selection, query=2, key=1) == page_state.selection
    single = builder.select_last_token(PageState(RunRequest("rope", (5,)), Selection()))
    assert (single.selection.query, single.selection.key) == (0, 0)


@each_style
def test_default_neuron_has_largest_write_norm(builder, style):
    link = {"checkpoint": style, "text": "the fox asked the owl", "layer": "1"}
    page_state = builder.state_from_query(link)
    trace, weights = builder.runs.trace(page_state.run), builder.runs.trace(page_state.run).weights
    write_norms = np.linalg.norm(trace["blocks.1.ffn.hidden"][-1] * weights["blocks.1.ffn.down_proj.weight"], axis=0)
    assert page_state.selection.neuron == write_norms.argmax()
    assert builder.state_from_query(link | {"neuron": "0"}).selection.neuron == 0


def test_default_head_has_largest_direct_effect(builder):
    query = {"checkpoint": "rope", "text": "the fox asked the owl"}
    selection = builder.state_from_query(query).selection
    lm, _ = builder.runs.library.model("rope")
    trace = builder.runs.trace(builder.state_from_query(query).run)
    logits, weights = trace["logits"][-1], lm.state_dict()
    scale = np.sqrt((trace["blocks.1.resid_post"][-1] ** 2).mean() + lm.config.norm_eps)
    direction = (weights["lm_head.weight"][logits.argmax()] * weights["final_norm.weight"]).numpy() / scale

    def direct_effect(layer: int, head: int) -> float:
        z = np.zeros_like(trace["blocks.0.attn.z"][:, -1])
        z[head] = trace[f"blocks.{layer}.attn.z"][head, -1]
        return abs(float(weights[f"blocks.{layer}.attn.o_proj.weight"].numpy() @ z.ravel() @ direction))

    heads = [(layer, head) for layer in range(lm.config.num_layers) for head in range(lm.config.num_heads)]
    assert (selection.layer, selection.head) == max(heads, key=lambda index: direct_effect(*index))
    assert builder.state_from_query(query | {"layer": "0", "head": "1"}).selection.head == 1
