"""Models by name, from a Hub server that the tests run themselves."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from model.checkpoint import CheckpointError, load_checkpoint
from model.errors import ModelError
from model.gguf.export_gguf import save_gguf
from model.pretrained.export_hugging_face import save_hugging_face
from model.pretrained.hub import (
    cached_folder,
    cached_model,
    download_files,
    is_hub_name,
    list_hub_files,
    split_hub_name,
)
from tests.hub import SHA, Hub, serve_hub, use_hub
from tests.sample_models import STORIES

NAME = "somebody/stories"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_hugging_face(*load_checkpoint(STORIES), tmp_path_factory.mktemp("there"))


@pytest.fixture
def hub(folder, tmp_path, monkeypatch):
    """A local Hub server with one model, and an empty cache."""
    hub = Hub()
    hub.models[NAME] = folder
    with serve_hub(hub) as address:
        use_hub(monkeypatch, address, tmp_path / "cache")
        yield hub


def test_model_is_downloaded_once(hub):
    lm, tokenizer = load_checkpoint(NAME)
    assert lm.config.num_layers == 5 and tokenizer.bos_ids == (1,)
    assert hub.requested_paths
    hub.requested_paths.clear()
    assert load_checkpoint(NAME)[0].config == lm.config
    assert hub.requested_paths == []


@pytest.mark.parametrize("name", ["stories", "/etc/passwd", "a/b/c", "../b", "a/..", "", "a/b\x00", "https://a/b"])
def test_invalid_hub_name_is_never_requested(hub, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # its parent has no folder "b"
    assert not is_hub_name(name)
    with pytest.raises(
        CheckpointError, match="there is no|no model in a format that is known|cannot be opened by a URL"
    ):
        load_checkpoint(name)
    assert hub.requested_paths == []


def test_only_needed_files_are_downloaded(hub, folder, tmp_path):
    fuller = hub.models[NAME] = shutil.copytree(folder, tmp_path / "fuller")
    (fuller / "pytorch_model.bin").write_bytes(b"pickled")
    (fuller / "run.py").write_text("import os")
    files = list_hub_files(NAME)
    assert files.revision == SHA
    assert files.num_bytes == sum(path.stat().st_size for path in folder.iterdir())
    assert files.weight_bytes == (folder / "model.safetensors").stat().st_size
    assert not {"pytorch_model.bin", "run.py"} & {path.name for path in download_files(files).iterdir()}


def test_progress_rises_to_total_bytes(hub):
    progress = []
    files = list_hub_files(NAME)
    download_files(files, progress.append)
    assert progress == sorted(progress) and len(set(progress)) > len(files.sizes)
    assert files.num_bytes - max(progress) <= min(files.sizes.values())
    assert cached_folder(NAME)


def test_interrupted_download_continues_later(hub):
    files = list_hub_files(NAME)

    def halfway(done: int):
        if done > files.num_bytes // 2:
            raise KeyError("nobody waits")

    with pytest.raises(KeyError):
        download_files(files, halfway)
    assert cached_folder(NAME) is None
    download_files(files, lambda done: None)
    assert cached_folder(NAME)


def test_gated_model_error_names_licence_page(hub):
    hub.gated.add(NAME)
    with pytest.raises(ModelError, match=f"https://huggingface.co/{NAME} and .* HF_TOKEN .* such as HuggingFaceTB/"):
        list_hub_files(NAME)


def test_unknown_model_is_reported(hub):
    with pytest.raises(CheckpointError, match="the Hugging Face Hub has no model 'somebody/nothing'"):
        load_checkpoint("somebody/nothing")


def test_pickled_weights_are_not_downloaded(hub, folder, tmp_path):
    pickled = hub.models[NAME] = shutil.copytree(folder, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(
        ModelError,
        match=r"pickled, which could run code .*from_pretrained\('somebody/stories'\).save_pretrained\('stories'\)",
    ):
        list_hub_files(NAME)
    (pickled / "pytorch_model.bin").unlink()
    with pytest.raises(ModelError, match="its weights are missing: model.safetensors"):
        list_hub_files(NAME)
    (pickled / "config.json").unlink()
    with pytest.raises(ModelError, match="is no model with config.json and safetensors"):
        list_hub_files(NAME)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (["x-Q4_K_M.gguf"], "has GGUF files: open one by its name, such as somebody/stories/x-Q4_K_M.gguf"),
        (["config.json", "onnx/model.onnx"], "onnx/model.onnx is an ONNX graph"),
        (["adapter_config.json", "adapter_model.safetensors"], "adapter"),
        (["model_index.json", "unet/diffusion_pytorch_model.safetensors"], "pipeline of diffusers"),
        (["consolidated.00.pth", "params.json"], "original format of Meta"),
    ],
)
def test_other_format_on_hub_is_named(hub, tmp_path, files, told):
    other = hub.models[NAME] = tmp_path / "other"
    for file in files:
        (other / file).parent.mkdir(parents=True, exist_ok=True)
        (other / file).write_text("{}")
    with pytest.raises(ModelError, match=f"{NAME} (cannot be opened: .*)?{told}"):
        list_hub_files(NAME)


def test_shards_named_by_index_are_downloaded(hub, folder, tmp_path):
    sharded = hub.models[NAME] = shutil.copytree(folder, tmp_path / "sharded")
    weights = load_file(sharded / "model.safetensors")
    (sharded / "sub").mkdir()
    save_file(weights, sharded / "sub" / "one.safetensors")
    (sharded / "model.safetensors").unlink()
    shutil.copy(sharded / "sub" / "one.safetensors", sharded / "unused.safetensors")
    index = sharded / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(weights, "sub/one.safetensors")}))
    assert list_hub_files(NAME).weight_bytes == (sharded / "sub" / "one.safetensors").stat().st_size
    assert load_checkpoint(NAME)[0].config.num_layers == 5
    assert cached_folder(NAME) and not (cached_folder(NAME) / "unused.safetensors").exists()
    index.write_text(json.dumps({"weight_map": {"a": "sub/two.safetensors"}}))
    hub.models["somebody/else"] = sharded
    with pytest.raises(ModelError, match="it lacks sub/two.safetensors, which its index names"):
        list_hub_files("somebody/else")


def test_missing_network_is_reported(folder, tmp_path, monkeypatch):
    use_hub(monkeypatch, "http://127.0.0.1:9", tmp_path / "cache")
    with pytest.raises(CheckpointError, match=f"{NAME} is not on this machine, and the hub is out of reach: "):
        load_checkpoint(NAME)


@pytest.fixture
def gguf_name(hub, tiny_checkpoint, tmp_path) -> str:
    """Name of a GGUF file in a subfolder of a model on the Hub."""
    other = hub.models["somebody/files-GGUF"] = tmp_path / "files"
    (other / "small").mkdir(parents=True)
    save_gguf(*load_checkpoint("tiny"), other / "small" / "fox.gguf")
    shutil.copy(other / "small" / "fox.gguf", other / "large-00001-of-00002.gguf")
    return "somebody/files-GGUF/small/fox.gguf"


def test_gguf_file_is_downloaded_alone(hub, gguf_name):
    lm, _tokenizer = load_checkpoint(gguf_name)
    assert lm.config.num_layers == 2
    assert [path for path in hub.requested_paths if "/resolve/" in path and "fox.gguf" not in path] == []
    files = list_hub_files(gguf_name)
    assert files.sizes.keys() == {"small/fox.gguf"} and files.weight_bytes == 0
    hub.requested_paths.clear()
    assert load_checkpoint(gguf_name)[0].config == lm.config
    assert cached_model(gguf_name).name == "fox.gguf" and hub.requested_paths == []


def test_missing_or_split_gguf_is_refused_before_download(hub, gguf_name):
    sentences = {"none.gguf": "its GGUF files: .*small/fox.gguf", "large-00001-of-00002.gguf": "join them"}
    for file, words in sentences.items():
        with pytest.raises(ModelError, match=words):
            list_hub_files(f"somebody/files-GGUF/{file}")
    assert cached_model("somebody/files-GGUF/none.gguf") is None
    assert all("/resolve/" not in path for path in hub.requested_paths)


@pytest.mark.parametrize("name", ["a/b/../x.gguf", "a/b//x.gguf", "/a/b/x.gguf", "a/b/x y.gguf", "a/x.gguf"])
def test_other_paths_are_not_gguf_names(hub, name):
    assert split_hub_name(name)[1] == "" or not is_hub_name(name)
    with pytest.raises(CheckpointError, match="there is no"):
        load_checkpoint(name)
    assert hub.requested_paths == []
