from itertools import product

import pytest
import torch
from torch import nn

from model.config import CHOICES, SWITCHES
from model.generation import incremental_decoder
from model.generation.incremental_decoder import IncrementalDecoder
from model.layers.attention import KVCache
from model.layers.basic_layers import NORMS, RMSNorm
from tests.exhaustive import pairwise_params
from tests.subtest_loops import subtest_each

GPT = {"norm": "layernorm", "position": "sinusoidal", "ffn": "relu"}
# Every pair of choices that the decoder can meet, and each switch with both kinds of model.
DECODER_CHOICES = {name: values for name, values in CHOICES.items() if name != "qk_norm_over"}  # needs a switch
EVERY_MODEL = [
    pytest.param(dict(zip(DECODER_CHOICES, case.values, strict=True)), marks=case.marks)
    for case in pairwise_params(*DECODER_CHOICES.values())
]
SWITCHED = [{name: True} | style for name in SWITCHES for style in ({}, GPT)] + [
    {"num_kv_heads": 1},
    {"bias": True, "ffn_bias": False},
    {"ffn_bias": True},
    {"num_kv_heads": 1, "head_dim": 10, "qk_norm": True},
    {"rotary_dim": 4},
    {"rotary_layers": (False, True)},
    {"rotary_layers": (True, False), "rope_layout": "half_split"},
    {"embedding_multiplier": 3.0, "score_divisor": 0.7},
    {"windows": (None, 5), "score_divisor": 1.5},
    {"windows": (None, 5), "local_rope_theta": 20.0},
    {"windows": (5, None), "local_rope_theta": 20.0, "rope_layout": "half_split", "rotary_layers": (True, False)},
    {"windows": (3,), "num_kv_heads": 1, "norm_placement": "parallel", "bias": True, **GPT},
    {"norm_placement": "shared", "unembedding_bias": True, "bias": True, **GPT},
    {"rotary_dim": 2, "rope_layout": "half_split"},
    {"num_kv_heads": 1, "qk_norm": True, "rope_layout": "half_split", "qkv_bias": True},
    {"num_kv_heads": 1, "qk_norm": True, "norm_placement": "post", **GPT},
    {"num_kv_heads": 1, "qk_norm": True, "qk_norm_over": "all", "norm_placement": "output"},
    {"qk_norm": True, "qk_norm_over": "all", "norm_placement": "output", "bias": True, **GPT},
    {"score_cap": 0.3, "logit_cap": 0.5, "num_kv_heads": 1, "norm_placement": "sandwich", "ffn": "geglu"},
    {"score_cap": 0.3, "windows": (None, 5), "norm_placement": "sandwich", "bias": True, **GPT},
]

# (Size up to which matrices are copied, size from which oneDNN multiplies): copies, oneDNN, and neither.
PRODUCTS = [(incremental_decoder.MAX_COPIED_BYTES, 1 << 20), (0, 0), (0, 1 << 20)]
DECODER_CASES = [
    *(
        pytest.param(PRODUCTS[place % len(PRODUCTS)], *model.values, marks=model.marks)
        for place, model in enumerate(EVERY_MODEL)
    ),
    *product(PRODUCTS, SWITCHED),
]


def choices_id(choices: dict | tuple) -> str:
    if isinstance(choices, tuple):
        return "copied" if choices[0] else "with_onednn" if not choices[1] else "plain"
    return "-".join(str(value) if isinstance(value, str) else f"{name}={value}" for name, value in choices.items())


@pytest.fixture(autouse=True)
def non_intel_cpu(monkeypatch):
    """Report a CPU that is not Intel's: on an Intel CPU the tests would never choose oneDNN."""
    monkeypatch.setattr(incremental_decoder, "is_intel_cpu", lambda: False)


