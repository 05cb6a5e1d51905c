"""Files and folders that cannot be opened as a model: errors name their format and a remedy."""

import io
import os
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import torch

from model.checkpoint import CheckpointError, find_checkpoint, load_checkpoint
from tests.subtest_loops import subtest_each

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"
GGUF, HDF5, ONNX = b"GGUF\3\0\0\0", b"\x89HDF\r\n\x1a\n", b"\x08\x07\x12\x07pytorch"
SAFETENSORS = b"\2\0\0\0\0\0\0\0{}"


def write_to_bytes(write) -> bytes:
    content = io.BytesIO()
    write(content)
    return content.getvalue()


def make_zip(name: str):
    def write(content):
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(name, "{}")

    return write_to_bytes(write)


LEGACY_FORMAT = {"_use_new_zipfile_serialization": False}
PICKLES = write_to_bytes(lambda file: torch.save({"a": torch.ones(2)}, file)), pickle.dumps({"a": 1})
PICKLES += (write_to_bytes(lambda file: torch.save({"a": torch.ones(2)}, file, **LEGACY_FORMAT)),)
ARRAYS, TAR = (
    write_to_bytes(lambda file: np.savez(file, a=np.ones(2))),
    write_to_bytes(lambda file: tarfile.open(fileobj=file, mode="w").close()),
)
MODULE, FOLDER = "open a model of your own with --module FILE.py:CLASS --weights", "open the folder with config.json"
FILES = [
    ("x.gguf", GGUF, "x.gguf is cut off or damaged: its header needs more than 8 bytes; download it again"),
    ("model.bin", GGUF, "model.bin is cut off or damaged"),
    ("ggml-model-q4.bin", b"lmgg\1\0\0\0", "is a GGML file, .*open the same model as GGUF"),
    ("x.onnx", ONNX, f"x.onnx is an ONNX graph, .*{FOLDER}"),
    ("x.onnx", b"\x08\x08", "is an ONNX graph"),
    ("model", ONNX, "is an ONNX graph"),
    ("x.npz", ARRAYS, "holds NumPy arrays, .*torch.save"),
    ("x.npz", b"PK\3\4", "holds NumPy arrays"),
    *(("x.pt", content, f"x.pt is a pickled file of PyTorch, .*{MODULE} x.pt") for content in PICKLES),
    ("x.pt", b"PK\3\4", "is a pickled file"),
    ("x.ckpt", PICKLES[0], "is a pickled file"),
    ("model.bin", PICKLES[0], "is a pickled file"),
    ("weights.safetensors", PICKLES[0], "weights.safetensors is a pickled file"),
    (
        "consolidated.00.pth",
        PICKLES[0],
        "original format of Meta or Mistral, .*open the same model in",
    ),
    ("x.safetensors", SAFETENSORS, "x.safetensors alone is no model: put config.json"),
    ("adapter_model.safetensors", SAFETENSORS, r"it is an adapter \(LoRA\), .*merge_and_unload\(\)"),
    ("tf_model.h5", HDF5, "file of TensorFlow or Keras, .*safetensors"),
    ("flax_model.msgpack", b"\x81\xa1a", "weights of Flax, .*safetensors"),
    ("x.zip", make_zip("config.json"), "is an archive: unpack it"),
    ("x.tar", TAR, "is an archive: unpack it"),
    ("tokenizer.model", b"\x0a\x0e\x0a\x05<unk>", "is the vocabulary of a tokenizer, without a model: open the folder"),
    ("tokenizer.json", b'{"model": {}}', "tokenizer.json alone is no model"),
    ("x.gguf", POINTER, "only a pointer of Git LFS: run `git lfs pull`"),
    ("x.safetensors", b"<!DOCTYPE html><html>", "is a web page, left by a failed download: download it again"),
    ("x.safetensors", b"", "is empty: download or save it again"),
    ("notes.md", b"# What we did", "no model in a format that is known here: open a folder"),
]


