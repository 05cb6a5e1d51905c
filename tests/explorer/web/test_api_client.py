"""/explore and /generate, called by a client program."""

import numpy as np
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from explorer.tracing.capture import capture
from explorer.tracing.model_library import ModelLibrary
from explorer.web.page import Page
from model.checkpoint import load_checkpoint, save_checkpoint
from model.config import ModelConfig, window_start
from model.transformer_lm import TransformerLM
from tests.exhaustive import pairwise_params
from tests.subtest_loops import subtest_each

PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def client(tmp_path_factory, tiny_tokenizer):
    """Client of an app whose only checkpoint is "tiny", with a context of 32."""
    folder = tmp_path_factory.mktemp("checkpoints")
    sizes = {"vocab_size": tiny_tokenizer.vocab_size, "context_length": 32, "d_model": 32, "d_ff": 64}
    torch.manual_seed(0)
    save_checkpoint(
        TransformerLM(ModelConfig.llama_style(**sizes, num_layers=2, num_heads=2)), tiny_tokenizer, folder / "tiny"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", folder)
        blocks = Page(ModelLibrary("cpu"), "tiny").launch(prevent_thread_lock=True, quiet=True)
        client = Client(blocks.local_url, verbose=False)
        yield client
        client.close()
        blocks.close(verbose=False)


@pytest.fixture(scope="module")
def model(client):
    return load_checkpoint("tiny")


def test_only_two_typed_endpoints_with_defaults_are_public(client):
    offered = client.view_api(return_format="dict")["named_endpoints"]
    assert set(offered) == {"/explore", "/generate"}
    parameters = {
        name: {
            p["parameter_name"]: (p["python_type"]["type"], p.get("parameter_default")) for p in endpoint["parameters"]
        }
        for name, endpoint in offered.items()
    }
    assert parameters["/explore"] == {"prompt": ("str", None), "checkpoint": ("str", "")}
    assert parameters["/generate"] == {
        "prompt": ("str", None),
        "max_new_tokens": ("int", 60),
        "temperature": ("float", 0.8),
        "top_k": ("int", 40),
        "seed": ("int", 0),
        "checkpoint": ("str", ""),
        "top_p": ("float", 1.0),
        "min_p": ("float", 0.0),
        "repetition_penalty": ("float", 1.0),
        "stop": ("str", ""),
    }


def test_explore_matches_model(client, model):
    lm, tokenizer = model
    answer = client.predict(PROMPT, api_name="/explore")
    trace = capture(lm, tokenizer.encode(PROMPT), tokenizer=tokenizer)
    assert answer["ids"] == list(trace.token_ids)
    assert "".join(answer["tokens"]) == PROMPT
    assert answer["captured"] == {name: list(value.shape) for name, value in trace.values.items()}
    assert answer["dropped"] == 0
    log_probabilities = trace["logits"] - np.logaddexp.reduce(trace["logits"], axis=-1, keepdims=True)
    following = log_probabilities[np.arange(len(trace) - 1), trace.token_ids[1:]]
    assert answer["surprisal"][0] is None
    assert answer["surprisal"][1:] == pytest.approx(-following / np.log(2), rel=1e-4)
    best = np.argsort(-log_probabilities[-1], kind="stable")[:10]
    assert [token["id"] for token in answer["next_tokens"]] == best.tolist()
    assert [token["token"] for token in answer["next_tokens"]] == [tokenizer.token_text(i) for i in best]
    assert [token["probability"] for token in answer["next_tokens"]] == pytest.approx(
        np.exp(log_probabilities[-1][best]), rel=1e-4
    )


def test_explore_keeps_end_of_long_prompt_and_counts_rest(client, model):
    ids = model[1].encode("the moon " * 100)
    answer = client.predict("the moon " * 100, api_name="/explore")
    assert answer["dropped"] == window_start(len(ids), 32)
    assert answer["ids"] == ids[answer["dropped"] :]


@subtest_each(
    "prompt", ["a\x00b\x07", "👨‍👩‍👧", "<img src=x onerror=alert(1)>", "${7*7}{{7*7}}", "<|endoftext|>", "שלום", "Z̴̙͎a̷̟͠"]
)
@pytest.mark.exhaustive
def test_explore_reads_any_text_unchanged(client, model, prompt):
    answer = client.predict(prompt, api_name="/explore")
    assert model[1].decode(answer["ids"]) == prompt
    assert model[1].end_of_text not in answer["ids"]


def test_generate_depends_on_seed_only(client):
    answers = [client.predict(PROMPT, max_new_tokens=20, seed=seed, api_name="/generate") for seed in (0, 1, 0)]
    assert answers[0] == answers[2]
    assert answers[0]["text"] != answers[1]["text"]


def test_generate_returns_tokens_and_probabilities(client, model):
    lm, tokenizer = model
    answer = client.predict(PROMPT, max_new_tokens=5, temperature=0, api_name="/generate")
    assert len(answer["tokens"]) == 5
    assert [token["probability"] for token in answer["tokens"]] == [1] * 5
    assert answer["text"] == tokenizer.decode([token["id"] for token in answer["tokens"]])
    best = capture(lm, tokenizer.encode(PROMPT))["logits"][-1].argmax()
    assert answer["tokens"][0] == {"token": tokenizer.token_text(best), "id": best, "probability": 1}


def test_generate_continues_beyond_context(client):
    answer = client.predict(PROMPT, max_new_tokens=50, temperature=0, api_name="/generate")
    assert len(answer["tokens"]) == 50


REFUSED = [
    ({"prompt": ""}, "prompt is empty"),
    ({"prompt": 5}, "prompt must be text"),
    ({"prompt": None}, "prompt must be text"),
    ({"prompt": PROMPT, "checkpoint": "none"}, "there is no checkpoint 'none'; there are: tiny"),
    ({"prompt": PROMPT, "checkpoint": "../tiny"}, "there is no checkpoint"),
]


@subtest_each(("endpoint", "refused"), pairwise_params(["/explore", "/generate"], REFUSED), ids=str)
@pytest.mark.exhaustive
def test_invalid_prompt_or_checkpoint_is_refused(client, endpoint, refused):
    arguments, why = refused
    with pytest.raises(AppError, match=why):
        client.predict(**arguments, api_name=endpoint)


@pytest.mark.exhaustive
@subtest_each(
    "setting",
    [
        {"temperature": -0.1},
        {"temperature": 2.1},
        {"temperature": "warm"},
        {"top_k": -1},
        {"max_new_tokens": 0},
        {"max_new_tokens": 513},
        {"max_new_tokens": 2.5},
        {"seed": -1},
        {"seed": 2**32},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"repetition_penalty": 0.9},
    ],
    ids=str,
)
def test_setting_outside_limits_is_refused(client, setting):
    with pytest.raises(AppError, match=f"{next(iter(setting))} must be"):
        client.predict(PROMPT, **setting, api_name="/generate")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"top_k": True}, "top_k must be a whole number, got true."),
        ({"temperature": "<b>"}, 'temperature must be a number, got "<b>".'),
        ({"checkpoint": {"a": 1}}, "checkpoint must be text, got an object."),
        ({"stop": None}, "stop must be text, got null."),
        ({"seed": 10**400}, "seed must be 0 to 4294967295, got 1000"),
    ],
    ids=str,
)
def test_value_of_wrong_type_is_refused(client, arguments, sentence):
    with pytest.raises(AppError) as error:
        client.predict(PROMPT, **arguments, api_name="/generate")
    assert error.value.message.startswith(sentence)
