"""Saving and loading of runs."""

import gc
import json
import pickle
import struct
from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import save_file

from explorer.errors import UserError
from explorer.interventions import make_intervention, parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.model_registry import ModelUnloadedError
from explorer.tracing.trace import Trace
from model.transformer_lm import TransformerLM
from tests import sample_models
from tests.subtest_loops import each_style, subtest_each

IDS = tuple(range(3, 15))


each_memory_limit = subtest_each("memory_limit", [float("inf"), 0])


@each_style
@each_memory_limit
def test_loaded_run_equals_saved_run(lms, style, tiny_tokenizer, memory_limit, tmp_path):
    before = capture(lms[style], IDS, tokenizer=tiny_tokenizer, max_bytes=memory_limit)
    after = Trace.load(before.save(tmp_path / "run.safetensors"))
    for name in ("config", "token_ids", "edits", "model", "dtype", "baseline", "tokens", "is_lazy", "num_bytes"):
        assert getattr(after, name) == getattr(before, name), name
    assert tuple(after.vocabulary) == tuple(before.vocabulary)
    assert tuple(after.token_bytes) == tuple(before.token_bytes)
    assert asdict(after.merge_rules) == asdict(before.merge_rules)
    assert list(after.values) == list(before.values)
    for name, value in before.values.items():
        assert_array_equal(after[name], value, err_msg=name)
        assert not after[name].flags.writeable
    assert_array_equal(after.weights["lm_head.weight"], before.weights["lm_head.weight"])
    assert_array_equal(after.logits.entropy, before.logits.entropy)


@each_style
@each_memory_limit
@subtest_each("text", ["STREAM_INTERVENTIONS", "ALL_KINDS_INTERVENTIONS", "POSITION_INTERVENTIONS"])
def test_saved_run_keeps_interventions_and_baseline(lms, style, memory_limit, text, tmp_path):
    lm, written = lms[style], getattr(sample_models, text)
    written = written[lm.config.position] if isinstance(written, dict) else written.format(other="layernorm")
    plain = capture(lm, IDS, max_bytes=memory_limit)
    edits = tuple(edit.for_prompt(IDS[:9]) for edit in sample_models.applicable_interventions(lm, written))
    before = replace(capture(lm, IDS, edits, max_bytes=memory_limit), baseline=plain)
    after = Trace.load(before.save(tmp_path / "run.safetensors"))
    assert after.edits == before.edits and after.baseline.edits == ()
    for name in before.values:
        assert_array_equal(after[name], before[name], err_msg=name)
        assert_array_equal(after.baseline[name], plain[name], err_msg=name)


@pytest.mark.exhaustive
def test_loaded_lazy_run_needs_a_model_with_its_weights(tiny_config, tmp_path):
    lm = TransformerLM(tiny_config).eval()
    weights = {name: weight.clone() for name, weight in lm.state_dict().items()}
    run = capture(lm, IDS, max_bytes=0)
    pattern, path = run["blocks.1.attn.pattern"], run.save(tmp_path / "run.safetensors")
    del lm, run
    gc.collect()
    alone = Trace.load(path)
    assert alone["blocks.0.resid_post"].shape == (len(IDS), tiny_config.d_model)
    for look, name in (
        (lambda: alone["blocks.1.attn.pattern"], "blocks.1.attn.pattern"),
        (lambda: alone.weights["lm_head.weight"], "lm_head.weight"),
        (lambda: alone.logits.entropy, "logits"),
        (lambda: alone.ablate(3, 4), ""),
    ):
        with pytest.raises(ModelUnloadedError, match="the model of this trace is gone") as gone:
            look()
        assert gone.value.needs == name
    other = TransformerLM(tiny_config).eval()
    with pytest.raises(UserError, match="these are not the weights that the saved run was computed with"):
        Trace.load(path, other)
    other.load_state_dict(weights)
    assert_allclose(Trace.load(path, other)["blocks.1.attn.pattern"], pattern, atol=1e-6)


def test_cross_run_patch_cannot_be_saved(tiny_lm, tmp_path):
    other = capture(tiny_lm, IDS[::-1])
    run = capture(tiny_lm, IDS, [make_intervention("blocks.1.attn.z", "patch", index=1, source=other)])
    with pytest.raises(UserError, match="a run with patches from another run cannot be saved"):
        run.save(tmp_path / "run.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_invalid_file_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(UserError, match=r"run\.safetensors is no saved run"):
        Trace.load(path)
    for content in (b"", b"\x00" * 64, struct.pack("<Q", 1 << 62) + b"{}", pickle.dumps([1]), b"{" * 5000):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"run\.safetensors is no saved run"):
            Trace.load(path)


INVALID_METADATA = {
    "format": ["", "another", None],
    "config": ["[]", "{}", "null", '{"num_layers": 100000000}', "{", "[" * 100_000],
    "token_ids": ["[]", "null", "[1.5]", "[true]", "[-1]", "[100000]", '"abc"', json.dumps([1] * 10_000), "[3]"],
    "vocabulary": ["[]", "null", "[1]", json.dumps(["a"] * 299), json.dumps([1] * 300), "7"],
    "token_bytes": ["[1]", "null", "7", json.dumps([1] * 300), json.dumps(["日"] * 300)],
    "merge_rules": ["[]", "7", '{"ids": 5}', '{"ids": [[1, 2]], "ranks": null, "of_characters": false}'],
    "edits": ['["import os"]', "7", '["blocks.99.attn.z*zero"]', '["blocks.1.attn.z*patch"]', "[1]"],
    "means_over": ["7", "[1, 2]", '["x"]'],
    "dtype": ["null", '"float8"', "[]"],
    "changed": ["true"],
    "same": ["7", "[1]", '{"embed": "nothing"}', '{"x": "embed"}', '{"x": [1]}'],
    "weights": [None],
    "model": [None],
}


@pytest.fixture
def saved_run(tiny_lm, tiny_tokenizer, tmp_path):
    """Return a run's values and metadata, and the path of its file."""
    path = capture(
        tiny_lm, IDS, parse_interventions("blocks.0.attn.z*zero"), tokenizer=tiny_tokenizer, max_bytes=0
    ).save(tmp_path / "run.safetensors")
    content = path.read_bytes()
    metadata = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])["__metadata__"]
    return dict(Trace.load(path).stored_values), metadata, path


@subtest_each(("name", "text"), [(name, text) for name, texts in INVALID_METADATA.items() for text in texts])
@pytest.mark.exhaustive
def test_invalid_metadata_is_refused(saved_run, name, text):
    values, metadata, path = saved_run
    metadata = {**metadata, name: text}
    if text is None:
        del metadata[name]
    save_file(values, path, metadata)
    with pytest.raises(UserError, match=r"run\.safetensors is no saved run: .+") as error_info:
        Trace.load(path)
    assert len(str(error_info.value)) < 2000


@subtest_each(
    ("name", "value"),
    [
        ("embed", None),
        ("blocks.1.resid_post", None),
        ("final_norm", None),
        ("embed", np.zeros((12, 5), np.float32)),
        ("embed", np.zeros((3, 64), np.float32)),
        ("embed", np.zeros((12, 64))),
        ("blocks.7.resid_post", np.zeros((12, 64), np.float32)),
        ("anything", np.zeros(3, np.float32)),
    ],
)
def test_invalid_values_are_refused(saved_run, name, value):
    values, metadata, path = saved_run
    values = {**values, name: value}
    if value is None:
        del values[name]
    save_file(values, path, metadata)
    with pytest.raises(UserError, match=r"run\.safetensors is no saved run: .+"):
        Trace.load(path)
