"""A model larger than its memory limit has the same logits as one in memory."""

import gc
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from explorer.explain.captured import check_captured_value
from explorer.explain.derivation import tolerance
from explorer.interventions import parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.attribution import ablate, token_contributions
from explorer.tracing.capture import capture
from explorer.tracing.jobs import run_to_completion
from explorer.tracing.model_library import ModelLibrary, model_num_bytes
from explorer.tracing.patching.patching_methods import activation_patching, path_patching
from model import weight_placement
from model.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from model.generation.autoregressive import NextLogitsWithCache, generate
from model.weight_placement import parse_bytes, parse_device, read_weight
from tests.panels import PANELS, subject
from tests.sample_models import models
from tests.subtest_loops import subtest_each

pytest.importorskip("accelerate")
IDS = [3, 7, 1, 4, 2, 9, 6]


@pytest.fixture(params=["rope", "gpt", "learned", "post", "sandwich"])
def model_pair(request, checkpoints_folder, tiny_tokenizer):
    """A model in memory, and with four fifths of its weights on disk."""
    lm = models()[request.param]
    save_checkpoint(lm, tiny_tokenizer, "some", dtype=torch.float32)
    size = sum(weight.nbytes for weight in lm.parameters())
    spread, _tokenizer = load_checkpoint("some", device_map="auto", max_memory={"cpu": size // 2})
    return lm, spread


def disk_share(lm) -> float:
    """Return the share of the model's weights that is on disk."""
    sizes = {name: weight.nbytes for name, weight in lm.named_parameters()}
    return sum(sizes[name] for name in lm.offloaded.readers if name in sizes) / sum(sizes.values())


def test_memory_stays_below_limit(model_pair):
    lm, spread = model_pair
    assert disk_share(spread) > 0.4
    assert (
        model_num_bytes(spread)
        <= model_num_bytes(lm) - disk_share(spread) * sum(weight.nbytes for weight in lm.parameters()) + 1
    )
    assert spread.device == torch.device("cpu") and spread.dtype == torch.float32


@torch.inference_mode()
def test_logits_and_traces_are_equal(model_pair):
    lm, spread = model_pair
    assert torch.equal(spread(torch.tensor([IDS])), lm(torch.tensor([IDS])))
    one, other = capture(lm, IDS), capture(spread, IDS)
    assert list(one.values) == list(other.values)
    assert all(np.array_equal(one[name], other[name]) for name in one.values)
    assert all(check_captured_value(other, name).is_within_tolerance for name in other.values)
    some = capture(spread, IDS, max_bytes=0)
    assert some.is_lazy and all(np.abs(one[name] - some[name]).max() < 1e-4 for name in one.values)


def test_offloaded_weights_are_read(model_pair):
    lm, spread = model_pair
    one, other = capture(lm, IDS), capture(spread, IDS)
    assert one.weights.keys() == other.weights.keys()
    for name in one.weights:
        assert np.array_equal(one.weights[name], other.weights[name]), name
        assert read_weight(spread, name).device.type == "cpu"


@pytest.mark.exhaustive
def test_every_figure_is_drawn_and_verified(model_pair):
    spread = model_pair[1]
    trace = capture(spread, IDS)
    selection = Selection(layer=1, head=1, query=4, key=2).clamp_to_trace(trace)
    for name, (view, panel) in PANELS.items():
        if view.is_applicable(trace) and panel.is_applicable(trace) and not panel.compared_run:
            assert panel.draw(subject(panel, trace), selection) is not None
            assert not panel.verify or panel.verify(subject(panel, trace), selection).state != "off", name


INTERVENTION_TEXTS = (
    "blocks.1.attn.z.1*zero",
    "blocks.1.attn_norm*norm*none",
    "blocks.1.ffn_norm@2-*norm*{other}",
    "blocks.0.resid_post*add*unembed.17*0.5",
    "blocks.0.resid_post*remove*neuron.1.7",
    "blocks.1.attn.out*add*ov.1.0.0*1",
    "blocks.1.attn.pattern.1@4*mask*2",
)


@subtest_each("text", INTERVENTION_TEXTS)
@pytest.mark.exhaustive
def test_interventions_agree(model_pair, text):
    lm, spread = model_pair
    edits = parse_interventions(text.format(other={"rmsnorm": "layernorm", "layernorm": "rmsnorm"}[lm.config.norm]))
    one, other = capture(lm, IDS, edits), capture(spread, IDS, edits)
    assert not np.array_equal(one["logits"], capture(lm, IDS)["logits"])
    np.testing.assert_allclose(other["logits"], one["logits"], atol=1e-5)


def test_generated_tokens_agree(model_pair):
    lm, spread = model_pair
    texts = [[step.token_id for step in generate(model, IDS, max_new_tokens=10, seed=3)] for model in model_pair]
    assert texts[0] == texts[1]
    assert NextLogitsWithCache(lm).can_decode and not NextLogitsWithCache(spread).can_decode


@pytest.mark.exhaustive
def test_gradients_ablations_and_patches_agree(model_pair):
    other = [*IDS[:3], 5, *IDS[4:]]
    for ask in (
        lambda lm: run_to_completion(ablate(lm, IDS, (), 5, 3)),
        lambda lm: run_to_completion(token_contributions(lm, IDS, (), 5, 3))["mean_slope"],
        lambda lm: run_to_completion(token_contributions(lm, IDS, (), 5, 3))["baseline"],
        lambda lm: activation_patching(lm, IDS, other, 3, 8, part="attn.z"),
        lambda lm: path_patching(lm, IDS, other, 3, 8, receiver="logits"),
    ):
        one, spread = map(ask, model_pair)
        assert np.abs(one).max() > 0
        np.testing.assert_allclose(spread, one, atol=1e-4 * np.abs(one).max())


@pytest.mark.exhaustive
def test_threads_wait_for_each_other(model_pair):
    lm, spread = model_pair
    expected = lm(torch.tensor([IDS]))
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda _: spread(torch.tensor([IDS])), range(24)))
    for logits in outputs:
        assert_close(logits, expected, rtol=0, atol=1e-5)


