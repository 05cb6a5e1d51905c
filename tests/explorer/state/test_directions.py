"""Directions as text: parsing, error messages, and descriptions with the tokens' texts."""

import pytest

from explorer.errors import UserError
from explorer.interventions import DirectionSpec, parse_intervention
from tests.subtest_loops import subtest_each

DIRECTION_TEXTS = ("unembed.17", "unembed.17-20", "neuron.1.7", "ov.1.2.0", "means.1.5.9.60_17-33.40")


@pytest.mark.parametrize("text", DIRECTION_TEXTS)
def test_direction_text_round_trip(text):
    assert str(DirectionSpec.parse(text)) == text
    intervention_text = f"blocks.1.resid_post@2-*add*{text}*0.5"
    assert str(parse_intervention(intervention_text)) == intervention_text


def test_means_direction_round_trip():
    direction_spec = DirectionSpec.from_means(1, [[5, 9, 60], [17]], [[33, 40]])
    assert str(direction_spec) == DIRECTION_TEXTS[-1] and DirectionSpec.parse(DIRECTION_TEXTS[-1]) == direction_spec


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        (([[1]], []), "1 \\+ 0 prompts of 1 tokens: leave some out"),
        (([[1], []], [[2]]), "has 1 to 32 prompts of a token or more"),
        (([[1]] * 33, [[2]]), "33 \\+ 1 prompts"),
        (([[1] * 1024], [[2]]), "together at most 1024 tokens, got 1 \\+ 1 prompts of 1025 tokens"),
    ],
)
def test_prompt_lists_are_limited(lists, said):
    with pytest.raises(UserError, match=said):
        DirectionSpec.from_means(0, *lists)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("means.2.5-6", "layers run from 0 to 1, got 2"),
        ("means.0.5.300-6", "token ids run from 0 to"),
        ("means.0." + ".".join(["5"] * 33) + "-6", "a run has 1 to 32 tokens, got 33"),
    ],
)
def test_model_lacks_named_layer_or_token(tiny_config, text, said):
    with pytest.raises(UserError, match=said):
        DirectionSpec.parse(text).check(tiny_config)


@subtest_each("text", ["means.1.5", "means.5-6", "means.1.5..6-7", "means.1.-7", "means.1.5-6-7", "means.1.a-6"])
def test_invalid_direction_text_is_refused(text):
    with pytest.raises(UserError, match=r"a direction is unembed\.ID"):
        DirectionSpec.parse(text)


def test_description_contains_token_texts(tiny_config):
    def text(ids):
        return "|".join(f"t{token_id}" for token_id in ids)

    intervention = parse_intervention("blocks.1.resid_post*add*means.1.5.9_17-33.40*0.5")
    assert intervention.describe(tiny_config, text) == (
        "0.5 of its length added to resid_post of layer 1, along the mean of the stream after layer 1 over t5|t9 and 1 "
        "more less that over t33|t40"
    )
    assert DirectionSpec.parse("unembed.17-20").describe(text) == "the unembedding of token t17 less that of token t20"
    assert DirectionSpec.parse("neuron.1.7").describe(text) == "what neuron 7 of layer 1 writes"
