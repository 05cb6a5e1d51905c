"""What may lie in the repository."""

import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LARGEST = 10_000_000  # bytes; the Hugging Face Hub refuses larger files in plain git
PICKLE_SUFFIXES = {".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz"}


def tracked_files() -> list[Path]:
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listing = subprocess.run(git, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"git lists no files here: {error}")
    files = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in files if path.is_file()]


def may_be_pickled(path: Path) -> bool:
    """By its name, by the first bytes of a binary pickle, or as a zip archive with one inside (`torch.save`)."""
    if path.suffix in PICKLE_SUFFIXES:
        return True
    if zipfile.is_zipfile(path):
        return any(name.endswith(".pkl") for name in zipfile.ZipFile(path).namelist())
    with path.open("rb") as file:
        start = file.read(2)
    return len(start) == 2 and start[0] == 0x80 and start[1] <= 5


def test_every_tracked_file_is_small():
    large = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked_files()}
    assert {name: size for name, size in large.items() if size > LARGEST} == {}


def test_no_tracked_file_is_a_pickle():
    assert [str(path.relative_to(ROOT)) for path in tracked_files() if may_be_pickled(path)] == []


@pytest.mark.parametrize("name", ["weights.pt", "weights.safetensors"])
def test_pickles_are_recognised_by_name_and_by_content(tmp_path, name):
    import torch

    torch.save({"weight": torch.zeros(2)}, tmp_path / name)
    assert may_be_pickled(tmp_path / name)
    torch.save({"weight": torch.zeros(2)}, tmp_path / name, _use_new_zipfile_serialization=False)
    assert may_be_pickled(tmp_path / name)


def test_safetensors_are_no_pickles(tiny_checkpoint):
    assert [path.name for path in tiny_checkpoint.iterdir() if may_be_pickled(path)] == []
