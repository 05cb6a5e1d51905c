"""Where a run has another norm at some tokens, all that goes through it does so as it went there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.feed_forward import pushed
from explorer.analysis.lens import LENSES, depths
from explorer.analysis.overview import overview
from explorer.architecture.shifts import has_shifts
from explorer.explain.analysed.attribution import PARTS, head_part, logit_part
from explorer.explain.analysed.lens import lens_cell
from explorer.explain.analysed.residual import divisor
from explorer.state.interventions import parse_edits
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views.experiments.stand_ins import norms
from explorer.views.residual import VIEW
from tests.specimens import CORE

NAMES = ("blocks.1.attn_norm", "blocks.1.ffn_norm", "final_norm")
OFF, ON = 5, 6  # tokens at which they are off, and as they were
TOKEN, RIVAL = 17, 3


@pytest.fixture(params=CORE)
def style(request) -> str:
    return request.param


@pytest.fixture
def changed(lms, trace, style) -> Trace:
    edits = parse_edits("~".join(f"{name}@{OFF}*norm*none" for name in NAMES))
    return capture(lms[style], trace.token_ids, edits)


def test_the_map_divides_by_1_where_a_norm_is_off(changed):
    off, on = (overview(changed, position, TOKEN).divisors for position in (OFF, ON))
    assert [off[name] for name in NAMES] == [1, 1, 1] and all(on[name] != 1 for name in NAMES)
    assert off["blocks.0.attn_norm"] != 1


def test_a_neuron_pushes_through_the_last_norm_as_it_is_there(changed):
    gains, table = changed.weights["final_norm.weight"], changed.weights["lm_head.weight"]
    column = changed.weights["blocks.1.ffn.down_proj.weight"][:, 7]
    assert_allclose(pushed(changed, 1, 7, OFF), table @ (gains * column), atol=1e-5)
    x = changed["blocks.1.resid_post"][ON].astype(np.float64)
    if changed.config.norm == "layernorm":
        x, column = x - x.mean(), column - column.mean()
    size = np.sqrt((x**2).mean() + changed.config.norm_eps)
    assert_allclose(pushed(changed, 1, 7, ON), table @ (gains * column / size), atol=1e-5)


def test_what_is_drawn_is_worked_out_again(changed):
    there = {"shift": has_shifts(changed.config), "position": "position_embed" in changed}
    named = [part for part in PARTS if there.get(part, True)]
    for position in (OFF, ON):
        cells = [lens_cell(changed, len(depths(changed)) - 1, position, TOKEN, kind) for kind in LENSES]
        parts = [logit_part(changed, position, TOKEN, RIVAL, part, 1) for part in named]
        heads = [head_part(changed, position, TOKEN, None, 1, head) for head in range(changed.config.num_heads)]
        divided = [divisor(changed, name, position) for name in NAMES]
        for derivation in (*cells, *parts, *heads, *divided):
            assert derivation.recomputed == pytest.approx(derivation.value, rel=1e-4, abs=1e-5), derivation.name
        assert [each.value == 1 for each in divided] == [position == OFF] * 3


def test_words_say_which_it_is(changed, trace):
    off, on = (VIEW.formula(changed, Selection(layer=1, query=query)) for query in (OFF, ON))
    assert off.count("its kind was changed") == 2 and "its kind was changed" not in on
    runs = Comparison.of(changed, trace)
    assert "divides by 1.00, unchanged by" in norms(runs, OFF) and "divides by 1.00," not in norms(runs, ON)
