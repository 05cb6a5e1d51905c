import json
import math

import pytest
import torch

from explorer.state.generation_settings import RANGES, UserLimits
from explorer.web.public_api import PublicApi
from model.checkpoint import CheckpointError
from model.generation.autoregressive import generate
from tests.nasty_prompts import NASTY_PROMPTS
from tests.subtest_loops import each_style, subtest_each


@pytest.fixture
def api(builder) -> PublicApi:
    return PublicApi(builder, "rope")


def test_explore_matches_model(api, lms, tiny_tokenizer):
    answer = api.explore("the fox asked")
    ids = tiny_tokenizer.encode("the fox asked")
    logits = lms["rope"](torch.tensor([ids]))[0].detach().double()
    assert answer["ids"] == ids
    assert answer["tokens"] == [tiny_tokenizer.token_text(i) for i in ids]
    assert answer["dropped"] == 0

    losses = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    assert answer["surprisal"][0] is None
    assert answer["surprisal"][1:] == pytest.approx([loss / math.log(2) for loss in losses.tolist()], abs=1e-4)

    likeliest = logits[-1].softmax(-1).topk(10)
    assert [token["id"] for token in answer["next_tokens"]] == likeliest.indices.tolist()
    assert [t["probability"] for t in answer["next_tokens"]] == pytest.approx(likeliest.values.tolist(), abs=1e-6)
    assert [t["token"] for t in answer["next_tokens"]] == [tiny_tokenizer.vocabulary[i] for i in likeliest.indices]


@each_style
def test_explore_lists_captured_values(api, capture_trace, style):
    captured = api.explore("the moon", checkpoint=style)["captured"]
    assert list(captured) == list(capture_trace(style).values)
    tokens = len(api.explore("the moon", checkpoint=style)["ids"])
    assert captured["blocks.1.attn.pattern"] == [capture_trace(style).config.num_heads, tokens, tokens]


def test_explore_keeps_end_of_long_prompt(api):
    answer = api.explore("\x00" * 40)
    assert len(answer["ids"]) == 32
    assert answer["dropped"] == 8


@subtest_each("nasty_prompt", NASTY_PROMPTS, ids=ascii)
def test_answers_are_json(api, nasty_prompt):
    for answer in (api.explore(nasty_prompt), api.generate(nasty_prompt, max_new_tokens=2)):
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert "".join(api.explore("the moon")["tokens"]) == "the moon"


def test_same_seed_generates_same_text(api):
    answer = api.generate("the fox", max_new_tokens=12, seed=5)
    assert api.generate("the fox", max_new_tokens=12, seed=5) == answer
    assert any(api.generate("the fox", max_new_tokens=12, seed=seed) != answer for seed in range(3))


def test_temperature_0_takes_most_probable_token(api):
    (token,) = api.generate("the fox", max_new_tokens=1, temperature=0)["tokens"]
    assert token == api.explore("the fox")["next_tokens"][0] | {"probability": 1.0}


def test_generate_returns_text_and_tokens(api, tiny_tokenizer):
    answer = api.generate("the fox", max_new_tokens=9, temperature=1.0, top_k=0, seed=1)
    tokens = answer["tokens"]
    assert 1 <= len(tokens) <= 9
    assert all(0 < token["probability"] <= 1 for token in tokens)
    ids = [token["id"] for token in tokens if token["id"] != tiny_tokenizer.end_of_text]
    assert answer["text"] == tiny_tokenizer.decode(ids)
    assert [token["token"] for token in tokens] == [tiny_tokenizer.vocabulary[token["id"]] for token in tokens]


def test_generate_stops_at_end_of_text(api, library, tiny_tokenizer, monkeypatch):
    """An end-of-text token ends the list of tokens and is not part of the text."""
    likeliest = api.explore("the fox")["next_tokens"][0]["id"]
    monkeypatch.setattr(library.model("rope")[1], "eos_ids", (likeliest,))
    answer = api.generate("the fox", max_new_tokens=9, temperature=0)
    assert answer["text"] == ""
    assert [token["id"] for token in answer["tokens"]] == [likeliest]


def test_every_setting_reaches_generator(api, library, tiny_tokenizer):
    settings = {"temperature": 1.2, "top_k": 30, "seed": 4, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.5}
    steps = generate(library.model("rope")[0], tiny_tokenizer.encode("the fox"), max_new_tokens=15, **settings)
    expected = [(step.token_id, step.probability) for step in steps]
    answer = api.generate("the fox", max_new_tokens=15, **settings)
    assert [(token["id"], token["probability"]) for token in answer["tokens"]] == expected


def test_stop_text_ends_generation(api):
    free = api.generate("the fox", max_new_tokens=30, temperature=1.0, top_k=0, seed=1)["text"]
    stop = next(free[i : i + 2] for i in range(4, len(free)) if free[i : i + 2].isascii())
    answer = api.generate("the fox", max_new_tokens=30, temperature=1.0, top_k=0, seed=1, stop=stop)
    assert answer["text"] == free[: free.index(stop) + 2]
    assert api.generate("the fox", max_new_tokens=30, temperature=1.0, top_k=0, seed=1, stop="☂")["text"] == free


def test_long_stop_text_is_refused(api):
    with pytest.raises(ValueError, match="stop_strings must be a text of at most 64 characters"):
        api.generate("the fox", stop="x" * 65)


@subtest_each("name", RANGES)
def test_value_beyond_limit_is_refused(api, name):
    low, high = RANGES[name]
    for value in (low - 1, high + 1, math.nan):
        with pytest.raises(ValueError, match=f"{name} must be {low} to {high}, got"):
            api.generate("the fox", **{name: value})
    with pytest.raises(ValueError, match=f"{name} must be {low} to {high}, got True"):
        api.generate("the fox", **{name: True})


@pytest.mark.parametrize("call", ["explore", "generate"])
def test_empty_prompt_or_unknown_model_is_refused(api, call):
    with pytest.raises(ValueError, match="The prompt is empty"):
        getattr(api, call)("")
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        getattr(api, call)("the fox", checkpoint="../rope")


def test_checkpoint_defaults_to_first_model(api):
    assert api.explore("the fox") == api.explore("the fox", checkpoint="rope")
    assert api.explore("the fox") != api.explore("the fox", checkpoint="none")


@pytest.mark.parametrize(("limits", "tokens"), [(UserLimits(tokens=3), 3), (UserLimits(seconds=0), 1)])
def test_generation_limits_of_app_apply(builder, limits, tokens):
    written = PublicApi(builder, "rope", limits).generate("the fox", max_new_tokens=8, seed=1)
    unlimited = PublicApi(builder, "rope").generate("the fox", max_new_tokens=8, seed=1)
    assert len(unlimited["tokens"]) > 3
    assert written["tokens"] == unlimited["tokens"][:tokens]
