"""Altered checkpoint files: a CheckpointError with one sentence, in little time and memory."""

import json
import os
import re
import shutil
import struct
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from model.config import CHOICES, SWITCHES

SIZES = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "num_kv_heads")
HUGE = [20_001, 1 << 28, (1 << 28) + 1, 1 << 62, 1 << 63, 10**30]
INVALID_SIZES = [0, -1, 1.5, "8", True, [], {}, float("nan"), float("inf")]
INVALID_NUMBERS = [0, -1, float("nan"), float("inf"), "1", None, []]
CHANGES = {
    **{name: [{name: value} for value in HUGE + INVALID_SIZES] for name in SIZES},
    **{name: [{name: value} for value in INVALID_NUMBERS] for name in ("rope_theta", "norm_eps")},
    **{name: [{name: value} for value in (1, *INVALID_NUMBERS[1:])] for name in ("dropout", "attention_dropout")},
    **{name: [{name: value} for value in ("", "x", None, 1, [])] for name in CHOICES},
    **{name: [{name: value} for value in (1, "yes", None)] for name in SWITCHES},
    "another kind": [{"norm": "layernorm"}, {"position": "learned"}, {"ffn": "gelu"}, {"ffn": "relu"}, {"bias": True}],
    "another still": [{"qk_norm": True}, {"qkv_bias": True}, {"tie_embeddings": True}, {"num_kv_heads": 1}, {"x": 1}],
    "wide": [
        {"d_model": 6_000_000, "num_heads": 1},
        {"d_model": 1 << 28, "num_heads": 1, "position": "sinusoidal"},
        dict.fromkeys(("d_model", "d_ff", "num_layers", "context_length"), 1 << 28) | {"num_heads": 1},
    ],
    "scaling": [{"rope_scaling": value} for value in ({}, 4, "linear", {"kind": "ntk"}, {"kind": "x", "factor": 2})],
    "factor": [{"rope_scaling": {"kind": "linear", "factor": value}} for value in INVALID_NUMBERS],
}  # fmt: skip
HARMLESS_CHANGES = [{"context_length": 20_001}]  # no weight depends on the number of angles


@pytest.fixture
def refusal_message():
    """`refusal_message(name)`: message that refuses a checkpoint, raised within 10 s and 64 MB."""

    def refusal(name: str | Path) -> str:
        before, started = peak_bytes(reset=True), time.monotonic()
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(name)
        assert time.monotonic() - started < 10
        assert not peak_bytes() - before > 64 << 20
        sentence = str(caught.value)
        assert re.match(r"checkpoint '\w+' cannot be loaded: .{10}", sentence)
        assert len(sentence) < 1000 and "\n" not in sentence and "Errno" not in sentence
        return sentence

    return refusal


