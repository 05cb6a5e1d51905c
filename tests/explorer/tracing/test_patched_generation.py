"""Generation with patches: the source's values are patched at the prompt only."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer import capture
from explorer.errors import UserError
from explorer.explain.captured import check_captured_value
from explorer.tracing.comparison import resolve_patches
from explorer.tracing.forward_hooks import apply_interventions, generate_with_interventions
from model.generation.autoregressive import generate
from tests.subtest_loops import each_style, subtest_each

from .manual_cross_run_patches import CLEAN, CORRUPTED, make_patches

GENERATION = ("blocks.0.attn.z.1*patch", "blocks.1.resid_pre@2.4*patch", "blocks.1.attn.pattern.2*patch",
              "blocks.0.attn.k.0*patch", "blocks.1.ffn.hidden*patch_mean")  # fmt: skip


@each_style
@subtest_each("text", GENERATION)
def test_generation_patches_only_prompt_positions(lms, style, text):
    lm = lms[style]
    edits = resolve_patches(
        [edit.for_prompt(CORRUPTED) for edit in make_patches(text, capture(lm, CLEAN))], lm.config, CORRUPTED, None
    )
    steps = list(
        generate_with_interventions(lm, edits, generate(lm, CORRUPTED, max_new_tokens=6, temperature=0, top_k=0))
    )
    written, logits = list(CORRUPTED), []
    for step in steps:
        with apply_interventions(lm, edits), torch.inference_mode():
            logits.append(lm(torch.tensor([written]))[0, -1].numpy())  # whole text, without a cache
        assert step.token_id == logits[-1].argmax()
        assert_allclose(step.probability, 1, atol=1e-6)
        written.append(step.token_id)
    whole = capture(lm, written, edits)
    assert_allclose(whole["logits"][7:-1], logits, atol=1e-5)
    free = capture(lm, written)
    tap = edits[0].tap
    if tap != "blocks.1.resid_pre":  # its later rows depend on the patched ones
        later = whole[tap][..., 8:, :]
        assert later.shape == free[tap][..., 8:, :].shape
        assert np.isfinite(later).all()
    for name in whole.values:
        assert check_captured_value(whole, name).is_within_tolerance, name


def test_text_beyond_context_window_raises(lms):
    lm = lms["rope"]
    edits = resolve_patches(make_patches("blocks.0.attn.z.1*patch", capture(lm, CLEAN)), lm.config, CORRUPTED, None)
    steps = generate_with_interventions(lm, edits, generate(lm, CORRUPTED, max_new_tokens=40, temperature=0))
    with pytest.raises(UserError, match="the text exceeds the context window"):
        list(steps)
    with pytest.raises(UserError, match="the text exceeds the context window"):
        capture(lm, CORRUPTED[1:], [edits[0]])
    with pytest.raises(UserError, match="the text exceeds the context window"):
        capture(
            lm, CORRUPTED[1:], [edit.for_prompt(CORRUPTED) for edit in make_patches("embed*patch", capture(lm, CLEAN))]
        )
