import numpy as np
import pytest

from explorer.analysis.direct_logit_attribution import attribution_by_kind, direct_logit_attribution
from explorer.analysis.norms import apply_norm, compute_norm_divisor
from explorer.tracing.trace import Trace
from tests import layouts

TOKEN, RIVAL = 17, 230


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


@pytest.mark.parametrize("position", [0, 5, 11])
def test_the_parts_add_up_to_the_captured_logit(trace, position):
    result = direct_logit_attribution(trace, position, TOKEN)
    assert result.logit == trace["logits"][position, TOKEN]
    assert result.error <= 1e-4
    assert result.error == abs(result.total - result.logit)


def test_the_kinds_of_parts_are_all_of_them(trace):
    result = direct_logit_attribution(trace, 5, TOKEN, RIVAL)
    kinds = attribution_by_kind(trace, result)
    assert sum(kinds.values()) == pytest.approx(result.total, abs=1e-12)
    assert kinds["attention"] == pytest.approx(result.heads.sum() + result.biases.sum())
    assert ("position" in kinds) == ("position_embed" in trace)
    assert ("shift" in kinds) == (trace.config.norm == "layernorm")


@pytest.mark.parametrize("position", [0, 5, 11])
def test_the_parts_of_a_difference_are_the_differences_of_the_parts(trace, position):
    one, other, both = (direct_logit_attribution(trace, position, *ids) for ids in ((TOKEN,), (RIVAL,), (TOKEN, RIVAL)))
    assert both.error <= 1e-4
    for name in vars(both):
        np.testing.assert_allclose(getattr(both, name), getattr(one, name) - getattr(other, name), atol=1e-6)


def test_a_token_against_itself_is_nothing(trace):
    result = direct_logit_attribution(trace, 5, TOKEN, TOKEN)
    assert result.total == result.logit == result.error == 0


def test_taking_a_head_away_takes_its_part_away(trace):
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


def test_taking_a_feed_forward_or_the_embedding_away_takes_its_part_away(trace):
    result = direct_logit_attribution(trace, 9, TOKEN)
    whole = logit_with_fixed_norm_scales(trace, 9, TOKEN, {})
    expected = {f"blocks.{layer}.ffn.out": part for layer, part in enumerate(result.feed_forward)}
    expected["embed"] = result.token + result.positions
    for name, part in expected.items():
        remaining_logit = logit_with_fixed_norm_scales(trace, 9, TOKEN, {name: trace[name][9]})
        assert whole - remaining_logit == pytest.approx(part, abs=1e-5)


def test_what_a_model_lacks_adds_nothing(trace):
    result, config = direct_logit_attribution(trace, 5, TOKEN), trace.config
    assert (result.positions != 0) is (config.position in ("sinusoidal", "learned"))
    assert result.biases.all() if config.bias else not result.biases.any()
    assert (result.shift != 0) is (config.norm == "layernorm")


def test_an_added_position_has_its_own_part(trace_of):
    trace = trace_of("gpt")
    result = direct_logit_attribution(trace, 5, TOKEN)
    remaining_logit = logit_with_fixed_norm_scales(trace, 5, TOKEN, {"embed": trace["position_embed"][5]})
    assert result.logit - remaining_logit == pytest.approx(result.positions, abs=1e-4)
