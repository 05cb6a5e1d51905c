"""Components along a direction, and effects on several prompts of adding it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.steering import (
    PROMPT_LISTS,
    decode_prompt_lists,
    direction_cosines,
    direction_from_texts,
    encode_prompt,
    parse_direction_or_default,
    prompt_lists_by_direction,
    steering_effects_on_prompts,
    steering_intervention,
)
from explorer.errors import UserError
from explorer.interventions import DirectionSpec, parse_interventions
from explorer.tracing.capture import capture
from model.checkpoint import load_checkpoint
from tests.subtest_loops import each_style, subtest_each


@pytest.fixture(scope="module")
def model():
    return load_checkpoint("llama-fables")


@pytest.fixture(scope="module")
def fable_trace(model):
    lm, tokenizer = model
    return capture(lm, tokenizer.encode("Once upon a time"), tokenizer=tokenizer)


@each_style
def test_direction_cosines_match_formula(trace):
    u = np.random.default_rng(0).normal(size=trace.config.d_model)
    similarities, last = (
        direction_cosines(trace, u),
        "ffn_norm" if trace.config.norm_placement == "post" else "resid_post",
    )
    for row, name in ((0, "embed"), (1, f"blocks.0.{last}"), (2, f"blocks.1.{last}")):
        for position in (0, 7):
            x = trace[name][position].astype(float)
            assert similarities[row, position] == pytest.approx(x @ u / np.sqrt(x @ x) / np.sqrt(u @ u))


@pytest.mark.parametrize("direction", [np.ones(7), np.zeros(24)])
def test_direction_with_wrong_width_is_refused(capture_trace, direction):
    with pytest.raises(UserError, match="as many numbers as the stream is wide, 24"):
        direction_cosines(capture_trace("rope"), direction)


def test_prompts_are_encoded_like_tokenizer(model, fable_trace):
    _lm, tokenizer = model
    for text in ("Once upon a time", "Zorblat's é 🌙\n\n12", " She"):
        assert encode_prompt(fable_trace, text) == tokenizer.encode(text)


@pytest.mark.parametrize("lists", PROMPT_LISTS, ids=[prompt_lists.name for prompt_lists in PROMPT_LISTS])
@pytest.mark.exhaustive
def test_built_in_direction_raises_its_token(model, fable_trace, lists):
    """Added, it raises the first token's logit over the second's after every example; subtracted, it lowers it."""
    lm, tokenizer = model
    text = next(text for text, prompt_lists in prompt_lists_by_direction(fable_trace).items() if prompt_lists is lists)
    token, rival = (tokenizer.encode(token_text) for token_text in (lists.towards, lists.away))
    assert len(token) == len(rival) == 1
    for sign in (1, -1):
        run = replace(fable_trace, edits=parse_interventions(f"blocks.3.resid_post*add*{text}*{0.3 * sign}"))
        steering = steering_effects_on_prompts(run, DirectionSpec.parse(text), 0, 0, 1)
        assert steering.num_reversed == 0 and (steering.changes * sign > 0.5).all()
        for i, example in enumerate(lists.examples):
            leads = [
                np.subtract(
                    *capture(lm, tokenizer.encode(example), edits)["logits"][-1, [*token, *rival]].astype(float)
                )
                for edits in ((), run.edits)
            ]
            assert_allclose((steering.before[i], steering.after[i]), leads, atol=1e-3)


@pytest.mark.exhaustive
def test_reversed_effects_are_counted(fable_trace):
    """A direction unrelated to the examples raises some of their logit differences and lowers others."""
    steering = steering_effects_on_prompts(fable_trace, DirectionSpec.parse("neuron.2.7"), 2, 17, 20)
    assert len(steering.prompts) == sum(len(prompt_lists.examples) for prompt_lists in PROMPT_LISTS)
    assert steering.edit.amount == 0.3 and steering.num_reversed == (steering.changes < 0).sum()
    assert replace(steering, edit=replace(steering.edit, amount=-0.3)).num_reversed == (steering.changes > 0).sum()


def test_steering_reuses_intervention_of_run(fable_trace):
    recipe = DirectionSpec.parse("unembed.17")
    assert str(steering_intervention(fable_trace, recipe, 4)) == "blocks.4.resid_post*add*unembed.17*0.3"
    run = replace(
        fable_trace, edits=parse_interventions("embed*remove*unembed.17~blocks.1.resid_mid*add*unembed.17*-0.5")
    )
    assert steering_intervention(run, recipe, 4) == run.edits[1]


def test_invalid_direction_falls_back_to_first(fable_trace):
    first = next(iter(prompt_lists_by_direction(fable_trace)))
    for text in ("", "nonsense", "neuron.99.0"):
        assert str(parse_direction_or_default(fable_trace, text)) == first
    assert str(parse_direction_or_default(fable_trace, "neuron.1.7")) == "neuron.1.7"
    assert str(parse_direction_or_default(replace(fable_trace, token_bytes=()), "")) == "unembed.0"
    assert steering_effects_on_prompts(
        replace(fable_trace, token_bytes=()), DirectionSpec.parse("unembed.0"), 0, 0, 1
    ).prompts == (fable_trace.token_ids,)


def test_direction_is_made_from_user_lists(model, fable_trace):
    lm, tokenizer = model
    texts, others = ["Tom ran home.", "A dog\n\nbarked."], [" Lily’s cat"]
    recipe = direction_from_texts(fable_trace, 2, texts, others)
    assert decode_prompt_lists(fable_trace, recipe) == (texts, others) and recipe.numbers == (2,)
    means = [
        np.mean(
            [capture(lm, tokenizer.encode(text))["blocks.2.resid_post"].astype(float).mean(0) for text in prompts],
            axis=0,
        )
        for prompts in (texts, others)
    ]
    along = np.subtract(*means)
    assert_allclose(fable_trace.direction(recipe), along / np.linalg.norm(along), atol=1e-5)
    assert decode_prompt_lists(fable_trace, DirectionSpec.parse("unembed.17")) == ()


@subtest_each(
    ("texts", "others", "said"),
    [
        ([], ["a"], "each list of a direction has 1 to 32 prompts of a token or more"),
        (["a"] * 33, ["b"], "got 33 \\+ 1 prompts"),
        (
            ["one two three"] * 32,
            ["The little dog ran to the big park and saw many more dogs. " * 20] * 4,
            "at most 1024 tokens",
        ),
        (["a " * 300], ["b"], "a run has 1 to 256 tokens, got"),
        (["a " * 4000], ["b " * 4000], "both lists together have at most 10,000 characters, got 16,000"),
        (["a b"], ["a b"], "is 0 and points nowhere"),
    ],
)
def test_invalid_prompt_lists_are_refused(fable_trace, texts, others, said):
    with pytest.raises(UserError, match=said):
        direction_from_texts(fable_trace, 2, texts, others)


def test_prompt_lists_require_tokenizer(fable_trace):
    with pytest.raises(UserError, match="tokenizer"):
        direction_from_texts(replace(fable_trace, token_bytes=()), 2, ["a"], ["b"])


def test_built_in_lists_keep_examples_at_other_layer(fable_trace):
    first = next(iter(prompt_lists_by_direction(fable_trace).values()))
    steering = steering_effects_on_prompts(
        fable_trace, direction_from_texts(fable_trace, 1, first.prompts, first.others), 1, 0, 1
    )
    assert len(steering.prompts) == len(first.examples)
    assert (
        steering.token_id == encode_prompt(fable_trace, first.towards)[0]
        and steering.contrast_id == encode_prompt(fable_trace, first.away)[0]
    )
