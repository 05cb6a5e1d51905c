import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.direct_logit_attribution import direct_logit_attribution, overview
from explorer.analysis.residual import sublayer_updates
from tests import layouts

QUERY, TOKEN, RIVAL = 9, 17, 230


@pytest.fixture
def found(trace):
    return overview(trace, QUERY, TOKEN)


def test_lengths_are_those_of_what_each_sublayer_adds(trace, found):
    added = sublayer_updates(trace, QUERY)
    assert_allclose(found.write_norms.ravel(), added.norms, rtol=1e-6)
    sums = layouts.residual_sums(trace.config)
    before = [
        np.sqrt((trace[old][QUERY].astype(float) ** 2).sum()) for _name, old, outs, _after in sums for _out in outs
    ]
    assert_allclose(added.before, before, rtol=1e-6)
    stream = ["embed", *dict.fromkeys(tap for name, _old, _outs, after in sums for tap in (name, after))]
    lengths = [np.sqrt((trace[tap][QUERY].astype(float) ** 2).sum()) for tap in stream]
    assert_allclose(found.stream, lengths, rtol=1e-6)


def test_embedding_and_position_are_apart(trace, found):
    table = trace.weights["token_embedding.weight"][trace.token_ids[QUERY]].astype(float)
    scale = np.sqrt(trace.config.d_model) if trace.config.scale_embeddings else trace.config.embedding_multiplier
    assert found.token == pytest.approx(scale * np.sqrt((table**2).sum()), rel=1e-5)
    if trace.config.position in ("sinusoidal", "learned"):
        assert found.positions == pytest.approx(np.linalg.norm(trace["position_embed"][QUERY]), rel=1e-6)
    else:
        assert found.positions == 0


def test_a_head_writes_what_the_output_projection_makes_of_it_alone(trace, found):
    d = trace.config.d_head
    for layer in range(trace.config.num_layers):
        output = trace.weights[f"blocks.{layer}.attn.o_proj.weight"].astype(float)
        summed_outputs = np.zeros(trace.config.d_model)
        for head in range(trace.config.num_heads):
            single_head_z = np.zeros(trace.config.num_heads * d)
            single_head_z[head * d : (head + 1) * d] = trace[f"blocks.{layer}.attn.z"][head, QUERY]
            added = layouts.residual_contributions(trace, layer, "attn", output @ single_head_z, QUERY)
            assert found.head_write_norms[layer, head] == pytest.approx(np.linalg.norm(added), rel=1e-6)
            summed_outputs += output @ single_head_z
        summed_outputs += trace.weights.get(f"blocks.{layer}.attn.o_proj.bias", 0)
        assert_allclose(summed_outputs, trace[f"blocks.{layer}.attn.out"][QUERY], atol=1e-5)


def test_divisors_are_those_of_the_norms(trace, found):
    norms = layouts.block_norms(trace.config)
    if trace.config.norm_placement != "post":
        norms["final_norm"] = f"blocks.{trace.config.num_layers - 1}.resid_post"
    assert list(found.divisors) == list(norms)
    for name, read in norms.items():
        x = trace[read][QUERY].astype(float)
        spread = x.var() if trace.config.norm == "layernorm" else (x**2).mean()
        assert found.divisors[name] == pytest.approx(np.sqrt(spread + trace.config.norm_eps))


@pytest.mark.parametrize("rival", [None, RIVAL])
def test_what_is_added_is_what_attribution_finds(trace, rival):
    model_overview, parts = overview(trace, QUERY, TOKEN, rival), direct_logit_attribution(trace, QUERY, TOKEN, rival)
    assert_allclose(model_overview.logit_effects[:, 0], parts.heads.sum(1) + parts.biases)
    assert_allclose(model_overview.logit_effects[:, 1], parts.feed_forward)
    whole = (
        model_overview.attribution.token
        + model_overview.attribution.positions
        + model_overview.logit_effects.sum()
        + model_overview.attribution.shift
    )
    assert whole == pytest.approx(parts.logit, abs=1e-4)
