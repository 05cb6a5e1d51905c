"""The examples are telling to the bundled model: it copies, and it finds who was meant; and they lead to the head that
does so."""

import pytest

from explorer.lessons.examples import EXAMPLES
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.events.opening import Opening


@pytest.mark.parametrize(
    ("name", "head", "seen", "likeliest"),
    [
        ("a story", (4, 4), " fox", " He"),
        ("copy a name", (4, 3), "l", "l"),
        ("a made-up word", (5, 1), " bird", " bird"),
        ("who is she?", (4, 3), "Lily", " Lily"),
    ],
)
def test_an_example_leads_to_the_head_that_finds_what_goes_on(name, head, seen, likeliest):
    opening = Opening(Runs(Library("cpu")))
    elsewhere = Selection(view="attention", layer=1, head=1, target=3, rival=2, pattern="layer_mean")
    asked = opening.where_it_shows(PageState(opening.run_of("llama-fables", EXAMPLES[name]), elsewhere))
    trace, selection = opening.runs.trace(asked.run), asked.selection
    assert trace.vocabulary[trace["logits"][-1].argmax()] == likeliest
    assert (selection.layer, selection.head) == head and selection.query == len(trace) - 1
    assert trace.tokens[selection.key] == seen
    assert (selection.view, selection.target, selection.rival, selection.pattern) == ("attention", 1, 0, "weight")
