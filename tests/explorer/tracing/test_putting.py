"""Values of another run in the place of a run's own: as one would put them there by hand with PyTorch's hooks."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from explorer import Edit, capture
from explorer.explain.captured import check, derivation_of
from explorer.explain.notation import number
from explorer.state.errors import UserError
from explorer.state.interventions import parse_edits
from explorer.tracing.donation import ready
from explorer.tracing.intervening import edited, edited_steps
from explorer.tracing.trace import Trace
from model.generation.autoregressive import generate
from model.transformer_lm import TransformerLM
from tests import specimens

CLEAN, CORRUPTED = (40, 41, 42, 60, 61, 45, 46, 47), (40, 41, 50, 60, 62, 45, 46, 48)
SHORTER = (40, 42, 60, 61, 45, 46, 47)  # without the token at position 1
ALL = slice(None)


def by_hand(lm: TransformerLM, token_ids, put: dict[str, tuple]) -> np.ndarray:
    """The logits where hooks of PyTorch's own put numbers at an index of values: name -> (index, numbers)."""

    def hook(index, numbers):
        def putting(module, inputs, output):
            output = output.clone()
            output[0][index] = torch.tensor(numbers)
            return output

        return putting

    handles = [lm.taps[name].register_forward_hook(hook(*what)) for name, what in put.items()]
    try:
        with torch.inference_mode():
            return lm(torch.tensor([token_ids]))[0].numpy()
    finally:
        for handle in handles:
            handle.remove()


TEXTS = {  # an edit -> what it puts in by hand: at which index, which numbers of the clean run
    "blocks.0.attn.z.1*patch": lambda c: ("blocks.0.attn.z", 1, c["blocks.0.attn.z"][1]),
    "blocks.1.attn.k.2@3*patch": lambda c: ("blocks.1.attn.k", (2, 3), c["blocks.1.attn.k"][2, 3]),
    "blocks.0.attn.v.0@2-*patch": lambda c: ("blocks.0.attn.v", (0, slice(2, None)), c["blocks.0.attn.v"][0, 2:]),
    "blocks.1.attn.q.1*patch": lambda c: ("blocks.1.attn.q", 1, c["blocks.1.attn.q"][1]),
    "blocks.1.attn.pattern.2*patch": lambda c: ("blocks.1.attn.pattern", 2, c["blocks.1.attn.pattern"][2]),
    "blocks.0.attn.pattern@4*patch": lambda c: ("blocks.0.attn.pattern", (ALL, 4), c["blocks.0.attn.pattern"][:, 4]),
    "blocks.1.resid_pre@2.4*patch": lambda c: ("blocks.1.resid_pre", [2, 4], c["blocks.1.resid_pre"][[2, 4]]),
    "blocks.0.ffn.hidden.7*patch": lambda c: ("blocks.0.ffn.hidden", (ALL, 7), c["blocks.0.ffn.hidden"][:, 7]),
    "blocks.0.attn.out*patch": lambda c: ("blocks.0.attn.out", ALL, c["blocks.0.attn.out"]),
    "embed@2*patch": lambda c: ("embed", 2, c["embed"][2]),
    "blocks.0.attn.z.2*patch_mean": lambda c: ("blocks.0.attn.z", 2, c["blocks.0.attn.z"][2].mean(0)),
    "blocks.1.resid_pre@5*patch_mean": lambda c: ("blocks.1.resid_pre", 5, c["blocks.1.resid_pre"].mean(0)),
    "blocks.1.ffn.hidden*patch_mean": lambda c: ("blocks.1.ffn.hidden", ALL, c["blocks.1.ffn.hidden"].mean(0)),
}  # fmt: skip


def given(text: str, donor: Trace):
    return [replace(edit, source=donor) for edit in parse_edits(text)]


@pytest.mark.parametrize("text", TEXTS)
def test_a_patch_is_what_one_would_put_there_by_hand(lms, style, text):
    lm = lms[style]
    clean, corrupted = capture(lm, CLEAN), capture(lm, CORRUPTED)
    tap, index, numbers = TEXTS[text](clean)
    changed = capture(lm, CORRUPTED, given(text, clean))
    assert_allclose(changed["logits"], by_hand(lm, CORRUPTED, {tap: (index, numbers)}), atol=1e-5)
    assert np.abs(changed["logits"] - corrupted["logits"]).max() > 1e-4
    assert [str(edit) for edit in changed.edits] == [text]
    assert_array_equal(capture(lm, CORRUPTED)["logits"], corrupted["logits"])  # nothing stays behind


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_patch_made_is_worked_out_again(lms, style, text):
    lm = lms[style]
    changed = capture(lm, CORRUPTED, given(text, capture(lm, CLEAN)))
    tap = changed.edits[0].tap
    for name in changed.values:
        assert check(changed, name).passed, name
    values = dict(changed.values)
    values[tap] = values[tap] + 1e-2
    assert not check(replace(changed, values=values), tap).passed


