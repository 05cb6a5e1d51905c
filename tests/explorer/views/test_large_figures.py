"""Figures of long prompts and wide models: small enough to send."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from explorer.interventions import make_intervention
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from model.config import ModelConfig
from model.transformer_lm import TransformerLM
from tests.panels import JOB_PANELS, PANELS, shows, subject
from tests.sample_models import RECORD, SCORES, set_training_history, training_history
from tests.subtest_loops import subtest_each

from .figure_checks import FIGURES, assert_valid_figure, figure_json

TAPS_OF_EACH_SIZE = ["logits", "blocks.0.ffn.hidden", "blocks.0.attn.scores"]  # V, F and T numbers a row


LARGEST = 3_000_000  # bytes of JSON


@pytest.fixture(scope="module")
def long_traces() -> Iterator[list[Trace]]:
    """Yield edited runs of 256 tokens; all values are at least as wide as in the largest bundled model."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 6000, "context_length": 256, "d_model": 512, "num_layers": 1, "num_heads": 8, "d_ff": 2048}
    configs = ModelConfig.llama_style(**sizes), ModelConfig.gpt_style(**sizes)
    ids = torch.randint(6000, (256,)).tolist()
    runs, lms = [], [TransformerLM(config).eval() for config in configs]
    for lm in lms:
        training_info = training_history("long/step-000001", range(3), **RECORD, **SCORES)
        set_training_history(lm, training_info, lambda name, ids, edits, lm=lm: (lm, capture(lm, ids, edits)))
        changed = capture(lm, ids, (make_intervention("blocks.0.attn.z", "zero", index=1),))
        runs.append(replace(changed, baseline=capture(lm, ids)))
    yield runs
    del lms  # keeps the weights alive until here


def draw_long_run_figures(long_traces: list[Trace], name: str) -> Iterator[go.Figure]:
    long_trace = next(run for run in long_traces if shows(name, run))
    for tap in TAPS_OF_EACH_SIZE if name.startswith("activations") else ["logits"]:
        yield PANELS[name][1].draw(
            subject(PANELS[name][1], long_trace),
            Selection(query=255, key=100, tap=tap, dim=5999).clamp_to_trace(long_trace),
        )


# Without jobs, which would take minutes at that length and have small results.
LONG_RUN_FIGURES = [name for name in FIGURES if name not in JOB_PANELS]


@pytest.mark.exhaustive
@subtest_each("name", LONG_RUN_FIGURES)
def test_large_figures_are_valid_and_small_enough(long_traces, name):
    for figure in draw_long_run_figures(long_traces, name):
        assert_valid_figure(figure, PANELS[name][1])
        assert len(figure_json(figure)) < LARGEST
