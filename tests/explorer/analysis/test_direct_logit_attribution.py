"""Direct logit attribution, its overview, and contributions of heads by the token that they read."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import (
    attribution_by_kind,
    direct_logit_attribution,
    forward_pass_overview,
)
from explorer.analysis.residual import apply_norm, compute_norm_divisor, sublayer_updates
from explorer.analysis.token_contributions import (
    attribution_by_source,
    contribution_without_source,
    derive_contribution_without_source,
    source_contribution,
    source_totals,
)
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from tests import layouts
from tests.sample_models import (
    capture_all_kinds_edited_style,
    capture_edited_style,
    capture_stream_edited_style,
)
from tests.subtest_loops import each_style, subtest_each

QUERY, TOKEN, CONTRAST_TOKEN = 9, 17, 230


def logit_with_fixed_norm_scales(trace: Trace, position: int, token_id: int, without: dict[str, np.ndarray]) -> float:
    """Recompute a logit from the last residual stream, less some vectors.

    The scales of norms and the share of the softcap stay those of the captured run.

    Args:
        without: tap -> the vector (D,) that is subtracted from its value.
    """

    def value(name):
        return trace[name][position].astype(np.float64) - without.get(name, 0)

    def norm(name, x, captured):
        return apply_norm(trace, name, x, compute_norm_divisor(trace, trace[captured][position], name))

    x, norms = value("embed"), layouts.block_norms(trace.config)

    def written_vector(name):
        """Return a sublayer's update to the residual stream, normalised if there is a post-norm."""
        return norm(name, value(norms[name]), norms[name]) if name in norms else value(name)

    for name, _before, added, after in layouts.residual_sums(trace.config):
        x = x + sum(map(written_vector, added))
        x = norm(after, x, norms[after]) if after != name else x
    x = norm("final_norm", x, f"blocks.{trace.config.num_layers - 1}.resid_post")
    bias = trace.weights["lm_head.bias"][token_id] if trace.config.unembedding_bias else 0
    logit = trace.weights["lm_head.weight"][token_id].astype(np.float64) @ x + bias
    return float(logit * layouts.softcap_factors(trace, position)[token_id])


@each_style
@subtest_each("position", [0, 5, 11])
def test_contributions_sum_to_captured_logit(trace, position):
    result = direct_logit_attribution(trace, position, TOKEN)
    assert result.logit == trace["logits"][position, TOKEN]
    assert result.error <= 1e-4
    assert result.error == abs(result.total - result.logit)


def test_added_embedding_vector_is_separate_from_token(lms, capture_trace):
    lm, position = lms["grouped"], 5
    assert lm.config.embedding_scale == 3
    trace = capture(lm, capture_trace("grouped").token_ids, parse_interventions("embed@2-*add*unembed.17-3*0.4"))
    token_vector = 3 * trace.weights["token_embedding.weight"][trace.token_ids[position]].astype(float)
    result = direct_logit_attribution(trace, position, TOKEN)
    with_token, without_token = (
        logit_with_fixed_norm_scales(trace, position, TOKEN, removed) for removed in ({}, {"embed": token_vector})
    )
    assert result.token == pytest.approx(with_token - without_token, abs=1e-5)
    assert abs(result.changes) > 1e-3


@each_style
def test_kinds_sum_to_total(trace):
    result = direct_logit_attribution(trace, 5, TOKEN, CONTRAST_TOKEN)
    kinds = attribution_by_kind(trace, result)
    assert sum(kinds.values()) == pytest.approx(result.total, abs=1e-12)
    assert kinds["attention"] == pytest.approx(result.heads.sum() + result.biases.sum())
    assert ("position" in kinds) == ("position_embed" in trace)
    assert ("shift" in kinds) == (trace.config.norm == "layernorm")


@each_style
@subtest_each("position", [0, 5, 11])
def test_attribution_is_linear_in_contrast(trace, position):
    one, other, both = (
        direct_logit_attribution(trace, position, *ids)
        for ids in ((TOKEN,), (CONTRAST_TOKEN,), (TOKEN, CONTRAST_TOKEN))
    )
    assert both.error <= 1e-4
    for name in vars(both):
        np.testing.assert_allclose(getattr(both, name), getattr(one, name) - getattr(other, name), atol=1e-6)


@each_style
def test_token_against_itself_is_0(trace):
    result = direct_logit_attribution(trace, 5, TOKEN, TOKEN)
    assert result.total == result.logit == result.error == 0


