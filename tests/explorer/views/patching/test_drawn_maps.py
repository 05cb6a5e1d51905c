"""Maps of patching effects as the browser receives them: values, texts and clicks."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, capture, path_patching
from explorer.explain.derivation import ClickedPoint
from explorer.explain.notation import format_contribution, format_number
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views.patching import VIEW, describe_patching
from explorer.views.patching.effect_maps import PALE_FACTOR
from explorer.views.style import position_labels
from tests.rendered_figures import contains_number
from tests.sample_models import tokenizer
from tests.subtest_loops import each_style, subtest_each

from .patching_figures import (
    BY_HEAD,
    BY_POSITION,
    INTO,
    PANEL,
    PatchingCase,
    approx_effect,
    cell_values,
    clicked_point,
    make_patching_case,
    proposed_answers,
)


@each_style
@subtest_each("clean_run", "ab")
@subtest_each("name", BY_POSITION)
def test_position_cells_name_and_select_their_place(style, name, clean_run):
    patching_case = make_patching_case(style)
    figure = patching_case.figure(name, clean_run=clean_run)
    tokens = (patching_case.runs.trace if clean_run == "a" else patching_case.runs.other).tokens
    values = cell_values(figure)
    assert values.shape == (2, 12) and figure.layout["meta"]["of"] == clean_run
    assert "token of the clean prompt" in figure.title("x") and figure.title("y").startswith("layer; patched: ")
    for p in figure.points():
        layer, position = int(p.y), int(p.x)
        assert f"layer {layer}, position {position_labels(tokens)[position]}\n" in p.hover_text
        assert contains_number(p.hover_text, values[layer, position]) and p.change == {"key": position, "layer": layer}
    (frame,) = figure.layout["shapes"]
    assert [frame[side] for side in ("x0", "x1", "y0", "y1")] == [8.5, 9.5, 0.5, 1.5]


@each_style
@subtest_each("name", BY_HEAD)
def test_head_cells_name_and_select_their_head(style, name):
    patching_case = make_patching_case(style)
    figure = patching_case.figure(name)
    values = cell_values(figure)
    assert (
        figure.title("x") == "head"
        and figure.title("y").startswith("layer; patched: ")
        and "of" not in figure.layout["meta"]
    )
    elements = figure.points()
    assert len(elements) == np.isfinite(values).sum()
    for p in elements:
        layer, head = int(p.y), int(p.x)
        assert f"layer {layer} head {head}\n" in p.hover_text and contains_number(p.hover_text, values[layer, head])
        assert p.change == {"head": head, "layer": layer}
    frames = [shape for shape in figure.layout.get("shapes", ()) if shape["type"] == "rect"]
    assert [[frame[side] for side in ("x0", "x1", "y0", "y1")] for frame in frames] == (
        [] if name == "paths" else [[1.5, 2.5, 0.5, 1.5]]
    )
    texts = figure.parts[0]["text"]
    assert texts == [[format_contribution(value) if np.isfinite(value) else "" for value in row] for row in values]


@each_style
@subtest_each("name", (*BY_POSITION, *BY_HEAD))
def test_colour_scale_is_symmetric_and_that_of_both_directions(style, name):
    patching_case = make_patching_case(style)
    (heatmap,) = patching_case.figure(name).parts
    pair = [f"{name.partition('_')[0]}_{way}" for way in INTO] if name.endswith(tuple(INTO)) else [name]
    largest = max(np.nanmax(np.abs(cell_values(patching_case.figure(one)))) for one in pair)
    if "Careful" in VIEW.sentence(patching_case.runs, Selection()):
        largest *= PALE_FACTOR
    assert (-heatmap["zmin"], heatmap["zmax"]) == (pytest.approx(largest), pytest.approx(largest))


@each_style
@subtest_each("direction", INTO)
@subtest_each("receiver", ["logits", "q", "v"])
def test_paths_lead_to_chosen_receiver(style, direction, receiver):
    patching_case = make_patching_case(style)
    config = patching_case.runs.trace.config
    shared = 2 * config.kv_heads // config.num_heads
    receiver_node = receiver if receiver == "logits" else (1, 2 if receiver == "q" else shared, receiver)
    expected = patching_case.expected(path_patching, receiver=receiver_node, direction=direction)
    figure = patching_case.figure("paths", receiver=receiver, patch_direction=direction)
    last = 2 if receiver == "logits" else 1
    assert_allclose(cell_values(figure)[:last], expected[:last], atol=1e-4)
    assert np.isnan(cell_values(figure)[last:]).all()
    alt = figure.layout["meta"]["alt"]
    name = "the logits" if receiver == "logits" else f"{receiver} of head {receiver_node[1]} of layer 1"
    assert f"direct paths to {name}, {INTO[direction]}" in alt and f"direct paths to {name}:" in describe_patching(
        patching_case.runs, patching_case.selection(receiver=receiver)
    )


@subtest_each("receiver", "kv")
def test_key_or_value_receiver_is_shared_head(lms, capture_trace, receiver):
    """With six heads and three key-value heads, pairs of heads share keys and values."""
    trace = capture_trace("grouped")
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    case = PatchingCase(
        Comparison.from_traces(trace, capture(lms["grouped"], ids, tokenizer=tokenizer())), lms["grouped"]
    )
    expected = [case.expected(path_patching, receiver=(1, shared, receiver))[0] for shared in range(3)]
    assert min(np.abs(one - other).max() for one, other in combinations(expected, 2)) > 1e-3
    for head in range(6):
        chosen = {"receiver": receiver, "head": head}
        assert_allclose(cell_values(case.figure("paths", **chosen))[0], expected[head // 2], atol=1e-4)
        derivation = PANEL["paths"].inspect(case.runs, case.selection(**chosen), ClickedPoint(x=4, y=0))
        assert derivation.recomputed_value == approx_effect(expected[head // 2][4])
        description = f"direct paths to {receiver} of head {head // 2} of layer 1"
        assert description in describe_patching(case.runs, case.selection(**chosen))


@each_style
@subtest_each("name", [*BY_POSITION, *BY_HEAD])
@subtest_each("direction", INTO)
def test_alt_text_names_largest_effect_and_direction(style, name, direction):
    patching_case = make_patching_case(style)
    figure = patching_case.figure(name, patch_direction=direction, receiver="logits")
    alt, values = figure.layout["meta"]["alt"], np.nan_to_num(cell_values(figure))
    layer, column = np.unravel_index(np.abs(values).argmax(), values.shape)
    assert f"the largest effect is {format_number(values[layer, column])}, of layer {layer}, column {column}." in alt
    shown_direction = name.partition("_")[2] if name.partition("_")[2] in INTO else direction
    assert INTO[shown_direction] in alt


@each_style
def test_cached_effects_are_not_reused_for_other_settings(style):
    """Cached effects are not drawn for another layer, receiver, metric or direction."""
    patching_case = make_patching_case(style)
    for name, one, other in (
        ("neurons", {"layer": 0}, {"layer": 1}),
        ("paths", {"receiver": "q"}, {"receiver": "logits"}),
        ("paths", {"patch_direction": "denoise"}, {"patch_direction": "noise"}),
        ("estimate", {"metric": "logit_difference"}, {"metric": "probability"}),
        ("estimate", {"patch_direction": "denoise"}, {"patch_direction": "noise"}),
    ):
        before, after, again = (patching_case.figure(name, **chosen) for chosen in (one, other, one))
        value = "y" if name == "neurons" else "z"
        assert before.parts[0][value] == again.parts[0][value] != after.parts[0][value], name


@each_style
@subtest_each("name", ["heads_denoise", "positions_noise"])
def test_clicked_cell_is_explained_one(style, name):
    patching_case = make_patching_case(style)
    figure, direction = patching_case.figure(name), name.partition("_")[2]
    for p in figure.points():
        if (p.x, p.y) not in ((0, 1), (2, 0), (2, 1)):
            continue
        derivation = PANEL[name].inspect(patching_case.runs, patching_case.selection(), clicked_point(p))
        assert derivation.value == pytest.approx(p.value, abs=1e-9)
        part = "attn.z" if "heads" in name else "resid_pre"
        expected = patching_case.expected(activation_patching, part=part, direction=direction)[int(p.y), int(p.x)]
        assert derivation.recomputed_value == approx_effect(expected)


@each_style
@subtest_each("clean_run", "ab")
def test_description_names_runs_and_metric(style, clean_run):
    patching_case = make_patching_case(style)
    lines = describe_patching(patching_case.runs, patching_case.selection(clean_run=clean_run)).split("\n")
    assert lines[0].startswith("clean: B, corrupted: A" if clean_run == "b" else "clean: A, corrupted: B")
    clean, corrupted = (
        (patching_case.runs.other, patching_case.runs.trace)
        if clean_run == "b"
        else (patching_case.runs.trace, patching_case.runs.other)
    )
    answer, wrong = proposed_answers(clean["logits"][-1], corrupted["logits"][-1])
    for name, run in (("clean", clean), ("corrupted", corrupted)):
        measured = float(run["logits"][-1][answer] - run["logits"][-1][wrong])
        assert contains_number(lines[1].split(f"m({name}) = ")[1].split(",")[0], measured)
