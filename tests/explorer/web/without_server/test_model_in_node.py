"""JavaScript model compared with Python: tokens, activations, logit lens, attribution, ablations, sampling.

Node runs once for all tasks of this file, and once more for the exhaustive ones.
"""

import random
import struct
import unicodedata
from functools import cache

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer import capture
from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.logit_lens import lens_inputs, unembed_vectors
from explorer.interventions import parse_interventions
from explorer.tracing.capture import tap_shapes
from model import generate, load_checkpoint
from model.checkpoint import CHECKPOINTS
from model.generation.sampling import sampling_stages, uniform_draw
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM
from tests.explorer.web.without_server.node import Answers, run_node_tasks
from tests.nasty_prompts import NASTY_PROMPTS
from tests.subtest_loops import subtest_each

pytestmark = pytest.mark.slow
MODELS = ("llama-fables", "llama-fables-gpt")
TOLERANCE, ROUNDING = 1e-4, 1e-6  # relative to a value's largest number: float32 has steps of 1.5e-5 at 200
PROMPTS = (
    "Once upon a time there was a fox who wanted the moon.",
    "The",
    "Lily said, “I can't find my 12 red balls!”\n\nThen she",
    " ",
    "e\u0301 🌙 שלום",
    "<|endoftext|>Tom and Tim",
    "dog dog dog dog dog dog dog dog",
    "One day the little bird " * 8,
)
WORDS = (
    "the",
    "a",
    "little",
    "girl",
    "fox",
    "moon",
    "ran",
    "said",
    "“Hi!”",
    "\n\n",
    ",",
    ".",
    "7",
    "123",
    "can't",
    "naïve",
)
INTERVENTIONS = (
    ["blocks.1.attn.z.2*zero"],
    ["blocks.0.attn.z*zero", "blocks.5.ffn.hidden.17*zero"],
    ["blocks.3.ffn.hidden*zero"],
    ["blocks.2.attn.z[0]*scale*-1.5", "blocks.2.attn.z.3*scale*2"],
)
SAMPLING = (
    {"temperature": 1.0},
    {"temperature": 0.8, "top_k": 40},
    {"temperature": 1.3, "top_k": 0, "top_p": 0.9, "min_p": 0.02, "repetition_penalty": 1.2},
    {"temperature": 0},
)


@cache
def load_model(name: str):
    return load_checkpoint(name)


@cache
def load_reference(name: str) -> TransformerLM:
    return load_checkpoint(name)[0].double()


