"""What a checkpoint's files say, and nothing of where and when they were written."""

import os
import shutil

import pytest

from explorer.tracing import contents
from explorer.tracing.contents import contents_of
from model.checkpoint import save_checkpoint


@pytest.fixture
def copied(tiny_checkpoint, tmp_path):
    """A copy that was written at another time, as on another machine."""
    copy = shutil.copytree(tiny_checkpoint, tmp_path / "copy")
    for path in copy.iterdir():
        os.utime(path, (7, 7))
    return copy


def test_a_copy_says_the_same_and_another_model_does_not(tiny_checkpoint, copied, tiny_lm, tiny_tokenizer):
    assert contents_of("tiny") == contents_of(copied) == contents_of(str(copied))
    before = contents_of(copied)
    tiny_lm.lm_head.weight.data[0, 0] += 1
    save_checkpoint(tiny_lm, tiny_tokenizer, copied)
    assert contents_of(copied) != before
    (copied / "config.json").unlink()
    assert contents_of(copied) != before


@pytest.mark.parametrize("name", ["config.json", "tokenizer.tiktoken", "model-00002-of-00002.safetensors"])
def test_every_file_counts(copied, name):
    before = contents_of(copied)
    with (copied / name).open("ab") as file:
        file.write(b" ")
    assert contents_of(copied) != before


def test_a_file_is_read_once(copied, monkeypatch):
    before = contents_of(copied)
    monkeypatch.setattr(contents.hashlib, "sha256", lambda *given: HASH(*given) if given else pytest.fail("read again"))
    assert contents_of(copied) == before


HASH = contents.hashlib.sha256


def test_of_a_large_file_it_is_size_and_time(copied, monkeypatch):
    monkeypatch.setattr(contents, "MOST_BYTES", 100)
    contents._contents.cache_clear()
    before = contents_of(copied)
    os.utime(copied / "model.safetensors", (8, 8))
    assert contents_of(copied) != before


def test_of_many_parts_as_few_bytes_are_read_as_of_one_file(copied, monkeypatch):
    for part in range(4):
        shutil.copy(copied / "model.safetensors", copied / f"model-0000{part}-of-00004.safetensors")
    monkeypatch.setattr(contents, "MOST_BYTES", 2 * (copied / "model.safetensors").stat().st_size)
    contents._contents.cache_clear()
    read = []
    monkeypatch.setattr(contents.hashlib, "sha256", lambda *given: Counting(read, *given))
    contents_of(copied)
    assert (copied / "config.json").stat().st_size < sum(read) <= contents.MOST_BYTES


class Counting:
    """A hash that notes how many bytes it is of, but for what it begins with."""

    def __init__(self, read: list[int], *given: bytes):
        self.read, self.hash = read, HASH(*given)

    def update(self, piece: bytes):
        self.read.append(len(piece))
        self.hash.update(piece)

    def hexdigest(self) -> str:
        return self.hash.hexdigest()


def test_what_the_hubs_cache_has_is_known_by_its_name(copied, tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "MOST_BYTES", 100)
    (tmp_path / "blobs").mkdir()
    weights = copied / "model.safetensors"
    weights.rename(tmp_path / "blobs" / "0f3c")
    weights.symlink_to(tmp_path / "blobs" / "0f3c")
    before = contents_of(copied)
    os.utime(weights, (9, 9))
    assert contents_of(copied) == before
    shutil.copy(tmp_path / "blobs" / "0f3c", tmp_path / "blobs" / "0f3d")
    weights.unlink()
    weights.symlink_to(tmp_path / "blobs" / "0f3d")
    assert contents_of(copied) != before
