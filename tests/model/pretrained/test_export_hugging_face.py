"""Our models, exported as folders for transformers, have the same logits there."""

import json

import pytest
import torch
from torch.testing import assert_close

from model.checkpoint import load_checkpoint
from model.config import RopeScaling
from model.errors import ModelError
from model.generation.autoregressive import generate
from model.pretrained.export_hugging_face import save_hugging_face
from model.pretrained.tokenizer import read_tokenizer_json
from tests.hugging_face import transformers
from tests.model.pretrained.tokenizer_kinds import tokenizer_json
from tests.sample_models import STORIES, TEXT

LAYERNORM = {"norm": "layernorm", "bias": True}
LLAMA3 = RopeScaling(
    kind="llama3", factor=8.0, low_frequency_factor=1.0, high_frequency_factor=4.0, original_context_length=16
)
YARN = RopeScaling(
    kind="yarn",
    factor=4.0,
    high_frequency_factor=8,
    original_context_length=16,
    rounds_ramp=False,
    attention_factor=1.1,
)
LONGROPE = RopeScaling(
    kind="longrope", factor=2.0, pair_factors=(1.0, 1.5, 4.0), original_context_length=64, attention_factor=1.3
)
EXPORTS = {
    "llama": ({}, "Llama"),
    "llama, its pairs halves apart": ({"rope_layout": "half_split", "num_kv_heads": 2}, "Llama"),
    "llama, all biases": ({"bias": True, "rope_scaling": LLAMA3, "head_dim": 6}, "Llama"),
    "llama, biases of the attention": ({"bias": True, "ffn_bias": False}, "Llama"),
    "llama, biases of the feed-forward": ({"ffn_bias": True}, "Llama"),
    "llama, YaRN": ({"rope_scaling": YARN}, "Llama"),
    "llama, LongRoPE": ({"rope_scaling": LONGROPE}, "Llama"),
    "embeddings times three": ({"embedding_multiplier": 3.0, "tie_embeddings": True}, "Llama"),
    "qwen2": ({"qkv_bias": True, "tie_embeddings": True}, "Qwen2"),
    "qwen3": ({"qk_norm": True, "head_dim": 10, "num_kv_heads": 2}, "Qwen3"),
    "gpt-2": (LAYERNORM | {"position": "learned", "ffn": "gelu_tanh", "tie_embeddings": True}, "GPT2"),
    "squared ReLU": (LAYERNORM | {"position": "learned", "ffn": "relu2"}, "GPT2"),
    "the twin": (
        LAYERNORM | {"position": "sinusoidal", "ffn": "relu", "tie_embeddings": True, "scale_embeddings": True},
        "GPT2",
    ),
}
UNSUPPORTED = {  # choices -> the field named in the error
    "post-norm": (LAYERNORM | {"position": "learned", "norm_placement": "post"}, "norm_placement 'post'"),
    "no positions": ({"position": "none"}, "position 'none'"),
    "LayerNorm with RoPE": (LAYERNORM, "position 'rope'"),
    "RMSNorm with ReLU": ({"ffn": "relu"}, "ffn 'relu'"),
    "another divisor": ({"score_divisor": 2.0}, r"score_divisor 2\.0"),
    "windows": ({"windows": (5, None)}, r"windows \(5, None\)"),
    "part of the dimensions turned": ({"rotary_dim": 4}, "rotary_dim 4"),
    "one norm for both sublayers": (
        LAYERNORM | {"position": "learned", "norm_placement": "shared"},
        "norm_placement 'shared'",
    ),
    "layers that do not turn": ({"rotary_layers": (True, False)}, r"rotary_layers \(True, False\)"),
    "norms of what is added": ({"norm_placement": "output"}, "norm_placement 'output'"),
    "norms around sublayers": ({"norm_placement": "sandwich"}, "norm_placement 'sandwich'"),
    "queries normalised over all heads": ({"qk_norm": True, "qk_norm_over": "all"}, "qk_norm_over 'all'"),
    "capped scores": ({"score_cap": 50.0}, r"score_cap 50\.0"),
    "capped logits": (LAYERNORM | {"position": "learned", "logit_cap": 30.0}, r"logit_cap 30\.0"),
    "another θ in some layers": ({"local_rope_theta": 20.0}, r"local_rope_theta 20\.0"),
    "no biases in the feed-forward": (
        LAYERNORM | {"position": "learned", "ffn": "relu", "ffn_bias": False},
        "ffn_bias False",
    ),
    "GEGLU": ({"ffn": "geglu"}, "ffn 'geglu'"),
    "a bias of the unembedding": ({"unembedding_bias": True}, "unembedding_bias True"),
    "parallel sublayers": (
        LAYERNORM | {"position": "learned", "norm_placement": "parallel"},
        "norm_placement 'parallel'",
    ),
}


