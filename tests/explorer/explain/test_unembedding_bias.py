"""Clicked logits, and what adds to them, count the bias of an unembedding that has one."""

import pytest

from explorer.explain.analysed.attribution import logit_part
from explorer.explain.analysed.lens import lens_cell


@pytest.mark.parametrize("rival", [None, 20])
@pytest.mark.parametrize("part", ["shift", "sum", "logit", "token"])
def test_in_the_parts_of_a_logit(trace_of, part, rival):
    derivation = logit_part(trace_of("local"), 9, 17, rival, part)
    assert derivation.recomputed == pytest.approx(derivation.value, abs=1e-5)
    assert any(read.name == "lm_head.bias" for read in derivation.working.inputs) is (part != "token")


@pytest.mark.parametrize("kind", ["probability", "target", "entropy"])
def test_in_the_lens(trace_of, kind):
    derivation = lens_cell(trace_of("local"), 1, 9, 17, kind)
    assert derivation.recomputed == pytest.approx(derivation.value, rel=1e-4)
