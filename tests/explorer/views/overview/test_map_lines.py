"""Lines of the map: widths and ends."""

from itertools import pairwise

import numpy as np
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import forward_pass_overview
from explorer.views.overview import draw_model_map
from explorer.views.overview.map_layout import LandscapeLayout, PortraitLayout
from explorer.views.overview.map_parts import MapLine
from tests import layouts
from tests.subtest_loops import each_style, subtest_each

from .map_selection import SELECTION, target_token_id


@each_style
@subtest_each("kind", [LandscapeLayout, PortraitLayout])
def test_line_widths_are_proportional_to_norms(trace, kind):
    """Lines are identified by their ends."""
    pass_overview = forward_pass_overview(trace, SELECTION.query, target_token_id(trace))
    diagram = draw_model_map(trace, SELECTION)
    plan, sheet = kind(trace.config), diagram.sheets[[LandscapeLayout, PortraitLayout].index(kind)]
    longest = max(
        pass_overview.stream.max(), pass_overview.write_norms.max(), pass_overview.token, pass_overview.positions
    )

    def widths(lengths) -> np.ndarray:
        return np.maximum(1, plan.max_line_width * np.asarray(lengths) / longest)

    flows = [line for line in sheet.lines if not line.arrow]
    layers = range(plan.config.num_layers)
    for name, sublayer, column in (("attention", "attn", 0), ("feed_forward", "ffn", 1)):
        lines = [line for line in flows if line.kind == name]
        assert [ends(line, kind)[1] for line in lines] == [
            (plan.offset(layer, f"add_{sublayer}"), plan.stream) for layer in layers
        ]
        assert_allclose([line.width for line in lines], widths(pass_overview.write_norms[:, column]))
    stream = [line for line in flows if line.kind == "residual"]
    assert_allclose([line.width for line in stream], widths(pass_overview.stream))
    assert all(ends(a, kind)[1] == ends(b, kind)[0] for a, b in pairwise(stream))
    assert [ends(line, kind)[0][0] for line in stream[1:]] == plan.change_offsets()
    added = plan.position_added, plan.stream
    first = [line for line in flows if line.kind == "embedding" and ends(line, kind)[1] == added]
    assert_allclose(
        [line.width for line in first],
        widths([pass_overview.positions, pass_overview.token] if pass_overview.positions else []),
    )


def ends(line: MapLine, kind: type) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the first and last corner of a line as (along, across) the direction of the data."""
    first, last = line.corners[:2], line.corners[-2:]
    return (first, last) if kind is LandscapeLayout else (first[::-1], last[::-1])


@each_style
@subtest_each("kind", [LandscapeLayout, PortraitLayout])
def test_arrows_show_inputs(trace, kind):
    """Heads and feed-forward read the stream, o_proj reads the heads, and the heads read the angles."""
    is_post_norm = trace.config.norm_placement == "post"
    diagram = draw_model_map(trace, SELECTION)
    plan = kind(trace.config)
    read = {
        ends(line, kind) for line in diagram.sheets[[LandscapeLayout, PortraitLayout].index(kind)].lines if line.arrow
    }
    for layer in range(plan.config.num_layers):
        begins = {name: (plan.offset(layer, name), plan.stream) for name in ("read_attn", "read_ffn")}
        if plan.config.norm_placement == "shared":  # both sublayers read the output of one norm
            norm = plan.norm(layer, "attn_norm")
            read.remove(((norm[0], plan.stream), norm))
            begins = dict.fromkeys(begins, norm)
        begins["add_attn"] = plan.offset(layer, "add_attn"), plan.heads[1]
        for name, end in (
            ("read_attn", plan.heads[1]),
            ("add_attn", plan.o_proj[0]),
            ("read_ffn", plan.feed_forward[0]),
        ):
            read.remove((begins[name], (plan.offset(layer, name), end)))
        for sublayer, end in (("attn", plan.o_proj[1]), ("ffn", plan.feed_forward[0])):
            if name := layouts.output_norm(plan.config, sublayer):
                read.remove(((plan.offset(layer, f"add_{sublayer}"), end), plan.norm(layer, name)))
        if plan.config.has_rope(layer):
            read.remove(((plan.heads_centre(layer), plan.rotary), (plan.heads_centre(layer), plan.heads[0])))
    assert {end[0] for _, end in read} == {
        plan.offset_after_blocks("list") - 3,
        *([] if is_post_norm else [plan.offset_after_blocks("lm_head")]),
    }
