"""Run patched with values of the second run, through all commands on two runs."""

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
def two_run_state(state, move) -> dict:
    """State with two prompts of equal length, and an intervention that patches a value from the second."""
    now = move(state, "compare", text="the fox asked the fox", **{"with": "prompt"})
    return now | PATCHED


def compute_patched_logits(page, state: dict, text: str):
    page_state, runs = PageState.parse(state), page.actions.state_builder.runs
    lm, tokenizer = runs.model(page_state.run.checkpoint)
    source_trace = capture(lm, tokenizer.encode(text), tokenizer=tokenizer)
    intervention = make_intervention("blocks.0.attn.z", "patch", index=1, source=source_trace)
    return capture(lm, page_state.run.prompt, [intervention], tokenizer=tokenizer)["logits"]


def test_patch_uses_values_of_b(page, two_run_state):
    runs, page_state = page.actions.state_builder.runs, PageState.parse(two_run_state)
    logits = runs.trace(page_state.run)["logits"]
    assert_array_equal(logits, compute_patched_logits(page, two_run_state, "the fox asked the fox"))
    assert np.abs(logits - runs.trace(page_state.run.without_patches())["logits"]).max() > 1e-5
    assert page_state.as_dict()["edits"] == PATCHED["edits"] and hash(page_state.run) is not None


def test_url_restores_patch(page, two_run_state, load):
    query = {
        name: ".".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in two_run_state.items()
    }
    opened = load(**{name: value for name, value in query.items() if value}).change
    assert PageState.parse(opened).run == PageState.parse(two_run_state).run
    by_texts = {"text": PROMPT, "b.checkpoint": two_run_state["checkpoint"], "b.text": "the fox asked the fox"}
    opened = load(**by_texts, **PATCHED).change
    logits = page.actions.state_builder.runs.trace(PageState.parse(opened).run)["logits"]
    assert_array_equal(logits, compute_patched_logits(page, two_run_state, "the fox asked the fox"))


def test_url_restores_two_runs_patch_and_directions(page, two_run_state, load):
    tokens, step = "blocks.1.resid_post@2-*add*unembed.17-20*0.5", "blocks.0.resid_post*remove*means.0.5.9_17-33.40"
    view_fields = {"direction": "means.1.5.9-7", "shown": "difference", "view": "directions", "b.pins": "1.2"}
    full_state = two_run_state | view_fields | {"edits": f"{PATCHED['edits']}~{tokens}", "b.edits": step}
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


def test_patch_without_b_is_removed_and_reported(load, notices):
    opened = load(text=PROMPT, **PATCHED).change
    assert opened["edits"] == "" and "there is none: compare with one" in notices[0]


def test_closing_b_removes_its_patches_and_is_reported(two_run_state, move, notices):
    closed = move(two_run_state | {"edits": f"blocks.1.attn.z.0*zero~{PATCHED['edits']}"}, kind="close")
    assert closed["edits"] == "blocks.1.attn.z.0*zero" and "were removed" in notices[0]


def test_patch_follows_new_b_and_is_reported(page, two_run_state, move, notices):
    now = move(two_run_state, "compare", text="the owl asked the owl", **{"with": "prompt"})
    assert now["edits"] == PATCHED["edits"] and now["b.edits"] == "" and "new B" in notices[0]
    logits = page.actions.state_builder.runs.trace(PageState.parse(now).run)["logits"]
    assert_array_equal(logits, compute_patched_logits(page, now, "the owl asked the owl"))


def test_patch_missing_in_new_b_is_removed_and_reported(two_run_state, move, notices):
    patched_state = two_run_state | {"edits": "blocks.0.attn.pattern.1*patch"}
    now = move(patched_state, "compare", text="the owl asked", **{"with": "prompt"})
    assert now["edits"] == "" and "equal length" in notices[0] and now["b.prompt"]


def test_model_change_removes_patches_and_is_reported(two_run_state, notices, move):
    """Two residual streams of the same width need not mean the same."""
    patched_state = two_run_state | {
        "edits": f"blocks.1.attn.z.0*zero~{PATCHED['edits']}",
        "b.edits": "blocks.0.attn.z.0*patch",
    }
    now = move(patched_state, "model", text=PROMPT, checkpoint="gpt")
    assert (now["checkpoint"], now["edits"], now["b.edits"]) == ("gpt", "blocks.1.attn.z.0*zero", "")
    assert len(notices) == 1 and "different models" in notices[0]
    typed = move(patched_state, "model", text="the owl", checkpoint="gpt")
    assert (typed["checkpoint"], typed["edits"], typed["b.edits"]) == ("gpt", "blocks.1.attn.z.0*zero", "")