@subtest_each(("name", "content", "told"), FILES, ids=lambda value: value if isinstance(value, str) else "")
def test_file_format_is_named(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^checkpoint '{name}' cannot be loaded: .*{told}"):
        load_checkpoint(tmp_path / name)


CONFIG = '{"model_type": "gpt2", "vocab_size": 9, "n_embd": 2, "n_head": 1, "n_layer": 1, "n_positions": 9}'
FOLDERS = {
    "empty": ([], "the folder is empty"),
    "GGUF": (["config.json", "x-Q4_K_M.gguf"], "x-Q4_K_M.gguf is a GGUF file of llama.cpp: open it by its own path"),
    "several of GGUF": (["x-Q4_K_M.gguf", "x-Q8_0.gguf"], "holds 2 models, x-Q4_K_M.gguf, x-Q8_0.gguf: open one of"),
    "ONNX": (["config.json", "tokenizer.json", "onnx/model.onnx"], "onnx/model.onnx is an ONNX graph"),
    "TensorFlow": (["config.json", "tf_model.h5"], "tf_model.h5 is a file of TensorFlow"),
    "Flax": (["config.json", "flax_model.msgpack"], "holds weights of Flax"),
    "LoRA": (["adapter_config.json", "adapter_model.safetensors", "tokenizer.json"], r"adapter \(LoRA\), and its base"),
    "LoRA with a config": (["config.json", "adapter_config.json", "adapter_model.safetensors"], r"adapter \(LoRA\)"),
    "diffusers": (["model_index.json", "unet/config.json", "text_encoder/config.json"], "pipeline of diffusers"),
    "Meta": (["consolidated.00.pth", "params.json", "tokenizer.model"], "original format of Meta"),
    "Mistral": (["consolidated.safetensors", "params.json"], "original format of Meta or Mistral"),
    "PyTorch": (["config.json", "pytorch_model.bin"], r"pickled, which could .*M.from_pretrained\('{folder}'\)"),
    "PyTorch, shards": (["config.json", "pytorch_model-00001-of-00002.bin"], r"pickled, which could .*'{folder}'\)"),
    "a student's": (["model.pt", "train.py"], f"model.pt is a pickled file of PyTorch, .*{MODULE} model.pt"),
    "several models": (["run-1/config.json", "run-2/config.json"], "holds 2 models, run-1, run-2: open one of them"),
    "no config": (["model.safetensors", "tokenizer.json"], "has no config.json, which says what model"),
    "config alone": (["config.json"], "weights are missing: model.safetensors, or another safetensors"),
}


@subtest_each(("files", "told"), FOLDERS.values(), ids=FOLDERS)
def test_folder_contents_are_named(tmp_path, files, told):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(CONFIG)
    with pytest.raises(CheckpointError, match=told.replace("{folder}", str(tmp_path))):
        load_checkpoint(tmp_path)


def test_pickled_weights_file_is_treated_like_its_folder(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(PICKLES[0])
    with pytest.raises(CheckpointError, match=rf"pickled, which could .*M.from_pretrained\('{tmp_path}'\)\.save_pretr"):
        load_checkpoint(tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").write_bytes(SAFETENSORS)
    with pytest.raises(CheckpointError, match=f"its folder has the weights as safetensors, too: open {tmp_path}"):
        load_checkpoint(tmp_path / "pytorch_model.bin")


PLACEHOLDERS = [
    (POINTER, "only a pointer of Git LFS: run `git lfs pull`"),
    (b"<html><body>Not found</body></html>", "is a web page, left by a failed download"),
    (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "is a web page, left by a failed download"),
    (b"", "is empty: download or save it again"),
]


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.tiktoken"])
@pytest.mark.parametrize(("content", "told"), PLACEHOLDERS, ids=["LFS", "HTML", "XML", "empty"])
def test_placeholder_file_is_named(tiny_checkpoint, name, content, told):
    (tiny_checkpoint / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"its {name} .*{told}"):
        load_checkpoint("tiny")


def test_truncated_weights_differ_from_wrong_format(tiny_checkpoint):
    path = tiny_checkpoint / "model.safetensors"
    intact = path.read_bytes()
    for num_bytes in (5, 300, len(intact) - 100):
        path.write_bytes(intact[:num_bytes])
        with pytest.raises(CheckpointError, match="its model.safetensors is cut off or damaged, so download or"):
            load_checkpoint("tiny")
    path.write_bytes(PICKLES[0])
    with pytest.raises(CheckpointError, match="its model.safetensors is not what its name says: .*a pickled file"):
        load_checkpoint("tiny")


def test_folder_with_single_model_opens_that_model(tiny_checkpoint, tmp_path, monkeypatch):
    snapshots = tmp_path / "models--owner--name" / "snapshots"
    shutil.copytree(tiny_checkpoint, snapshots / "abc")
    for folder in (snapshots.parent, snapshots):
        assert find_checkpoint(folder) == snapshots / "abc"
    shutil.copytree(tiny_checkpoint, snapshots / "def")
    with pytest.raises(CheckpointError, match="the folder holds 2 models, abc, def"):
        find_checkpoint(snapshots.parent)
    (snapshots.parent / "refs").mkdir()
    (snapshots.parent / "refs" / "main").write_text("def")
    assert find_checkpoint(snapshots.parent) == snapshots / "def"


def test_bare_name_and_home_path_are_found(tiny_checkpoint, tmp_path, monkeypatch):
    shutil.copytree(tiny_checkpoint, tmp_path / "mine")
    (tmp_path / "x.gguf").write_bytes(GGUF)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_checkpoint("mine")[0].config == load_checkpoint("~/mine")[0].config
    with pytest.raises(CheckpointError, match="x.gguf is cut off"):
        load_checkpoint("x.gguf")
    with pytest.raises(
        CheckpointError, match="a model cannot be opened by a URL: use a path, or its name on the Hugging Face Hub"
    ):
        load_checkpoint("https://huggingface.co/owner/name")


def test_named_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="its pipe cannot be read: it is no file"):
        load_checkpoint(tmp_path / "pipe")
