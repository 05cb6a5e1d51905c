"""Explanations of logits and their components include the bias of the unembedding."""

from itertools import product

import pytest

from explorer.analysis.direct_logit_attribution import component_contribution
from explorer.analysis.logit_lens import lens_cell
from tests.subtest_loops import subtest_each


@subtest_each("part, rival", product(["shift", "sum", "logit", "token"], [None, 20]))
def test_logit_components_include_bias(capture_trace, part, rival):
    derivation = component_contribution(capture_trace("local"), 9, 17, rival, part)
    assert derivation.recomputed_value == pytest.approx(derivation.value, abs=1e-5)
    assert any(used_input.name == "lm_head.bias" for used_input in derivation.working.inputs) is (part != "token")


@subtest_each("kind", ["probability", "target", "entropy"])
def test_lens_includes_bias(capture_trace, kind):
    derivation = lens_cell(capture_trace("local"), 1, 9, 17, kind)
    assert derivation.recomputed_value == pytest.approx(derivation.value, rel=1e-4)