def test_a_clicked_number_says_that_it_is_the_others(lms):
    lm, clean = lms["rope"], capture(lms["rope"], CLEAN)
    changed = capture(lm, CORRUPTED, given("blocks.0.attn.z.1@2*patch", clean))
    told = "\n".join(derivation_of(changed, "blocks.0.attn.z", (1, 2, 0)).lines())
    assert "as in the other run" in told and number(clean["blocks.0.attn.z"][1, 2, 0]) in told
    assert "other run" not in "\n".join(derivation_of(changed, "blocks.0.attn.z", (1, 3, 0)).lines())


@pytest.mark.parametrize("tap", ["embed", "blocks.0.resid_pre", "blocks.1.resid_post", "blocks.1.resid_pre"])
def test_all_of_the_clean_run_gives_the_clean_run(lms, style, tap):
    lm, clean = lms[style], capture(lms[style], CLEAN)
    changed = capture(lm, CORRUPTED, [Edit(tap, "patch", source=clean)])
    assert_allclose(changed["logits"], clean["logits"], atol=1e-5)


def test_each_sublayer_of_the_clean_run_gives_the_clean_run(lms, style):
    """Put in one by one, and all positions named."""
    lm, clean = lms[style], capture(lms[style], CLEAN)
    taps = ["embed", *(f"blocks.{layer}.{part}.out" for layer in range(2) for part in ("attn", "ffn"))]
    edits = [Edit(tap, "patch", positions="0-7", source=clean) for tap in taps]
    assert_allclose(capture(lm, CORRUPTED, edits)["logits"], clean["logits"], atol=1e-5)


def test_its_own_values_change_nothing(lms, style):
    lm, corrupted = lms[style], capture(lms[style], CORRUPTED)
    edits = [Edit(tap, "patch", source=corrupted) for tap in ("blocks.0.attn.z", "blocks.1.attn.pattern", "embed")]
    assert_allclose(capture(lm, CORRUPTED, edits)["logits"], corrupted["logits"], atol=1e-5)


def test_tokens_take_the_value_of_their_partners_and_others_keep_their_own(lms, style):
    lm = lms[style]
    clean, own = capture(lm, SHORTER), capture(lm, CLEAN)  # the own token at 1 is nobody's
    changed = capture(lm, CLEAN, [Edit("blocks.0.resid_post", "patch", source=clean)])
    after = changed["blocks.0.resid_post"]
    assert_array_equal(np.delete(after, 1, axis=0), clean["blocks.0.resid_post"])
    assert_array_equal(after[1], own["blocks.0.resid_post"][1])
    assert all(check(changed, name).passed for name in changed.values)
    pinned = replace(Edit("blocks.0.resid_post", "patch", positions=1, source=clean), pins=((1, 0),))
    found = capture(lm, CLEAN, [pinned])["blocks.0.resid_post"]
    assert_array_equal(found[1], clean["blocks.0.resid_post"][0])


def test_a_mean_is_over_all_of_the_other_however_long_it_is(lms, style):
    lm, clean = lms[style], capture(lms[style], SHORTER)
    changed = capture(lm, CLEAN, [Edit("blocks.1.attn.z", "patch_mean", index=1, source=clean)])
    expected = clean["blocks.1.attn.z"][1].astype(np.float64).mean(0)
    assert_allclose(changed["blocks.1.attn.z"][1], np.tile(expected, (8, 1)), atol=1e-6)


GENERATION = ("blocks.0.attn.z.1*patch", "blocks.1.resid_pre@2.4*patch", "blocks.1.attn.pattern.2*patch",
              "blocks.0.attn.k.0*patch", "blocks.1.ffn.hidden*patch_mean")  # fmt: skip


@pytest.mark.parametrize("text", GENERATION)
def test_what_is_written_takes_the_others_values_at_the_prompt_alone(lms, style, text):
    lm = lms[style]
    edits = ready([edit.of_prompt(CORRUPTED) for edit in given(text, capture(lm, CLEAN))], lm.config, CORRUPTED, None)
    steps = list(edited_steps(lm, edits, generate(lm, CORRUPTED, max_new_tokens=6, temperature=0, top_k=0)))
    written, logits = list(CORRUPTED), []
    for step in steps:
        with edited(lm, edits), torch.inference_mode():
            logits.append(lm(torch.tensor([written]))[0, -1].numpy())  # all of it anew, without a cache
        assert step.token_id == logits[-1].argmax()
        assert_allclose(step.probability, 1, atol=1e-6)
        written.append(step.token_id)
    whole = capture(lm, written, edits)
    assert_allclose(whole["logits"][7:-1], logits, atol=1e-5)
    free = capture(lm, written)
    tap = edits[0].tap
    if tap != "blocks.1.resid_pre":  # whose later rows follow from what is before them
        later = whole[tap][..., 8:, :]
        assert later.shape == free[tap][..., 8:, :].shape
        assert np.isfinite(later).all()
    for name in whole.values:
        assert check(whole, name).passed, name


