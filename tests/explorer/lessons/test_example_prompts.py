"""The bundled model's behaviour on the example prompts, and the heads they lead to."""

import pytest

from explorer.lessons.example_prompts import EXAMPLES
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder


@pytest.mark.parametrize(
    ("name", "head", "seen", "likeliest"),
    [
        ("a story", (4, 4), " fox", " He"),
        ("copy a name", (4, 3), "l", "l"),
        ("a made-up word", (5, 1), " bird", " bird"),
        ("who is she?", (4, 3), "Lily", " Lily"),
    ],
)
def test_example_prompt_selects_its_top_head(name, head, seen, likeliest):
    opening = PageStateBuilder(RunService(ModelLibrary("cpu")))
    elsewhere = Selection().replace(view="attention", layer=1, head=1, target=3, rival=2, pattern="layer_mean")
    page_state = opening.select_top_head(PageState(opening.create_run("llama-fables", EXAMPLES[name]), elsewhere))
    trace, selection = opening.runs.trace(page_state.run), page_state.selection
    assert trace.vocabulary[trace["logits"][-1].argmax()] == likeliest
    assert (selection.layer, selection.head) == head and selection.query == len(trace) - 1
    assert trace.tokens[selection.key] == seen
    assert (selection.view, selection.target, selection.rival, selection.option("pattern")) == (
        "attention",
        1,
        0,
        "weight",
    )