@pytest.fixture
def tokens(tiny_tokenizer) -> list[int]:
    return tiny_tokenizer.encode("Once upon a time the fox asked the owl")[:16]


@pytest.mark.parametrize("kind", EXPORTS)
@torch.no_grad()
def test_transformers_computes_same_logits(make_lm, tiny_tokenizer, tokens, tmp_path, kind):
    choices, family = EXPORTS[kind]
    lm = make_lm(num_heads=4, **choices)
    hf_model = transformers.AutoModelForCausalLM.from_pretrained(save_hugging_face(lm, tiny_tokenizer, tmp_path / "it"))
    assert type(hf_model).__name__.startswith(family)
    ids = torch.tensor([tokens])
    assert_close(hf_model(ids).logits, lm(ids), atol=2e-4, rtol=1e-5)
    reloaded, _tokenizer = load_checkpoint(tmp_path / "it")
    assert_close(reloaded(ids), lm(ids), atol=2e-4, rtol=1e-5)


@pytest.mark.parametrize("text", [TEXT, "", " a", "a", "  two  spaces ", "it's 42!", "<|endoftext|>"])
def test_transformers_encodes_same_tokens(make_lm, tiny_tokenizer, tmp_path, text):
    folder = save_hugging_face(make_lm(), tiny_tokenizer, tmp_path / "it")
    hf_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = hf_tokenizer(text, split_special_tokens=True).input_ids
    assert ids == tiny_tokenizer.encode(text)
    assert hf_tokenizer.decode(ids) == text
    assert hf_tokenizer.eos_token_id == tiny_tokenizer.end_of_text


@pytest.mark.parametrize(("choices", "told"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_model_is_refused_by_name(make_lm, tiny_tokenizer, tmp_path, choices, told):
    with pytest.raises(ModelError, match=f"has {told} with"):
        save_hugging_face(make_lm(**choices), tiny_tokenizer, tmp_path / "it")
    assert not (tmp_path / "it").exists()


def test_weights_too_large_for_dtype_are_refused(make_lm, tiny_tokenizer, tmp_path):
    lm = make_lm()
    lm.lm_head.weight.data[0, 0] = 1e6
    with pytest.raises(ValueError, match=r"lm_head.weight holds values that are not finite as torch.float16"):
        save_hugging_face(lm, tiny_tokenizer, tmp_path / "it", torch.float16)


def test_weights_are_stored_in_requested_dtype(make_lm, tiny_tokenizer, tmp_path):
    folder = save_hugging_face(make_lm(), tiny_tokenizer, tmp_path / "it", torch.bfloat16)
    assert load_checkpoint(folder)[0].lm_head.weight.dtype == torch.bfloat16
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    """A real model, its tokenizer, and the exported folder."""
    lm, tokenizer = load_checkpoint(STORIES)
    return lm, tokenizer, save_hugging_face(lm, tokenizer, tmp_path_factory.mktemp("stories"))


def test_exported_real_model_generates_known_text(stories):
    lm, tokenizer = load_checkpoint(stories[2])
    ids = [*tokenizer.bos_ids, *tokenizer.encode("Once upon a time")]
    steps = generate(lm, ids, max_new_tokens=256 - len(ids), temperature=0)
    generated = tokenizer.decode([*ids, *(step.token_id for step in steps)])
    expected = STORIES.with_name("greedy.txt").read_text(encoding="utf-8")
    assert expected.startswith(generated) and len(generated) >= len(expected) - 5


@torch.no_grad()
def test_exported_real_model_matches_in_transformers(stories):
    lm, tokenizer, folder = stories
    hf_model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    hf_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for text in ("Once upon a time", " a", "é 🌙\n\n“no”", "  two  spaces "):
        ids = [*tokenizer.bos_ids, *tokenizer.encode(text)]
        assert hf_tokenizer(text).input_ids == ids
        assert hf_tokenizer.decode(ids, skip_special_tokens=True) == text
        assert_close(hf_model(torch.tensor([ids])).logits, lm(torch.tensor([ids])), atol=1e-4, rtol=1e-5)


def test_tokenizer_with_ordinary_end_token_is_exported(make_lm, tmp_path):
    """For example, texts of character models end with a line break."""
    (tmp_path / "tokenizer.json").write_text(tokenizer_json("characters"))
    tokenizer = read_tokenizer_json(tmp_path / "tokenizer.json", 300, [1])
    folder = save_hugging_face(make_lm(), tokenizer, tmp_path / "it")
    reloaded = load_checkpoint(folder)[1]
    assert reloaded.eos_ids == (1,) and reloaded.encode("the fox\n") == tokenizer.encode("the fox\n")
