"""Visible keys and the divisor of scores, compared with a run."""

import numpy as np
import pytest

from explorer.architecture.formulas import (
    first_visible_key,
    score_divisor_formula,
    score_divisor_in_numbers,
    visibility_mask,
)
from tests.subtest_loops import each_style


@each_style
def test_visible_keys_have_positive_weights(trace):
    for layer in range(trace.config.num_layers):
        weights = trace[f"blocks.{layer}.attn.pattern"]
        assert ((weights > 0).any(0) == visibility_mask(trace.config, layer, len(trace))).all()
        first = [first_visible_key(trace.config, layer, query) for query in range(len(trace))]
        assert first == (weights[0] > 0).argmax(-1).tolist()


def test_window_is_narrower_than_prompt(capture_trace):
    """Otherwise the sample model would not test the window."""
    trace = capture_trace("local")
    assert visibility_mask(trace.config, 1, len(trace)).sum() < visibility_mask(trace.config, 0, len(trace)).sum()


@pytest.mark.parametrize(("style", "written"), [("rope", ("√d", "√8")), ("local", ("1", "1"))])
def test_score_divisor_formula_matches_scores(capture_trace, style, written):
    trace = capture_trace(style)
    assert (score_divisor_formula(trace.config), score_divisor_in_numbers(trace.config)) == written
    suffix = "_rot" * (style == "rope")
    q, k = (trace[f"blocks.0.attn.{name}{suffix}"][1].astype(float) for name in "qk")
    np.testing.assert_allclose(q @ k.T / trace.config.divisor, trace["blocks.0.attn.scores"][1], atol=1e-5)
