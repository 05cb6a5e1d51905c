"""Derivations in a run whose norms are changed at some positions use the norm of each position."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import (
    LOGIT_COMPONENTS,
    component_contribution,
    forward_pass_overview,
    head_contribution,
)
from explorer.analysis.feed_forward import neuron_logit_effects
from explorer.analysis.logit_lens import LENSES, depth_names, lens_cell
from explorer.analysis.residual import norm_divisor
from explorer.architecture.formulas import has_logit_bias_terms
from explorer.interventions import parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views.residual import VIEW
from explorer.views.run_difference_figures import norm_divisors_text
from tests.sample_models import CORE, capture_style, models
from tests.subtest_loops import subtest_each

NAMES = ("blocks.1.attn_norm", "blocks.1.ffn_norm", "final_norm")
OFF, ON = 5, 6  # positions with norms off, and with norms unchanged
TOKEN, CONTRAST_TOKEN = 17, 3


core_styles = subtest_each("style", CORE)


@cache
def capture_without_norms(style: str) -> Trace:
    """Return the run of `capture_style` with norms off at one position."""
    edits = parse_interventions("~".join(f"{name}@{OFF}*norm*none" for name in NAMES))
    return capture(models()[style], capture_style(style).token_ids, edits)


@core_styles
def test_overview_divides_by_1_where_norm_is_off(style):
    changed_trace = capture_without_norms(style)
    off, on = (forward_pass_overview(changed_trace, position, TOKEN).divisors for position in (OFF, ON))
    assert [off[name] for name in NAMES] == [1, 1, 1] and all(on[name] != 1 for name in NAMES)
    assert off["blocks.0.attn_norm"] != 1


@core_styles
def test_neuron_effects_use_norm_at_their_position(style):
    changed_trace = capture_without_norms(style)
    gains, table = changed_trace.weights["final_norm.weight"], changed_trace.weights["lm_head.weight"]
    column = changed_trace.weights["blocks.1.ffn.down_proj.weight"][:, 7]
    assert_allclose(neuron_logit_effects(changed_trace, 1, 7, OFF), table @ (gains * column), atol=1e-5)
    x = changed_trace["blocks.1.resid_post"][ON].astype(np.float64)
    if changed_trace.config.norm == "layernorm":
        x, column = x - x.mean(), column - column.mean()
    size = np.sqrt((x**2).mean() + changed_trace.config.norm_eps)
    assert_allclose(neuron_logit_effects(changed_trace, 1, 7, ON), table @ (gains * column / size), atol=1e-5)


@core_styles
def test_drawn_values_are_recomputed(style):
    changed_trace = capture_without_norms(style)
    available = {"shift": has_logit_bias_terms(changed_trace.config), "position": "position_embed" in changed_trace}
    components = [part for part in LOGIT_COMPONENTS if available.get(part, True)]
    for position in (OFF, ON):
        cells = [
            lens_cell(changed_trace, len(depth_names(changed_trace)) - 1, position, TOKEN, kind) for kind in LENSES
        ]
        parts = [component_contribution(changed_trace, position, TOKEN, CONTRAST_TOKEN, part, 1) for part in components]
        heads = [
            head_contribution(changed_trace, position, TOKEN, None, 1, head)
            for head in range(changed_trace.config.num_heads)
        ]
        divided = [norm_divisor(changed_trace, name, position) for name in NAMES]
        for derivation in (*cells, *parts, *heads, *divided):
            assert derivation.recomputed_value == pytest.approx(derivation.value, rel=1e-4, abs=1e-5), derivation.name
        assert [scale.value == 1 for scale in divided] == [position == OFF] * 3


@core_styles
def test_formula_text_names_changed_norms(style):
    changed_trace, trace = capture_without_norms(style), capture_style(style)
    off, on = (VIEW.formula(changed_trace, Selection(layer=1, query=query)) for query in (OFF, ON))
    assert off.count("its kind was changed") == 2 and "its kind was changed" not in on
    runs = Comparison.from_traces(changed_trace, trace)
    assert "divides by 1.00, unchanged by" in norm_divisors_text(
        runs, OFF
    ) and "divides by 1.00," not in norm_divisors_text(runs, ON)