def make_random_texts(count: int) -> list[str]:
    """Return texts of random pieces: words, white space, combining marks, emoji, right-to-left, lone surrogates."""
    rng = random.Random(0)
    assigned = [chr(code) for code in range(0x30000) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")]
    spaces = [*" \n\t\r\f\v\x1c\x85\xa0\u1680\u2003\u2028\u3000\ufeff\u200b", "   ", "\n\n", " \n ", "  \t"]
    unusual = [
        "🌙",
        "👩‍👩‍👧",
        "e\u0301",
        "\u0301",
        "שלום",
        "\u202e",
        "مرحبا",
        "नमस्ते",
        "한국어",
        "😀" * 9,
        "\ud800",
        "\udc00",
        "\ud83c\udf19",
    ]
    special = ["<|endoftext|>", "<|", "’s", "'s", "'ll", "'LL", "''re", "\x00", "½", "²", "Ⅷ", "٣", "_", "a" * 70]

    def piece() -> str:
        kind = rng.random()
        if kind < 0.5:
            return rng.choice((" ", "", "")) + rng.choice(WORDS)
        if kind < 0.65:
            return rng.choice(spaces)
        if kind < 0.75:
            return rng.choice(unusual)
        return rng.choice(special) if kind < 0.85 else "".join(rng.choices(assigned, k=rng.randint(1, 6)))

    texts = ["", *PROMPTS, *NASTY_PROMPTS, "ab" * 4000, " " * 3000 + "x", "🌙" * 500]
    return texts + ["".join(piece() for _ in range(rng.randint(1, 20))) for _ in range(count - len(texts))]


def make_trace_task(name: str, ids: list[int], interventions: list[str], token: int) -> dict:
    folder = str(CHECKPOINTS / name)
    return {"task": "trace", "folder": folder, "ids": ids, "interventions": interventions} | {
        "position": len(ids) - 1,
        "token": token,
    }


def make_trace_tasks(texts: list[str]) -> dict[str, dict]:
    """Return the runs of each text without interventions, and of each set of interventions, by both models."""
    questions = {}
    for name in MODELS:
        tokenizer = load_model(name)[1]
        runs = [(text, []) for text in texts] + [(PROMPTS[0], interventions) for interventions in INTERVENTIONS]
        for i, (text, interventions) in enumerate(runs):
            questions[f"{name} {i}"] = make_trace_task(
                name, tokenizer.encode(text), interventions, token=(97 * i) % 4096
            )
    return questions


def make_generation_tasks(count: int) -> dict[str, dict]:
    """Return generations with each of the settings, by both models; the first exceeds the context length."""
    questions = {}
    for name in MODELS:
        ids = load_model(name)[1].encode(" ".join(PROMPTS[0:1] * 16))
        for i, settings in enumerate(SAMPLING):
            question = {"ids": ids[: 13 if i else 220], "settings": settings | {"seed": 7 + i, "max_new_tokens": count}}
            questions[f"{name} {i}"] = {"task": "generate", "folder": str(CHECKPOINTS / name)} | question
    return questions


def make_sampling_tasks() -> list[dict]:
    """Return settings for small sets of logits, with ties and with large gaps, and random numbers to draw with."""
    rng = np.random.default_rng(0)
    questions = []
    for i in range(300):
        logits = rng.normal(0, 3, rng.integers(1, 60)).astype(np.float32)
        logits = logits if i % 3 else np.round(logits)  # ties
        choices = {
            "temperature": [0, 0.3, 1, 1.7],
            "top_k": [None, 0, 1, 3, 20, 100],
            "top_p": [None, 0, 0.3, 0.9, 1],
            "min_p": [None, 0, 0.1, 0.8, 1],
            "repetition_penalty": [1, 1.3],
        }
        settings = {name: values[rng.integers(len(values))] for name, values in choices.items()}
        previous, draws = rng.integers(0, len(logits), 4).tolist(), [0.0, *rng.random(6).tolist(), 1 - 1e-12]
        questions.append({"logits": logits.tolist(), "settings": settings, "previous": previous, "draws": draws})
    return questions


UNIFORM = [[seed, position] for seed in (0, 1, 42, 2**32 - 1) for position in (0, 1, 9, 10, 255, 99_999)]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return make_random_texts(2000)


@pytest.fixture(scope="module")
def id_lists() -> list[list[int]]:
    rng = random.Random(1)
    return [[rng.randrange(4096) if i % 2 else rng.randrange(256) for _ in range(i % 17)] for i in range(300)]


@pytest.fixture(scope="module")
def weight_files(tmp_path_factory) -> dict[str, str]:
    """Paths of a file of weights, and of damaged files, by file name."""
    folder = tmp_path_factory.mktemp("weights")
    values = torch.cat((torch.tensor([0.0, -0.0, 6e-8, -6e-5, 65504.0, torch.inf, -torch.inf]), torch.randn(200) * 10))
    save_file({"x": values.half().reshape(9, 23)}, folder / "whole")
    whole = (folder / "whole").read_bytes()
    damaged = {
        "empty": b"",
        "long header": struct.pack("<Q", 10**6) + b"{}",
        "no JSON": struct.pack("<Q", 4) + b"{{{{",
        "cut off": whole[:-9],
        "wrong size": whole.replace(b'"F16","shape":[9,23]', b'"F16","shape":[9,29]'),
    }
    for name, content in damaged.items():
        (folder / name).write_bytes(content)
    (folder / "vocabulary").write_text("AA== 0\nAQ== 2\n", encoding="ascii")
    return {path.name: str(path) for path in folder.iterdir()}


@pytest.fixture(scope="module")
def chained_merges_tokenizer(tmp_path_factory) -> Tokenizer:
    """Tokenizer in which a merge creates a pair of a lower rank: "abab" is "aba" and "b"."""
    tokenizer = Tokenizer({bytes([byte]): byte for byte in range(256)} | {b"aba": 256, b"ab": 257, b"bab": 258})
    tokenizer.path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.tiktoken"
    tokenizer.save(tokenizer.path)
    return tokenizer


CHAINED_MERGE_TEXTS = ["abab", "ababab", "babab", "aabbaabab", "ab" * 30]


@pytest.fixture(scope="module")
def answers(texts, id_lists, weight_files, chained_merges_tokenizer, tmp_path_factory) -> Answers:
    folder = {name: CHECKPOINTS / name for name in MODELS}
    file = str(folder[MODELS[0]] / "tokenizer.tiktoken")
    questions = {"tokens": {"task": "tokenize", "file": file, "texts": texts, "ids": id_lists}}
    path = str(chained_merges_tokenizer.path)
    questions["later merges"] = {"task": "tokenize", "file": path, "texts": CHAINED_MERGE_TEXTS, "ids": []}
    questions |= {f"trace {key}": question for key, question in make_trace_tasks(list(PROMPTS)).items()}
    questions |= {f"generate {key}": question for key, question in make_generation_tasks(100).items()}
    questions |= {f"stages {i}": {"task": "stages"} | question for i, question in enumerate(make_sampling_tasks())}
    questions["uniform"] = {"task": "uniform", "pairs": UNIFORM}
    questions |= {f"file {name}": {"task": "tensors", "file": path} for name, path in weight_files.items()}
    questions["vocabulary"] = {"task": "parse", "file": weight_files["vocabulary"]}
    for name in MODELS:
        ids = load_model(name)[1].encode(PROMPTS[0])
        questions[f"cached {name}"] = {"task": "cached", "folder": str(folder[name]), "ids": ids}
    ids = {"none": [], "many": [0] * 257, "no token": [4096], "half": [0.5]}
    for name, some in ids.items():
        questions[f"forward {name}"] = {"task": "forward", "folder": str(folder[MODELS[0]]), "ids": some}
    for name, text in UNSUPPORTED_INTERVENTIONS.items():
        questions[f"unknown {name}"] = make_trace_task(MODELS[0], [1, 2], [text], 0)
    return run_node_tasks(questions, tmp_path_factory.mktemp("node"))


UNSUPPORTED_INTERVENTIONS = {
    "tap": "blocks.0.attn.out*zero",
    "layer": "blocks.6.attn.z*zero",
    "head": "blocks.0.attn.z.6*zero",
}
UNSUPPORTED_INTERVENTIONS |= {"neuron": "blocks.0.ffn.hidden.512*zero", "kind": "blocks.0.attn.z.1*mean"}


def test_token_ids_match_python(answers, texts):
    tokenizer = load_model(MODELS[0])[1]
    different = [
        text for text, ids in zip(texts, answers["tokens"]["ids"], strict=True) if ids != tokenizer.encode(text)
    ]
    assert not different, different[:5]
    assert len(texts) == 2000


def test_merge_may_create_pair_of_lower_rank(answers, chained_merges_tokenizer):
    assert answers["later merges"]["ids"] == [chained_merges_tokenizer.encode(text) for text in CHAINED_MERGE_TEXTS]
    assert answers["later merges"]["ids"][0] == [256, ord("b")]


def test_decoded_texts_match_python(answers, id_lists):
    tokenizer = load_model(MODELS[0])[1]
    assert answers["tokens"]["texts"] == [tokenizer.decode(ids) for ids in id_lists]
    assert answers["tokens"]["vocabulary"] == list(tokenizer.vocabulary)
    assert answers["tokens"]["end"] == tokenizer.end_of_text


def check_traces(questions: dict[str, dict], answers: Answers, prefix: str = ""):
    """Compare all activations, the lens and the attribution of runs with Python's in float64.

    In float32 PyTorch itself has errors of up to 6e-4 at values around 200; JavaScript sums in float64.
    """
    for key, question in questions.items():
        lm = load_reference(key.split()[0])
        ids, position, token = question["ids"], question["position"], question["token"]
        trace, answer = capture(lm, ids, parse_interventions(question["interventions"])), answers[prefix + key]
        assert "error" not in answer, answer
        shapes = {value["name"]: tuple(value["shape"]) for value in answer["values"]}
        assert list(shapes.items()) == list(tap_shapes(lm.config, len(ids)).items())
        for value in answer["values"]:
            name = value["name"]
            error = np.abs(answers.array(value, shapes[name]) - trace[name]).max()
            largest = np.abs(trace[name]).max()
            assert error <= max(TOLERANCE, ROUNDING * largest), (key, name, error, largest)
        x = lens_inputs(trace, slice(position, position + 1))
        expected = unembed_vectors(trace, x, np.array([position]))[:, 0]
        assert np.abs(answers.array(answer["lens"], expected.shape) - expected).max() <= TOLERANCE, key
        check_attribution(answers, answer["attribution"], direct_logit_attribution(trace, position, token))


def check_attribution(answers: Answers, attribution: dict, expected):
    heads, biases, feed_forward = (answers.array(attribution[name]) for name in ("heads", "biases", "feed_forward"))
    for values, name in ((heads, "heads"), (biases, "biases"), (feed_forward, "feed_forward")):
        assert np.abs(values - getattr(expected, name).reshape(-1)).max() <= TOLERANCE, name
    for name in ("token", "positions", "shift", "logit"):
        assert abs(attribution[name] - getattr(expected, name)) <= TOLERANCE, name
    numbers = attribution["token"] + attribution["positions"] + attribution["shift"]
    assert abs(heads.sum() + biases.sum() + feed_forward.sum() + numbers - attribution["logit"]) <= TOLERANCE


def test_activations_lens_and_attribution_match_python(answers):
    check_traces(make_trace_tasks(list(PROMPTS)), answers, "trace ")


@pytest.mark.exhaustive
def test_activations_of_fifty_texts_match_python(tmp_path):
    rng = random.Random(2)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 30))) for _ in range(50)]
    questions = make_trace_tasks(texts)
    check_traces(questions, run_node_tasks(questions, tmp_path))


