"""`python -m model.describe`: files of every kind, and damaged and hostile ones, in bounded time and memory."""

import io
import json
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile

import pytest

from model.checkpoint import CheckpointError, load_checkpoint
from model.describe import describe_model, main
from model.pretrained.export_hugging_face import save_hugging_face
from tests.model.pretrained.gguf_files import write_gguf


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    """The tiny model as transformers would save it, with a model card."""
    folder = save_hugging_face(*load_checkpoint("tiny"), tmp_path / "folder")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Mine", encoding="utf-8")
    return folder


def rows(description) -> dict[str, str]:
    return dict(description.rows)


def test_hugging_face_folder_is_described(folder):
    description = describe_model(folder)
    lm, tokenizer = load_checkpoint(folder)
    number = sum(parameter.numel() for parameter in lm.parameters())
    assert description.problem is None and not description.notes
    assert rows(description)["architecture"] == "llama" and rows(description)["licence"] == "apache-2.0"
    assert rows(description)["parameters"] == f"{number:,}" and rows(description)["types"].startswith("F32 in ")
    assert rows(description)["tokenizer"].startswith(
        f"{tokenizer.vocab_size:,} ids, before a text nothing, after it <|"
    )
    assert f"{lm.config.num_layers} layers, width {lm.config.d_model}, " in rows(description)["model"]
    assert rows(description)["chat template"] == "none"
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert rows(describe_model(folder))["chat template"] == "14 characters"


def test_own_checkpoint_is_described(tiny_checkpoint, capsys):
    main(["tiny"])
    printed = capsys.readouterr().out
    assert "of this project" in printed and printed.endswith("opens       yes\n")


def test_gguf_file_is_described(tmp_path):
    from tests.hugging_face import transformers
    from tests.model.pretrained.model_kinds import KINDS

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**KINDS["Llama 2"][1]))
    write_gguf(
        tmp_path / "x.gguf", model, "llama", general_name="Mine\x1b[2J", general_license="mit", llama_logit_scale=2
    )
    description = describe_model(tmp_path / "x.gguf")
    assert description.problem is None and rows(description)["licence"] == "mit"
    assert rows(description)["parameters"] == f"{model.num_parameters():,}"
    assert [str(note) for note in description.notes] == ["values of its metadata that were not used: llama.logit_scale"]
    assert "\x1b" not in str(description)
    write_gguf(tmp_path / "x.gguf", model, "llama", general_architecture="mamba")
    description = describe_model(tmp_path / "x.gguf")
    assert rows(description)["architecture"] == "mamba" and "types" in rows(description)
    assert "models of the architecture 'mamba' are not understood" in str(description.problem)


def test_unsupported_model_is_described_with_reason(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "mamba"}))
    description = describe_model(folder)
    assert rows(description)["architecture"] == "mamba" and "parameters" in rows(description)
    with pytest.raises(SystemExit) as exit_info:
        main([str(folder)])
    assert exit_info.value.code == 1 and "models of the type 'mamba'" in str(description)


def make_zip_bomb() -> bytes:
    """Return 10 GB of zeros as a ZIP of 10 MB, in the layout of a PyTorch file."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("model/data.pkl", "w", force_zip64=True) as entry,
    ):
        for _ in range(64):
            entry.write(bytes(1 << 20))
    return file.getvalue()


class MaliciousPickle:
    def __reduce__(self):
        return print, ("this code ran",)


def truncated_safetensors(size: int) -> bytes:
    header = {"a": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}
    data = json.dumps(header).encode()
    return struct.pack("<Q", len(data)) + data


TRUNCATED_GGUF = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"a"
TRUNCATED_GGUF += struct.pack("<IQQIQ", 2, 1 << 20, 2621440, 0, 0)  # 10 TB
HOSTILE = {
    "bomb.pt": (make_zip_bomb(), "is a pickled file of PyTorch"),
    "bomb.zip": (make_zip_bomb().replace(b"data.pkl", b"data.txt"), "is an archive"),
    "code.bin": (pickle.dumps(MaliciousPickle()), "is a pickled file"),
    "code.gguf": (pickle.dumps(MaliciousPickle(), protocol=4), "is a pickled file"),
    "promise.gguf": (TRUNCATED_GGUF, "by its header it has 10,995,116,277,856"),
    "page.gguf": (b"<!DOCTYPE html><html>", "is a web page, left by a failed download"),
    "empty.gguf": (b"", "is empty"),
    "pointer.gguf": (b"version https://git-lfs.github.com/spec/v1\n", "only a pointer of Git LFS"),
}
FOLDER_DAMAGE = {
    "weights that promise 10 TB": (
        "model.safetensors",
        truncated_safetensors(10**13),
        "model.safetensors is cut off or damaged",
    ),
    "weights that are cut off": (
        "model.safetensors",
        truncated_safetensors(4)[:20],
        "model.safetensors is cut off or damaged",
    ),
    "a header of 2^60 bytes": ("model.safetensors", struct.pack("<Q", 1 << 60) + b"{}", "model.safetensors is"),
    "weights that are pickled": ("model.safetensors", pickle.dumps(MaliciousPickle()), "is not what its name says"),
    "a config without end": (
        "config.json",
        b'{"model_type": "llama", "a": ' + b"[" * 99_999,
        "config.json is no JSON",
    ),
    "a config of 2 MB": ("config.json", b'{"model_type": "llama"}' + b" " * (2 << 20), "config.json cannot be read"),
    "a config of other weights": ("config.json", None, "should be|lack"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_refused(name, tmp_path, capsys):
    content, message = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path / name)
    with pytest.raises(SystemExit) as exit_info:
        main([str(tmp_path / name)])
    printed = capsys.readouterr().out + str(exit_info.value)
    assert message in printed and "this code ran" not in printed and printed.count("\n") < 5


@pytest.mark.parametrize("name", FOLDER_DAMAGE)
def test_damaged_folder_is_refused(name, folder):
    file, content, message = FOLDER_DAMAGE[name]
    if content is None:
        config = json.loads((folder / file).read_text()) | {"num_hidden_layers": 9_000}
        content = json.dumps(config).encode()
    (folder / file).write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)
    try:
        assert str(describe_model(folder).problem or "")
    except CheckpointError as error:
        assert str(error)


def test_link_out_of_folder_is_refused(folder, tmp_path):
    secret = tmp_path / "secret.safetensors"
    shutil.move(folder / "model.safetensors", secret)
    (folder / "model.safetensors").symlink_to(secret)
    message = "its model.safetensors is a link to a file outside of its folder, which is not followed"
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)
    assert message in str(describe_model(folder).problem)


def test_link_within_hub_cache_is_followed(folder, tmp_path):
    cache = tmp_path / "models--owner--name"
    (cache / "blobs").mkdir(parents=True)
    snapshot = shutil.copytree(folder, cache / "snapshots" / "abc")
    shutil.move(snapshot / "model.safetensors", cache / "blobs" / "0f3c")
    (snapshot / "model.safetensors").symlink_to("../../blobs/0f3c")
    assert describe_model(snapshot).problem is None


def test_memory_and_time_are_bounded(tmp_path):
    """A separate process describes a file with 2^21 texts within 2 GB and 60 s on a busy machine."""
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 8, 1 << 21)
    path = tmp_path / "x.gguf"
    path.write_bytes(content + bytes(8 << 21) + bytes(64))  # the maximum number of empty texts
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30)); "
    script += "from model.describe import main; main([sys.argv[1]])"
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and "MemoryError" not in result.stderr and "opens" in result.stdout
