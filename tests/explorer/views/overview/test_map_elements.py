"""Elements of the map: their kinds, boxes and clicks."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import forward_pass_overview
from explorer.analysis.next_token import next_token_distribution, ranking_without_interventions
from explorer.explain.notation import format_six_digits
from explorer.state.selection import Selection
from explorer.views import VIEWS
from explorer.views.overview import draw_model_map
from explorer.views.overview.map_layout import LANDSCAPE_STREAM, Box, LandscapeLayout, PortraitLayout
from explorer.views.overview.map_parts import MapPart, MapPartBuilder
from tests import layouts
from tests.subtest_loops import each_style, subtest_each

from .map_selection import SELECTION, element_centre


@each_style
def test_every_component_of_every_block_is_drawn(trace):
    parts = draw_model_map(trace, SELECTION).parts
    config = trace.config
    layers, added = config.num_layers, config.position in ("sinusoidal", "learned")
    assert Counter(part.kind for part in parts) == Counter(
        token=1,
        position=added,
        addition=len(layouts.residual_sums(config)) + added,
        norm=len(layouts.block_norms(config)) + (config.norm_placement != "post"),
        rotation=sum(config.has_rope(layer) for layer in range(layers)),
        head=layers * config.num_heads,
        o_proj=layers,
        feed_forward=layers,
        lm_head=1,
        next_token=5,
    )


@each_style
@subtest_each("kind", [LandscapeLayout, PortraitLayout])
def test_elements_are_in_their_row_and_block(trace, kind):
    """Each kind is in its row across the data's direction; elements of a layer are within the edges of its block."""
    diagram = draw_model_map(trace, SELECTION)
    parts = diagram.parts
    sheet, plan = [LandscapeLayout, PortraitLayout].index(kind), kind(trace.config, 5)
    rows = {name: getattr(plan, name) for name in ("heads", "o_proj", "feed_forward", "position", "lm_head")}
    rows |= {"head": rows["heads"], "token": plan.beside_stream, "rotation": (plan.rotary - 11, plan.rotary + 11)}
    for part in parts:
        left, upper, right, lower = part.boxes[sheet]
        width, height = diagram.sheets[sheet].size
        assert 0 <= left < right <= width and 0 <= upper < lower <= height
        first, near, last, far = along_and_across(part.boxes[sheet], kind)
        if part.kind in rows:
            assert rows[part.kind][0] <= near and far <= rows[part.kind][1] + 1e-9
        if part.kind == "addition":
            assert (near + far) / 2 == pytest.approx(plan.stream)
        layer = part.selects.get("layer")
        if layer is not None and plan.start <= (first + last) / 2 <= plan.blocks_end:
            assert plan.layer_offset(layer, 0) - 1e-9 <= first and last <= plan.layer_offset(layer, 1) + 1e-9
    for part in parts:
        if part.kind == "head":
            assert part.boxes[sheet] == plan.head(part.selects["layer"], part.selects["head"])
            assert part.label == str(part.selects["head"])
    for kinds in (("token", "o_proj", "lm_head"), ("token", "addition", "lm_head")):
        ends = [along_and_across(part.boxes[sheet], kind)[::2] for part in parts if part.kind in kinds]
        assert all(a[1] < b[0] for a, b in pairwise(ends))


def along_and_across(box: Box, kind: type) -> Box:
    """Return (start, near, end, far) along and across the data flow: right on a wide page, down on a narrow one."""
    left, upper, right, lower = box
    return box if kind is LandscapeLayout else (upper, left, lower, right)


@each_style
def test_click_selection_is_valid(trace):
    parts = draw_model_map(trace, SELECTION).parts
    names = {view.name for view in VIEWS}
    numbers = {name for name, default in Selection().as_dict().items() if isinstance(default, int)}
    for part in parts:
        clicked = replace(SELECTION, **part.selects)
        assert clicked == clicked.clamp_to_trace(trace) and clicked.view in names
        assert set(part.selects) - {"view"} <= numbers