def test_all_or_named_modules_may_be_on_disk(checkpoints_folder, tiny_tokenizer):
    save_checkpoint(models()["rope"], tiny_tokenizer, "some", dtype=torch.float32)
    wanted = models()["rope"](torch.tensor([IDS]))
    for device_map in ({"": "disk"}, {"": "cpu", "blocks.1": "disk"}, {"": "cpu", "blocks.0.ffn.up_proj": "disk"}):
        lm, _tokenizer = load_checkpoint("some", device_map=device_map)
        assert lm.offloaded.readers and torch.equal(lm(torch.tensor([IDS])), wanted)


def test_fitting_model_is_not_offloaded(checkpoints_folder, tiny_tokenizer):
    save_checkpoint(models()["rope"], tiny_tokenizer, "some", dtype=torch.float32)
    lm, _tokenizer = load_checkpoint("some", device_map="auto", max_memory={"cpu": "1GiB"})
    assert lm.offloaded is None and NextLogitsWithCache(lm).can_decode
    assert torch.equal(lm(torch.tensor([IDS])), models()["rope"](torch.tensor([IDS])))


def test_half_precision_stays_on_disk(checkpoints_folder, tiny_tokenizer):
    save_checkpoint(models()["rope"], tiny_tokenizer, "some", dtype=torch.float32)
    lm, _tokenizer = load_checkpoint("some", dtype=torch.bfloat16, device_map={"": "disk"})
    assert lm.dtype == torch.bfloat16
    assert {reader().dtype for reader in lm.offloaded.readers.values()} == {torch.bfloat16}
    trace = capture(lm, IDS)
    assert trace.dtype == "bfloat16" and all(
        check_captured_value(trace, name).is_within_tolerance for name in trace.values
    )
    assert np.abs(trace["logits"] - capture(models()["rope"], IDS)["logits"]).max() < 8 * tolerance("bfloat16")


def test_offload_folder_is_deleted_with_model(checkpoints_folder, tiny_tokenizer):
    save_checkpoint(models()["rope"], tiny_tokenizer, "some", dtype=torch.float32)
    lm, _tokenizer = load_checkpoint("some", device_map={"": "disk"})
    folder = Path(lm.offloaded.folder.name)
    assert len(list(folder.iterdir())) == len(lm.offloaded.readers)
    trace = capture(lm, IDS)
    del lm
    gc.collect()
    assert not folder.exists()
    with pytest.raises(ReferenceError):
        trace.weights["lm_head.weight"]


def test_library_offloads_its_models(checkpoints_folder, tiny_tokenizer):
    save_checkpoint(models()["rope"], tiny_tokenizer, "some", dtype=torch.float32)
    library = ModelLibrary("cpu", device_map="auto", max_memory={"cpu": 20_000})
    lm, _tokenizer = library.model("some")
    assert lm.offloaded.readers
    trace = library.trace("some", tuple(IDS))
    np.testing.assert_allclose(trace["logits"], capture(models()["rope"], IDS)["logits"], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device_map": "balanced"}, "a device map is “auto” or says where each part is, got 'balanced'"),
        (
            {"device_map": "auto", "max_memory": {"tpu": 1}},
            "a device is cuda:0, .*, got 'tpu'",
        ),
        ({"device_map": "auto", "max_memory": {"cpu": "much"}}, "a size is a number of bytes .* got 'much'"),
        ({"device_map": {"blocks": "cpu"}}, "the device map does not say where .* is"),
        ({"device_map": {"": "disk"}, "max_memory": {"disk": 10}}, r"\d.* bytes would be on the disk, and 10 may be"),
    ],
)
def test_invalid_options_are_refused(checkpoints_folder, tiny_tokenizer, options, message):
    save_checkpoint(models()["rope"], tiny_tokenizer, "some")
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint("some", **options)


def test_missing_accelerate_is_reported(checkpoints_folder, tiny_tokenizer, monkeypatch):
    save_checkpoint(models()["rope"], tiny_tokenizer, "some")
    monkeypatch.setattr(weight_placement.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match="install accelerate: pip install accelerate"):
        load_checkpoint("some", device_map="auto")
    load_checkpoint("some")


def test_sizes_and_devices_are_parsed():
    assert [parse_bytes(size) for size in (7, "7", "2KiB", "1.5GiB", "3 MB", "5B", "1TB")] == [
        *(7, 7, 2048, 3 << 29, 3_000_000, 5, 10**12)
    ]
    assert [parse_device(key) for key in ("cuda", "cuda:0", "cuda:3", 2, "2", "cpu", "mps", "disk")] == [
        *(0, 0, 3, 2, 2, "cpu", "mps", "disk")
    ]
    for size in ("", "GiB", "2XB", "-", "nan", math.inf):
        with pytest.raises(ValueError, match="a size is"):
            parse_bytes(size)
