"""Texts of the simple page agree with the numbers."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from explorer.explain.notation import format_percent, quote_word_in_text
from explorer.state.selection import Selection
from explorer.views import STORY_VIEWS, story
from explorer.views.overview.whole_model import whole_model_sentence
from explorer.views.shared_plots import short_percent
from explorer.views.style import label
from tests.sample_models import STYLES, capture_style
from tests.subtest_loops import subtest_each

every_style = subtest_each("style", STYLES)


def probabilities(trace) -> np.ndarray:
    return torch.softmax(torch.tensor(trace["logits"]).double(), -1).numpy()  # (T, V)


def parse_percentages(text: str) -> list[float]:
    return [float(share) / 100 for share in re.findall(r"([\d.]+)%", text)]


@subtest_each(
    "share, words",
    [
        (1, "100%"),
        (0.9999, "over 99%"),
        (0.994, "99%"),
        (0.8361, "84%"),
        (0.1, "10%"),
        (0.00019, "0.019%"),
        (0.05, "5.0%"),
        (0.0996, "10%"),
        (0.00001, "less than 0.01%"),
        (0, "0%"),
    ],
)
def test_percentages_have_two_digits(share, words):
    assert format_percent(share) == words


def test_a_repeated_word_is_told_apart_by_its_place():
    tokens = ["The", " dog", " saw", "Dog", ".", *[" dog"] * 4]  # a reader counts both
    names = ["“The”", "the first “dog”", "“saw”", "the second “Dog”", "“.”", "the third “dog”"]
    assert [quote_word_in_text(tokens, i) for i in (*range(6), 8)] == [*names, "“dog” number 6"]
    trace = capture_style("rope")
    trace = replace(trace, vocabulary=["a"] * trace.config.vocab_size)
    for step in (story.TOKENS_STEP, story.ATTENTION_STEP):
        assert re.search("the [a-z]+ “a”|“a” number [0-9]", step.formula(trace, Selection(query=9)).splitlines()[1])


@every_style
def test_least_expected_token_is_named(style):
    trace = capture_style(style)
    own = [row[i] for row, i in zip(probabilities(trace), trace.token_ids[1:], strict=False)]
    text = story.TOKENS_STEP.formula(trace, Selection())
    assert f"{len(trace)} tokens" in text and f"{trace.config.d_model} numbers" in text
    assert parse_percentages(text.splitlines()[1]) == pytest.approx([min(own)], rel=0.06)
    assert trace.tokens[1 + int(np.argmin(own))].strip() in text.splitlines()[1]
    bars, layout = story.draw_token_probabilities(trace, 3).traces_and_layout
    assert ["".join(texts) for texts in zip(*(bar["text"] for bar in bars), strict=True)] == list(
        map(short_percent, own)
    )
    assert np.nansum([bar["y"] for bar in bars], axis=0) == pytest.approx(own, rel=1e-4)
    assert [note["text"] for note in layout["annotations"][1:]] == [label(token) for token in trace.tokens[1:]]


def test_bars_have_whole_percent_but_no_false_certainty():
    assert list(map(short_percent, (1, 0.9997, 0.37, 0.002, 0))) == ["100%", ">99%", "37%", "&lt;1%", "0%"]


@subtest_each("style, query", product(STYLES, [0, 9]))
def test_head_whose_look_back_adds_most_and_its_keys_are_named(style, query):
    trace = capture_style(style)
    layer, head, key = story.largest_look_back(trace, query)
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query, : query + 1]
    text = story.ATTENTION_STEP.formula(trace, Selection(query=query))
    if key is None:
        assert f"Of the heads, layer {layer} head {head} adds most to its score." in text
    else:  # the whole-model sentence names the same key
        key_text = quote_word_in_text(trace.tokens, key)
        assert f"The look back that adds most to its score: layer {layer} head {head} at {key_text}.\n" in text
        whole = whole_model_sentence(trace, Selection(depth="story", query=query))
        assert whole.endswith(f"The look back that adds most to its score is at {key_text}.")
    heading = story.ATTENTION_STEP.panels[0].heading(trace, Selection(query=query))
    assert heading == f"Who looks at whom? Layer {layer} head {head}"
    shares = parse_percentages(text.splitlines()[1])
    named = np.sort(weights[weights >= story.MIN_NAMED_WEIGHT])[::-1][: story.MAX_NAMED_TOKENS]
    assert shares == pytest.approx(named, rel=0.06)
    if len(named) and weights.argmax() == query:
        assert "at itself" in text
    fields = story.link_to_top_head(trace, Selection(query=query))[1]
    assert (fields["layer"], fields["head"]) == (layer, head)


@every_style
def test_settled_layer_is_named(style):
    trace = capture_style(style)
    for query in range(len(trace)):
        ids, shares = story.top_token_by_layer(trace, query)
        assert len(ids) == trace.config.num_layers + 1
        assert ids[-1] == probabilities(trace)[query].argmax()
        assert shares[-1] == pytest.approx(probabilities(trace)[query].max(), rel=1e-4)
        text = story.settled_layer_text(trace, query)
        settled = next(i for i in range(len(ids)) if (ids[i:] == ids[-1]).all())
        if settled == 0:
            assert "from the beginning" in text
        else:
            assert f"in layer {settled - 1}" in text
            assert ("the last one" in text) is (settled == trace.config.num_layers)


def test_the_lines_of_temperature_begin_where_the_slider_does():
    trace = capture_style("rope")
    lines, _layout = story.draw_probabilities_by_temperature(trace, 5).traces_and_layout
    logits = torch.tensor(trace.logits.row(5)).double()
    assert [line["y"][0] for line in lines] == [1, 0, 0, 0, 0] and lines[0]["x"][0] == 0
    for i in (1, 20, 40):
        shares = torch.softmax(logits / lines[0]["x"][i], -1).sort(descending=True).values[:5]
        assert [line["y"][i] for line in lines] == pytest.approx(shares.tolist())


@subtest_each("view", STORY_VIEWS)
def test_every_step_links_to_full_page(view):
    trace = capture_style("rope")
    _words, link, *_switch = view.numbers_view_link(trace, Selection(query=5))
    assert link["view"] not in {step.name for step in STORY_VIEWS}
    if view is story.ATTENTION_STEP:  # the key that the head looks at most
        assert link["key"] == trace[f"blocks.{link['layer']}.attn.pattern"][link["head"], 5].argmax()


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([9, 7, 8, 7], "becomes the likeliest again in layer 2, the last one."),
        ([9, 8, 8, 7], "becomes the likeliest in layer 2, the last one."),
        ([7, 8, 7, 7], "becomes the likeliest again in layer 1, and stays first to the end."),
        ([7, 7, 7, 7], "is likeliest from the beginning"),
    ],
)
def test_returning_top_token_is_called_again(monkeypatch, ids, told):
    trace = capture_style("rope")
    trace = replace(trace, config=replace(trace.config, num_layers=3))
    monkeypatch.setattr(story, "top_token_by_layer", lambda trace, query: (np.array(ids), np.full(4, 0.5)))
    assert told in story.settled_layer_text(trace, 5)
