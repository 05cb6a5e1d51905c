import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from tests.sample_models import capture_style, models, tokenizer

TEXTS = "the fox asked the owl", "the fox and then the owl asked the owl"


@pytest.fixture
def comparison() -> Comparison:
    lm = models()["rope"]
    return Comparison.from_traces(*(capture(lm, tokenizer().encode(text), tokenizer=tokenizer()) for text in TEXTS))


def test_other_values_are_aligned_to_partner_positions(comparison):
    """Values are aligned along every token axis; NaN where a position has no partner."""
    partners = comparison.alignment.partners
    for name in ("embed", "blocks.1.attn.z", "blocks.1.attn.pattern", "rope.angles", "logits"):
        aligned, other = comparison.aligned_other(name), comparison.other[name]
        assert aligned.shape == comparison.trace[name].shape
        for position, partner in enumerate(partners):
            row = aligned.swapaxes(0, -2)[position] if aligned.ndim == 3 else aligned[position]
            if partner is None:
                assert np.isnan(row).all()
                continue
            expected = other.swapaxes(0, -2)[partner] if other.ndim == 3 else other[partner]
            if name.endswith("pattern"):
                expected = np.stack(
                    [np.full(len(expected), np.nan) if key is None else expected[..., key] for key in partners], -1
                )
            assert_allclose(row, expected)


def test_equal_tokens_need_no_copy():
    trace = capture_style("rope")
    same = Comparison.from_traces(trace, trace)
    assert same.aligned_other("logits") is trace["logits"]
    with pytest.raises(KeyError, match="nearest names"):
        same.aligned_other("logit")


def test_comparison_with_unmodified_run_is_detected():
    trace = capture_style("rope")
    changed = capture(models()["rope"], trace.token_ids, parse_interventions("blocks.0.attn.z.1*zero"))
    plain = capture(models()["rope"], trace.token_ids)
    assert Comparison.from_traces(changed, plain).is_unchanged
    assert (
        not Comparison.from_traces(plain, changed).is_unchanged
        and not Comparison.from_traces(plain, plain).is_unchanged
    )
    other = capture(models()["none"], trace.token_ids)
    assert not Comparison.from_traces(changed, other).is_unchanged
