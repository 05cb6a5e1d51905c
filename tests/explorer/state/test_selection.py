import math

import pytest

from explorer.analysis.next_token import SHADES
from explorer.state.selection import OWN_CHOICES, Selection, field_choices, parse_index
from explorer.views import VIEWS
from tests.subtest_loops import each_style, subtest_each

NONSENSE = [
    -1,
    10**9,
    10**5000,
    1.5,
    math.nan,
    math.inf,
    True,
    None,
    [1],
    {},
    "",
    "-1",
    "1.0",
    "x",
    "١",
    "²",
    " 1",
    b"1",
]


@pytest.mark.parametrize(("value", "index"), [(0, 0), (7, 7), (999_999_999, 999_999_999), (3.0, 3), ("12", 12)])
def test_index_is_parsed_from_number_or_text(value, index):
    assert parse_index(value) == index
    assert type(parse_index(value)) is int


@subtest_each("value", NONSENSE, ids=lambda value: type(value).__name__)
def test_invalid_index_is_none(value):
    assert parse_index(value) is None


@subtest_each("value", NONSENSE, ids=lambda value: type(value).__name__)
def test_invalid_field_keeps_default(value):
    assert Selection.parse({"layer": value, "query": 3}) == Selection(query=3)


@subtest_each("value", [1, None, ["rope"], {}, True, 1.5, b"rope"])
def test_non_text_names_keep_defaults(value):
    assert Selection.parse({"view": value, "tap": value}) == Selection()


@pytest.mark.parametrize(
    ("asked", "opened"), [("residual", "residual"), ("rope", "positions"), ("<script>", "overview")]
)
def test_unknown_view_opens_default(asked, opened):
    assert Selection.parse({"view": asked}).view == opened


def test_views_are_in_fixed_order():
    names = "overview tokens attention positions feed_forward residual prediction experiments directions compare"
    names += " patching kv_cache activations training pieces looks guesses choosing"
    assert [view.name for view in VIEWS] == names.split()


def test_declared_field_is_accessed_by_name():
    selection = Selection(layer=1).replace(metric="probability", layer=2)
    assert (selection.option("metric"), selection.option("pattern"), selection.layer) == ("probability", "weight", 2)
    assert selection.replace(metric="logit_difference") == Selection(layer=2)  # default values are not stored
    assert hash(selection) == hash(Selection.parse({"layer": "2", "metric": "probability"}))
    for unknown in (lambda: selection.option("matric"), lambda: selection.replace(matric="x")):
        with pytest.raises(KeyError, match="no view declares a field 'matric'"):
            unknown()


def test_unknown_fields_are_ignored():
    assert Selection.parse({"__class__": "x", "Layer": 1, "within": 2}) == Selection()


def test_selection_round_trip():
    selection = Selection("positions", 3, 2, 9, 4, "blocks.1.attn.q", 17)
    assert Selection.parse(selection.as_dict()) == selection
    assert Selection.parse({name: str(value) for name, value in selection.as_dict().items()}) == selection


def test_valid_selection_is_kept(rope_trace):
    selection = Selection("rope", 1, 2, 9, 4, "blocks.1.attn.q", 7)
    assert selection.clamp_to_trace(rope_trace) == selection


def test_selection_is_clamped_to_nearest(rope_trace):
    huge = Selection(layer=99, head=99, query=99, key=99, tap="logits", dim=10**8)
    assert huge.clamp_to_trace(rope_trace) == Selection(layer=1, head=2, query=11, key=11, tap="logits", dim=299)
    negative = Selection(layer=-1, head=-5, query=-2, key=-1, dim=-3)
    assert negative.clamp_to_trace(rope_trace) == Selection()


def test_residual_depth_may_follow_last_block(rope_trace):
    assert Selection(residual_depth=2).clamp_to_trace(rope_trace).residual_depth == 2
    assert Selection(residual_depth=99).clamp_to_trace(rope_trace).residual_depth == rope_trace.config.num_layers


def test_key_is_clamped_to_query(rope_trace):
    assert Selection(query=3, key=9).clamp_to_trace(rope_trace).key == 3


def test_uncaptured_tap_falls_back_to_embed(capture_trace):
    without = capture_trace("none")
    selection = Selection(tap="blocks.0.attn.q_rot", dim=7).clamp_to_trace(without)
    assert (selection.tap, selection.dim) == ("embed", 7)
    assert Selection(tap="<script>").clamp_to_trace(without).tap == "embed"


def test_tap_of_missing_layer_falls_back_to_last_layer(rope_trace):
    assert Selection(tap="blocks.5.attn.q", dim=7).clamp_to_trace(rope_trace).tap == "blocks.1.attn.q"
    assert Selection(tap="blocks.5.nothing").clamp_to_trace(rope_trace).tap == "embed"


@each_style
def test_single_token_clamps_query_and_key(capture_trace, style):
    selection = Selection(query=5, key=5).clamp_to_trace(capture_trace(style, 1))
    assert (selection.query, selection.key) == (0, 0)


def test_shade_choices_match_analysis():
    assert tuple(SHADES) == OWN_CHOICES["shade"]


@subtest_each("field", field_choices())
def test_unknown_choice_falls_back_to_default(rope_trace, field):
    assert Selection.parse({field: "<script>"}).clamp_to_trace(rope_trace) == Selection()
    for word in field_choices()[field]:
        assert Selection.parse({field: word}).clamp_to_trace(rope_trace).as_dict()[field] == word


def test_selected_heads_are_unique_and_existing(rope_trace):
    selection = Selection(heads="1.0~0.2~9.0~<b>~1.0~0.99~1.-1~")
    assert selection.selected_heads == ((1, 0), (0, 2), (9, 0), (0, 99))
    assert selection.clamp_to_trace(rope_trace).heads == "1.0~0.2"
    assert Selection().clamp_to_trace(rope_trace).selected_heads == ()
