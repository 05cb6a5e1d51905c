import numpy as np
import pytest

from explorer.analysis.next_token import SHADES, shade_tokens
from explorer.translations import use_locale
from tests.subtest_loops import each_style, subtest_each


@each_style
@subtest_each("name", SHADES)
def test_every_token_but_first_has_share_and_text(trace, name):
    shares, texts = shade_tokens(trace, name)
    assert len(shares) == len(texts) == len(trace)
    assert (shares[0], texts[0]) == (0, "")
    assert ((shares >= 0) & (shares <= 1)).all() and all(texts[1:])


def test_shares_match_formulas(rope_trace):
    logits = rope_trace["logits"][:-1].astype(np.float64)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    actual = p[np.arange(len(p)), rope_trace.token_ids[1:]]
    size = rope_trace.config.vocab_size
    expected = {
        "surprisal": -np.log2(actual) / 12,
        "entropy": -(p * np.log2(p)).sum(-1) / np.log2(size),
        "rank": np.log2((p > actual[:, None]).sum(-1) + 1) / np.log2(size),
    }
    for name, shares in expected.items():
        np.testing.assert_allclose(shade_tokens(rope_trace, name)[0][1:], shares.clip(0, 1), atol=1e-5)


def test_text_contains_value(rope_trace):
    rank = SHADES["rank"].values(rope_trace)[3]
    assert shade_tokens(rope_trace, "rank")[1][3] == f"rank {rank:,.0f} of the model’s guesses"


@pytest.mark.parametrize("name", SHADES)
def test_texts_follow_language(rope_trace, name):
    english = shade_tokens(rope_trace, name)[1]
    with use_locale("zh-CN"):
        chinese = shade_tokens(rope_trace, name)[1]
    assert shade_tokens(rope_trace, name)[1] == english
    values = SHADES[name].values(rope_trace)
    for language, texts in (("en", english), ("zh-CN", chinese)):
        with use_locale(language):
            assert texts[1:] == [SHADES[name].format_value(value) for value in values[1:].tolist()]
    assert not set(english[1:]) & set(chinese[1:])
