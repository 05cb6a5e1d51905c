import numpy as np
import pytest

from explorer.tracing.run_service import LogitsCache
from explorer.tracing.trace import LazyActivations


@pytest.fixture
def ids(library) -> tuple[int, ...]:
    return tuple(library.model("rope")[1].encode("the fox asked the owl"))


def test_the_logits_are_those_of_the_trace_however_they_were_come_by(library, style, ids):
    predictions = LogitsCache(library)
    for end in (3, 4, 5, len(ids)):  # from scratch, continued twice, and from scratch again
        trace, whole = predictions.trace(style, ids[:end]), library.trace(style, ids[:end])
        np.testing.assert_allclose(trace["logits"], whole["logits"], atol=1e-5)
        assert (trace.token_ids, trace.tokens, trace.config) == (whole.token_ids, whole.tokens, whole.config)


def test_two_texts_may_go_on_from_the_same_beginning(library, ids):
    predictions = LogitsCache(library)
    predictions.trace("rope", ids[:3])
    for last in (5, 9, 5):
        other = (*ids[:3], last)
        expected = library.trace("rope", other)["logits"]
        np.testing.assert_allclose(predictions.trace("rope", other)["logits"], expected, atol=1e-5)


def test_a_new_token_alone_is_computed(library, ids, monkeypatch):
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


def test_a_text_is_kept_once_and_its_beginnings_are_in_it(library, style, ids):
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


def test_what_another_text_shares_is_not_computed_again(library, ids, monkeypatch):
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


def test_what_is_said_of_the_logits_is_what_all_of_them_say(library, style, ids):
    predictions = LogitsCache(library)
    for text in (ids[:1], ids[:2], ids[:4], ids, (*ids[:-2], 5, 9, 7), ids[:3], (*ids[:3], 8)):
        summary, whole = predictions.trace(style, text).logits.summary, library.trace(style, text).logits.summary
        for name in SUMMARISED:
            np.testing.assert_allclose(getattr(summary, name), getattr(whole, name), atol=1e-5, err_msg=name)


def test_logits_that_were_looked_at_are_not_looked_at_again(library, ids, monkeypatch):
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
