import math

import pytest

from explorer.analysis.token_shading import SHADES
from explorer.state.selection import OWN_CHOICES, Selection, field_choices, parse_index
from explorer.views import VIEWS

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
def test_an_index_is_a_whole_number_or_its_text(value, index):
    assert parse_index(value) == index
    assert type(parse_index(value)) is int


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: type(value).__name__)
def test_anything_else_is_no_index(value):
    assert parse_index(value) is None


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: type(value).__name__)
def test_nonsense_is_left_out_of_a_selection(value):
    assert Selection.parse({"layer": value, "query": 3}) == Selection(query=3)


@pytest.mark.parametrize("value", [1, None, ["rope"], {}, True, 1.5, b"rope"])
def test_names_are_text(value):
    assert Selection.parse({"view": value, "tap": value}) == Selection()


@pytest.mark.parametrize(
    ("asked", "opened"), [("residual", "residual"), ("rope", "positions"), ("<script>", "overview")]
)
def test_the_tab_is_one_that_there_is(asked, opened):
    assert Selection.parse({"view": asked}).view == opened


def test_tabs_stand_in_the_order_that_people_know():
    names = "overview tokens attention positions feed_forward residual prediction experiments directions compare"
    names += " patching kv_cache activations training pieces looks guesses choosing"
    assert [view.name for view in VIEWS] == names.split()


def test_a_declared_field_is_read_by_its_name():
    selection = Selection(layer=1).replace(metric="probability", layer=2)
    assert (selection.option("metric"), selection.option("pattern"), selection.layer) == ("probability", "weight", 2)
    assert selection.replace(metric="logit_difference") == Selection(layer=2)  # no trace of what is the default again
    assert hash(selection) == hash(Selection.parse({"layer": "2", "metric": "probability"}))
    for unknown in (lambda: selection.option("matric"), lambda: selection.replace(matric="x")):
        with pytest.raises(KeyError, match="no view declares a field 'matric'"):
            unknown()


def test_unknown_names_are_ignored():
    assert Selection.parse({"__class__": "x", "Layer": 1, "within": 2}) == Selection()


def test_a_selection_is_read_back_as_it_was_written():
    selection = Selection("positions", 3, 2, 9, 4, "blocks.1.attn.q", 17)
    assert Selection.parse(selection.as_dict()) == selection
    assert Selection.parse({name: str(value) for name, value in selection.as_dict().items()}) == selection


def test_what_exists_is_kept(rope_trace):
    selection = Selection("rope", 1, 2, 9, 4, "blocks.1.attn.q", 7)
    assert selection.clamp_to_trace(rope_trace) == selection


def test_the_nearest_that_exists_takes_the_place_of_what_does_not(rope_trace):
    huge = Selection(layer=99, head=99, query=99, key=99, tap="logits", dim=10**8)
    assert huge.clamp_to_trace(rope_trace) == Selection(layer=1, head=2, query=11, key=11, tap="logits", dim=299)
    negative = Selection(layer=-1, head=-5, query=-2, key=-1, dim=-3)
    assert negative.clamp_to_trace(rope_trace) == Selection()


def test_there_is_a_depth_after_the_last_block(rope_trace):
    assert Selection(residual_depth=2).clamp_to_trace(rope_trace).residual_depth == 2
    assert Selection(residual_depth=99).clamp_to_trace(rope_trace).residual_depth == rope_trace.config.num_layers


def test_the_key_is_never_after_the_query(rope_trace):
    assert Selection(query=3, key=9).clamp_to_trace(rope_trace).key == 3


def test_a_value_that_was_not_captured_gives_way_to_one_that_was(trace_of):
    without = trace_of("none")
    selection = Selection(tap="blocks.0.attn.q_rot", dim=7).clamp_to_trace(without)
    assert (selection.tap, selection.dim) == ("embed", 7)
    assert Selection(tap="<script>").clamp_to_trace(without).tap == "embed"


def test_a_value_of_a_layer_that_is_not_there_gives_way_to_that_of_the_last(rope_trace):
    assert Selection(tap="blocks.5.attn.q", dim=7).clamp_to_trace(rope_trace).tap == "blocks.1.attn.q"
    assert Selection(tap="blocks.5.nothing").clamp_to_trace(rope_trace).tap == "embed"


def test_of_a_single_token_only_it_can_be_chosen(trace_of, style):
    selection = Selection(query=5, key=5).clamp_to_trace(trace_of(style, 1))
    assert (selection.query, selection.key) == (0, 0)


def test_analysis_knows_every_word_that_can_be_asked_for():
    assert tuple(SHADES) == OWN_CHOICES["shade"]


@pytest.mark.parametrize("field", field_choices())
def test_a_word_that_means_nothing_gives_way_to_the_default(rope_trace, field):
    assert Selection.parse({field: "<script>"}).clamp_to_trace(rope_trace) == Selection()
    for word in field_choices()[field]:
        assert Selection.parse({field: word}).clamp_to_trace(rope_trace).as_dict()[field] == word


def test_of_chosen_heads_those_that_exist_are_kept_once(rope_trace):
    selection = Selection(heads="1.0~0.2~9.0~<b>~1.0~0.99~1.-1~")
    assert selection.selected_heads == ((1, 0), (0, 2), (9, 0), (0, 99))
    assert selection.clamp_to_trace(rope_trace).heads == "1.0~0.2"
    assert Selection().clamp_to_trace(rope_trace).selected_heads == ()
