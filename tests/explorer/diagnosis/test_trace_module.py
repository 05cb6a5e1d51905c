"""Traces of arbitrary modules: views draw the values that exist and name those that are missing."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BloomConfig, BloomForCausalLM

from explorer import trace_module
from explorer.errors import UserError
from explorer.state.selection import Selection
from explorer.views import VIEW_BY_NAME, VIEWS
from tests.devices import on_each_device
from tests.subtest_loops import subtest_each

IDS = [3, 1, 4, 1, 5, 9]
PARTS = {
    "embed": "transformer.word_embeddings_layernorm",
    "blocks.*.resid_pre": "transformer.h.*.in",
    "blocks.*.attn.pattern": "transformer.h.*.self_attention.attention_dropout",
    "blocks.*.attn.out": "transformer.h.*.self_attention.dense",
    "blocks.*.resid_mid": "transformer.h.*.post_attention_layernorm.in",
    "blocks.*.ffn.out": "transformer.h.*.mlp.dense_4h_to_h",
    "blocks.*.resid_post": "transformer.h.*",
    "final_norm": "transformer.ln_f",
}
STREAM = {"blocks.*.resid_post": "transformer.h.*[0]"}


@pytest.fixture(scope="module")
def bloom():
    """Model unlike any of ours: ALiBi positions, and query, key and value maps fused head by head."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 70, "hidden_size": 24, "n_layer": 3, "n_head": 4}
    return BloomForCausalLM(BloomConfig(**sizes, attn_implementation="eager")).eval()


def test_trace_values_are_module_values(bloom):
    trace = trace_module(bloom, IDS, PARTS)
    with torch.no_grad():
        out = bloom(torch.tensor([IDS]), output_hidden_states=True, output_attentions=True)
    assert np.allclose(trace["logits"], out.logits[0], atol=1e-6)
    assert np.allclose(trace["embed"], out.hidden_states[0][0], atol=1e-6)
    for layer in range(3):
        assert np.allclose(trace[f"blocks.{layer}.attn.pattern"], out.attentions[layer][0], atol=1e-6)
    assert np.allclose(trace["blocks.0.resid_post"], out.hidden_states[1][0], atol=1e-6)
    assert np.allclose(trace["blocks.1.resid_pre"], trace["blocks.0.resid_post"])
    config = trace.config
    assert (config.num_layers, config.num_heads, config.d_model, config.vocab_size) == (3, 4, 24, 70)
    assert len(trace) == len(IDS) and not trace.weights and not trace.has_weights


@on_each_device
def test_module_on_other_device_gives_same_values(bloom, device):
    on_device, on_cpu = (trace_module(module, IDS, PARTS) for module in (deepcopy(bloom).to(device), bloom))
    assert on_device.values.keys() == on_cpu.values.keys()
    for name, value in on_cpu.values.items():
        assert np.allclose(on_device[name], value, atol=1e-3 * max(1, np.abs(value).max())), name


@subtest_each("parts", [PARTS, STREAM, {}], ids=["many parts", "stream", "logits"])
@subtest_each("view", VIEWS, ids=lambda view: view.name)
def test_view_draws_or_names_missing_taps(bloom, view, parts):
    trace = trace_module(bloom, IDS, parts)
    selection = Selection(view=view.name, query=3, layer=1).clamp_to_trace(trace)
    if not view.is_applicable(trace):
        reason = view.unavailable_reason(trace)
        assert reason.startswith("This needs what was not taken from the module: ")
        assert all(name.split(".")[-1] in reason for name in view.missing_taps(trace))
        return
    if not view.is_comparison:
        assert view.formula(trace, selection)
    for panel in view.panels:
        if not panel.compared_run and panel.is_applicable(trace):
            assert panel.draw(trace, selection) is not None
            assert panel.verify is None or panel.verify(trace, selection).state == "unchecked"


def test_views_and_panels_match_recorded_taps(bloom):
    view_names = {view.name for view in VIEWS if view.is_applicable(trace_module(bloom, IDS, PARTS))}
    assert {"attention", "residual", "activations", "pieces", "choosing", "training", "compare"} == view_names
    assert {view.name for view in VIEWS if view.is_applicable(trace_module(bloom, IDS, STREAM))} == {
        "activations",
        "pieces",
        "choosing",
    }
    panels = {
        panel.name for panel in VIEW_BY_NAME["attention"].panels if panel.is_applicable(trace_module(bloom, IDS, PARTS))
    }
    assert {"heads", "pattern", "row", "table", "scores", "lines"} == panels


class Flat(nn.Module):
    """Module with heads side by side whose attributes do not give their number."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.q, self.out = nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 9)

    def forward(self, token_ids):
        return self.out(self.q(self.table(token_ids)))


def test_config_sets_number_of_heads(bloom):
    config = trace_module(bloom, IDS, PARTS).config
    from dataclasses import replace

    config = replace(config, d_model=8, num_heads=2, num_layers=1, vocab_size=9, d_ff=8)
    module = Flat().train()
    trace = trace_module(module, IDS[:4], {"blocks.0.attn.q": "q"}, config=config)
    with torch.no_grad():
        flat = module.q(module.table(torch.tensor(IDS[:4])))
    assert np.allclose(trace["blocks.0.attn.q"][1], flat[:, 4:])
    assert module.training and not module.q._forward_hooks


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"embed": "transformer.nothing"}, "has no part transformer.nothing"),
        ({"blocks.*.attn.pattern": "transformer.h.*.mlp"}, r"blocks.0.attn.pattern has the shape"),
        ({"embed": "transformer.word_embeddings.weight"}, "has no part"),
    ],
)
def test_invalid_part_is_refused(bloom, parts, told):
    with pytest.raises(UserError, match=told):
        trace_module(bloom, IDS, parts)


@pytest.mark.exhaustive
def test_failing_module_is_reported(bloom):
    with pytest.raises(UserError, match="The module fails on 1 tokens: IndexError"):
        trace_module(bloom, [70], STREAM)
