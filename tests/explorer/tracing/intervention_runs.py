"""Runs with interventions, and their expected values."""

from dataclasses import replace

from numpy.testing import assert_allclose

from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from model.transformer_lm import TransformerLM

IDS = list(range(40, 52))


def rebuild_model(lm: TransformerLM, **choices) -> TransformerLM:
    """Return a model of another config with the same weights."""
    other = TransformerLM(replace(lm.config, **choices)).eval().requires_grad_(False)
    other.load_state_dict(lm.state_dict())
    return other


def run(lm: TransformerLM, *texts: str):
    return capture(lm, IDS, parse_interventions(texts))


def assert_same(trace, expected, atol: float = 1e-5):
    assert list(trace.values) == list(expected.values)
    for name, value in expected.values.items():
        assert_allclose(trace[name], value, atol=atol, err_msg=name)


def assert_clean(lm: TransformerLM):
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in lm.modules())
