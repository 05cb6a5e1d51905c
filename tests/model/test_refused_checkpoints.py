"""Missing and damaged checkpoints are refused with the reason."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from model.checkpoint import CheckpointError, load_checkpoint


@pytest.mark.parametrize("name", ["nothing", "", "a\0b", "x" * 5000, "\ud800", "😀"], ids=lambda name: ascii(name[:12]))
def test_unknown_name_is_refused_with_list_of_checkpoints(tiny_checkpoint, name):
    with pytest.raises(CheckpointError, match="there is no checkpoint .*; there are: tiny"):
        load_checkpoint(name)


@pytest.mark.parametrize("path", ["../../etc/x", "/nowhere", "tiny/config.json", "./x", "x.gguf", "a/x.gguf", "/a\0b"])
def test_missing_path_is_refused_without_list(tiny_checkpoint, path):
    with pytest.raises(CheckpointError, match="^there is no file or folder .*[^y]$"):
        load_checkpoint(path)


def test_training_series_is_listed_by_first_and_last(tiny_checkpoint):
    for step in range(4):
        shutil.copytree(tiny_checkpoint, tiny_checkpoint.parent / "series" / f"step-00000{step}")
    with pytest.raises(CheckpointError, match="there are: series/step-000000 … series/step-000003, tiny$"):
        load_checkpoint("nothing")


@pytest.mark.parametrize("name", ["tokenizer.tiktoken", "model.safetensors"])
def test_missing_file_is_named(tiny_checkpoint, name):
    (tiny_checkpoint / name).unlink()
    with pytest.raises(CheckpointError, match=f"checkpoint 'tiny' cannot be loaded: .*{name}"):
        load_checkpoint("tiny")


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_truncated_weights_are_refused(tiny_checkpoint, kept):
    path = tiny_checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match="checkpoint 'tiny' cannot be loaded: "):
        load_checkpoint("tiny")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "its config.json is no JSON: Expecting property name"),
        ("", "its config.json is empty: download or save it again"),
        ("[" * 100_000, "its config.json is no JSON: maximum recursion depth"),
        (" " * (1 << 20) + "{}", "its config.json cannot be read: it has 1,048,578 bytes, more than 1,048,576"),
        ("[]", "a model config is an object of named settings, got list"),
        ("null", "a model config is an object of named settings, got NoneType"),
        ("{}", "incomplete model config: .*vocab_size"),
    ],
    ids=["cut", "empty", "deep", "large", "list", "null", "empty object"],
)
def test_invalid_config_is_refused(tiny_checkpoint, config, message):
    (tiny_checkpoint / "config.json").write_text(config)
    with pytest.raises(CheckpointError, match=f"checkpoint 'tiny' cannot be loaded: {message}"):
        load_checkpoint("tiny")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_modle": 24}, "unknown model setting d_modle; known are"),
        ({"d_model": "24"}, "d_model must be a positive integer, got '24'"),
        ({"rope_theta": float("inf")}, "rope_theta must be a positive number, got inf"),
        ({"d_ff": 48}, r"blocks.0.ffn.gate_proj.weight should be \(48, 24\) by its config, got \(40, 24\)"),
        ({"num_layers": 3}, "its weights lack blocks.2.attn_norm.weight"),
        ({"num_layers": 1}, "its weights hold blocks.1.attn.k_proj.weight, which its config has no place for"),
        ({"tie_embeddings": True}, "its weights hold lm_head.weight, which its config has no place for"),
        ({"vocab_size": 299}, "the tokenizer has 300 tokens, the model 299"),
        ({"vocab_size": 10**30}, "vocab_size must be at most 268,435,456, got 1,000,000,"),
        ({"context_length": 10**8}, "positions up to 100,000,000 need a table of 400,000,000 numbers"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_config_that_contradicts_other_files_is_refused(tiny_checkpoint, change, message):
    config = json.loads((tiny_checkpoint / "config.json").read_text())
    (tiny_checkpoint / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(CheckpointError, match=f"checkpoint 'tiny' cannot be loaded: {message}"):
        load_checkpoint("tiny")


def test_missing_weights_are_named(tiny_checkpoint):
    weights = load_file(tiny_checkpoint / "model.safetensors")
    del weights["final_norm.weight"]
    save_file(weights, tiny_checkpoint / "model.safetensors")
    with pytest.raises(CheckpointError, match="its weights lack final_norm.weight"):
        load_checkpoint("tiny")
