"""A run patched with values of the second run, through all commands on two runs."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.interventions import make_intervention
from explorer.state.page_state import PageState
from explorer.tracing.capture import capture
from explorer.web.browser_api.endpoints import BrowserEndpoints

PROMPT = "the fox asked the owl"

PATCHED = {"edits": "blocks.0.attn.z.1*patch"}


@pytest.fixture
def two(state, move) -> dict:
    """State with two prompts of equally many tokens, and an intervention that patches a value from the second."""
    now = move(state, "compare", text="the fox asked the fox", **{"with": "prompt"})
    return now | PATCHED


def patched_logits(page, state: dict, text: str):
    page_state, runs = PageState.parse(state), page.actions.state_builder.runs
    lm, tokenizer = runs.model(page_state.run.checkpoint)
    source_trace = capture(lm, tokenizer.encode(text), tokenizer=tokenizer)
    intervention = make_intervention("blocks.0.attn.z", "patch", index=1, source=source_trace)
    return capture(lm, page_state.run.prompt, [intervention], tokenizer=tokenizer)["logits"]


def test_a_change_takes_the_values_of_b(page, two):
    runs, page_state = page.actions.state_builder.runs, PageState.parse(two)
    logits = runs.trace(page_state.run)["logits"]
    assert_array_equal(logits, patched_logits(page, two, "the fox asked the fox"))
    assert np.abs(logits - runs.trace(page_state.run.without_patches())["logits"]).max() > 1e-5
    assert page_state.as_dict()["edits"] == PATCHED["edits"] and hash(page_state.run) is not None


def test_an_address_restores_what_b_gave(page, two, load):
    query = {name: ".".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in two.items()}
    opened = load(**{name: value for name, value in query.items() if value}).change
    assert PageState.parse(opened).run == PageState.parse(two).run
    by_texts = {"text": PROMPT, "b.checkpoint": two["checkpoint"], "b.text": "the fox asked the fox"}
    opened = load(**by_texts, **PATCHED).change
    logits = page.actions.state_builder.runs.trace(PageState.parse(opened).run)["logits"]
    assert_array_equal(logits, patched_logits(page, two, "the fox asked the fox"))


def test_an_address_restores_two_runs_a_patch_and_directions(page, two, load):
    tokens, step = "blocks.1.resid_post@2-*add*unembed.17-20*0.5", "blocks.0.resid_post*remove*means.0.5.9_17-33.40"
    view_fields = {"direction": "means.1.5.9-7", "shown": "difference", "view": "directions", "b.pins": "1.2"}
    full_state = two | view_fields | {"edits": f"{PATCHED['edits']}~{tokens}", "b.edits": step}
    query = {
        name: ".".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in full_state.items()
    }
    opened = load(**{name: value for name, value in query.items() if value}).change
    before, after = PageState.parse(full_state), PageState.parse(opened)
    assert (after.run, after.other, after.pins) == (before.run, before.other, ((1, 2),))
    assert {name: after.selection.as_dict()[name] for name in view_fields if name != "b.pins"} == {
        name: value for name, value in view_fields.items() if name != "b.pins"
    }
    runs = page.actions.state_builder.runs
    for first, second in zip(*(runs.comparison(page_state).runs for page_state in (before, after)), strict=True):
        assert [str(edit) for edit in first.edits] == [str(edit) for edit in second.edits] != []
        assert_array_equal(first["logits"], second["logits"])


def test_without_b_an_address_says_what_its_change_lacks(load, notices):
    opened = load(text=PROMPT, **PATCHED).change
    assert opened["edits"] == "" and "there is none: compare with one" in notices[0]


def test_closing_b_takes_its_values_out_and_says_so(two, move, notices):
    closed = move(two | {"edits": f"blocks.1.attn.z.0*zero~{PATCHED['edits']}"}, kind="close")
    assert closed["edits"] == "blocks.1.attn.z.0*zero" and "were removed" in notices[0]


def test_of_another_b_the_change_takes_the_new_values_and_it_is_said(page, two, move, notices):
    now = move(two, "compare", text="the owl asked the owl", **{"with": "prompt"})
    assert now["edits"] == PATCHED["edits"] and now["b.edits"] == "" and "new B" in notices[0]
    logits = page.actions.state_builder.runs.trace(PageState.parse(now).run)["logits"]
    assert_array_equal(logits, patched_logits(page, now, "the owl asked the owl"))


def test_a_b_that_has_no_such_value_ends_the_change_and_it_is_said(two, move, notices):
    patched_state = two | {"edits": "blocks.0.attn.pattern.1*patch"}
    now = move(patched_state, "compare", text="the owl asked", **{"with": "prompt"})
    assert now["edits"] == "" and "equal length" in notices[0] and now["b.prompt"]


def test_another_model_takes_no_values_of_the_one_before_and_it_is_said(two, notices, move):
    """Two streams of the same width need not mean the same."""
    patched_state = two | {"edits": f"blocks.1.attn.z.0*zero~{PATCHED['edits']}", "b.edits": "blocks.0.attn.z.0*patch"}
    now = move(patched_state, "model", text=PROMPT, checkpoint="gpt")
    assert (now["checkpoint"], now["edits"], now["b.edits"]) == ("gpt", "blocks.1.attn.z.0*zero", "")
    assert len(notices) == 1 and "different models" in notices[0]
    typed = move(patched_state, "model", text="the owl", checkpoint="gpt")
    assert (typed["checkpoint"], typed["edits"], typed["b.edits"]) == ("gpt", "blocks.1.attn.z.0*zero", "")


def test_of_a_b_that_another_model_reads_no_value_is_taken_and_it_is_said(two, move, notices):
    now = move(two, "compare", checkpoint="gpt", **{"with": "model"})
    assert (now["b.checkpoint"], now["edits"]) == ("gpt", "") and len(notices) == 1 and "different models" in notices[0]


def test_where_an_address_has_another_model_s_value_put_in_the_page_says_so(page, two):
    """Between checkpoints of one training, patching may be intended: no notice is shown."""
    endpoints = BrowserEndpoints(page.actions.state_builder.runs)
    for checkpoint, is_said in {"rope": False, "gpt": True}.items():
        changes = endpoints.answer("show", two | {"b.checkpoint": checkpoint})["contents"]["changes"]
        assert [words.endswith("another model’s value") for _edit, words in changes["edits"]] == [is_said]


def test_swapped_the_change_goes_along(page, two, move):
    now = move(two, "swap")
    assert (now["edits"], now["b.edits"]) == ("", PATCHED["edits"])
    runs, page_state = page.actions.state_builder.runs, PageState.parse(now)
    assert_array_equal(runs.trace(page_state.other)["logits"], patched_logits(page, two, "the fox asked the fox"))
    assert runs.comparison(page_state).other.edits


def test_a_copy_takes_nothing_of_itself(two, move, notices):
    now = move(two, "copy")
    assert (
        (now["edits"], now["b.edits"]) == ("", "") and now["b.prompt"] == two["prompt"] and "were removed" in notices[0]
    )


def test_runs_that_take_of_each_other_take_what_the_other_was(page, two):
    both = two | {"b.edits": "blocks.1.attn.z.2*patch"}
    runs, page_state = page.actions.state_builder.runs, PageState.parse(both)
    assert_array_equal(runs.trace(page_state.run)["logits"], patched_logits(page, two, "the fox asked the fox"))
    assert runs.trace(page_state.other).edits


def test_what_is_written_takes_the_prompts_values_alone(page, two, merge):
    runs = page.actions.state_builder.runs
    now = merge(two, page.generation.generate(two | {"max_new_tokens": 4, "temperature": 0}))
    assert len(now["generated"]) == 4
    logits = runs.trace(PageState.parse(now).run)["logits"]
    count = len(two["prompt"])
    assert_array_equal(logits[count - 1 : -1].argmax(-1), now["generated"])
    assert_allclose(logits[:count], patched_logits(page, two, "the fox asked the fox"), atol=1e-5)


def test_of_the_same_text_another_model_gives_its_values(page, state, move):
    """Run B has no prompt of its own."""
    now = move(state, "compare", checkpoint=state["checkpoint"], **{"with": "model"}) | {
        "b.edits": "blocks.0.attn.z.2*zero",
        "edits": "blocks.1.resid_pre*patch",
    }
    runs, page_state = page.actions.state_builder.runs, PageState.parse(now)
    without_head = replace(page_state.run, edits=page_state.other.edits)
    assert_allclose(runs.trace(page_state.run)["logits"], runs.trace(without_head)["logits"], atol=1e-5)


def test_patches_of_either_run_take_the_tokens_that_were_put_together(state):
    both = {"edits": "blocks.0.attn.z.1*patch", "b.edits": "blocks.0.attn.z.0*patch"}
    other = {f"b.{name}": state[name] for name in ("checkpoint", "prompt", "generated", "dropped")}
    page_state = PageState.parse(state | other | both | {"b.pins": "0.1~2.4"})
    assert page_state.run.edits[0].pins == ((0, 1), (2, 4)) and page_state.other.edits[0].pins == ((1, 0), (4, 2))


def test_a_patch_takes_the_other_s_prompt_and_nothing_written_after_it(state):
    other = {f"b.{name}": state[name] for name in ("checkpoint", "prompt", "dropped")} | {"b.generated": [5, 6]}
    page_state = PageState.parse(state | other | {"edits": "blocks.0.attn.z.1*patch"})
    assert page_state.other.generated == (5, 6) and page_state.run.edits[0].source.generated == ()
