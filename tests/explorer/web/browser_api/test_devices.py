"""Answers of the page for models on another device, compared with those on the CPU."""

import json

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.views import VIEWS
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from tests.devices import on_each_device
from tests.exhaustive import first_in_core
from tests.plotly_points import collect_numbers
from tests.sample_models import CORE

PROMPT = "the fox asked the owl"


@on_each_device
@pytest.mark.parametrize("checkpoint", first_in_core(CORE))
def test_every_tab_matches_cpu(style_checkpoints, checkpoint, device):
    actual, expected = (_all_answers(ModelLibrary(library_device), checkpoint) for library_device in (device, "cpu"))
    assert actual.keys() == expected.keys()
    for about, contents in expected.items():
        assert actual[about].keys() == contents.keys(), about
        for name, content in contents.items():
            numbers = (collect_numbers(value) for value in (actual[about][name], content))
            np.testing.assert_allclose(*numbers, rtol=1e-2, atol=1e-2, err_msg=f"{about}: {name}")


@on_each_device
def test_cached_traces_take_same_memory_as_on_cpu(style_checkpoints, device):
    actual, expected = (ModelLibrary(library_device) for library_device in (device, "cpu"))
    for library in (actual, expected):
        library.trace("rope", (5, 6, 7))
    memory_sizes = [[library.memory()[name] for name in ("models", "traces_bytes")] for library in (actual, expected)]
    assert memory_sizes[0] == memory_sizes[1]


def _all_answers(library: ModelLibrary, checkpoint: str) -> dict[str, dict]:
    """Return the contents of every view for "show", all parts merged."""
    endpoints, answers = BrowserEndpoints(RunService(library)), {}
    run = PageStateBuilder(endpoints.runs).create_run(checkpoint, PROMPT)
    for view in VIEWS:
        state = run.as_dict() | Selection(view=view.name, query=3, key=1).as_dict() | {"temperature": 1.0, "top_k": 0}
        contents = {}
        for stage in range(endpoints.num_stages("show", state)):
            contents |= json.loads(json.dumps(endpoints.answer("show", state, stage)))["contents"]
        answers[view.name] = contents
    return answers
