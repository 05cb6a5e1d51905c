"""Bytes that each view sends for runs of many tokens."""

import json
from functools import cache

import numpy as np
import pytest
import torch

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.jobs import RequestBudget
from explorer.views import VIEWS
from explorer.web.browser_api.open_view import OpenView
from explorer.web.browser_api.page_contents import figure_payload, view_contents
from explorer.web.shared_constants import element_id
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

LAYERS, HEADS, TOKENS = 3, 8, 1024
MANY = 32  # layers, and heads of each
FEW, TWICE = 48, 96  # tokens; more would hit the byte limit of the head grid
MAX_BYTES = 3_000_000
MAX_HEAD_GRID_BYTES = 1 << 20  # maximum bytes of a head grid (see below)


@cache
def run(layers: int, heads: int, tokens: int):
    """Return a model and a run of `tokens` tokens."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 2000, "context_length": TOKENS, "d_model": 2 * MANY, "d_ff": 128}
    config = ModelConfig(**sizes, num_layers=layers, num_heads=heads)
    lm = TransformerLM(config).eval().requires_grad_(False)
    ids = np.random.default_rng(0).integers(2000, size=TOKENS).tolist()[:tokens]
    return lm, capture(lm, ids, max_bytes=20 << 20)


@pytest.fixture(scope="module", autouse=True)
def clear_cached_runs():
    yield
    run.cache_clear()


@pytest.fixture
def large():
    lm, trace = run(LAYERS, HEADS, TOKENS)
    assert trace.is_lazy
    return lm, trace


def view_payload_bytes(view, lm, trace) -> dict[str, int]:
    """Return the bytes of JSON that a view sends, by element id."""
    selection = Selection(view=view.name, layer=1, head=5, query=len(trace) - 9, key=3).clamp_to_trace(trace)
    open_view, sizes = OpenView(view, trace, selection, lm), {}
    with RequestBudget(10**6, 1e6).activate():
        for part in (0, 1):
            contents = view_contents(open_view, True, part)
            sizes |= {name: len(json.dumps(content)) for name, content in contents.items()}
    grids = {
        element_id(view.name, panel.name) for panel in view.panels if panel.kind == "head_grid" and open_view.has(panel)
    }
    return sizes | dict.fromkeys(grids, MAX_HEAD_GRID_BYTES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_sends_at_most_three_megabytes(view):
    """Holds for 32 layers of 32 heads at 1,024 tokens too: extrapolated from the cost of heads and tokens."""
    large = view_payload_bytes(view, *run(LAYERS, HEADS, TOKENS))
    assert sum(large.values()) <= MAX_BYTES, large
    if view.name == "experiments":  # ablates each head in turn; one number per head
        return
    few_tokens_bytes, twice_tokens_bytes = (
        sum(view_payload_bytes(view, *run(MANY, MANY, tokens)).values())
        - sum(view_payload_bytes(view, *run(LAYERS, HEADS, tokens)).values())
        for tokens in (FEW, TWICE)
    )
    a_token = (twice_tokens_bytes - few_tokens_bytes) / (TWICE - FEW)
    assert sum(large.values()) + twice_tokens_bytes + (TOKENS - TWICE) * max(0, a_token) <= MAX_BYTES, (
        twice_tokens_bytes,
        a_token,
    )


@pytest.mark.exhaustive
def test_pattern_and_head_grid_are_small_enough(large):
    lm, trace = large
    attention = next(view for view in VIEWS if view.name == "attention")
    open_view = OpenView(attention, trace, Selection(view="attention", layer=1, head=5, query=900, key=3), lm)
    heads, pattern, *_others = attention.panels
    assert len(json.dumps(figure_payload(open_view.draw(heads)))) <= 1 << 20
    assert len("".join(figure_payload(open_view.draw(pattern)))) <= 1_700_000
