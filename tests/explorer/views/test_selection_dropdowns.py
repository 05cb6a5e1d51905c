import numpy as np

from explorer.explain.notation import escape_token
from explorer.state.selection import Selection, registered_fields
from explorer.views.selection import OPTIONS, SelectionDropdown, make_selection_dropdowns
from tests.subtest_loops import each_style


@each_style
def test_layers_and_heads_of_model_are_offered(trace):
    layer, head = make_selection_dropdowns(["layer", "head"], trace, Selection())
    assert layer == SelectionDropdown("layer", "layer", [(0, "0"), (1, "1")])
    assert [value for value, _ in head.options] == list(range(trace.config.num_heads))


@each_style
def test_head_score_dropdown_has_a_title(trace):
    (score,) = make_selection_dropdowns(["head_score"], trace, Selection())
    assert score.title == "head score"


@each_style
def test_tokens_are_listed_with_their_positions(trace):
    (query,) = make_selection_dropdowns(["query"], trace, Selection())
    assert [value for value, _ in query.options] == list(range(12))
    assert all(text.startswith(f"{value}  ") for value, text in query.options)


@each_style
def test_keys_end_at_the_query(trace):
    (key,) = make_selection_dropdowns(["key"], trace, Selection(query=3))
    assert [value for value, _ in key.options] == [0, 1, 2, 3]


def test_window_is_offered_for_long_prompts(capture_trace):
    (few,) = make_selection_dropdowns(["window"], capture_trace("rope"), Selection())
    (many,) = make_selection_dropdowns(["window"], capture_trace("rope", 20), Selection())
    assert few.options == [(0, "all 12 tokens")]
    assert many.options == [(0, "all 20 tokens"), (16, "16 around the chosen")]


@each_style
def test_captured_taps_are_offered(trace):
    (tap,) = make_selection_dropdowns(["tap"], trace, Selection())
    assert [value for value, _ in tap.options] == list(trace.values)


@each_style
def test_every_option_is_a_valid_selection(trace):
    """Choosing any option yields a selection that is already valid."""
    selection = Selection(query=11, key=5).clamp_to_trace(trace)
    for choice in make_selection_dropdowns(
        [*OPTIONS, *(field.name for field in registered_fields())], trace, selection
    ):
        for value, _ in choice.options:
            chosen = Selection.parse(selection.as_dict() | {choice.field: value}).clamp_to_trace(trace)
            assert chosen.as_dict()[choice.field] == value


def test_next_token_ranks_include_actual_token_and_no_contrast_with_itself(rope_trace):
    target, contrast = make_selection_dropdowns(["target", "rival"], rope_trace, Selection(query=3, target=1))
    assert [rank for rank, _ in contrast.options] == [0, *(rank for rank, _ in target.options if rank != 1)]
    assert Selection(query=3, target=2, rival=2).clamp_to_trace(rope_trace).rival == 0
    order = (-rope_trace["logits"][3]).argsort(kind="stable")
    ranks = [rank for rank, _ in target.options]
    assert ranks[:20] == list(range(1, 21))
    assert int((order == rope_trace.token_ids[4]).argmax()) + 1 in ranks
    assert target.options[0][1] == f"1.  {escape_token(rope_trace.vocabulary[order[0]])}"


def test_next_tokens_show_ranks_after_interventions(capture_edited_trace):
    trace = capture_edited_trace("rope")
    query = len(trace) - 1
    (target,) = make_selection_dropdowns(["target"], trace, Selection(query=query))
    before, after = (np.argsort(-run["logits"][query], kind="stable").tolist() for run in (trace.baseline, trace))
    moved = 0
    for rank, text in target.options:
        token_id = before[rank - 1]
        now = after.index(token_id) + 1
        assert text == f"{rank}.  {escape_token(trace.vocabulary[token_id])}" + (
            f" (now {now:,}.)" if now != rank else ""
        )
        moved += now != rank
    assert moved