@each_style
def test_head_contribution_equals_logit_loss_without_head(trace):
    """Head by head, in the residual stream of the captured run, with the scale of every norm held fixed."""
    position, d = 9, trace.config.d_head
    result = direct_logit_attribution(trace, position, TOKEN)
    whole = logit_with_fixed_norm_scales(trace, position, TOKEN, {})
    assert whole == pytest.approx(result.logit, abs=1e-4)
    for layer, head in np.ndindex(result.heads.shape):
        columns = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:, head * d : (head + 1) * d]
        head_output = columns @ trace[f"blocks.{layer}.attn.z"][head, position]
        remaining_logit = logit_with_fixed_norm_scales(
            trace, position, TOKEN, {f"blocks.{layer}.attn.out": head_output}
        )
        assert whole - remaining_logit == pytest.approx(result.heads[layer, head], abs=1e-5)


@each_style
def test_sublayer_contribution_equals_logit_loss_without_it(trace):
    result = direct_logit_attribution(trace, 9, TOKEN)
    whole = logit_with_fixed_norm_scales(trace, 9, TOKEN, {})
    expected = {f"blocks.{layer}.ffn.out": part for layer, part in enumerate(result.feed_forward)}
    expected["embed"] = result.token + result.positions
    for name, part in expected.items():
        remaining_logit = logit_with_fixed_norm_scales(trace, 9, TOKEN, {name: trace[name][9]})
        assert whole - remaining_logit == pytest.approx(part, abs=1e-5)


@each_style
def test_absent_parts_contribute_0(trace):
    result, config = direct_logit_attribution(trace, 5, TOKEN), trace.config
    assert (result.positions != 0) is (config.position in ("sinusoidal", "learned"))
    assert result.biases.all() if config.bias else not result.biases.any()
    assert (result.shift != 0) is (config.norm == "layernorm")


def test_position_contribution_equals_logit_loss_without_it(capture_trace):
    trace = capture_trace("gpt")
    result = direct_logit_attribution(trace, 5, TOKEN)
    remaining_logit = logit_with_fixed_norm_scales(trace, 5, TOKEN, {"embed": trace["position_embed"][5]})
    assert result.logit - remaining_logit == pytest.approx(result.positions, abs=1e-4)


@each_style
def test_norms_match_sublayer_updates(trace):
    run_overview = forward_pass_overview(trace, QUERY, TOKEN)
    added = sublayer_updates(trace, QUERY)
    assert_allclose(run_overview.write_norms.ravel(), added.norms, rtol=1e-6)
    sums = layouts.residual_sums(trace.config)
    before = [
        np.sqrt((trace[old][QUERY].astype(float) ** 2).sum()) for _name, old, outs, _after in sums for _out in outs
    ]
    assert_allclose(added.before, before, rtol=1e-6)
    stream = ["embed", *dict.fromkeys(tap for name, _old, _outs, after in sums for tap in (name, after))]
    lengths = [np.sqrt((trace[tap][QUERY].astype(float) ** 2).sum()) for tap in stream]
    assert_allclose(run_overview.stream, lengths, rtol=1e-6)


@each_style
def test_token_and_position_norms_are_separate(trace):
    run_overview = forward_pass_overview(trace, QUERY, TOKEN)
    table = trace.weights["token_embedding.weight"][trace.token_ids[QUERY]].astype(float)
    scale = np.sqrt(trace.config.d_model) if trace.config.scale_embeddings else trace.config.embedding_multiplier
    assert run_overview.token == pytest.approx(scale * np.sqrt((table**2).sum()), rel=1e-5)
    if trace.config.position in ("sinusoidal", "learned"):
        assert run_overview.positions == pytest.approx(np.linalg.norm(trace["position_embed"][QUERY]), rel=1e-6)
    else:
        assert run_overview.positions == 0


@each_style
def test_head_write_norms_match_output_projection(trace):
    run_overview = forward_pass_overview(trace, QUERY, TOKEN)
    d = trace.config.d_head
    for layer in range(trace.config.num_layers):
        output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"].astype(float)
        summed_outputs = np.zeros(trace.config.d_model)
        for head in range(trace.config.num_heads):
            single_head_z = np.zeros(trace.config.num_heads * d)
            single_head_z[head * d : (head + 1) * d] = trace[f"blocks.{layer}.attn.z"][head, QUERY]
            added = layouts.residual_contributions(trace, layer, "attn", output @ single_head_z, QUERY)
            assert run_overview.head_write_norms[layer, head] == pytest.approx(np.linalg.norm(added), rel=1e-6)
            summed_outputs += output @ single_head_z
        summed_outputs += trace.weights.get(f"blocks.{layer}.attn.o_proj.bias", 0)
        assert_allclose(summed_outputs, trace[f"blocks.{layer}.attn.out"][QUERY], atol=1e-5)