def peak_bytes(reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset; NaN if the system does not report it."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
    except OSError:
        return float("nan")


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
def test_altered_settings_are_refused(tiny_checkpoint, refusal_message, changes):
    path = tiny_checkpoint / "config.json"
    intact = json.loads(path.read_text())
    for change in changes:
        if change not in HARMLESS_CHANGES:
            path.write_text(json.dumps(intact | change))
            refusal_message("tiny")


def set_tensor(value):
    return lambda weights: weights.update({"blocks.1.ffn.up_proj.weight": value})


WEIGHTS = {
    "NaN": lambda weights: weights["blocks.1.attn.q_proj.weight"].view(-1)[5:6].fill_(float("nan")),
    "infinite": lambda weights: weights["final_norm.weight"][3:4].fill_(float("inf")),
    "minus infinite": lambda weights: weights["token_embedding.weight"].view(-1)[-1:].fill_(float("-inf")),
    "too large for 32 bits": set_tensor(torch.full((40, 24), 1e300, dtype=torch.float64)),
    "whole numbers": set_tensor(torch.zeros(40, 24, dtype=torch.int64)),
    "booleans": set_tensor(torch.zeros(40, 24, dtype=torch.bool)),
    "complex": set_tensor(torch.zeros(40, 24, dtype=torch.complex64)),
    "transposed": set_tensor(torch.zeros(24, 40)),
    "flat": set_tensor(torch.zeros(960)),
    "empty": set_tensor(torch.zeros(0)),
    "no axis": set_tensor(torch.zeros(())),
    "another name": lambda weights: weights.update(x=weights.pop("lm_head.weight")),
    "one more": lambda weights: weights.update(x=torch.zeros(3)),
    "one less": lambda weights: weights.pop("blocks.0.attn.o_proj.weight"),
    "none": lambda weights: weights.clear(),
}


@pytest.mark.parametrize("alter", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_altered_weights_are_refused(tiny_checkpoint, refusal_message, alter):
    weights = load_file(tiny_checkpoint / "model.safetensors")
    alter(weights)
    save_file(weights, tiny_checkpoint / "model.safetensors")
    refusal_message("tiny")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_weight_is_named(tiny_checkpoint, refusal_message, value, dtype):
    weights = {name: w.to(dtype) for name, w in load_file(tiny_checkpoint / "model.safetensors").items()}
    weights["blocks.0.attn_norm.weight"][7] = value
    save_file(weights, tiny_checkpoint / "model.safetensors")
    assert "blocks.0.attn_norm.weight holds numbers that are not finite" in refusal_message("tiny")


@pytest.mark.parametrize("length", [0, 1, 7, (1 << 27), (1 << 40), (1 << 63), (1 << 64) - 1])
def test_wrong_header_length_is_refused(tiny_checkpoint, refusal_message, length):
    path = tiny_checkpoint / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    refusal_message("tiny")


@pytest.mark.parametrize("flips", [40, pytest.param(400, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.tiktoken"])
@pytest.mark.exhaustive
def test_flipped_bits_are_refused_or_harmless(tiny_checkpoint, name, flips):
    """A file that still fits after the flip, as in the last bit of a weight, loads."""
    path, rng, refusals = tiny_checkpoint / name, np.random.default_rng(0), 0
    intact = path.read_bytes()
    for index in rng.integers(min(len(intact), 2500), size=flips):
        flipped = bytearray(intact)
        flipped[index] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        try:
            load_checkpoint("tiny")
        except CheckpointError:
            refusals += 1
    assert refusals > flips / 2


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.tiktoken"])
@pytest.mark.parametrize(
    ("put", "why"), [(Path.mkdir, "it is a folder"), (os.mkfifo, "it is no file")], ids=["folder", "pipe"]
)
def test_folder_or_pipe_is_named(tiny_checkpoint, refusal_message, name, put, why):
    (tiny_checkpoint / name).unlink()
    put(tiny_checkpoint / name)
    assert refusal_message("tiny").endswith(f"its {name} cannot be read: {why}")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.tiktoken"])
def test_missing_file_is_reported_missing(tiny_checkpoint, refusal_message, name):
    (tiny_checkpoint / name).unlink()
    assert refusal_message("tiny").endswith(f"its {name} cannot be read: No such file or directory")


@pytest.fixture
def protected_checkpoint(tiny_lm, tiny_tokenizer):
    """Folder of a checkpoint for tests that drop root's rights, which are restored afterwards."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    save_checkpoint(tiny_lm, tiny_tokenizer, folder / "tiny")
    was_root = os.geteuid() == 0
    try:
        yield folder / "tiny"
    finally:
        if was_root:
            os.seteuid(0)
        for path in (folder / "tiny", *(folder / "tiny").glob("*")):
            path.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.tiktoken"])
def test_unreadable_file_is_not_reported_missing(protected_checkpoint, refusal_message, name):
    (protected_checkpoint / name).chmod(0)
    drop_root_rights()
    assert refusal_message(protected_checkpoint).endswith(f"its {name} cannot be read: Permission denied")


def test_unreadable_folder_is_not_reported_missing(protected_checkpoint, refusal_message):
    protected_checkpoint.chmod(0)
    drop_root_rights()
    assert refusal_message(protected_checkpoint).endswith("its config.json cannot be read: Permission denied")


def drop_root_rights():
    if os.geteuid() == 0:
        os.seteuid(65534)
