import numpy as np

from explorer.explain.notation import escape_token
from explorer.state.selection import Selection, registered_fields
from explorer.views.selection_dropdowns import OPTIONS, SelectionDropdown, make_selection_dropdowns


def test_layers_and_heads_are_those_of_the_model(trace):
    layer, head = make_selection_dropdowns(["layer", "head"], trace, Selection())
    assert layer == SelectionDropdown("layer", "layer", [(0, "0"), (1, "1")])
    assert [value for value, _ in head.options] == list(range(trace.config.num_heads))


def test_which_score_of_a_head_is_shown_is_called_so(trace):
    (score,) = make_selection_dropdowns(["head_score"], trace, Selection())
    assert score.title == "head score"


def test_tokens_are_listed_with_their_positions(trace):
    (query,) = make_selection_dropdowns(["query"], trace, Selection())
    assert [value for value, _ in query.options] == list(range(12))
    assert all(text.startswith(f"{value}  ") for value, text in query.options)


def test_keys_end_at_the_query(trace):
    (key,) = make_selection_dropdowns(["key"], trace, Selection(query=3))
    assert [value for value, _ in key.options] == [0, 1, 2, 3]


def test_fewer_tokens_are_offered_where_there_are_more(trace_of):
    (few,) = make_selection_dropdowns(["window"], trace_of("rope"), Selection())
    (many,) = make_selection_dropdowns(["window"], trace_of("rope", 20), Selection())
    assert few.options == [(0, "all 12 tokens")]
    assert many.options == [(0, "all 20 tokens"), (16, "16 around the chosen")]


def test_values_are_those_captured(trace):
    (tap,) = make_selection_dropdowns(["tap"], trace, Selection())
    assert [value for value, _ in tap.options] == list(trace.values)


def test_whatever_is_chosen_exists(trace):
    """Choosing any option yields a selection that is already valid."""
    selection = Selection(query=11, key=5).clamp_to_trace(trace)
    for choice in make_selection_dropdowns(
        [*OPTIONS, *(field.name for field in registered_fields())], trace, selection
    ):
        for value, _ in choice.options:
            chosen = Selection.parse(selection.as_dict() | {choice.field: value}).clamp_to_trace(trace)
            assert chosen.as_dict()[choice.field] == value


def test_next_tokens_are_listed_by_rank_with_the_one_that_follows(rope_trace):
    (target,) = make_selection_dropdowns(["target"], rope_trace, Selection(query=3, target=1))
    order = (-rope_trace["logits"][3]).argsort(kind="stable")
    ranks = [rank for rank, _ in target.options]
    assert ranks[:20] == list(range(1, 21))
    assert int((order == rope_trace.token_ids[4]).argmax()) + 1 in ranks
    assert target.options[0][1] == f"1.  {escape_token(rope_trace.vocabulary[order[0]])}"


def test_next_tokens_of_a_changed_run_say_what_their_ranks_have_become(edited_trace_of):
    trace = edited_trace_of("rope")
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
