"""One small model of each kind that the explorer shows, their captured runs, and prompts made to break things."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import torch

from explorer.capture import capture
from explorer.edits import parse_edits
from explorer.library import Library
from explorer.trace import Trace
from model.checkpoint import save_checkpoint
from model.config import RopeScaling
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

TIED = {"tie_embeddings": True, "scale_embeddings": True}
SLOWED = {"rope_scaling": RopeScaling(kind="linear", factor=4)}
# Whatever is asked of every kind of model is tested once for each of these; a new kind is a new line.
STYLES = {
    "rope": {},
    "none": {"position": "none"},
    "gpt": {"norm": "layernorm", "position": "sinusoidal", "ffn": "relu", "bias": True},
    "learned": {"position": "learned", "ffn": "gelu_tanh", "qkv_bias": True} | TIED,
    "grouped": {"d_model": 48, "num_heads": 6, "num_kv_heads": 3, "qk_norm": True, "rope_layout": "half_split"}
    | SLOWED,
    "post": {"norm": "layernorm", "norm_placement": "post", "ffn": "gelu"},
}
# Changes that each model's kind of positions allows, at any length; a head is silenced in all of them.
POSITION_EDITS = {
    "rope": "rope.angles*shift*3~rope.angles*base*500",
    "sinusoidal": "position_embed*shift*3",
    "learned": "position_embed*scale*0.5",
    "none": "embed*scale*2",
}
ROTATING = [style for style, choices in STYLES.items() if choices.get("position", "rope") == "rope"]

TEXT = "Once upon a time there was <b>a fox</b> &amp; the moon.\n\tשלום 🌙 é"
NASTY_PROMPTS = [  # at most 32 tokens each
    " ",
    "\n\n\t\r\n",
    "<b>bold</b> &lt; &amp;lt;",
    "<img src=x onerror=alert(1)>",
    "${1+1} {{value}}",
    "@children %{x} $x$",
    "\x00\x07\x1b[31m\x7f",
    "שלום עולם \u202etxt.exe\u2069",
    "e\u0301 🌙 👩‍👩‍👧",
    "\ufeff\u200b\u00a0",
    "<|endoftext|>",
    "'; DROP TABLE tokens; --",
    "\U0010ffff\ufffd",
]


@pytest.fixture(scope="session", params=STYLES)
def style(request) -> str:
    """Each kind of model in turn."""
    return request.param


@pytest.fixture(scope="session")
def lms(tiny_config) -> dict[str, TransformerLM]:
    """A model of each style, shared by all tests: not to be changed."""
    torch.manual_seed(0)
    lms = {style: TransformerLM(replace(tiny_config, **choices)).eval() for style, choices in STYLES.items()}
    for lm in lms.values():
        for parameter in lm.parameters():
            if parameter.ndim == 1:  # gains that are 1 and biases that are 0 would hide their absence
                torch.nn.init.normal_(parameter, mean=parameter.mean().item(), std=0.2)
    return {style: lm.requires_grad_(False) for style, lm in lms.items()}


@pytest.fixture(scope="session")
def trace_of(lms, tiny_tokenizer) -> Callable[..., Trace]:
    """`trace_of(style, length)` is the run of a model over the first tokens of a text with all kinds of characters."""
    ids = tiny_tokenizer.encode(TEXT)

    @cache
    def trace_of(style: str, length: int = 12) -> Trace:
        return capture(lms[style], ids[:length], tokenizer=tiny_tokenizer)

    return trace_of


@pytest.fixture(scope="session")
def edited_trace_of(trace_of, lms, tiny_tokenizer) -> Callable[..., Trace]:
    """The same runs with edits, and with what `trace_of` gives as their baselines."""

    @cache
    def edited_trace_of(style: str, length: int = 12) -> Trace:
        baseline = trace_of(style, length)
        edits = parse_edits(f"{POSITION_EDITS[baseline.config.position]}~blocks.1.attn.z.1*zero")
        changed = capture(lms[style], baseline.token_ids, edits, tokenizer=tiny_tokenizer)
        return replace(changed, baseline=baseline)

    return edited_trace_of


@pytest.fixture
def trace(trace_of, style) -> Trace:
    """12 tokens through each kind of model."""
    return trace_of(style)


@pytest.fixture
def rope_trace(trace_of) -> Trace:
    return trace_of("rope")


@pytest.fixture(params=ROTATING)
def rotating_trace(trace_of, request) -> Trace:
    """12 tokens through each kind of model that has rotary positions."""
    return trace_of(request.param)


@pytest.fixture(params=NASTY_PROMPTS, ids=ascii)
def nasty_prompt(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def library(lms, tiny_tokenizer: Tokenizer, tmp_path_factory) -> Library:
    """A library of one checkpoint a style, named after it; their weights are exactly those of `lms`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.checkpoint.CHECKPOINTS", tmp_path_factory.mktemp("checkpoints"))
        for style, lm in lms.items():
            save_checkpoint(lm, tiny_tokenizer, style, dtype=torch.float32)
        yield Library("cpu")