@pytest.mark.parametrize("name", MODELS)
def test_kv_cache_gives_same_logits(answers, name):
    lm, tokenizer = load_model(name)
    with torch.inference_mode():
        expected = lm(torch.tensor([tokenizer.encode(PROMPTS[0])]))[0].numpy()
    assert np.abs(answers.array(answers[f"cached {name}"], expected.shape) - expected).max() <= TOLERANCE


def check_generation(questions: dict[str, dict], answers: Answers, prefix: str = ""):
    for key, question in questions.items():
        lm, _tokenizer = load_model(key.split()[0])
        steps = list(generate(lm, question["ids"], **question["settings"]))
        answer = answers[prefix + key]
        assert [step["tokenId"] for step in answer] == [step.token_id for step in steps], key
        assert len(steps) == question["settings"]["max_new_tokens"]
        assert [step["u"] for step in answer] == [step.u for step in steps]
        probabilities = [step["probability"] for step in answer]
        np.testing.assert_allclose(probabilities, [step.probability for step in steps], atol=TOLERANCE)


def test_generated_tokens_match_python(answers):
    check_generation(make_generation_tasks(100), answers, "generate ")


@pytest.mark.exhaustive
def test_thousand_generated_tokens_match_python(tmp_path):
    questions = make_generation_tasks(1000)
    check_generation(questions, run_node_tasks(questions, tmp_path))


