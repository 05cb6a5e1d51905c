import random
from dataclasses import replace

import numpy as np
import pytest

from explorer.state.interventions import ROTATION_OFF
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.runs import Runs
from explorer.views import VIEWS
from explorer.web.api import Api
from explorer.web.endpoints import prediction_after, token_strip
from explorer.web.hints import hint
from explorer.web.open_view import open_view_of
from explorer.web.opening import Opening, page_state
from model.checkpoint import CheckpointError
from model.generation.autoregressive import generate
from model.generation.window import window_start

CONTEXT = 32


@pytest.fixture
def opening(library) -> Opening:
    return Opening(Runs(library))


@pytest.fixture
def question(opening) -> PageState:
    return PageState(opening.run_of("rope", "the fox asked the owl"), Selection(query=2, key=1))


def test_the_text_is_exactly_what_was_typed(opening, style, nasty_prompt):
    run = opening.run_of(style, nasty_prompt)
    assert opening.runs.text(run) == (nasty_prompt, "")
    assert opening.runs.text(Run.parse(run.as_dict())) == (nasty_prompt, "")
    assert run.dropped == 0


def test_tokens_of_nasty_text_can_be_looked_at(opening, nasty_prompt):
    question = opening.restored({"checkpoint": "rope", "text": nasty_prompt})
    for view in VIEWS:
        shown = open_view_of(opening.runs, replace(question, selection=replace(question.selection, view=view.name)))
        assert all(bool(shown.draw(panel)) is shown.has(panel) for panel in view.panels)
    prediction, vocabulary, words = prediction_after(question, GenerationSettings(), opening.runs.trace(question.run))
    assert vocabulary[prediction.drawn] and words


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


@pytest.mark.parametrize("num_tokens", [CONTEXT - 1, CONTEXT, CONTEXT + 1, CONTEXT + 9, 3 * CONTEXT + 5])
@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"temperature": 1.5, "top_k": 0, "seed": 11}], ids=str)
def test_page_api_and_generate_read_a_long_prompt_by_one_rule(opening, library, num_tokens, settings):
    """Each continues it with the same tokens, the page wherever it looks on the way."""
    rng = random.Random(num_tokens)
    text = "".join(rng.choice("\x00\x01\x02\x03\x04\x05") for _ in range(num_tokens))
    lm, tokenizer = library.model("rope")
    ids = tokenizer.encode(text)
    assert len(ids) == num_tokens
    steps = list(generate(lm, ids, max_new_tokens=12, stop_tokens={tokenizer.end_of_text}, **settings))
    answer = Api(library, "rope").generate(text, max_new_tokens=12, **{"seed": 0} | settings)
    told = [(token["id"], token["probability"]) for token in answer["tokens"]]
    run = opening.run_of("rope", text)
    for step, (token_id, probability) in zip(steps, told, strict=True):
        question = opening.at_end(PageState(run, Selection()))
        prediction, _, _ = prediction_after(question, GenerationSettings(**settings), opening.runs.trace(run))
        assert prediction.drawn == step.token_id == token_id
        assert prediction.sampled[token_id] == pytest.approx(step.probability, rel=1e-3)
        assert probability == pytest.approx(step.probability, rel=1e-3)
        run = replace(run, generated=(*run.generated, token_id))


def test_an_empty_prompt_is_refused_in_a_sentence(opening):
    with pytest.raises(ValueError, match="The prompt is empty"):
        opening.run_of("rope", "")


@pytest.mark.parametrize("checkpoint", ["missing", "../rope", ""])
def test_an_unknown_model_is_refused(opening, checkpoint):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        opening.run_of(checkpoint, "the moon")
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        opening.runs.trace(Run(checkpoint, (1,)))


@pytest.mark.parametrize("ids", [(), (300,), (10**8,)])
def test_tokens_of_no_model_are_refused(opening, ids):
    with pytest.raises(ValueError, match="run has 1 to 32 tokens|token ids run from 0 to 299"):
        opening.runs.trace(Run("rope", ids))


def test_a_question_is_restored_from_what_was_written(opening, question):
    assert opening.restored(question.as_dict()) == question
    asked = {name: ".".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in question.as_dict().items()}
    assert opening.restored(asked) == question


def test_a_text_is_looked_at_from_its_end(opening):
    question = opening.restored({"checkpoint": "rope", "text": "the fox", "view": "rope"})
    last = len(question.run.prompt) - 1
    assert (question.selection.query, question.selection.key, question.selection.view) == (last, last - 1, "positions")


def test_a_text_is_looked_at_where_one_was_asked_to(opening):
    question = opening.restored({"checkpoint": "rope", "text": "the fox", "query": "1", "key": "0"})
    assert (question.selection.query, question.selection.key) == (1, 0)