@subtest_each(("products", "choices"), DECODER_CASES, ids=choices_id)
@torch.inference_mode()
def test_decoder_logits_match_model_at_every_position(make_lm, token_ids, products, choices, monkeypatch):
    max_copied_bytes, min_onednn_bytes = products
    monkeypatch.setattr(incremental_decoder, "MAX_COPIED_BYTES", max_copied_bytes)
    monkeypatch.setattr(incremental_decoder, "MIN_ONEDNN_BYTES", min_onednn_bytes)
    lm = make_lm(**choices, norm_eps=0.1)
    ids = token_ids[:1]
    logits = decode(IncrementalDecoder(lm), KVCache(lm.config), ids[0])
    torch.testing.assert_close(logits, lm(ids)[0], atol=1e-4, rtol=1e-4)


@subtest_each("choices", [{}, GPT, {"rope_layout": "half_split", "num_kv_heads": 1}], ids=choices_id)
@subtest_each("prefilled", [1, 13])
@torch.inference_mode()
def test_decoder_continues_prefilled_cache(make_lm, token_ids, choices, prefilled):
    lm = make_lm(**choices)
    ids, cache = token_ids[:1], KVCache(lm.config)
    lm(ids[:, :prefilled], cache)
    logits = decode(IncrementalDecoder(lm), cache, ids[0, prefilled:])
    torch.testing.assert_close(logits, lm(ids)[0, prefilled:], atol=1e-4, rtol=1e-4)
    assert cache.length == ids.shape[1]


def decode(decoder: IncrementalDecoder, cache: KVCache, ids: torch.Tensor) -> torch.Tensor:
    """Return logits (T, V) after each of the ids (T,)."""
    return torch.stack([decoder(token_id, cache) for token_id in ids.tolist()])


@torch.inference_mode()
def test_model_and_decoder_alternate_on_one_cache(make_lm, token_ids):
    lm = make_lm()
    cache, decoder = KVCache(lm.config), IncrementalDecoder(lm)
    ids = token_ids[:1]
    for token_id, by_model in zip(ids[0].tolist(), [True, False, False] * 7, strict=False):
        logits = lm(torch.tensor([[token_id]]), cache)[0, -1] if by_model else decoder(token_id, cache)
    torch.testing.assert_close(logits, lm(ids)[0, -1], atol=1e-4, rtol=1e-4)


def test_full_cache_is_refused(make_lm):
    lm = make_lm()
    cache, decoder = KVCache(lm.config), IncrementalDecoder(lm)
    for _ in range(lm.config.context_length):
        decoder(0, cache)
    with pytest.raises(ValueError, match="the cache is full: it holds 32 positions"):
        decoder(0, cache)


def test_decoder_does_not_change_weights(make_lm, token_ids):
    lm = make_lm()
    before = {name: weight.clone() for name, weight in lm.state_dict().items()}
    cache, decoder = KVCache(lm.config), IncrementalDecoder(lm)
    for token_id in token_ids[0].tolist():
        decoder(token_id, cache)
    assert all((weight == before[name]).all() for name, weight in lm.state_dict().items())