@each_style
def test_click_opens_tab_of_element(trace):
    parts = draw_model_map(trace, SELECTION).parts
    tabs = {
        "token": "tokens",
        "position": "positions",
        "norm": "residual",
        "addition": "residual",
        "rotation": "positions",
        "head": "attention",
        "o_proj": "attention",
        "feed_forward": "feed_forward",
        "lm_head": "prediction",
        "next_token": "overview",
    }
    assert all(part.selects.get("view", "overview") == tabs[part.kind] for part in parts)
    layers, per_layer = range(trace.config.num_layers), range(trace.config.num_heads)
    chosen = {kind: [without_view(part) for part in parts if part.kind == kind] for kind in tabs}
    assert chosen["head"] == [{"layer": layer, "head": head} for layer in layers for head in per_layer]
    for kind in ("o_proj", "feed_forward"):
        assert chosen[kind] == [{"layer": layer} for layer in layers]
    assert chosen["rotation"] == [{"layer": layer} for layer in layers if trace.config.has_rope(layer)]
    assert [*chosen["token"], *chosen["lm_head"]] == [{}, {}]
    assert chosen["next_token"] == [{"target": rank} for rank in range(1, 6)]


def without_view(part: MapPart) -> dict[str, int]:
    return {field: value for field, value in part.selects.items() if field != "view"}


BLOCK_ELEMENTS = {  # norm placement -> elements of a block in order
    "pre": ["norm", "o_proj", "addition", "norm", "feed_forward", "addition"],
    "post": ["o_proj", "addition", "norm", "feed_forward", "addition", "norm"],
    "parallel": ["norm", "o_proj", "norm", "feed_forward", "addition"],
    "output": ["o_proj", "norm", "addition", "feed_forward", "norm", "addition"],
    "sandwich": ["norm", "o_proj", "norm", "addition", "norm", "feed_forward", "norm", "addition"],
    "shared": ["norm", "o_proj", "feed_forward", "addition"],
}


@each_style
def test_norms_are_drawn_where_model_applies_them(trace):
    """Between an addition and the next block's input if post-norm, else before its sublayer or after it."""
    is_post_norm = trace.config.norm_placement == "post"
    parts = draw_model_map(trace, SELECTION).parts
    plan = LandscapeLayout(trace.config, 5)
    norms = [part for part in parts if part.kind == "norm"]
    ends = [part for part in norms if element_centre(part)[1] == LANDSCAPE_STREAM]
    assert len(ends) == (len(norms) if is_post_norm else 1)
    order = [part.kind for part in parts if part.kind not in ("head", "rotation", "next_token")]
    block = BLOCK_ELEMENTS[plan.config.norm_placement]
    first = order.index(block[0], order.index("token") + 1)
    last = first + 2 * len(block)
    assert order[first:last] == block * 2
    assert order[last:] == ([] if is_post_norm else ["norm"]) + ["lm_head"]
    for layer in range(plan.config.num_layers):
        for name in layouts.NORMS[plan.config.norm_placement]:
            x, y = plan.norm(layer, name)
            sublayer = name.split("_")[0]
            read, added = (plan.offset(layer, f"{kind}_{sublayer}") for kind in ("read", "add"))
            assert read < added
            shared = plan.config.norm_placement == "shared"  # at the input, before both sublayers branch off
            assert (y == LANDSCAPE_STREAM) is is_post_norm
            if layouts.output_norm(plan.config, sublayer) == name:
                assert x == added and (
                    plan.o_proj[1] < y < LANDSCAPE_STREAM or LANDSCAPE_STREAM < y < plan.feed_forward[0]
                )
                continue
            assert added < x if is_post_norm else x < read if shared else x == read
    assert plan.change_offsets() == sorted(plan.change_offsets())


@each_style
def test_next_tokens_include_chosen_tokens(trace):
    selection = replace(SELECTION, target=8, rival=20)
    listed = [
        part
        for part in MapPartBuilder(trace, selection, forward_pass_overview(trace, 9, 1, 2), "")
        if part.kind == "next_token"
    ]
    ranks = [1, 2, 3, 4, 5, 8, 20]
    assert [part.selects for part in listed] == [{"target": rank} for rank in ranks]
    order, plain, logits = (
        ranking_without_interventions(trace, 9),
        next_token_distribution(trace, 9).plain,
        trace["logits"][9],
    )
    assert_allclose([part.value for part in listed], [plain[order[rank - 1]] for rank in ranks])
    for rank, part in zip(ranks, listed, strict=True):
        chance, logit = format_six_digits(plain[order[rank - 1]]), format_six_digits(logits[order[rank - 1]])
        assert f": rank {rank}, probability {chance}\nlogit {logit}\n" in part.hover_text
    for sheet in (0, 1):
        rows = [part.boxes[sheet][1] for part in listed]
        assert rows == sorted(rows)
