import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.next_token import SamplingTable, find_tokens
from model.generation.sampling import draw_token, sampling_stages
from tests.subtest_loops import subtest_each

SETTINGS = [
    {},
    {"temperature": 0},
    {"temperature": 0.7, "top_k": 5},
    {"temperature": 1.3, "top_k": 9, "top_p": 0.8},
    {"top_p": 0.6, "min_p": 0.3, "repetition_penalty": 1.4, "previous": (0, 3, 7)},
]


@pytest.fixture(params=SETTINGS, ids=lambda settings: ", ".join(settings) or "plain")
def settings(request) -> dict:
    return request.param


@pytest.fixture
def logits() -> np.ndarray:
    logits = np.random.default_rng(0).normal(0, 2, 30)
    logits[11] = logits[4]  # a tie
    return logits


@pytest.fixture
def table(logits, settings) -> SamplingTable:
    return SamplingTable(sampling_stages(logits, **settings))


@pytest.fixture
def rows(table):
    return table.rows(30)


def test_rows_are_ranked_by_penalised_logit_then_id(table, rows):
    expected = sorted(range(30), key=lambda i: (-table.stages.penalised[i], i))
    assert [row.token_id for row in rows] == expected == table.ranking.tolist()
    assert [row.rank for row in rows] == list(range(1, 31))


def test_row_has_values_of_its_stages(table, rows):
    for row in rows:
        for name in ("logit", "penalised", "scaled", "probability", "cumulative"):
            stage = {"logit": "logits", "scaled": "scaled_logits", "probability": "probabilities"}.get(name, name)
            assert getattr(row, name) == getattr(table.stages, stage)[row.token_id]


def test_plain_column_is_softmax_of_logits(logits, rows):
    for row in rows:
        assert row.plain == pytest.approx(1 / np.exp(logits - logits[row.token_id]).sum())


def test_kept_tokens_have_renormalised_weights(table, rows, settings):
    retained = [row for row in rows if row.cut_by is None]
    assert {row.token_id for row in retained} == set(np.flatnonzero(table.stages.in_min_p).tolist())
    for row in rows:
        assert row.weight == pytest.approx(np.exp(row.scaled - max(row.scaled for row in rows)))
        if settings.get("temperature") != 0:
            assert row.probability == pytest.approx(row.weight / table.total if row in retained else 0)
    if settings.get("temperature") != 0:
        assert table.total == pytest.approx(sum(row.weight for row in retained))


def test_cut_names_its_limit(logits):
    everything = {"top_k": 9, "top_p": 0.8, "min_p": 0.6}
    rows = SamplingTable(sampling_stages(logits, **everything)).rows(30)
    assert {row.cut_by for row in rows} == {"top_k", "top_p", "min_p", None}
    for row in rows:
        assert (row.cut_by == "top_k") == (row.rank > 9)
        if row.cut_by != "top_k":
            assert (row.cut_by == "top_p") == (row.ahead >= 0.8)
        if row.cut_by not in ("top_k", "top_p"):
            assert (row.cut_by == "min_p") == (row.weight < 0.6)


def test_ahead_is_share_of_better_ranked_tokens(logits):
    rows = SamplingTable(sampling_stages(logits, top_k=6, top_p=0.3)).rows(6)
    shares = np.exp([row.logit for row in rows])
    assert_allclose([row.ahead for row in rows], np.cumsum([0, *shares[:-1]]) / shares.sum(), atol=1e-12)


def test_table_includes_requested_rows(table):
    first = table.ranking[:12].tolist()
    far, further = table.ranking[[20, 25]].tolist()

    def row_ids(**options) -> list[int]:
        return [row.token_id for row in table.rows(12, **options)]

    assert row_ids() == row_ids(always={first[11], first[0]}) == first
    assert row_ids(always={far}) == [*first[:11], far]
    assert row_ids(always={further, far, first[3]}) == [*first[:10], far, further]
    assert row_ids(always={first[11], far}) == [*first[:10], first[11], far]
    assert row_ids(extra=[further, first[2]]) == [*first, further]


def test_rows_do_not_exceed_vocabulary():
    assert len(SamplingTable(sampling_stages(np.array([1.0, 2.0]))).rows(12, always={0})) == 2


def test_uniform_draw_falls_into_interval_of_drawn_token(table):
    stretches = table.intervals(narrowest=0)
    stretches = [stretch for stretch in stretches if stretch.end > stretch.start]
    assert stretches[0].start == 0 and stretches[-1].end == pytest.approx(1)
    assert_allclose([stretch.start for stretch in stretches[1:]], [stretch.end for stretch in stretches[:-1]])
    for u in np.random.default_rng(1).random(50):
        (hit,) = (stretch.token_id for stretch in stretches if stretch.start <= u < stretch.end)
        assert hit == draw_token(table.stages.probabilities, u)


def test_narrow_intervals_are_omitted_unless_requested(table):
    probabilities = table.stages.probabilities
    thin = int(np.argmin(np.where(probabilities > 0, probabilities, np.inf)))
    cut = [int(i) for i in np.flatnonzero(probabilities == 0)]
    stretches = table.intervals(0.1, always={thin, *cut})
    assert {stretch.token_id for stretch in stretches} == {*np.flatnonzero(probabilities >= 0.1).tolist(), thin}
    for stretch in stretches:
        assert stretch.end - stretch.start == pytest.approx(probabilities[stretch.token_id])


VOCABULARY = ("moon", " Moon", "\n", "noon", " the moonlight", "moo", "3", " 35", "<b>")


@subtest_each(
    ("wanted", "found"),
    [
        ("moon", [1, 0, 4]),  # the exact text first; of equal matches the better ranked
        ("MOON", [1, 0, 4]),
        ("·moon", [1, 4]),
        ("3", [3, 6, 7]),  # the token with that id first, then matching texts
        ("8", [8]),
        ("9", []),
        ("<b>", [8]),
        ("\n", [2]),
        ("xyz", []),
        ("", []),
        ("٣", []),
        ("9" * 400, []),
    ],
)
def test_tokens_are_found_by_text_or_id(wanted, found):
    ranking = [8, 7, 4, 3, 2, 1, 0, 5, 6]
    assert find_tokens(VOCABULARY, wanted, ranking, max_count=4) == found


def test_find_tokens_respects_max_count():
    assert find_tokens(VOCABULARY, "o", range(9), max_count=2) == [0, 1]
