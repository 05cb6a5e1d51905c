import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from tests.specimens import models, tokenizer, trace_of

TEXTS = "the fox asked the owl", "the fox and then the owl asked the owl"


@pytest.fixture
def comparison() -> Comparison:
    lm = models()["rope"]
    return Comparison.of(*(capture(lm, tokenizer().encode(text), tokenizer=tokenizer()) for text in TEXTS))


def test_values_of_the_other_stand_at_partners(comparison):
    """Along every axis of tokens; not a number where there is none."""
    partners = comparison.alignment.partners
    for name in ("embed", "blocks.1.attn.z", "blocks.1.attn.pattern", "rope.angles", "logits"):
        found, other = comparison.of_other(name), comparison.other[name]
        assert found.shape == comparison.trace[name].shape
        for position, partner in enumerate(partners):
            row = found.swapaxes(0, -2)[position] if found.ndim == 3 else found[position]
            if partner is None:
                assert np.isnan(row).all()
                continue
            theirs = other.swapaxes(0, -2)[partner] if other.ndim == 3 else other[partner]
            if name.endswith("pattern"):
                theirs = np.stack(
                    [np.full(len(theirs), np.nan) if key is None else theirs[..., key] for key in partners], -1
                )
            assert_allclose(row, theirs)


def test_the_same_tokens_take_no_copy():
    trace = trace_of("rope")
    same = Comparison.of(trace, trace)
    assert same.of_other("logits") is trace["logits"]
    with pytest.raises(KeyError, match="nearest names"):
        same.of_other("logit")


def test_what_is_compared_with_itself_unchanged_is_known():
    trace = trace_of("rope")
    changed = capture(models()["rope"], trace.token_ids, parse_edits("blocks.0.attn.z.1*zero"))
    plain = capture(models()["rope"], trace.token_ids)
    assert Comparison.of(changed, plain).is_unchanged
    assert not Comparison.of(plain, changed).is_unchanged and not Comparison.of(plain, plain).is_unchanged
    other = capture(models()["none"], trace.token_ids)
    assert not Comparison.of(changed, other).is_unchanged
