import numpy as np
import pytest

from explorer.analysis.attribution import attribution, by_kind
from explorer.analysis.norms import apply_norm, norm_scale
from explorer.tracing.trace import Trace
from tests import layouts

TOKEN, RIVAL = 17, 230


def logit_with_scales_held(trace: Trace, position: int, token_id: int, without: dict[str, np.ndarray]) -> float:
    """The last sublayer's stream, put together anew less some vectors, through the norms and the cap as in the captured
    run.

    Args:
        without: name of the value that a vector is taken from -> the vector (D,).
    """

    def value(name):
        return trace[name][position].astype(np.float64) - without.get(name, 0)

    def norm(name, x, captured):
        return apply_norm(trace, name, x, norm_scale(trace, trace[captured][position], name))

    x, norms = value("embed"), layouts.norms(trace.config)

    def written(name):
        """What is added, or the norm of what its sublayer gives out."""
        return norm(name, value(norms[name]), norms[name]) if name in norms else value(name)

    for name, _before, added, after in layouts.sums(trace.config):
        x = x + sum(map(written, added))
        x = norm(after, x, norms[after]) if after != name else x
    x = norm("final_norm", x, f"blocks.{trace.config.num_layers - 1}.resid_post")
    bias = trace.weights["lm_head.bias"][token_id] if trace.config.unembedding_bias else 0
    logit = trace.weights["lm_head.weight"][token_id].astype(np.float64) @ x + bias
    return float(logit * layouts.cap_share(trace, position)[token_id])


@pytest.mark.parametrize("position", [0, 5, 11])
def test_the_parts_add_up_to_the_captured_logit(trace, position):
    parts = attribution(trace, position, TOKEN)
    assert parts.logit == trace["logits"][position, TOKEN]
    assert parts.error <= 1e-4
    assert parts.error == abs(parts.total - parts.logit)


def test_the_kinds_of_parts_are_all_of_them(trace):
    parts = attribution(trace, 5, TOKEN, RIVAL)
    kinds = by_kind(trace, parts)
    assert sum(kinds.values()) == pytest.approx(parts.total, abs=1e-12)
    assert kinds["attention"] == pytest.approx(parts.heads.sum() + parts.biases.sum())
    assert ("position" in kinds) == ("position_embed" in trace)
    assert ("shift" in kinds) == (trace.config.norm == "layernorm")


@pytest.mark.parametrize("position", [0, 5, 11])
def test_the_parts_of_a_difference_are_the_differences_of_the_parts(trace, position):
    one, other, both = (attribution(trace, position, *ids) for ids in ((TOKEN,), (RIVAL,), (TOKEN, RIVAL)))
    assert both.error <= 1e-4
    for name in vars(both):
        np.testing.assert_allclose(getattr(both, name), getattr(one, name) - getattr(other, name), atol=1e-6)


def test_a_token_against_itself_is_nothing(trace):
    parts = attribution(trace, 5, TOKEN, TOKEN)
    assert parts.total == parts.logit == parts.error == 0


def test_taking_a_head_away_takes_its_part_away(trace):
    """Head by head, in the stream of the model as it ran, every norm's divisor held."""
    position, d = 9, trace.config.d_head
    parts = attribution(trace, position, TOKEN)
    whole = logit_with_scales_held(trace, position, TOKEN, {})
    assert whole == pytest.approx(parts.logit, abs=1e-4)
    for layer, head in np.ndindex(parts.heads.shape):
        columns = trace.weights[f"blocks.{layer}.attn.o_proj.weight"][:, head * d : (head + 1) * d]
        written = columns @ trace[f"blocks.{layer}.attn.z"][head, position]
        less = logit_with_scales_held(trace, position, TOKEN, {f"blocks.{layer}.attn.out": written})
        assert whole - less == pytest.approx(parts.heads[layer, head], abs=1e-5)


def test_taking_a_feed_forward_or_the_embedding_away_takes_its_part_away(trace):
    parts = attribution(trace, 9, TOKEN)
    whole = logit_with_scales_held(trace, 9, TOKEN, {})
    expected = {f"blocks.{layer}.ffn.out": part for layer, part in enumerate(parts.feed_forward)}
    expected["embed"] = parts.token + parts.positions
    for name, part in expected.items():
        less = logit_with_scales_held(trace, 9, TOKEN, {name: trace[name][9]})
        assert whole - less == pytest.approx(part, abs=1e-5)


def test_what_a_model_lacks_adds_nothing(trace):
    parts, config = attribution(trace, 5, TOKEN), trace.config
    assert (parts.positions != 0) is (config.position in ("sinusoidal", "learned"))
    assert parts.biases.all() if config.bias else not parts.biases.any()
    assert (parts.shift != 0) is (config.norm == "layernorm")


def test_an_added_position_has_its_own_part(trace_of):
    trace = trace_of("gpt")
    parts = attribution(trace, 5, TOKEN)
    less = logit_with_scales_held(trace, 5, TOKEN, {"embed": trace["position_embed"][5]})
    assert parts.logit - less == pytest.approx(parts.positions, abs=1e-4)