def test_a_text_that_outgrew_the_model_says_so(lms):
    lm = lms["rope"]
    edits = ready(given("blocks.0.attn.z.1*patch", capture(lm, CLEAN)), lm.config, CORRUPTED, None)
    steps = edited_steps(lm, edits, generate(lm, CORRUPTED, max_new_tokens=40, temperature=0))
    with pytest.raises(UserError, match="outgrown"):
        list(steps)
    with pytest.raises(UserError, match="outgrown"):
        capture(lm, CORRUPTED[1:], [edits[0]])
    with pytest.raises(UserError, match="outgrown"):
        capture(lm, CORRUPTED[1:], [edit.of_prompt(CORRUPTED) for edit in given("embed*patch", capture(lm, CLEAN))])


def other_model(**choices) -> TransformerLM:
    torch.manual_seed(1)
    return TransformerLM(replace(specimens.config(), **choices)).eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("edit", "donor", "told"),
    [
        (Edit("blocks.0.resid_pre", "patch"), None, "there is none: compare with one"),
        (Edit("blocks.2.attn.z", "patch"), CLEAN, "this model has no value blocks.2.attn.z"),
        (Edit("blocks.0.attn.z", "patch", positions=9), CLEAN, "position 9 comes after the prompt, which has 8 tokens"),
        (Edit("blocks.0.attn.z", "patch", positions=1), SHORTER, "position 1 has no partner"),
        (
            Edit("blocks.0.attn.pattern", "patch"),
            SHORTER,
            "as many tokens, .* these have 8 and 7",
        ),
        (Edit("blocks.0.attn.z", "patch"), (90, 91, 92), "no token of the other run stands for one"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_told(lms, edit, donor, told):
    lm = lms["rope"]
    edit = replace(edit, source=donor and capture(lm, donor))
    with pytest.raises(UserError, match=told):
        capture(lm, CLEAN, [edit])


@pytest.mark.parametrize(
    ("choices", "edit", "told"),
    [
        ({"d_model": 48}, Edit("blocks.0.resid_pre", "patch"), "48 numbers a token, and this model’s has 24"),
        ({"num_heads": 6}, Edit("blocks.0.attn.z", "patch"), "6 × 4 numbers a token, and this model’s has 3 × 8"),
        ({"num_heads": 6}, Edit("blocks.0.attn.pattern", "patch"), "6 numbers a token, and this model’s has 3"),
        (
            {"num_layers": 1},
            Edit("blocks.1.resid_pre", "patch"),
            "the other run’s model has no value",
        ),
        ({"d_ff": 30}, Edit("blocks.0.ffn.hidden", "patch_mean"), "30 numbers a token, and this model’s has 40"),
    ],
    ids=str,
)
def test_a_model_of_another_shape_is_told(lms, choices, edit, told):
    other = other_model(**choices)
    with pytest.raises(UserError, match=told):
        capture(lms["rope"], CLEAN, [replace(edit, source=capture(other, CLEAN))])


def test_a_model_of_the_same_shape_gives_its_values(lms):
    """As another moment of its training would."""
    clean = capture(other_model(), CLEAN)
    changed = capture(lms["rope"], CLEAN, [Edit("blocks.0.resid_post", "patch", source=clean)])
    assert_array_equal(changed["blocks.0.resid_post"], clean["blocks.0.resid_post"])


def test_kinds_that_take_nothing_have_no_source(rope_trace):
    with pytest.raises(UserError, match="takes nothing from another run"):
        Edit("blocks.0.attn.z", "zero", source=rope_trace)
    with pytest.raises(UserError, match="attn.scores"):
        Edit("blocks.0.attn.scores", "patch")
    with pytest.raises(UserError, match="attn.pattern"):
        Edit("blocks.0.attn.pattern", "patch_mean")


def test_two_visitors_do_not_mix(lms):
    """Each thread's run takes the values of its own other run, while a third takes none."""
    lm = lms["rope"]
    donors = [capture(lm, ids) for ids in (CLEAN, CLEAN[::-1])]
    runs = [[], *([Edit("blocks.0.resid_post", "patch", positions="0-7", source=donor)] for donor in donors)]
    expected = [capture(lm, CORRUPTED, edits)["logits"] for edits in runs]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda place: capture(lm, CORRUPTED, runs[place % 3])["logits"], range(60)))
    for place, logits in enumerate(found):
        assert_array_equal(logits, expected[place % 3])


def test_ablations_hold_to_the_patch(lms):
    lm, clean = lms["rope"], capture(lms["rope"], CLEAN)
    changed = capture(lm, CORRUPTED, given("blocks.1.resid_pre@4*patch", clean))
    found = changed.ablate(5, 17)
    expected = torch.tensor(changed["logits"][5]).double().log_softmax(-1)[17]
    assert_allclose(found[:, -1], expected, atol=1e-5)
