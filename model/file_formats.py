"""Kinds of model files, and errors for files and folders that cannot be opened as a model.

Content is looked at first, since names may be wrong.
"""

import re
import zipfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PurePosixPath

from model.errors import ModelError

NUM_HEADER_BYTES = 512  # enough to tell a file's format
MAGIC_BYTES = {  # bytes that a file begins with -> its kind
    b"GGUF": "gguf",
    b"lmgg": "ggml",
    b"tjgg": "ggml",
    b"fmgg": "ggml",
    b"\x89HDF\r\n\x1a\n": "hdf5",
    b"\x93NUMPY": "numpy",
    b"\x1f\x8b": "archive",
    b"BZh": "archive",
    b"\xfd7zXZ\x00": "archive",
    b"7z\xbc\xaf'\x1c": "archive",
    b"(\xb5/\xfd": "archive",
    b"Rar!": "archive",
}
SUFFIXES = {  # of formats that no bytes tell, and of files too short or too odd for those above -> their kind
    ".gguf": "gguf",
    ".ggml": "ggml",
    ".onnx": "onnx",
    ".onnx_data": "onnx",
    ".ort": "onnx",
    ".npz": "numpy",
    ".npy": "numpy",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".keras": "hdf5",
    ".msgpack": "flax",
    ".pb": "tensorflow",
    ".tflite": "tensorflow",
    ".safetensors": "safetensors",
    ".pt": "pickle",
    ".pth": "pickle",
    ".ckpt": "pickle",
    ".bin": "pickle",
    ".pkl": "pickle",
    ".pickle": "pickle",
    ".model": "vocabulary",
    ".tiktoken": "vocabulary",
    ".txt": "vocabulary",
    ".zip": "archive",
    ".tar": "archive",
    ".gz": "archive",
    ".tgz": "archive",
    ".xz": "archive",
    ".bz2": "archive",
    ".zst": "archive",
    ".7z": "archive",
    ".rar": "archive",
}
PICKLED = re.compile(r"pytorch_model.*\.bin(\.index\.json)?")
ORIGINAL = re.compile(r"consolidated.*\.(pth|safetensors)")  # weights of Meta's and Mistral's own code


def check_not_placeholder(path: Path) -> None:
    """Raise ModelError for a placeholder: an empty file, a Git LFS pointer, or the web page of a failed download.

    It may be empty, a pointer of Git LFS, or the web page left by a failed download.
    """
    kind = _header_kind(_read_header(path))
    if kind == "empty":
        raise ModelError("its {file} is empty: download or save it again", file=path.name)
    if kind == "lfs":
        raise ModelError(
            "its {file} is only a pointer of Git LFS: run `git lfs pull` in its folder to fetch the file itself",
            file=path.name,
        )
    if kind == "page":
        raise ModelError(
            "its {file} is a web page, left by a failed download: download it again (from the Hub by /resolve/, not "
            "/blob/)",
            file=path.name,
        )


def file_kind(path: Path) -> str:
    """Return a file's kind by its content, or else by its name; "" if unknown."""
    return content_kind(path) or SUFFIXES.get(path.suffix.lower(), "")


def content_kind(path: Path) -> str:
    """Return a file's kind by its content alone; "" if unknown."""
    header = _read_header(path)
    return _zip_kind(path) if header.startswith(b"PK\x03\x04") else _header_kind(header)


def unsupported_file_error(path: Path) -> ModelError:
    """Return the error for an existing file that cannot be opened as a model, with a way out."""
    file, kind, has_config = path.name, file_kind(path), (path.parent / "config.json").exists()
    if kind in ("empty", "lfs", "page"):
        try:
            check_not_placeholder(path)
        except ModelError as error:
            return error
    if file.startswith("adapter_model."):
        return unsupported_files_error([file], path.parent)
    if ORIGINAL.fullmatch(file) or kind == "pickle" and PICKLED.fullmatch(file) and has_config:
        return unsupported_files_error([file], path.parent)
    if kind in ("safetensors", "json"):
        return ModelError(
            "{file} alone is no model: put config.json, the weights (*.safetensors) and the tokenizer into one folder, "
            "and open that",
            file=file,
        )
    if kind == "vocabulary":
        return ModelError(
            "{file} is the vocabulary of a tokenizer, without a model: open the folder that also has config.json and "
            "*.safetensors",
            file=file,
        )
    return unsupported_format_error(kind, file)


