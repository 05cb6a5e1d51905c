"""A run that takes values of the second one, through all that can be done with two."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explorer.state.interventions import Edit
from explorer.state.page_state import PageState
from explorer.tracing.capture import capture
from explorer.web.answers.endpoints import Endpoints

PROMPT = "the fox asked the owl"

PATCHED = {"edits": "blocks.0.attn.z.1*patch"}


@pytest.fixture
def two(state, move) -> dict:
    """Two prompts of as many tokens, and a change that takes a value of the second."""
    now = move(state, kind="compare", text="the fox asked the fox", **{"with": "prompt"})
    return now | PATCHED


def patched_by_hand(page, state: dict, text: str):
    asked, runs = PageState.parse(state), page.events.opening.runs
    lm, tokenizer = runs.model(asked.run.checkpoint)
    donor = capture(lm, tokenizer.encode(text), tokenizer=tokenizer)
    edit = Edit("blocks.0.attn.z", "patch", index=1, source=donor)
    return capture(lm, asked.run.prompt, [edit], tokenizer=tokenizer)["logits"]


def test_a_change_takes_the_values_of_b(page, two):
    runs, asked = page.events.opening.runs, PageState.parse(two)
    found = runs.trace(asked.run)["logits"]
    assert_array_equal(found, patched_by_hand(page, two, "the fox asked the fox"))
    assert np.abs(found - runs.trace(asked.run.without_patches())["logits"]).max() > 1e-5
    assert asked.as_dict()["edits"] == PATCHED["edits"] and hash(asked.run) is not None


def test_an_address_restores_what_b_gave(page, two, load, merged):
    named = {name: ".".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in two.items()}
    opened = merged({}, [load(**{name: value for name, value in named.items() if value})])
    assert PageState.parse(opened).run == PageState.parse(two).run
    by_texts = {"text": PROMPT, "b.checkpoint": two["checkpoint"], "b.text": "the fox asked the fox"}
    opened = merged({}, [load(**by_texts, **PATCHED)])
    logits = page.events.opening.runs.trace(PageState.parse(opened).run)["logits"]
    assert_array_equal(logits, patched_by_hand(page, two, "the fox asked the fox"))


def test_an_address_restores_two_runs_a_patch_and_directions(page, two, load, merged):
    tokens, step = "blocks.1.resid_post@2-*add*unembed.17-20*0.5", "blocks.0.resid_post*remove*means.0.5.9_17-33.40"
    look = {"direction": "means.1.5.9-7", "shown": "difference", "view": "directions", "b.pins": "1.2"}
    written = two | look | {"edits": f"{PATCHED['edits']}~{tokens}", "b.edits": step}
    named = {
        name: ".".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in written.items()
    }
    opened = merged({}, [load(**{name: value for name, value in named.items() if value})])
    before, after = PageState.parse(written), PageState.parse(opened)
    assert (after.run, after.other, after.pins) == (before.run, before.other, ((1, 2),))
    assert {name: getattr(after.selection, name) for name in look if name != "b.pins"} == {
        name: value for name, value in look.items() if name != "b.pins"
    }
    runs = page.events.opening.runs
    for first, second in zip(*(runs.comparison(asked).runs for asked in (before, after)), strict=True):
        assert [str(edit) for edit in first.edits] == [str(edit) for edit in second.edits] != []
        assert_array_equal(first["logits"], second["logits"])


def test_without_b_an_address_says_what_its_change_lacks(load, merged, told):
    opened = merged({}, [load(text=PROMPT, **PATCHED)])
    assert opened["edits"] == "" and "there is none: compare with one" in told[0]


def test_closing_b_takes_its_values_out_and_says_so(page, two, move, told):
    closed = move(two | {"edits": f"blocks.1.attn.z.0*zero~{PATCHED['edits']}"}, kind="close")
    assert closed["edits"] == "blocks.1.attn.z.0*zero" and "gone" in told[0]


def test_of_another_b_the_change_takes_the_new_values_and_it_is_said(page, two, move, told):
    now = move(two, kind="compare", text="the owl asked the owl", **{"with": "prompt"})
    assert now["edits"] == PATCHED["edits"] and now["b.edits"] == "" and "new B" in told[0]
    logits = page.events.opening.runs.trace(PageState.parse(now).run)["logits"]
    assert_array_equal(logits, patched_by_hand(page, now, "the owl asked the owl"))


def test_a_b_that_has_no_such_value_ends_the_change_and_it_is_said(page, two, move, told):
    at = two | {"edits": "blocks.0.attn.pattern.1*patch"}
    now = move(at, kind="compare", text="the owl asked", **{"with": "prompt"})
    assert now["edits"] == "" and "as many tokens" in told[0] and now["b.prompt"]


def test_another_model_takes_no_values_of_the_one_before_and_it_is_said(page, two, merged, told):
    """Its stream may be as wide, and mean something else."""
    at = two | {"edits": f"blocks.1.attn.z.0*zero~{PATCHED['edits']}", "b.edits": "blocks.0.attn.z.0*patch"}
    now = merged(at, [page.events.on_model(PROMPT, "gpt", at)])
    assert (now["checkpoint"], now["edits"], now["b.edits"]) == ("gpt", "blocks.1.attn.z.0*zero", "")
    assert len(told) == 1 and "different models" in told[0]
    typed = merged(at, [page.events.on_model("the owl", "gpt", at)])
    assert (typed["checkpoint"], typed["edits"], typed["b.edits"]) == ("gpt", "blocks.1.attn.z.0*zero", "")


def test_of_a_b_that_another_model_reads_no_value_is_taken_and_it_is_said(two, move, told):
    now = move(two, kind="compare", checkpoint="gpt", **{"with": "model"})
    assert (now["b.checkpoint"], now["edits"]) == ("gpt", "") and len(told) == 1 and "different models" in told[0]


def test_where_an_address_has_another_model_s_value_put_in_the_page_says_so(page, two):
    """As it does between steps of one training, where that may be meant."""
    endpoints = Endpoints(page.events.opening.runs)
    for checkpoint, is_said in {"rope": False, "gpt": True}.items():
        changes = endpoints.answer("show", two | {"b.checkpoint": checkpoint})["contents"]["changes"]
        assert [words.endswith("another model’s value") for _edit, words in changes["edits"]] == [is_said]


def test_swapped_the_change_goes_along(page, two, move):
    now = move(two, kind="swap")
    assert (now["edits"], now["b.edits"]) == ("", PATCHED["edits"])
    runs, asked = page.events.opening.runs, PageState.parse(now)
    assert_array_equal(runs.trace(asked.other)["logits"], patched_by_hand(page, two, "the fox asked the fox"))
    assert runs.comparison(asked).other.edits


def test_a_copy_takes_nothing_of_itself(two, move, told):
    now = move(two, kind="copy")
    assert (now["edits"], now["b.edits"]) == ("", "") and now["b.prompt"] == two["prompt"] and "gone" in told[0]


def test_runs_that_take_of_each_other_take_what_the_other_was(page, two):
    both = two | {"b.edits": "blocks.1.attn.z.2*patch"}
    runs, asked = page.events.opening.runs, PageState.parse(both)
    assert_array_equal(runs.trace(asked.run)["logits"], patched_by_hand(page, two, "the fox asked the fox"))
    assert runs.trace(asked.other).edits


def test_what_is_written_takes_the_prompts_values_alone(page, two, merged):
    runs = page.events.opening.runs
    now = merged(two, page.writing.on_generate(two | {"max_new_tokens": 4, "temperature": 0}))
    assert len(now["generated"]) == 4
    logits = runs.trace(PageState.parse(now).run)["logits"]
    count = len(two["prompt"])
    assert_array_equal(logits[count - 1 : -1].argmax(-1), now["generated"])
    assert_allclose(logits[:count], patched_by_hand(page, two, "the fox asked the fox"), atol=1e-5)


def test_of_the_same_text_another_model_gives_its_values(page, state, move):
    """B has no text of its own."""
    now = move(state, kind="compare", checkpoint=state["checkpoint"], **{"with": "model"}) | {
        "b.edits": "blocks.0.attn.z.2*zero",
        "edits": "blocks.1.resid_pre*patch",
    }
    runs, asked = page.events.opening.runs, PageState.parse(now)
    without_head = replace(asked.run, edits=asked.other.edits)
    assert_allclose(runs.trace(asked.run)["logits"], runs.trace(without_head)["logits"], atol=1e-5)


def test_patches_of_either_run_take_the_tokens_that_were_put_together(page, state):
    both = {"edits": "blocks.0.attn.z.1*patch", "b.edits": "blocks.0.attn.z.0*patch"}
    other = {f"b.{name}": state[name] for name in ("checkpoint", "prompt", "generated", "dropped")}
    asked = PageState.parse(state | other | both | {"b.pins": "0.1~2.4"})
    assert asked.run.edits[0].pins == ((0, 1), (2, 4)) and asked.other.edits[0].pins == ((1, 0), (4, 2))


def test_a_patch_takes_the_other_s_prompt_and_nothing_written_after_it(page, state, merged):
    other = {f"b.{name}": state[name] for name in ("checkpoint", "prompt", "dropped")} | {"b.generated": [5, 6]}
    asked = PageState.parse(state | other | {"edits": "blocks.0.attn.z.1*patch"})
    assert asked.other.generated == (5, 6) and asked.run.edits[0].source.generated == ()
