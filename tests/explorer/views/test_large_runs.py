"""Many tokens: what each view sends stays small."""

import json

import numpy as np
import pytest
import torch

from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.work import Work
from explorer.views import VIEWS
from explorer.web.answers.open_view import OpenView
from explorer.web.answers.view_contents import packed, view_contents
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

LAYERS, HEADS, TOKENS = 3, 8, 1024  # what is sent grows with the tokens; of heads there is a bound of its own
MOST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def large():
    """The model, and its run on as many tokens as it sees."""
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=2000, context_length=TOKENS, d_model=32, num_layers=LAYERS, num_heads=HEADS, d_ff=64
    )
    lm = TransformerLM(config).eval().requires_grad_(False)
    ids = np.random.default_rng(0).integers(2000, size=TOKENS).tolist()
    trace = capture(lm, ids, most_bytes=20 << 20)
    assert trace.is_on_demand
    return lm, trace


@pytest.mark.exhaustive
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_is_at_most_three_megabytes(large, view):
    lm, trace = large
    selection = Selection(view=view.name, layer=1, head=5, query=900, key=3).within(trace)
    shown, sizes = OpenView(view, trace, selection, lm), {}
    with Work(10**6, 1e6).counted():
        for part in (0, 1):
            contents = view_contents(shown, True, part)
            sizes |= {name: len(json.dumps(content)) for name, content in contents.items()}
    assert sum(sizes.values()) <= MOST_BYTES, sizes


@pytest.mark.exhaustive
def test_a_head_of_a_thousand_tokens_and_all_heads_as_a_sheet(large):
    lm, trace = large
    attention = next(view for view in VIEWS if view.name == "attention")
    shown = OpenView(attention, trace, Selection(view="attention", layer=1, head=5, query=900, key=3), lm)
    heads, pattern, *_others = attention.panels
    assert len(json.dumps(packed(shown.draw(heads)))) <= 1 << 20
    assert len("".join(packed(shown.draw(pattern)))) <= 1_700_000
