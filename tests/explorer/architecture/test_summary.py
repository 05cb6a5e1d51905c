from copy import copy
from dataclasses import replace

from explorer.architecture.summary import (
    NAMES,
    describe_architecture,
    layers_and_heads,
    model_summary,
    summarise_files,
)
from model.config import CHOICES
from model.describe import Description, describe_model
from model.errors import LoadingNote
from tests.subtest_loops import subtest_each


def test_summary_names_architecture_and_size(lms):
    size = sum(parameter.numel() for parameter in lms["rope"].parameters())
    config = lms["rope"].config
    widths = f"d_model {config.d_model} · d_head {config.d_head} · d_ff {config.d_ff}"
    widths += f" · vocabulary {config.vocab_size:,}"
    common = f"{size / 1e6:.1f} M parameters · 2 layers × 3 heads · {widths} · context 32 · cpu"
    assert model_summary(lms["rope"]) == f"RMSNorm · RoPE · SwiGLU · {common}"


def test_summary_ends_with_loading_notes(lms):
    lm = copy(lms["rope"])
    lm.notes = (LoadingNote("its file says {what}", what="{braces}"), LoadingNote("all is well"))
    assert model_summary(lm) == f"{model_summary(lms['rope'])} · its file says {{braces}} · all is well"


def test_file_summary_has_types_licence_and_template():
    assert summarise_files(describe_model("llama-fables")) == "weights stored as F16 · licence: MIT"
    rows = ("types", "BF16 in 9, F32 in 2 tensors"), ("licence", "not named"), ("chat template", "210 characters")
    assert summarise_files(Description(rows)) == "weights stored as BF16, F32 · with a chat template"
    assert summarise_files(Description(())) == ""


@subtest_each(
    ("style", "words"),
    [
        ("none", "RMSNorm · no positions · ReLU²"),
        ("gpt", "LayerNorm · sinusoidal positions · ReLU · biases"),
        ("learned", "RMSNorm · learned positions · GELU (tanh) · q, k, v biases"),
        ("grouped", "RMSNorm · RoPE slowed 4× in 1 of 2 layers · SwiGLU · QK-norm"),
        (
            "local",
            "LayerNorm (one for attention and feed-forward side by side) · learned positions · GELU (tanh) · "
            "sees all, 8 tokens, layer by layer · biases, none of q, k, v · unembedding with a bias",
        ),
        ("post", "LayerNorm (post-norm) · RoPE · GELU"),
        (
            "sandwich",
            "RMSNorm (of what is read and of what is added) · RoPE with two θ · GeGLU · "
            "sees all, 8 tokens, layer by layer · scores within ±1.5 · logits within ±2",
        ),
        ("output", "LayerNorm (of what is added) · RoPE · SwiGLU · QK-norm over all heads · biases"),
    ],
)
def test_architecture_description_per_style(lms, style, words):
    assert describe_architecture(lms[style].config) == words
    assert model_summary(lms[style]).startswith(words)


def test_biases_are_named_by_location(tiny_config):
    def told(**biases) -> str:
        return describe_architecture(replace(tiny_config, **biases)).removeprefix("RMSNorm · RoPE · SwiGLU")

    assert told() == "" and told(bias=True) == " · biases"
    assert told(bias=True, ffn_bias=False) == " · biases of the attention"
    assert told(ffn_bias=True) == " · biases of the feed-forward"
    assert told(ffn_bias=True, qkv_bias=True) == " · biases, none of W_O"
    assert told(bias=True, ffn_bias=False, unbiased_qkv=True) == " · biases of W_O"


def test_layers_and_heads_are_counted(tiny_config):
    assert layers_and_heads(tiny_config) == "2 layers × 3 heads"
    assert layers_and_heads(replace(tiny_config, num_heads=6, num_kv_heads=2)) == "2 layers × 6 heads (2 kv)"
    assert layers_and_heads(replace(tiny_config, num_layers=1, num_heads=1)) == "1 layer × 1 head"


def test_every_choice_has_name():
    assert set(NAMES) == {*CHOICES["norm"], *CHOICES["position"], *CHOICES["ffn"]}
