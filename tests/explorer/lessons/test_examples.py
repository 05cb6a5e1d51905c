"""The examples are telling to the bundled model: it copies, and it finds who was meant."""

import pytest

from explorer.lessons.examples import EXAMPLES
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.events.opening import Opening


@pytest.mark.parametrize(
    ("name", "likeliest"),
    [("a story", " He"), ("copy a name", "l"), ("a made-up word", " bird"), ("who is she?", " Lily")],
)
def test_what_is_telling_goes_on(name, likeliest):
    opening = Opening(Runs(Library("cpu")))
    trace = opening.runs.trace(opening.run_of("llama-fables", EXAMPLES[name]))
    assert trace.vocabulary[trace["logits"][-1].argmax()] == likeliest
