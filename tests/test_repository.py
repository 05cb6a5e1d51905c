"""Files of the repository: sizes, no pickles, names in comments."""

import hashlib
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_FILE_BYTES = 10_000_000  # the Hugging Face Hub refuses larger files in plain git
PICKLE_SUFFIXES = {".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz"}
# Published files of other projects, in their formats.
PUBLISHED = {
    "tests/data/stories260K/stories260K.bin": "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696",
    "tests/data/stories260K/tok512.bin": "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312",
}
COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
NAMED_FILE = re.compile(r"(?<![\w./-])(?:[\w-]+/)*\w+\.(?:py|js|css)\b")


def tracked_files() -> list[Path]:
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listing = subprocess.run(git, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"git lists no files here: {error}")
    files = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in files if path.is_file()]


def may_be_pickled(path: Path) -> bool:
    """Return whether a file may be a pickle.

    By its name, by the first bytes of a binary pickle, or as a zip archive with one inside (`torch.save`).
    """
    if path.suffix in PICKLE_SUFFIXES:
        return True
    if zipfile.is_zipfile(path):
        return any(name.endswith(".pkl") for name in zipfile.ZipFile(path).namelist())
    with path.open("rb") as file:
        start = file.read(2)
    return len(start) == 2 and start[0] == 0x80 and start[1] <= 5


def test_every_tracked_file_is_small():
    large = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked_files()}
    assert {name: size for name, size in large.items() if size > MAX_FILE_BYTES} == {}


def test_no_tracked_file_is_a_pickle():
    suspects = {path.relative_to(ROOT).as_posix(): path for path in tracked_files() if may_be_pickled(path)}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in suspects.items()} == PUBLISHED


@pytest.mark.parametrize("name", ["weights.pt", "weights.safetensors"])
def test_pickles_are_recognised_by_name_and_by_content(tmp_path, name):
    import torch

    torch.save({"weight": torch.zeros(2)}, tmp_path / name)
    assert may_be_pickled(tmp_path / name)
    torch.save({"weight": torch.zeros(2)}, tmp_path / name, _use_new_zipfile_serialization=False)
    assert may_be_pickled(tmp_path / name)


def test_safetensors_are_not_pickles(tiny_checkpoint):
    assert [path.name for path in tiny_checkpoint.iterdir() if may_be_pickled(path)] == []


def test_comments_name_existing_files():
    paths = [path.relative_to(ROOT).as_posix() for path in tracked_files()]
    files = [path for path in paths if path.startswith("explorer/") and path.endswith((".js", ".css"))]
    named = [
        (file, name)
        for file in files
        for comment in COMMENT.findall((ROOT / file).read_text("utf-8"))
        for name in NAMED_FILE.findall(comment)
    ]
    assert len(named) > 50
    assert [(file, name) for file, name in named if not any(f"/{path}".endswith(f"/{name}") for path in paths)] == []


def test_test_folders_mirror_source():
    folders = {path.parent.relative_to(ROOT).as_posix() for path in tracked_files()}
    mirrors = {folder for folder in folders if folder.startswith(("tests/explorer/", "tests/model/"))}
    assert {folder for folder in mirrors if folder.removeprefix("tests/") not in folders} == {
        "tests/explorer/web/rooms",  # tests of rooms.py and room_routes.py
    }
