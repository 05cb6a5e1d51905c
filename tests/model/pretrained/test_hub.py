"""Models by name, from a hub that the tests run themselves."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from model.checkpoint import CheckpointError, load_checkpoint
from model.errors import ModelError
from model.pretrained.hub import downloaded, is_hub_name, listing, on_disk
from model.pretrained.saving import save_hugging_face
from tests.hub import SHA, Hub, reach, serving
from tests.specimens import STORIES

NAME = "somebody/stories"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_hugging_face(*load_checkpoint(STORIES), tmp_path_factory.mktemp("there"))


@pytest.fixture
def hub(folder, tmp_path, monkeypatch):
    """With one model, and an empty cache on this machine."""
    hub = Hub()
    hub.models[NAME] = folder
    with serving(hub) as address:
        reach(monkeypatch, address, tmp_path / "cache")
        yield hub


def test_a_name_is_downloaded_once_and_then_asked_of_nobody(hub):
    lm, tokenizer = load_checkpoint(NAME)
    assert lm.config.num_layers == 5 and tokenizer.beginning == (1,)
    assert hub.asked
    hub.asked.clear()
    assert load_checkpoint(NAME)[0].config == lm.config
    assert hub.asked == []


@pytest.mark.parametrize("name", ["stories", "/etc/passwd", "a/b/c", "../b", "a/..", "", "a/b\x00", "https://a/b"])
def test_what_is_no_name_of_the_hub_is_never_looked_up(hub, name):
    assert not is_hub_name(name)
    with pytest.raises(CheckpointError, match="there is no|no model in a format that is known|no URL is"):
        load_checkpoint(name)
    assert hub.asked == []


def test_only_what_is_needed_is_fetched(hub, folder, tmp_path):
    fuller = hub.models[NAME] = shutil.copytree(folder, tmp_path / "fuller")
    (fuller / "pytorch_model.bin").write_bytes(b"pickled")
    (fuller / "run.py").write_text("import os")
    found = listing(NAME)
    assert found.revision == SHA
    assert found.num_bytes == sum(path.stat().st_size for path in folder.iterdir())
    assert found.weight_bytes == (folder / "model.safetensors").stat().st_size
    assert not {"pytorch_model.bin", "run.py"} & {path.name for path in downloaded(found).iterdir()}


def test_progress_counts_the_bytes_and_ends_with_all(hub):
    told = []
    found = listing(NAME)
    downloaded(found, told.append)
    assert told == sorted(told) and len(set(told)) > len(found.sizes)
    assert found.num_bytes - max(told) <= min(found.sizes.values())
    assert on_disk(NAME)


def test_a_download_can_be_ended_and_goes_on_later(hub):
    found = listing(NAME)

    def halfway(done: int):
        if done > found.num_bytes // 2:
            raise KeyError("nobody waits")

    with pytest.raises(KeyError):
        downloaded(found, halfway)
    assert on_disk(NAME) is None
    downloaded(found, lambda done: None)
    assert on_disk(NAME)


def test_a_gated_model_s_licence_is_named_and_one_without(hub):
    hub.gated.add(NAME)
    with pytest.raises(ModelError, match=f"https://huggingface.co/{NAME} and .* HF_TOKEN .* such as HuggingFaceTB/"):
        listing(NAME)


def test_a_name_that_the_hub_has_not_is_told(hub):
    with pytest.raises(CheckpointError, match="the hub has no model 'somebody/nothing'"):
        load_checkpoint("somebody/nothing")


def test_pickled_weights_are_not_fetched(hub, folder, tmp_path):
    pickled = hub.models[NAME] = shutil.copytree(folder, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(
        ModelError,
        match=r"pickled, which could run code .*from_pretrained\('somebody/stories'\).save_pretrained\('stories'\)",
    ):
        listing(NAME)
    (pickled / "pytorch_model.bin").unlink()
    with pytest.raises(ModelError, match="its weights are missing: model.safetensors"):
        listing(NAME)
    (pickled / "config.json").unlink()
    with pytest.raises(ModelError, match="is no model with config.json and safetensors"):
        listing(NAME)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (["x-Q4_K_M.gguf"], "x-Q4_K_M.gguf is a GGUF"),
        (["config.json", "onnx/model.onnx"], "onnx/model.onnx is an ONNX graph"),
        (["adapter_config.json", "adapter_model.safetensors"], "adapter"),
        (["model_index.json", "unet/diffusion_pytorch_model.safetensors"], "pipeline of diffusers"),
        (["consolidated.00.pth", "params.json"], "original format of Meta"),
    ],
)
def test_what_the_hub_has_in_another_format_is_named(hub, tmp_path, files, told):
    other = hub.models[NAME] = tmp_path / "other"
    for file in files:
        (other / file).parent.mkdir(parents=True, exist_ok=True)
        (other / file).write_text("{}")
    with pytest.raises(ModelError, match=f"{NAME} cannot be opened: .*{told}"):
        listing(NAME)


def test_shards_are_fetched_from_the_folders_that_their_index_names(hub, folder, tmp_path):
    sharded = hub.models[NAME] = shutil.copytree(folder, tmp_path / "sharded")
    weights = load_file(sharded / "model.safetensors")
    (sharded / "sub").mkdir()
    save_file(weights, sharded / "sub" / "one.safetensors")
    (sharded / "model.safetensors").unlink()
    shutil.copy(sharded / "sub" / "one.safetensors", sharded / "unused.safetensors")
    index = sharded / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(weights, "sub/one.safetensors")}))
    assert listing(NAME).weight_bytes == (sharded / "sub" / "one.safetensors").stat().st_size
    assert load_checkpoint(NAME)[0].config.num_layers == 5
    assert on_disk(NAME) and not (on_disk(NAME) / "unused.safetensors").exists()
    index.write_text(json.dumps({"weight_map": {"a": "sub/two.safetensors"}}))
    hub.models["somebody/else"] = sharded
    with pytest.raises(ModelError, match="it lacks sub/two.safetensors, which its index names"):
        listing("somebody/else")


def test_without_a_network_it_is_told(folder, tmp_path, monkeypatch):
    reach(monkeypatch, "http://127.0.0.1:9", tmp_path / "cache")
    with pytest.raises(CheckpointError, match=f"{NAME} is not on this machine, and the hub is out of reach: "):
        load_checkpoint(NAME)