def test_a_text_is_run_with_the_changes_asked_for(opening):
    question = opening.restored({"checkpoint": "rope", "text": "the fox", "edits": "rope.angles*zero"})
    assert opening.runs.trace(question.run).edits == (ROTATION_OFF,)


def test_ids_count_more_than_text(opening):
    assert opening.restored({"checkpoint": "rope", "prompt": "5.6", "text": "ignored"}).run.prompt == (5, 6)


def test_a_hostile_selection_is_brought_within_the_run(opening):
    asked = {"checkpoint": "rope", "prompt": "5.6.7", "layer": "999999", "query": "9" * 5000, "tap": "<b>", "dim": -1}
    selection = opening.restored(asked).selection
    assert selection == selection.within(opening.runs.trace(Run("rope", (5, 6, 7))))


def test_at_the_end_the_last_token_looks_at_the_one_before(opening, question):
    at_end = opening.at_end(question)
    last = len(question.run.prompt) - 1
    assert (at_end.selection.query, at_end.selection.key) == (last, last - 1)
    assert at_end.run is question.run
    assert replace(at_end.selection, query=2, key=1) == question.selection
    single = opening.at_end(PageState(Run("rope", (5,)), Selection()))
    assert (single.selection.query, single.selection.key) == (0, 0)


def test_the_strip_tells_prompt_from_generated(opening):
    run = Run("rope", (5, 6, 7), (8, 9), dropped=4)
    strip = token_strip(run, opening.runs.trace(run))
    assert len(strip["tokens"]) == len(strip["shades"]["surprisal"][0]) == 5
    assert (strip["num_prompt"], strip["earlier"]) == (3, 4)
    assert strip["shades"]["surprisal"][0][0] == 0


@pytest.mark.parametrize("num_prompt", [30, 3])
def test_the_strip_counts_what_the_model_no_longer_sees(opening, num_prompt):
    ids = tuple(range(40))
    run = Run("rope", ids[:num_prompt], ids[num_prompt:], dropped=5)
    strip = token_strip(run, opening.runs.trace(run))
    assert len(strip["tokens"]) + strip["earlier"] == 40 + 5
    unseen = 40 - len(strip["tokens"])
    assert unseen == 8  # the window moves by a quarter of 32
    assert strip["num_prompt"] == max(0, num_prompt - unseen)
    assert opening.runs.trace(run).token_ids == ids[8:]


def test_an_unknown_view_is_the_one_that_is_open_at_first(opening, question):
    selection = replace(question.selection, view="<script>")
    assert open_view_of(opening.runs, replace(question, selection=selection)).view.name == Selection.view
    assert page_state(question.as_dict() | {"view": "<script>"}).selection.view == Selection.view


def test_views_are_looked_at_within_the_run_whatever_is_selected(opening, question):
    far = Selection(layer=99, head=99, query=99, key=99, tap="nothing", dim=10**8)
    shown = open_view_of(opening.runs, PageState(question.run, far))
    assert shown.selection == far.within(shown.trace) != far


def test_where_none_is_named_the_neuron_that_writes_most_is_chosen(opening, style):
    asked = {"checkpoint": style, "text": "the fox asked the owl", "layer": "1"}
    question = opening.restored(asked)
    trace, weights = opening.runs.trace(question.run), opening.runs.trace(question.run).weights
    lengths = np.linalg.norm(trace["blocks.1.ffn.hidden"][-1] * weights["blocks.1.ffn.down_proj.weight"], axis=0)
    assert question.selection.neuron == lengths.argmax()
    assert opening.restored(asked | {"neuron": "0"}).selection.neuron == 0


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


def test_the_prediction_is_that_after_the_selected_token(opening, question):
    trace = opening.runs.trace(question.run)
    prediction, vocabulary, words = prediction_after(question, GenerationSettings(temperature=0), trace)
    assert prediction.actual == question.run.prompt[3]
    assert len(vocabulary) == len(prediction.sampled) == 300
    assert "(position 2): 1 of 300 tokens can be drawn, entropy 0 bits after temperature and filters;" in words
    *_, words = prediction_after(opening.at_end(question), GenerationSettings(top_k=7), trace)
    assert "7 of 300 tokens" in words
    assert "goes on" not in words


def test_what_is_said_of_a_text_follows_what_is_written(opening, question):
    run = question.run
    said = hint(opening.runs, replace(run, generated=(5, 6, 7)))
    words, look, offer = said
    last = len(run.prompt) + 2
    assert f"({last})" in words and look["query"] == last and 0 < look["key"] < last - 1 and not offer
    assert hint(opening.runs, replace(run, generated=(5, 6, 7, 8))) != said
