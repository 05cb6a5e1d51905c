"""Shapes of values that have not been computed."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.tracing.capture import capture, tap_shapes
from model.transformer_lm import TransformerLM
from tests.sample_models import STYLES, models


@pytest.mark.parametrize("style", STYLES)
def test_the_config_tells_names_order_and_shapes_of_a_pass(style):
    lm = models()[style]
    captured = capture(lm, [3, 1, 4, 1, 5]).values
    assert list(tap_shapes(lm.config, 5).items()) == [(name, value.shape) for name, value in captured.items()]


def test_so_it_does_of_heads_that_are_wider_than_their_share_of_the_stream(tiny_config):
    config = replace(tiny_config, head_dim=2 * tiny_config.d_head, rotary_dim=2)
    captured = capture(TransformerLM(config).eval(), [3, 1, 4]).values
    assert tap_shapes(config, 3) == {name: value.shape for name, value in captured.items()}


def test_it_takes_no_random_numbers(tiny_config):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    tap_shapes(replace(tiny_config, norm_eps=3e-5), 3)  # a config whose shapes are not cached
    np.testing.assert_array_equal(torch.rand(1), expected)


@pytest.mark.exhaustive
def test_a_first_run_imports_nothing_of_the_compiler():
    """Importing the compiler takes longer than a pass of a model with 1.2 billion parameters."""
    code = """
import sys
from explorer.tracing.capture import capture
from model import ModelConfig, TransformerLM
config = ModelConfig(vocab_size=50, context_length=8, d_model=16, num_layers=2, num_heads=2, d_ff=16)
capture(TransformerLM(config).eval(), [1, 2], max_bytes=1000)
print(*(name for name in ("sympy", "torch._dynamo") if name in sys.modules))
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not process.stdout.strip()
