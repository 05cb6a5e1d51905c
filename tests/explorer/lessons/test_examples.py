"""What the examples' hints say is true of the bundled model."""

import pytest

from explorer.lessons.examples import BUNDLED, EXAMPLES, Example, example_of
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.tracing.trace import Trace
from explorer.web.answers.endpoints import Endpoints
from explorer.web.answers.hints import hint
from explorer.web.events.opening import Opening

every_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@pytest.fixture(scope="module")
def opening() -> Opening:
    return Opening(Runs(Library("cpu")))


def traced(opening: Opening, example: Example) -> Trace:
    return opening.runs.trace(opening.run_of(BUNDLED, example.text))


@every_example
def test_the_head_looks_where_the_hint_says(opening, example):
    trace = traced(opening, example)
    assert example.query == len(trace) - 1
    weights = trace[f"blocks.{example.layer}.attn.pattern"][example.head, example.query]
    assert weights.argmax() == example.key and weights[example.key] > 0.8
    assert f"Layer {example.layer} head {example.head} " in example.hint


@pytest.mark.parametrize(
    ("name", "seen", "likeliest"),
    [
        ("a story", " fox", " He"),
        ("copy a name", "l", "l"),
        ("a made-up word", " bird", " bird"),
        ("who is she?", "Lily", " Lily"),
    ],
)
def test_what_it_finds_is_likeliest_to_go_on(opening, name, seen, likeliest):
    example, trace = EXAMPLES[name], traced(opening, EXAMPLES[name])
    assert trace.tokens[example.key] == seen
    assert trace.vocabulary[trace["logits"][-1].argmax()] == likeliest
    for word in (seen.strip(), likeliest.strip()):
        assert f"“{word}”" in example.hint or word in ("Lily",)


@every_example
def test_the_hint_is_shown_with_the_example_alone(opening, example):
    run = opening.run_of(BUNDLED, example.text)
    assert hint(opening.runs, run) == (example.hint, example.look, "")
    contents = Endpoints(opening.runs).answer("show", run.as_dict())["contents"]
    assert contents["coach"] == {"words": example.hint, "look": example.look, "offer": ""}
    assert hint(opening.runs, opening.run_of(BUNDLED, example.text + " and"))[1] is None
    assert example_of(example.text + ".") is None


def test_other_prompts_of_the_bundled_model_are_coached(opening):
    words, look, offer = hint(opening.runs, opening.run_of(BUNDLED, "Once upon a time "))
    assert "ends in a space" in words and look is None and offer == "Once upon a time"
    words, _, offer = hint(opening.runs, opening.run_of(BUNDLED, offer))
    assert "punctuation mark, “,”" in words and offer == "Once upon a time there"
    assert hint(opening.runs, opening.run_of(BUNDLED, offer)) == ("", None, "")
    words, _, offer = hint(opening.runs, opening.run_of(BUNDLED, "They lived happily ever after."))
    assert "end of the text" in words and offer.endswith("after. They")
    assert "hardly foresaw" in hint(opening.runs, opening.run_of(BUNDLED, "Xqzt vvb grph"))[0]


@every_example
def test_an_example_is_opened_where_its_hint_points(opening, example):
    selection = opening.restored({"checkpoint": BUNDLED, "text": example.text}).selection
    assert example.place.items() <= selection.as_dict().items()
    elsewhere = opening.restored({"checkpoint": BUNDLED, "text": example.text, "layer": "0", "head": "0"}).selection
    assert (elsewhere.layer, elsewhere.head) == (0, 0)
