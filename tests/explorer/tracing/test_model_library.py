import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import explorer.tracing.model_catalog as offered_models
import explorer.tracing.model_library as library_module
from explorer.interventions import parse_interventions
from explorer.state.page_state import RunRequest
from explorer.tracing.model_catalog import checkpoint_fingerprint, weight_num_bytes
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import LogitsCache
from explorer.web.browser_api.page_contents import ContinuationSurprisals
from model.checkpoint import CheckpointError, save_checkpoint
from tests.sample_models import STORIES
from tests.subtest_loops import each_style, subtest_each

DOUBLED = parse_interventions("embed*scale*2")


def test_models_and_traces_are_cached(library):
    assert library.model("rope") is library.model("rope")
    assert library.trace("rope", (1, 2, 3)) is library.trace("rope", (1, 2, 3))
    assert library.trace("rope", (1, 2, 3)) is not library.trace("none", (1, 2, 3))


@each_style
def test_trace_uses_checkpoint(library, lms, tiny_tokenizer, style):
    trace = library.trace(style, (5, 6, 7))
    assert (trace.config, trace.token_ids) == (lms[style].config, (5, 6, 7))
    assert trace.tokens == tuple(tiny_tokenizer.token_text(i) for i in (5, 6, 7))


def test_concurrent_requests_get_equal_traces(library):
    with ThreadPoolExecutor(8) as pool:
        traces = list(pool.map(lambda i: library.trace("rope", (9, i % 3)), range(24)))
    assert [trace.token_ids for trace in traces] == [(9, i % 3) for i in range(24)]


@subtest_each(
    "name", ["missing", "", ".", "..", "/", "../checkpoints/tiny", "tiny/", "./tiny", "/etc/passwd", "tiny\x00", "TINY"]
)
def test_only_checkpoint_names_are_loaded(tiny_checkpoint, monkeypatch, name):
    monkeypatch.setattr("explorer.tracing.model_library.load_checkpoint", lambda *args: pytest.fail("opened"))
    library = ModelLibrary("cpu")
    for ask in (library.model, lambda name: library.trace(name, (1,))):
        with pytest.raises(CheckpointError, match="there is no checkpoint .*; there are: tiny"):
            ask(name)


def test_checkpoint_path_is_not_a_name(tiny_checkpoint):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        ModelLibrary("cpu").model(str(tiny_checkpoint))


@pytest.fixture
def outside_checkpoint(tiny_checkpoint, tmp_path):
    """Return a checkpoint's folder outside `checkpoints/`."""
    return shutil.copytree(tiny_checkpoint, tmp_path / "of-somebody")


def test_opened_checkpoint_is_offered_by_name_only(tiny_checkpoint, outside_checkpoint):
    library = ModelLibrary("cpu")
    assert library.catalog.open(outside_checkpoint) == library.catalog.open(str(outside_checkpoint)) == "of-somebody"
    assert library.checkpoints == ["of-somebody", "tiny"]
    assert_array_equal(library.trace("of-somebody", (1, 2))["logits"], library.trace("tiny", (1, 2))["logits"])
    for path in (str(outside_checkpoint), "../of-somebody"):
        with pytest.raises(CheckpointError, match="there is no checkpoint"):
            library.model(path)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        ModelLibrary("cpu").model("of-somebody")


def test_rewritten_opened_checkpoint_is_reloaded(outside_checkpoint, tiny_lm, tiny_tokenizer):
    library = ModelLibrary("cpu")
    name = library.catalog.open(outside_checkpoint)
    before = library.trace(name, (1, 2))["logits"]
    tiny_lm.lm_head.weight.data *= 2
    save_checkpoint(tiny_lm, tiny_tokenizer, outside_checkpoint, dtype=torch.float32)
    assert_allclose(library.trace(name, (1, 2))["logits"], 2 * before, atol=1e-4)


def test_single_file_model_is_named_after_its_file(tiny_checkpoint):
    library = ModelLibrary("cpu")
    assert library.catalog.open(STORIES) == "stories260K"
    assert library.model("stories260K")[0].config.num_layers == 5


def test_file_in_checkpoint_folder_opens_folder(tiny_checkpoint, outside_checkpoint, tmp_path):
    library = ModelLibrary("cpu")
    for path in (outside_checkpoint / "model.safetensors", outside_checkpoint / "config.json", outside_checkpoint):
        assert library.catalog.open(path) == "of-somebody"
    parent = shutil.copytree(outside_checkpoint, tmp_path / "downloaded" / "inner").parent
    assert library.catalog.open(parent) == "downloaded"
    assert library.model("downloaded")[0].config == library.model("of-somebody")[0].config
    (tmp_path / "x.ggml").write_bytes(b"lmgg")
    with pytest.raises(CheckpointError, match="x.ggml is a GGML file"):
        library.catalog.open(tmp_path / "x.ggml")


