"""The running sum below the map."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import forward_pass_overview
from explorer.views.overview import VIEW, draw_logit_waterfall, draw_model_map
from explorer.views.overview.map_layout import LANDSCAPE_WIDTH, LandscapeLayout
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL
from tests.subtest_loops import each_style

from .map_selection import SELECTION, element_centre, target_token_id


@each_style
def test_running_sum_goes_from_zero_to_logit(trace):
    token_id = target_token_id(trace)
    pass_overview = forward_pass_overview(trace, SELECTION.query, token_id)
    bars = draw_logit_waterfall(trace, SELECTION).data[0]
    starts, values = np.array(bars.base), np.array(bars.y)
    assert starts[0] == 0
    assert_allclose(starts[1:-1], (starts + values)[:-2], atol=1e-9)
    assert starts[-1] == 0
    assert values[-1] == pytest.approx(trace["logits"][SELECTION.query, token_id], abs=1e-4)
    assert values[:-1].sum() == pytest.approx(values[-1])
    added, shifted = trace.config.position in ("sinusoidal", "learned"), trace.config.norm == "layernorm"
    sublayers = [ATTENTION, FEED_FORWARD] * trace.config.num_layers
    assert list(bars.marker.color) == [EMBEDDING] * (1 + added) + sublayers + [NORM] * shifted + [RESIDUAL]
    assert_allclose(values[1 + added : 1 + added + len(sublayers)], pass_overview.logit_effects.ravel())
    assert list(bars.x) == sorted(bars.x)


@each_style
def test_running_sum_steps_are_below_their_elements(trace):
    """Aligned in pixels too: both figures fill their panel's width."""
    diagram = draw_model_map(trace, SELECTION)
    parts = diagram.parts
    fig, panels = draw_logit_waterfall(trace, SELECTION), {panel.name: panel for panel in VIEW.panels}
    token, *additions = (element_centre(part)[0] for part in parts if part.kind in ("token", "addition"))
    end = [element_centre(part)[0] for part in parts if part.kind == "norm"][-1:] * (trace.config.norm == "layernorm")
    if trace.config.norm_placement == "post":
        end = [LandscapeLayout(trace.config).offset_after_blocks("final_norm")] * (trace.config.norm == "layernorm")
    (last,) = (element_centre(part)[0] for part in parts if part.kind == "lm_head")
    if trace.config.norm_placement in ("parallel", "shared"):  # two bars, left and right of their common addition
        first = 1 + (trace.config.position == "learned")
        assert_allclose(fig.data[0].x[:first], [token, *additions][:first])
        *pairs, drawn_end, drawn_last = fig.data[0].x[first:]
        assert_allclose(np.reshape(pairs, (-1, 2)).mean(1), [token, *additions][first:])
        assert (np.diff(pairs) > fig.data[0].width).all() and (drawn_end, drawn_last) == (*end, last)
    else:
        assert_allclose(fig.data[0].x, [token, *additions, *end, last])
    assert tuple(fig.layout.xaxis.range) == (0, diagram.sheets[0].size[0])
    assert (fig.layout.margin.l, fig.layout.margin.r) == (0, 0)
    assert fig.layout.xaxis.automargin == "height" and fig.layout.yaxis.automargin is False
    assert panels["map"].min_width == panels["sum"].min_width == LANDSCAPE_WIDTH
    assert (LANDSCAPE_WIDTH, panels["map"].height) == diagram.sheets[0].size
