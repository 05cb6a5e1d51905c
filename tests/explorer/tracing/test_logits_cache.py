import numpy as np
import pytest

from explorer.tracing.run_service import LogitsCache
from explorer.tracing.trace import LazyActivations
from tests.subtest_loops import each_style


@pytest.fixture
def ids(library) -> tuple[int, ...]:
    return tuple(library.model("rope")[1].encode("the fox asked the owl"))


@each_style
def test_cached_logits_equal_trace(library, style, ids):
    predictions = LogitsCache(library)
    for end in (3, 4, 5, len(ids)):  # from scratch, continued twice, and from scratch again
        trace, whole = predictions.trace(style, ids[:end]), library.trace(style, ids[:end])
        np.testing.assert_allclose(trace["logits"], whole["logits"], atol=1e-5)
        assert (trace.token_ids, trace.tokens, trace.config) == (whole.token_ids, whole.tokens, whole.config)


def test_texts_with_a_common_prefix_do_not_mix(library, ids):
    predictions = LogitsCache(library)
    predictions.trace("rope", ids[:3])
    for last in (5, 9, 5):
        other = (*ids[:3], last)
        expected = library.trace("rope", other)["logits"]
        np.testing.assert_allclose(predictions.trace("rope", other)["logits"], expected, atol=1e-5)


def test_only_new_token_is_computed(library, ids, monkeypatch):
    predictions, lm = LogitsCache(library), library.model("rope")[0]
    predictions.trace("rope", ids[:4])
    lengths_read = []
    with pytest.MonkeyPatch.context() as patch:
        forward = lm.forward
        patch.setattr(
            lm, "forward", lambda tokens, *rest: (lengths_read.append(tokens.shape[1]), forward(tokens, *rest))[1]
        )
        predictions.trace("rope", ids[:5])
        predictions.trace("rope", ids[:5])
    assert lengths_read == [1]


@each_style
def test_prefixes_share_entry_of_longest_text(library, style, ids):
    predictions = LogitsCache(library)
    for end in (3, 4, 6, len(ids), 5, 2):
        trace, whole = predictions.trace(style, ids[:end]), library.trace(style, ids[:end])
        np.testing.assert_allclose(trace["logits"], whole["logits"], atol=1e-5)
        assert trace.token_ids == ids[:end]
    assert [text for _, text in predictions._cache] == [ids]
    (entry,) = predictions._cache._entries.values()
    d_model = library.model(style)[0].config.d_model
    summary_bytes = 8 * (len(ids) * (2 + 2 * 3) + 2 * (len(ids) - 1))
    assert predictions._cache.total == 4 * len(ids) * d_model + entry.cache.entries.nbytes + summary_bytes


def test_common_prefix_is_not_recomputed(library, ids, monkeypatch):
    predictions, (lm, _) = LogitsCache(library), library.model("rope")
    predictions.trace("rope", ids)
    lengths_read, forward = [], lm.forward
    monkeypatch.setattr(
        lm, "forward", lambda tokens, *rest: (lengths_read.append(tokens.shape[1]), forward(tokens, *rest))[1]
    )
    other = (*ids[:-2], 5, 9, 7)
    logits = predictions.trace("rope", other)["logits"]
    predictions.trace("rope", ids[:4])
    assert lengths_read == [3]
    np.testing.assert_allclose(logits, library.trace("rope", other)["logits"], atol=1e-5)
    assert {text for _, text in predictions._cache} == {ids, other}


SUMMARISED = ("log_sum_exp", "entropy", "likeliest", "likeliest_logits", "next_logit", "next_rank")


@each_style
def test_summary_equals_whole_trace(library, style, ids):
    predictions = LogitsCache(library)
    for text in (ids[:1], ids[:2], ids[:4], ids, (*ids[:-2], 5, 9, 7), ids[:3], (*ids[:3], 8)):
        summary, whole = predictions.trace(style, text).logits.summary, library.trace(style, text).logits.summary
        for name in SUMMARISED:
            np.testing.assert_allclose(getattr(summary, name), getattr(whole, name), atol=1e-5, err_msg=name)


def test_summarised_logits_are_not_recomputed(library, ids, monkeypatch):
    predictions, looked_at = LogitsCache(library), []
    rows = LazyActivations._logit_rows
    monkeypatch.setattr(
        LazyActivations,
        "_logit_rows",
        lambda self, start, stop: (looked_at.append((start, stop)), rows(self, start, stop))[1],
    )
    for end in (4, 5, 3):
        assert len(predictions.trace("rope", ids[:end]).logits.summary.entropy) == end
    assert looked_at == [(0, 4), (3, 5)]