def test_b_with_other_model_removes_patch_and_is_reported(two_run_state, move, notices):
    now = move(two_run_state, "compare", checkpoint="gpt", **{"with": "model"})
    assert (now["b.checkpoint"], now["edits"]) == ("gpt", "") and len(notices) == 1 and "different models" in notices[0]


def test_patch_from_other_model_in_url_is_marked(page, two_run_state):
    """Between checkpoints of one training, patching may be intended: no notice is shown."""
    endpoints = BrowserEndpoints(page.actions.state_builder.runs)
    for checkpoint, is_said in {"rope": False, "gpt": True}.items():
        changes = endpoints.answer("show", two_run_state | {"b.checkpoint": checkpoint})["contents"]["changes"]
        assert [words.endswith("another model’s value") for _edit, words in changes["edits"]] == [is_said]


def test_swap_moves_patch_to_b(page, two_run_state, move):
    now = move(two_run_state, "swap")
    assert (now["edits"], now["b.edits"]) == ("", PATCHED["edits"])
    runs, page_state = page.actions.state_builder.runs, PageState.parse(now)
    assert_array_equal(
        runs.trace(page_state.other)["logits"], compute_patched_logits(page, two_run_state, "the fox asked the fox")
    )
    assert runs.comparison(page_state).other.edits


def test_copy_to_b_removes_patches(two_run_state, move, notices):
    now = move(two_run_state, "copy")
    assert (
        (now["edits"], now["b.edits"]) == ("", "")
        and now["b.prompt"] == two_run_state["prompt"]
        and "were removed" in notices[0]
    )


def test_mutual_patches_use_unpatched_values(page, two_run_state):
    both = two_run_state | {"b.edits": "blocks.1.attn.z.2*patch"}
    runs, page_state = page.actions.state_builder.runs, PageState.parse(both)
    assert_array_equal(
        runs.trace(page_state.run)["logits"], compute_patched_logits(page, two_run_state, "the fox asked the fox")
    )
    assert runs.trace(page_state.other).edits


def test_patches_apply_to_prompt_positions_only(page, two_run_state, merge):
    runs = page.actions.state_builder.runs
    now = merge(two_run_state, page.generation.generate(two_run_state | {"max_new_tokens": 4, "temperature": 0}))
    assert len(now["generated"]) == 4
    logits = runs.trace(PageState.parse(now).run)["logits"]
    count = len(two_run_state["prompt"])
    assert_array_equal(logits[count - 1 : -1].argmax(-1), now["generated"])
    assert_allclose(logits[:count], compute_patched_logits(page, two_run_state, "the fox asked the fox"), atol=1e-5)


def test_b_without_own_prompt_patches_same_text(page, state, move):
    """Run B has no prompt of its own."""
    now = move(state, "compare", checkpoint=state["checkpoint"], **{"with": "model"}) | {
        "b.edits": "blocks.0.attn.z.2*zero",
        "edits": "blocks.1.resid_pre*patch",
    }
    runs, page_state = page.actions.state_builder.runs, PageState.parse(now)
    without_head = replace(page_state.run, edits=page_state.other.edits)
    assert_allclose(runs.trace(page_state.run)["logits"], runs.trace(without_head)["logits"], atol=1e-5)


def test_patches_use_manual_alignment(state):
    both = {"edits": "blocks.0.attn.z.1*patch", "b.edits": "blocks.0.attn.z.0*patch"}
    other = {f"b.{name}": state[name] for name in ("checkpoint", "prompt", "generated", "dropped")}
    page_state = PageState.parse(state | other | both | {"b.pins": "0.1~2.4"})
    assert page_state.run.edits[0].pins == ((0, 1), (2, 4)) and page_state.other.edits[0].pins == ((1, 0), (4, 2))


def test_patch_uses_prompt_of_b_without_generated_tokens(state):
    other = {f"b.{name}": state[name] for name in ("checkpoint", "prompt", "dropped")} | {"b.generated": [5, 6]}
    page_state = PageState.parse(state | other | {"edits": "blocks.0.attn.z.1*patch"})
    assert page_state.other.generated == (5, 6) and page_state.run.edits[0].source.generated == ()
