"""Errors for patches from unsuitable prompts or models."""

from dataclasses import replace

import pytest
import torch
from numpy.testing import assert_array_equal

from explorer import capture, make_intervention
from explorer.errors import UserError
from model.transformer_lm import TransformerLM
from tests import sample_models
from tests.subtest_loops import subtest_each

from .manual_cross_run_patches import CLEAN, SHORTER


def make_other_model(**choices) -> TransformerLM:
    torch.manual_seed(1)
    return TransformerLM(replace(sample_models.config(), **choices)).eval().requires_grad_(False)


@subtest_each(
    ("edit", "donor", "told"),
    [
        (make_intervention("blocks.0.resid_pre", "patch"), None, "there is none: compare with one"),
        (make_intervention("blocks.2.attn.z", "patch"), CLEAN, "this model has no value blocks.2.attn.z"),
        (
            make_intervention("blocks.0.attn.z", "patch", positions=9),
            CLEAN,
            "position 9 comes after the prompt, which has 8 tokens",
        ),
        (make_intervention("blocks.0.attn.z", "patch", positions=1), SHORTER, "position 1 has no partner"),
        (
            make_intervention("blocks.0.attn.pattern", "patch"),
            SHORTER,
            "prompts of equal length, .* these have 8 and 7 tokens",
        ),
        (make_intervention("blocks.0.attn.z", "patch"), (90, 91, 92), "no token of the other run is aligned with one"),
    ],
    ids=str,
)
def test_unsuitable_patch_is_refused(lms, edit, donor, told):
    lm = lms["rope"]
    edit = replace(edit, source=donor and capture(lm, donor))
    with pytest.raises(UserError, match=told):
        capture(lm, CLEAN, [edit])


@pytest.mark.parametrize(
    ("choices", "edit", "told"),
    [
        (
            {"d_model": 48},
            make_intervention("blocks.0.resid_pre", "patch"),
            "48 dimensions per token in the other run’s model and 24 in this one",
        ),
        (
            {"num_heads": 6},
            make_intervention("blocks.0.attn.z", "patch"),
            "6 × 4 dimensions per token in the other run’s model and 3 × 8 in this one",
        ),
        (
            {"num_heads": 6},
            make_intervention("blocks.0.attn.pattern", "patch"),
            "6 dimensions per token in the other run’s model and 3 in this one",
        ),
        (
            {"num_layers": 1},
            make_intervention("blocks.1.resid_pre", "patch"),
            "the other run’s model has no value",
        ),
        (
            {"d_ff": 30},
            make_intervention("blocks.0.ffn.hidden", "patch_mean"),
            "30 dimensions per token in the other run’s model and 40 in this one",
        ),
    ],
    ids=str,
)
def test_source_of_another_shape_is_refused(lms, choices, edit, told):
    other = make_other_model(**choices)
    with pytest.raises(UserError, match=told):
        capture(lms["rope"], CLEAN, [replace(edit, source=capture(other, CLEAN))])


def test_source_of_equal_shape_is_accepted(lms):
    """The source may be another checkpoint of the same training run."""
    clean = capture(make_other_model(), CLEAN)
    changed = capture(lms["rope"], CLEAN, [make_intervention("blocks.0.resid_post", "patch", source=clean)])
    assert_array_equal(changed["blocks.0.resid_post"], clean["blocks.0.resid_post"])


def test_other_operations_take_no_source(rope_trace):
    with pytest.raises(UserError, match="'zero' uses no other run: remove its source"):
        make_intervention("blocks.0.attn.z", "zero", source=rope_trace)
    with pytest.raises(UserError, match="attn.scores"):
        make_intervention("blocks.0.attn.scores", "patch")
    with pytest.raises(UserError, match="attn.pattern"):
        make_intervention("blocks.0.attn.pattern", "patch_mean")
