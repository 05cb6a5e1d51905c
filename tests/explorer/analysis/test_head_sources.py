"""Contributions of heads by the token that they read, and norms of the vectors that they write."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import direct_logit_attribution, head_sources
from tests import layouts
from tests.sample_models import capture_all_kinds_edited_style, capture_edited_style, capture_stream_edited_style

QUERY, TOKEN, RIVAL = 9, 17, 230


@pytest.mark.parametrize("position", [0, 5, 11])
def test_sources_add_up_to_their_head(trace, position):
    parts = direct_logit_attribution(trace, position, TOKEN, RIVAL)
    sources = head_sources(trace, position, TOKEN, RIVAL)
    assert_allclose(sources.effects.sum(-1), parts.heads, atol=1e-5)
    assert not sources.effects[..., position + 1 :].any() and not sources.norms[..., position + 1 :].any()
    assert not sources.changed_heads.any()


def test_norms_are_those_of_the_written_vectors(trace):
    config, norms = trace.config, head_sources(trace, QUERY, TOKEN).norms
    for layer, head, key in np.ndindex(config.num_layers, config.num_heads, QUERY + 1):
        block, d = f"blocks.{layer}.attn", config.d_head
        value = trace[f"{block}.v"][head * len(trace[f"{block}.v"]) // config.num_heads, key]
        written = trace.weights[f"{block}.o_proj.weight"][:, head * d : (head + 1) * d].astype(float) @ value
        [added] = layouts.residual_contributions(trace, layer, "attn", written[None], QUERY)
        weight = trace[f"{block}.pattern"][head, QUERY, key]
        assert norms[layer, head, key] == pytest.approx(weight * np.linalg.norm(added), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("capture", [capture_edited_style, capture_stream_edited_style, capture_all_kinds_edited_style])
def test_heads_that_are_changed_have_no_sources(style, capture):
    trace = capture(style)
    parts, sources = (measure(trace, QUERY, TOKEN) for measure in (direct_logit_attribution, head_sources))
    sums = sources.effects.sum(-1)
    assert_allclose(sums + sources.changed_heads, parts.heads, atol=1e-5)
    is_changed = sources.changed_heads != 0
    assert not sums[is_changed].any() and not sources.norms[is_changed].any()
    if capture is capture_all_kinds_edited_style:
        assert np.argwhere(is_changed).tolist() == [[0, 2]]