def test_weights_in_subfolders_are_counted(tiny_checkpoint, outside_checkpoint):
    """Shards of equal size are distinguished by their contents."""
    (outside_checkpoint / "sub").mkdir()
    weights = (outside_checkpoint / "model.safetensors").rename(outside_checkpoint / "sub" / "part.safetensors")
    index = {"weight_map": {"a": "sub/part.safetensors"}}
    (outside_checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    assert weight_num_bytes(outside_checkpoint) == 2 * weights.stat().st_size
    before = checkpoint_fingerprint(outside_checkpoint)
    weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    assert checkpoint_fingerprint(outside_checkpoint) != before


def test_half_precision_becomes_float32(tiny_checkpoint, outside_checkpoint, tiny_lm, tiny_tokenizer):
    save_checkpoint(tiny_lm, tiny_tokenizer, outside_checkpoint, dtype=torch.bfloat16)
    library = ModelLibrary("cpu")
    assert library.model(library.catalog.open(outside_checkpoint))[0].lm_head.weight.dtype == torch.float32


def test_missing_path_or_duplicate_name_is_refused(tiny_checkpoint, outside_checkpoint, tmp_path):
    library = ModelLibrary("cpu")
    with pytest.raises(CheckpointError, match="there is no file or folder '.*nowhere'"):
        library.catalog.open(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="a checkpoint has the name 'tiny' already"):
        library.catalog.open(shutil.copytree(outside_checkpoint, tmp_path / "copies" / "tiny"))
    library.catalog.open(outside_checkpoint)
    with pytest.raises(CheckpointError, match="a checkpoint has the name 'of-somebody' already"):
        library.catalog.open(shutil.copytree(outside_checkpoint, tmp_path / "copies" / "of-somebody"))


def test_damaged_checkpoint_is_not_cached(tiny_checkpoint):
    library, weights = ModelLibrary("cpu"), tiny_checkpoint / "model.safetensors"
    intact = weights.read_bytes()
    weights.write_bytes(b"")
    with pytest.raises(CheckpointError, match="'tiny' cannot be loaded"):
        library.model("tiny")
    weights.write_bytes(intact)
    library.model("tiny")


def test_checkpoint_list_follows_disk(tiny_checkpoint):
    library = ModelLibrary("cpu")
    shutil.copytree(tiny_checkpoint, tiny_checkpoint.with_name("another"))
    assert library.checkpoints == ["another", "tiny"]


def test_loading_a_model_lists_no_folders(tiny_checkpoint, monkeypatch):
    """One response looks up its model many times."""
    monkeypatch.setattr(offered_models, "list_checkpoints", lambda: pytest.fail("looks into every folder"))
    library = ModelLibrary("cpu")
    for _ in range(3):
        library.model("tiny")


def rewrite_checkpoint(checkpoint, tiny_lm, tiny_tokenizer, factor: float):
    tiny_lm.lm_head.weight.data *= factor
    save_checkpoint(tiny_lm, tiny_tokenizer, "tiny", dtype=torch.float32)


def test_rewritten_checkpoint_is_reloaded(tiny_checkpoint, tiny_lm, tiny_tokenizer):
    library, ids = ModelLibrary("cpu"), (1, 2, 3)
    predictions, continuations = LogitsCache(library), ContinuationSurprisals(library)
    run = RunRequest("tiny", ids[:2], ids[2:])

    def ask() -> tuple:
        logits = library.trace("tiny", ids)["logits"], predictions.trace("tiny", ids)["logits"]
        return (
            library.model("tiny")[0],
            library.trace("tiny", ids, DOUBLED),
            *logits,
            continuations.surprisals_of_run(run),
        )

    before, repeated = ask(), ask()
    assert all(old is new for old, new in zip(before[:3] + before[4:], repeated[:3] + repeated[4:], strict=True))
    gone = ref(before[0])
    rewrite_checkpoint(tiny_checkpoint, tiny_lm, tiny_tokenizer, 2)
    after = ask()
    assert after[0] is not before[0] and after[1].model != before[1].model
    for old, new in zip(before[2:4], after[2:4], strict=True):
        np.testing.assert_allclose(new, 2 * old, rtol=1e-5)
    assert after[4] != before[4]
    assert after[1].baseline["logits"] is after[2]
    assert library._traces.total == sum(library.trace("tiny", ids, edits).num_bytes for edits in ((), DOUBLED))
    del before, repeated
    assert gone() is None


def test_checkpoint_written_during_load_is_not_cached(tiny_checkpoint, tiny_lm, tiny_tokenizer, monkeypatch):
    library, load = ModelLibrary("cpu"), library_module.load_checkpoint

    def slow(*args, **kwargs):
        loaded = load(*args, **kwargs)
        rewrite_checkpoint(tiny_checkpoint, tiny_lm, tiny_tokenizer, 2)
        return loaded

    monkeypatch.setattr(library_module, "load_checkpoint", slow)
    with pytest.raises(CheckpointError, match="'tiny' is being written: ask again in a moment"):
        library.model("tiny")
    monkeypatch.setattr(library_module, "load_checkpoint", load)
    lm, _ = library.model("tiny")
    assert torch.equal(lm.lm_head.weight, tiny_lm.lm_head.weight)


@pytest.mark.parametrize(("cuda", "mps", "expected"), [(1, 1, "cuda"), (1, 0, "cuda"), (0, 1, "mps"), (0, 0, "cpu")])
def test_auto_picks_first_available_device(monkeypatch, cuda, mps, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(cuda))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: bool(mps))
    assert ModelLibrary().device == expected
    assert ModelLibrary("cpu").device == "cpu"


def test_models_are_on_library_device(tiny_checkpoint):
    lm, _ = ModelLibrary("meta").model("tiny")
    assert lm.device.type == "meta"
