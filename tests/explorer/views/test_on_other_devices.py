"""Figures of models on other devices equal the CPU's, with the same verification."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.model_registry import get_model
from explorer.tracing.trace import Trace
from tests.devices import on_each_device
from tests.exhaustive import first_in_core
from tests.panels import PANELS, capture_panel_run, shows, subject
from tests.sample_models import CORE, capture_style, models, set_training_history, tokenizer

from .figure_checks import figure_numbers

CASES = [pytest.param(*case) for case in product(CORE, [float("inf"), 0])]  # full, lazy


@on_each_device
@pytest.mark.parametrize(("style", "most_bytes"), first_in_core(CASES))
def test_figures_agree_with_cpu_and_are_verified(style, most_bytes, device):
    device_lm = deepcopy(models()[style]).to(device)
    offered = get_model(capture_style(style).model)[1]
    set_training_history(device_lm, offered.training, offered.read)

    @cache
    def run_on_device(run: Trace) -> Trace:
        trace = capture(device_lm, run.token_ids, run.edits, tokenizer=tokenizer(), max_bytes=most_bytes)
        return replace(trace, baseline=run.baseline and run_on_device(run.baseline))

    for name in PANELS:
        if not shows(name, run := capture_panel_run(name, style)):
            continue
        panel = PANELS[name][1]
        selection = Selection(layer=1, head=2, query=10, key=3, rival=2).clamp_to_trace(run)
        about = [subject(panel, run_or_pair) for run_or_pair in (run, run_on_device(run))]
        expected, actual = (figure_numbers(panel.draw(run_or_pair, selection)) for run_or_pair in about)
        np.testing.assert_allclose(actual, expected, rtol=1e-2, atol=1e-2, err_msg=name)
        marks = [panel.verify(run_or_pair, selection).state for run_or_pair in about] if panel.verify else ["", ""]
        assert marks[0] == marks[1] != "off", name