@each_style
def test_divisors_match_norms(trace):
    run_overview = forward_pass_overview(trace, QUERY, TOKEN)
    norms = layouts.block_norms(trace.config)
    if trace.config.norm_placement != "post":
        norms["final_norm"] = f"blocks.{trace.config.num_layers - 1}.resid_post"
    assert list(run_overview.divisors) == list(norms)
    for name, read in norms.items():
        x = trace[read][QUERY].astype(float)
        spread = x.var() if trace.config.norm == "layernorm" else (x**2).mean()
        assert run_overview.divisors[name] == pytest.approx(np.sqrt(spread + trace.config.norm_eps))


@each_style
@subtest_each("rival", [None, CONTRAST_TOKEN])
def test_overview_agrees_with_attribution(trace, rival):
    model_overview, parts = (
        forward_pass_overview(trace, QUERY, TOKEN, rival),
        direct_logit_attribution(trace, QUERY, TOKEN, rival),
    )
    assert_allclose(model_overview.logit_effects[:, 0], parts.heads.sum(1) + parts.biases)
    assert_allclose(model_overview.logit_effects[:, 1], parts.feed_forward)
    whole = (
        model_overview.attribution.token
        + model_overview.attribution.positions
        + model_overview.logit_effects.sum()
        + model_overview.attribution.shift
    )
    assert whole == pytest.approx(parts.logit, abs=1e-4)


@each_style
@subtest_each("position", [0, 5, 11])
def test_sources_sum_to_head_contribution(trace, position):
    parts = direct_logit_attribution(trace, position, TOKEN, CONTRAST_TOKEN)
    sources = attribution_by_source(trace, position, TOKEN, CONTRAST_TOKEN)
    assert_allclose(sources.effects.sum(-1), parts.heads, atol=1e-5)
    assert not sources.effects[..., position + 1 :].any() and not sources.norms[..., position + 1 :].any()
    assert not sources.changed_heads.any()


@each_style
@subtest_each("capture", [None, capture_edited_style, capture_stream_edited_style, capture_all_kinds_edited_style])
@subtest_each(("token", "rival"), [(TOKEN, None), (TOKEN, CONTRAST_TOKEN)])
def test_source_totals_and_rest_sum_to_logit(style, trace, capture, token, rival):
    run = capture(style) if capture else trace
    totals, rest = source_totals(run, QUERY, token, rival), contribution_without_source(run, QUERY, token, rival)
    parts = direct_logit_attribution(run, QUERY, token, rival)
    assert totals.shape == (QUERY + 1,)
    assert totals.sum() + rest == pytest.approx(parts.logit, abs=1e-4)
    for key in (0, QUERY - 1, QUERY):
        derivation = source_contribution(run, QUERY, token, rival, key)
        assert derivation.value == totals[key] == pytest.approx(derivation.recomputed_value, abs=1e-5)
    derivation = derive_contribution_without_source(run, QUERY, token, rival)
    assert derivation.value == rest == pytest.approx(derivation.recomputed_value, abs=1e-5)


@pytest.mark.parametrize("kind", ["grouped", "local"])
def test_grouped_heads_and_unembedding_bias_sum_too(capture_trace, kind):
    parts = direct_logit_attribution(capture_trace(kind), QUERY, TOKEN, CONTRAST_TOKEN)
    assert parts.error <= 1e-4
    sources = attribution_by_source(capture_trace(kind), QUERY, TOKEN, CONTRAST_TOKEN)
    assert_allclose(sources.effects.sum(-1), parts.heads, atol=1e-5)


@each_style
def test_source_norms_match_written_vectors(trace):
    config, norms = trace.config, attribution_by_source(trace, QUERY, TOKEN).norms
    for layer, head, key in np.ndindex(config.num_layers, config.num_heads, QUERY + 1):
        block, d = f"blocks.{layer}.attn", config.d_head
        value = trace[f"{block}.v"][head * len(trace[f"{block}.v"]) // config.num_heads, key]
        written = trace.weights[f"{block}.o_proj.weight"][:, head * d : (head + 1) * d].astype(float) @ value
        [added] = layouts.residual_contributions(trace, layer, "attn", written[None], QUERY)
        weight = trace[f"{block}.pattern"][head, QUERY, key]
        assert norms[layer, head, key] == pytest.approx(weight * np.linalg.norm(added), rel=1e-5, abs=1e-9)


@each_style
@subtest_each("capture", [capture_edited_style, capture_stream_edited_style, capture_all_kinds_edited_style])
def test_intervened_heads_have_no_sources(style, capture):
    trace = capture(style)
    parts, sources = (measure(trace, QUERY, TOKEN) for measure in (direct_logit_attribution, attribution_by_source))
    sums = sources.effects.sum(-1)
    assert_allclose(sums + sources.changed_heads, parts.heads, atol=1e-5)
    is_changed = sources.changed_heads != 0
    assert not sums[is_changed].any() and not sources.norms[is_changed].any()
    if capture is capture_all_kinds_edited_style:
        assert np.argwhere(is_changed).tolist() == [[0, 2]]
