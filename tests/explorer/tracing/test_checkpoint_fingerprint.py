"""Checkpoint fingerprints: the contents of the files count, not when and where they were written."""

import os
import shutil

import pytest

from explorer.tracing import model_catalog as fingerprint_module
from explorer.tracing.model_catalog import checkpoint_fingerprint
from model.checkpoint import save_checkpoint


@pytest.fixture
def copy_checkpoint(tiny_checkpoint, tmp_path):
    """Return a copy of the checkpoint with other modification times, as from another machine."""
    copy = shutil.copytree(tiny_checkpoint, tmp_path / "copy")
    for path in copy.iterdir():
        os.utime(path, (7, 7))
    return copy


def test_copies_have_equal_fingerprints(tiny_checkpoint, copy_checkpoint, tiny_lm, tiny_tokenizer):
    assert (
        checkpoint_fingerprint("tiny")
        == checkpoint_fingerprint(copy_checkpoint)
        == checkpoint_fingerprint(str(copy_checkpoint))
    )
    before = checkpoint_fingerprint(copy_checkpoint)
    tiny_lm.lm_head.weight.data[0, 0] += 1
    save_checkpoint(tiny_lm, tiny_tokenizer, copy_checkpoint)
    assert checkpoint_fingerprint(copy_checkpoint) != before
    (copy_checkpoint / "config.json").unlink()
    assert checkpoint_fingerprint(copy_checkpoint) != before


@pytest.mark.parametrize("name", ["config.json", "tokenizer.tiktoken", "model-00002-of-00002.safetensors"])
def test_every_file_changes_fingerprint(copy_checkpoint, name):
    before = checkpoint_fingerprint(copy_checkpoint)
    with (copy_checkpoint / name).open("ab") as file:
        file.write(b" ")
    assert checkpoint_fingerprint(copy_checkpoint) != before


def test_file_is_read_once(copy_checkpoint, monkeypatch):
    before = checkpoint_fingerprint(copy_checkpoint)
    monkeypatch.setattr(
        fingerprint_module.hashlib, "sha256", lambda *given: HASH(*given) if given else pytest.fail("read again")
    )
    assert checkpoint_fingerprint(copy_checkpoint) == before


HASH = fingerprint_module.hashlib.sha256


def test_large_file_uses_size_and_modification_time(copy_checkpoint, monkeypatch):
    monkeypatch.setattr(fingerprint_module, "MAX_FINGERPRINT_BYTES", 100)
    fingerprint_module._file_fingerprint.cache_clear()
    before = checkpoint_fingerprint(copy_checkpoint)
    os.utime(copy_checkpoint / "model.safetensors", (8, 8))
    assert checkpoint_fingerprint(copy_checkpoint) != before


def test_bytes_read_are_limited_across_shards(copy_checkpoint, monkeypatch):
    for part in range(4):
        shutil.copy(copy_checkpoint / "model.safetensors", copy_checkpoint / f"model-0000{part}-of-00004.safetensors")
    monkeypatch.setattr(
        fingerprint_module, "MAX_FINGERPRINT_BYTES", 2 * (copy_checkpoint / "model.safetensors").stat().st_size
    )
    fingerprint_module._file_fingerprint.cache_clear()
    lengths_read = []
    monkeypatch.setattr(fingerprint_module.hashlib, "sha256", lambda *given: CountingHash(lengths_read, *given))
    checkpoint_fingerprint(copy_checkpoint)
    assert (
        (copy_checkpoint / "config.json").stat().st_size < sum(lengths_read) <= fingerprint_module.MAX_FINGERPRINT_BYTES
    )


class CountingHash:
    """Hash that records the length of each piece after its initial bytes."""

    def __init__(self, piece_lengths: list[int], *initial: bytes):
        self.read, self.hash = piece_lengths, HASH(*initial)

    def update(self, piece: bytes):
        self.read.append(len(piece))
        self.hash.update(piece)

    def hexdigest(self) -> str:
        return self.hash.hexdigest()


def test_hub_cache_file_uses_its_blob_name(copy_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint_module, "MAX_FINGERPRINT_BYTES", 100)
    (tmp_path / "blobs").mkdir()
    weights = copy_checkpoint / "model.safetensors"
    weights.rename(tmp_path / "blobs" / "0f3c")
    weights.symlink_to(tmp_path / "blobs" / "0f3c")
    before = checkpoint_fingerprint(copy_checkpoint)
    os.utime(weights, (9, 9))
    assert checkpoint_fingerprint(copy_checkpoint) == before
    shutil.copy(tmp_path / "blobs" / "0f3c", tmp_path / "blobs" / "0f3d")
    weights.unlink()
    weights.symlink_to(tmp_path / "blobs" / "0f3d")
    assert checkpoint_fingerprint(copy_checkpoint) != before