def unsupported_format_error(kind: str, file: str) -> ModelError:
    """Return the error for a format that cannot be opened, with a way out."""
    match kind:
        case "gguf":
            return ModelError("{file} is a GGUF file of llama.cpp: open it by its own path, on this machine", file=file)
        case "ggml":
            return ModelError(
                "{file} is a GGML file, a format that llama.cpp left in 2023 and that is not read: open the same model "
                "as GGUF, or the folder with config.json and *.safetensors that it was made from",
                file=file,
            )
        case "onnx":
            return ModelError(
                "{file} is an ONNX graph, which has no weights by name: open the folder with config.json and "
                "*.safetensors that it was exported from",
                file=file,
            )
        case "numpy":
            return ModelError(
                "{file} holds NumPy arrays, a format that is not read: for a model of your own save its weights by "
                "torch.save(model.state_dict(), …) and open them with --module FILE.py:CLASS --weights FILE",
                file=file,
            )
        case "hdf5" | "tensorflow":
            return ModelError(
                "{file} is a file of TensorFlow or Keras, which is not read: open the model’s *.safetensors with its "
                "config.json",
                file=file,
            )
        case "flax":
            return ModelError(
                "{file} holds weights of Flax, which are not read: open the model’s *.safetensors with its config.json",
                file=file,
            )
        case "pickle":
            return ModelError(
                "{file} is a pickled file of PyTorch, which says nothing of the model around its weights: open a model "
                "of your own with --module FILE.py:CLASS --weights {file}",
                file=file,
            )
        case "archive":
            return ModelError("{file} is an archive: unpack it, and open the folder with config.json", file=file)
    return ModelError(
        "{file} is no model in a format that is known here: open a folder with config.json and *.safetensors", file=file
    )


def split_file_error(count: int) -> ModelError:
    """Return the error for one of several GGUF files of a model."""
    return ModelError(
        "it is one of {count} files that make up the model: join them with llama.cpp’s "
        "`llama-gguf-split --merge FIRST OUT`, and open that",
        count=count,
    )


def unsupported_files_error(names: Collection[str], folder: Path | str) -> ModelError | None:
    """Return the error for files that together make no model that can be opened, with a way out.

    None if they are of no known kind.

    Args:
        names: of the files, relative to their folder.
        folder: their folder, or the model's name on the Hub.
    """
    files = sorted(names)
    if any(PurePosixPath(name).name in ("adapter_config.json", "adapter_model.safetensors") for name in files):
        return ModelError(
            "it is an adapter (LoRA), which has only what was trained besides its base model: merge the two with "
            "peft’s merge_and_unload(), save_pretrained(…), and open that folder"
        )
    if "model_index.json" in files:
        return ModelError("it is a pipeline of diffusers, which makes pictures: open a language model")
    if pickled := [name for name in files if PICKLED.fullmatch(name)]:
        return ModelError(
            'its weights ({file}) are pickled, which could run code of others. Convert them once: python -c "from '
            "transformers import AutoModelForCausalLM as M; M.from_pretrained('{folder}').save_pretrained('{new}')\"",
            file=pickled[0],
            folder=folder,
            new=folder if isinstance(folder, Path) else folder.rpartition("/")[2],
        )
    if original := [name for name in files if ORIGINAL.fullmatch(name)]:
        return ModelError(
            "its weights ({file}) are in the original format of Meta or Mistral, which is not read: open the same "
            "model in the format of transformers, with config.json and model.safetensors",
            file=original[0],
        )
    for kind in ("gguf", "ggml", "onnx", "hdf5", "tensorflow", "flax", "numpy", "pickle", "archive"):
        if matching := [name for name in files if SUFFIXES.get(PurePosixPath(name).suffix.lower()) == kind]:
            return unsupported_format_error(kind, matching[0])
    return None


def _read_header(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        return file.read(NUM_HEADER_BYTES)
    return b"?"  # what cannot be read is nothing in particular


def _header_kind(header: bytes) -> str:
    """Return the kind of a file with this header; "" if unknown."""
    text = header.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not text:
        return "empty"
    if text.startswith(b"version https://git-lfs.github.com/spec/"):
        return "lfs"
    if text.startswith((b"<!doctype html", b"<html", b"<head")) or text.startswith(b"<?xml") and b"<error" in text:
        return "page"
    if len(header) >= 9 and header[8:9] == b"{" and int.from_bytes(header[:8], "little") < 1 << 30:
        return "safetensors"
    if re.match(rb'\{[\s"}]', text):
        return "json"
    for magic, kind in MAGIC_BYTES.items():
        if header.startswith(magic):
            return kind
    if header[257:262] == b"ustar":
        return "archive"
    if re.match(rb"\x80[\x02-\x05][^\0]", header):
        return "pickle"  # protocol number and first opcode, as written by older torch.save
    if header[4:8] == b"TFL3":
        return "tensorflow"
    if re.match(rb"\x08[\x01-\x1f][\x12\x1a\x22\x2a\x3a\x42]", header):
        return "onnx"  # a protocol buffer: the version of its form, then another field of a ModelProto
    if re.match(rb"\x0a.{1,2}\x0a.{1,2}(<unk>|<pad>|<s>|\[UNK\])", header, re.DOTALL):
        return "vocabulary"  # of SentencePiece
    return ""


def _zip_kind(path: Path) -> str:
    """Return the kind of a ZIP archive by its content, or by its name if it is cut off."""
    with suppress(zipfile.BadZipFile, OSError, ValueError), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if any(name.endswith("data.pkl") for name in names):
            return "pickle"
        if names and all(name.endswith(".npy") for name in names):
            return "numpy"
        return "hdf5" if any(name.endswith(".weights.h5") for name in names) else "archive"
    return SUFFIXES.get(path.suffix.lower(), "archive")
