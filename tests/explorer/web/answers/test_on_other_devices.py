"""What the page is answered by models on another device is what it is answered by those on the CPU."""

import json

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.views import VIEWS
from explorer.web.answers.endpoints import Endpoints
from explorer.web.events.opening import Opening
from tests.devices import on_each_device
from tests.drawn_parts import numbers_in
from tests.exhaustive import first_of
from tests.specimens import CORE

PROMPT = "the fox asked the owl"


@on_each_device
@pytest.mark.parametrize("checkpoint", first_of(CORE))
def test_every_tab_is_answered_alike(style_checkpoints, checkpoint, device):
    found, expected = (_all_answers(Library(where), checkpoint) for where in (device, "cpu"))
    assert found.keys() == expected.keys()
    for about, contents in expected.items():
        assert found[about].keys() == contents.keys(), about
        for name, content in contents.items():
            drawn = (numbers_in(some) for some in (found[about][name], content))
            np.testing.assert_allclose(*drawn, rtol=1e-2, atol=1e-2, err_msg=f"{about}: {name}")


@on_each_device
def test_what_is_kept_takes_as_much(style_checkpoints, device):
    found, expected = (Library(where) for where in (device, "cpu"))
    for library in (found, expected):
        library.trace("rope", (5, 6, 7))
    kept = [[library.memory()[name] for name in ("models", "traces_bytes")] for library in (found, expected)]
    assert kept[0] == kept[1]


def _all_answers(library: Library, checkpoint: str) -> dict[str, dict]:
    """Of every view to "show", all parts put together."""
    endpoints, answers = Endpoints(Runs(library)), {}
    run = Opening(endpoints.runs).run_of(checkpoint, PROMPT)
    for view in VIEWS:
        state = run.as_dict() | Selection(view=view.name, query=3, key=1).as_dict() | {"temperature": 1.0, "top_k": 0}
        contents, part, more = {}, 0, True
        while more:
            answer = json.loads(json.dumps(endpoints.answer("show", state, part)))
            contents, part, more = contents | answer["contents"], part + 1, answer["more"]
        answers[view.name] = contents
    return answers