def test_random_numbers_match_python(answers):
    assert answers["uniform"] == [uniform_draw(seed, position) for seed, position in UNIFORM]


def test_every_sampling_stage_matches_python(answers):
    for i, question in enumerate(make_sampling_tasks()):
        logits = np.array(question["logits"], np.float32)
        stages = sampling_stages(logits, previous=question["previous"], **question["settings"])
        answer, ids = answers[f"stages {i}"], np.arange(len(logits))
        retained = dict(zip(("top_k", "top_p", "min_p"), stages.retained, strict=True))
        assert answer["retained"] == {name: ids[indices].tolist() for name, indices in retained.items()}, question
        np.testing.assert_allclose(answers.array(answer["probabilities"]), stages.retained_probabilities, rtol=1e-12)
        assert answer["drawn"] == [stages.draw(u)[0] for u in question["draws"]], question


def test_weights_are_read(answers, weight_files):
    tensor = load_file(weight_files["whole"])["x"]
    np.testing.assert_array_equal(answers.array(answers["file whole"]["x"], (9, 23)), tensor.float().numpy())


@subtest_each(
    "key, words",
    [
        ("file empty", "damaged"),
        ("file long header", "damaged"),
        ("file no JSON", "damaged"),
        ("file cut off", "damaged"),
        ("file wrong size", "damaged"),
        ("vocabulary", "damaged"),
        ("forward none", "1 to 256 positions, got 0"),
        ("forward many", "1 to 256 positions, got 257"),
        ("forward no token", "0 to 4095, got 4096"),
        ("forward half", "0 to 4095, got 0.5"),
        *((f"unknown {name}", text) for name, text in UNSUPPORTED_INTERVENTIONS.items()),
    ],
)
def test_errors_are_explained(answers, key, words):
    assert answers[key]["kind"] == "ModelError"
    assert words in answers[key]["error"]