class MaxNorm(nn.Module):
    """Norm x / max |x| · g."""

    def __init__(self, d_model: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.abs().amax(-1, keepdim=True) * self.weight


class OffsetRMSNorm(RMSNorm):
    """RMSNorm with the gain 1 + g, as in some models."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) / self.weight * (1 + self.weight)


@subtest_each("norm_placement", CHOICES["norm_placement"])
@subtest_each("norm", [MaxNorm, OffsetRMSNorm])
@torch.inference_mode()
@pytest.mark.exhaustive
def test_unknown_norm_module_is_called(make_lm, token_ids, monkeypatch, norm, norm_placement):
    monkeypatch.setitem(NORMS, "another", norm)
    monkeypatch.setitem(CHOICES, "norm", (*CHOICES["norm"], "another"))
    lm = make_lm(norm="another", norm_placement=norm_placement, qk_norm=True)
    logits = decode(IncrementalDecoder(lm), KVCache(lm.config), token_ids[0])
    torch.testing.assert_close(logits, lm(token_ids[:1])[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("choices", [{}, GPT | {"bias": True}], ids=choices_id)
@torch.inference_mode()
def test_large_model_decodes_without_copying_weights(make_lm, monkeypatch, choices):
    """A large model's decoder follows a change of its weights; a small model's keeps its copies."""
    for max_copied_bytes, min_onednn_bytes, follows in (
        (0, 0, True),
        (0, 1 << 20, True),
        (incremental_decoder.MAX_COPIED_BYTES, 0, False),
    ):
        monkeypatch.setattr(incremental_decoder, "MAX_COPIED_BYTES", max_copied_bytes)
        monkeypatch.setattr(incremental_decoder, "MIN_ONEDNN_BYTES", min_onednn_bytes)
        for name in ("lm_head", "blocks.1.attn.k_proj", "blocks.1.ffn.up_proj"):
            lm = make_lm(**choices)
            steps, ids = IncrementalDecoder(lm), torch.tensor([3, 4, 5])
            before = decode(steps, KVCache(lm.config), ids)
            weight = lm.get_submodule(name).weight
            original = weight.clone()
            weight.mul_(1.5)
            assert torch.equal(decode(steps, KVCache(lm.config), ids), before) != follows, name
            weight.copy_(original)


@torch.inference_mode()
def test_decoder_works_without_onednn(make_lm, token_ids, monkeypatch):
    monkeypatch.setattr(incremental_decoder, "MAX_COPIED_BYTES", 0)
    monkeypatch.setattr(incremental_decoder, "MIN_ONEDNN_BYTES", 0)
    monkeypatch.setattr(incremental_decoder, "onednn_linear", lambda: None)
    lm = make_lm(bias=True)
    logits = decode(IncrementalDecoder(lm), KVCache(lm.config), token_ids[0])
    torch.testing.assert_close(logits, lm(token_ids[:1])[0], atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="needs oneDNN")
def test_large_matrices_use_onednn(make_lm, monkeypatch):
    """oneDNN is twice as fast as BLAS; the test fails if torch renames its operator."""
    assert incremental_decoder.onednn_linear()
    monkeypatch.setattr(incremental_decoder, "MIN_ONEDNN_BYTES", 0)
    lm, used = make_lm(), []
    monkeypatch.setattr(incremental_decoder, "onednn_linear", lambda: lambda x, w, *rest: used.append(w) or x @ w.T)
    monkeypatch.setattr(incremental_decoder, "MAX_COPIED_BYTES", 0)
    IncrementalDecoder(lm)(3, KVCache(lm.config))
    assert len(used) == 7 * lm.config.num_layers + 1
    monkeypatch.setattr(incremental_decoder, "is_intel_cpu", lambda: True)  # its BLAS is as fast or faster
    used.clear()
    IncrementalDecoder(lm)(3, KVCache(lm.config))
    assert used == []


@pytest.mark.parametrize(("vendor", "is_intels"), [("GenuineIntel", True), ("AuthenticAMD", False)])
@pytest.mark.parametrize("told_by", ["file", "platform"])
def test_intel_cpu_is_detected(tmp_path, monkeypatch, told_by, vendor, is_intels):
    cpu_info = tmp_path / "cpuinfo"
    if told_by == "file":
        cpu_info.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")
    monkeypatch.undo()  # of `non_intel_cpu`
    monkeypatch.setattr(incremental_decoder, "CPU_INFO", cpu_info)
    processor = f"Intel64 Family 6 Model 143 Stepping 8, {vendor}" if told_by == "platform" else ""
    monkeypatch.setattr("platform.processor", lambda: processor)
    assert incremental_decoder.is_intel_cpu.__wrapped__() is is_intels


@torch.inference_mode()
def test_large_model_decoder_allocates_no_matrices(make_lm, monkeypatch):
    monkeypatch.setattr(incremental_decoder, "MAX_COPIED_BYTES", 0)
    lm = make_lm()
    min_matrix_bytes, allocated = min(w.nbytes for w in lm.parameters() if w.ndim == 2), []

    class AllocationCounter(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            weight_pointers = {w.untyped_storage().data_ptr() for w in lm.parameters()}
            if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in weight_pointers:
                allocated.append(result.nbytes)
            return result

    with AllocationCounter():
        IncrementalDecoder(lm)
    table = lm.config.context_length * lm.config.d_head // 2 * 8  # of complex numbers, or of angles in float64
    assert max(allocated) <= max(table, lm.config.vocab_size * 4) and min_matrix_bytes > 0
