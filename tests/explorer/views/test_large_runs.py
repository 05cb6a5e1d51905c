"""Many tokens: what each view sends stays small."""

import json
from functools import cache

import numpy as np
import pytest
import torch

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.work import Work
from explorer.views import VIEWS
from explorer.web.answers.open_view import OpenView
from explorer.web.answers.view_contents import packed, view_contents
from explorer.web.protocol import in_tab
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

LAYERS, HEADS, TOKENS = 3, 8, 1024
MANY = 32  # layers, and heads of each
FEW, TWICE = 48, 96  # tokens; with more of them all heads' pictures would have to share their bytes
MOST_BYTES = 3_000_000
PICTURES_OF_HEADS = 1 << 20  # bytes of all of them at most (see below)


@cache
def run(layers: int, heads: int, tokens: int):
    """A model, and a run on so many tokens."""
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=2000, context_length=TOKENS, d_model=32, num_layers=layers, num_heads=heads, d_ff=64
    )
    lm = TransformerLM(config).eval().requires_grad_(False)
    ids = np.random.default_rng(0).integers(2000, size=TOKENS).tolist()[:tokens]
    return lm, capture(lm, ids, most_bytes=20 << 20)


@pytest.fixture(scope="module", autouse=True)
def let_go():
    yield
    run.cache_clear()


@pytest.fixture
def large():
    lm, trace = run(LAYERS, HEADS, TOKENS)
    assert trace.is_on_demand
    return lm, trace


def sent(view, lm, trace) -> dict[str, int]:
    """Bytes of JSON of what a view shows, by the element's name."""
    selection = Selection(view=view.name, layer=1, head=5, query=len(trace) - 9, key=3).within(trace)
    shown, sizes = OpenView(view, trace, selection, lm), {}
    with Work(10**6, 1e6).counted():
        for part in (0, 1):
            contents = view_contents(shown, True, part)
            sizes |= {name: len(json.dumps(content)) for name, content in contents.items()}
    grids = {in_tab(view.name, panel.name) for panel in view.panels if panel.kind == "head_grid" and shown.has(panel)}
    return sizes | dict.fromkeys(grids, PICTURES_OF_HEADS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_is_at_most_three_megabytes(view):
    """Of 32 layers of 32 heads at 1,024 tokens, too: what many heads take more than a few at the same tokens, and what
    each of these tokens has of that, are the same of any others."""
    large = sent(view, *run(LAYERS, HEADS, TOKENS))
    assert sum(large.values()) <= MOST_BYTES, large
    few, twice = (
        sum(sent(view, *run(MANY, MANY, tokens)).values()) - sum(sent(view, *run(LAYERS, HEADS, tokens)).values())
        for tokens in (FEW, TWICE)
    )
    a_token = (twice - few) / (TWICE - FEW)
    assert sum(large.values()) + twice + (TOKENS - TWICE) * max(0, a_token) <= MOST_BYTES, (twice, a_token)


@pytest.mark.exhaustive
def test_a_head_of_a_thousand_tokens_and_all_heads_as_a_sheet(large):
    lm, trace = large
    attention = next(view for view in VIEWS if view.name == "attention")
    shown = OpenView(attention, trace, Selection(view="attention", layer=1, head=5, query=900, key=3), lm)
    heads, pattern, *_others = attention.panels
    assert len(json.dumps(packed(shown.draw(heads)))) <= 1 << 20
    assert len("".join(packed(shown.draw(pattern)))) <= 1_700_000
