from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.head_scores import HEAD_SCORES, head_scores
from explorer.errors import PointNotFoundError
from explorer.explain.derivation import ClickedPoint
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.views.attention import all_heads_table, inspect_head_number
from explorer.views.labels import target_and_contrast
from explorer.views.view import HeadTable, HeadTableColumn
from explorer.web.widgets.figure import HeadTableWidget
from tests.panels import PANELS
from tests.subtest_loops import each_style, subtest_each

PANEL = PANELS["attention-table"][1]


@each_style
@subtest_each("fields", [{}, {"first_token": "hidden", "query": 5, "target": 3}, {"query": 7, "rival": 2}])
def test_table_equals_score_functions(trace, fields):
    selection = Selection(**fields).clamp_to_trace(trace)
    *scores, contributions = all_heads_table(trace, selection).columns
    assert len(scores) == len(HEAD_SCORES)
    for name, column in zip(HEAD_SCORES, scores, strict=True):
        assert_array_equal(column.values, head_scores(trace, name, "first_token" in fields))
        assert ("left out" in column.description) is ("first_token" in fields)
        assert column.limit == 1 and not column.signed
    token_id, contrast_id = target_and_contrast(trace, selection)
    expected = direct_logit_attribution(trace, selection.query, token_id, contrast_id).heads
    assert_array_equal(contributions.values, expected)
    assert contributions.limit == np.abs(expected).max() and contributions.signed


@each_style
@subtest_each("fields", [{}, {"first_token": "hidden", "query": 5, "target": 3, "rival": 2}])
def test_clicked_number_is_recomputed(trace, fields):
    selection = Selection(**fields).clamp_to_trace(trace)
    columns = all_heads_table(trace, selection).columns
    for i, column in enumerate(columns):
        for layer, head in ((0, 1), (1, 0)):
            derivation = inspect_head_number(trace, selection, ClickedPoint(i, 0, layer=layer, head=head))
            value = column.values[layer, head]
            assert (derivation is None) is bool(np.isnan(value))
            if derivation:
                assert derivation.value == value and derivation.difference < 1e-5
    for point in (ClickedPoint(len(columns), 0, layer=0, head=0), ClickedPoint(0, 0, layer=0, head=10**6)):
        with pytest.raises(PointNotFoundError):
            inspect_head_number(trace, selection, point)


@each_style
def test_note_counts_queries(trace):
    """The text of 12 tokens repeats some: fewer queries have an earlier occurrence than have a token before."""
    again = sum(token_id in trace.token_ids[:i] for i, token_id in enumerate(trace.token_ids))
    note = all_heads_table(trace, Selection().clamp_to_trace(trace)).note
    assert note.startswith(f"Each score is an average over {len(trace) - 1} tokens of this prompt")
    assert f"duplicate token over {again}" in note
    assert ("; duplicate" in note, "Too few to be reliable: duplicate" in note) == (again >= 5, again < 5)


@each_style
def test_unloaded_model_has_only_scores(trace):
    unloaded = replace(trace, model=None, weights={})
    assert len(all_heads_table(unloaded, Selection().clamp_to_trace(unloaded)).columns) == len(HEAD_SCORES)
    assert PANEL.verify(unloaded, Selection().clamp_to_trace(unloaded)).state != "off"


def test_missing_score_is_sent_as_none(tiny_lm):
    """No token of the run occurs twice, so there is no induction score."""
    run = capture(tiny_lm, [1, 2, 3, 4])
    packed = HeadTableWidget.pack(all_heads_table(run, Selection().clamp_to_trace(run)))
    columns = dict(zip(HEAD_SCORES, packed["columns"], strict=False))
    assert set(columns["induction"]["values"]) == {None}
    assert None not in columns["previous_token"]["values"]


def test_numbers_are_sent_by_layer_and_head():
    values = np.arange(6.0).reshape(2, 3) / 8
    packed = HeadTableWidget.pack(HeadTable((HeadTableColumn("score", "A score", values),), "Six heads."))
    assert packed["heads"] == 3 and packed["alt"] == "Six heads."
    assert packed["columns"] == [
        {"label": "score", "description": "A score", "limit": 1.0, "signed": False}
        | {"values": [0.0, 0.125, 0.25, 0.375, 0.5, 0.625]}
    ]
