"""The pictures of a model on another device are those of the CPU, and vouched for as these are."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.models import asked
from explorer.tracing.trace import Trace
from tests.devices import on_each_device
from tests.panels import PANELS, run_of, shows, subject
from tests.specimens import CORE, know_training, models, tokenizer, trace_of

from .every_picture import numbers_sent


@on_each_device
@pytest.mark.parametrize("most_bytes", [float("inf"), 0], ids=["at once", "on demand"])
@pytest.mark.parametrize("style", CORE)
def test_every_panel_is_drawn_and_vouched_for(style, most_bytes, device):
    there = deepcopy(models()[style]).to(device)
    offered = asked(trace_of(style).model)[1]
    know_training(there, offered.training, offered.read)

    @cache
    def moved(run: Trace) -> Trace:
        found = capture(there, run.token_ids, run.edits, tokenizer=tokenizer(), most_bytes=most_bytes)
        return replace(found, baseline=run.baseline and moved(run.baseline))

    for name in PANELS:
        if not shows(name, run := run_of(name, style)):
            continue
        panel = PANELS[name][1]
        selection = Selection(layer=1, head=2, query=10, key=3, rival=2).within(run)
        about = [subject(panel, each) for each in (run, moved(run))]
        expected, found = (numbers_sent(panel.draw(each, selection)) for each in about)
        np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2, err_msg=name)
        marks = [panel.mark(each, selection).state for each in about] if panel.mark else ["", ""]
        assert marks[0] == marks[1] != "off", name
