"""Models by their names on the Hugging Face Hub: "owner/name", or "owner/name/file.gguf" for a GGUF file there."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    HTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from tqdm import tqdm

from model.errors import ModelError
from model.file_formats import split_file_error, unsupported_files_error
from model.pretrained.reference_logits import REFERENCE_LOGITS
from model.pretrained.tokenizer import TOKENIZER_FILES
from model.pretrained.weight_files import choose_weight_files, find_weight_files, read_index

MAX_EXAMPLES = 3  # files that an error names
ENDPOINT: str | None = None  # where the hub is, other than where HF_ENDPOINT says
HUB_NAME = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9._-]{1,96})(?:/((?:[A-Za-z0-9._-]{1,96}/)*[^/\s\\]{1,96}\.gguf))?"
)
GGUF_PART = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")
COMPANION_FILES = ("config.json", "generation_config.json", *TOKENIZER_FILES, REFERENCE_LOGITS)
UNGATED = {  # owner -> a model like theirs that needs no licence to be accepted
    "meta-llama": "HuggingFaceTB/SmolLM2-135M",
    "google": "HuggingFaceTB/SmolLM2-135M",
    "mistralai": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
}


@dataclass(frozen=True)
class HubFiles:
    """The files of a model on the Hub that are needed here.

    Attributes:
        name: "owner/name".
        gguf: the GGUF file that is the model; "" for a folder of transformers.
        revision: commit of all the files.
        sizes: file -> bytes.
    """

    name: str
    revision: str
    sizes: Mapping[str, int]
    gguf: str = ""

    @property
    def num_bytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights, in the type that they are stored in; 0 for GGUF, whose types the file itself says."""
        return sum(
            size for file, size in self.sizes.items() if file.endswith(".safetensors") and file != REFERENCE_LOGITS
        )


def is_hub_name(name: str) -> bool:
    """Return True if a name has the form of one on the Hub, owner/name or owner/name/file.gguf."""
    return HUB_NAME.fullmatch(name) is not None and ".." not in name


def split_hub_name(name: str) -> tuple[str, str]:
    """Return owner/name, and the path of the GGUF file that the name has after it; "" for none."""
    match = HUB_NAME.fullmatch(name)
    return (match[1], match[2] or "") if match else (name, "")


def cached_model(name: str) -> Path | None:
    """Return a model's folder or GGUF file in the Hub's cache, without network access; None if a file is missing."""
    repository, file = split_hub_name(name)
    if not file:
        return cached_folder(repository)
    try:
        return Path(hf_hub_download(repository, file, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        return None


def cached_folder(name: str) -> Path | None:
    """Return a model's folder in the Hub's cache, without network access; None if a file is missing."""
    try:
        folder = Path(snapshot_download(name, local_files_only=True))
        complete = (folder / "config.json").exists() and all(path.exists() for path in find_weight_files(folder))
    except (LocalEntryNotFoundError, HFValidationError, ModelError, OSError):
        return None
    return folder if complete else None


def list_hub_files(name: str) -> HubFiles:
    """List the files of a model on the Hub that are needed here.

    Raises:
        ModelError: there is no such model, it cannot be opened here, or the Hub is out of reach.
    """
    repository, gguf = split_hub_name(name)
    with translate_hub_errors(repository):
        info = HfApi(ENDPOINT).model_info(repository, files_metadata=True, timeout=10)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    gguf_files = [file for file in sizes if file.lower().endswith(".gguf")]
    if gguf:
        check_gguf_file(repository, gguf, gguf_files)
        return HubFiles(repository, info.sha or "main", {gguf: sizes[gguf]}, gguf)
    if gguf_files and "config.json" not in sizes:
        examples = ", ".join(f"{name}/{file}" for file in gguf_files[:MAX_EXAMPLES])
        raise ModelError(
            "{name} has GGUF files: open one by its name, such as {examples}", name=name, examples=examples
        )
    if "config.json" not in sizes:
        raise _unreadable_error(name, unsupported_files_error(sizes, name))
    try:
        weights = choose_weight_files(sizes, name)
        if weights[0].endswith(".json"):
            with translate_hub_errors(name):
                index = hf_hub_download(name, weights[0], revision=info.sha or "main", endpoint=ENDPOINT)
            weights += read_index(Path(index))
        if missing := [file for file in weights if file not in sizes]:
            raise ModelError("it lacks {file}, which its index names", file=missing[0])
    except ModelError as error:
        raise _unreadable_error(name, error) from None
    needed = [*weights, *(file for file in COMPANION_FILES if file in sizes)]
    return HubFiles(name, info.sha or "main", {file: sizes[file] for file in needed})


def check_gguf_file(repository: str, file: str, gguf_files: Sequence[str]) -> None:
    """Raise ModelError if a GGUF file is not among those of a repository, or only a part of a model."""
    if file not in gguf_files:
        names = ", ".join(gguf_files[:MAX_EXAMPLES]) + ", …" * (len(gguf_files) > MAX_EXAMPLES)
        raise ModelError(
            "{name} has no file {file}; its GGUF files: {known}", name=repository, file=file, known=names or "none"
        )
    if part := GGUF_PART.search(file):
        raise _unreadable_error(f"{repository}/{file}", split_file_error(int(part[1])))


def _unreadable_error(name: str, reason: ModelError | None) -> ModelError:
    if reason is None:
        return ModelError("{name} is no model with config.json and safetensors", name=name)
    return ModelError("{name} cannot be opened: {why}", name=name, why=reason)


def download_files(files: HubFiles, on_progress: Callable[[int], None] | None = None) -> Path:
    """Download all files that are not cached; return their folder, or the GGUF file.

    Args:
        on_progress: called repeatedly with the bytes downloaded so far; an error that it raises ends the download.
            None shows progress bars on the terminal.

    Raises:
        ModelError: a file cannot be downloaded.
    """
    bytes_done, folder = 0, Path()
    for file, size in files.sizes.items():
        bar = {"tqdm_class": progress_bar_class(on_progress, bytes_done)} if on_progress else {}
        with translate_hub_errors(files.name):
            path = hf_hub_download(files.name, file, revision=files.revision, endpoint=ENDPOINT, **bar)
            folder = Path(path).parents[file.count("/")]
        bytes_done += size
    # A download by commit does not record which commit the branch main points to.
    pointer = folder.parents[1] / "refs" / "main"
    pointer.parent.mkdir(exist_ok=True)
    pointer.write_text(files.revision, encoding="ascii")
    return folder / files.gguf


def progress_bar_class(on_progress: Callable[[int], None], bytes_before: int) -> type[tqdm]:
    """Return a tqdm class for the Hub's client that draws nothing and calls `on_progress`.

    Args:
        bytes_before: of the files before this one.
    """

    class ProgressReporter(tqdm):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **{**kwargs, "disable": True})
            self.downloaded = kwargs.get("initial") or 0

        def update(self, n: float | None = 1):
            self.downloaded += n or 0
            on_progress(bytes_before + int(self.downloaded))

    return ProgressReporter


@contextmanager
def translate_hub_errors(name: str) -> Iterator[None]:
    """Translate exceptions of the Hub's client into a ModelError with a remedy."""
    owner = name.partition("/")[0]
    try:
        yield
    except GatedRepoError:
        raise ModelError(
            "{name} requires accepting its licence: accept it at https://huggingface.co/{name} and start with "
            "HF_TOKEN set to your token, or choose a model that does not, such as {other}",
            name=name,
            other=UNGATED.get(owner, "HuggingFaceTB/SmolLM2-135M"),
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise ModelError(
            "the Hugging Face Hub has no model {name!r}, or it is private: check the spelling", name=name
        ) from None
    except (HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        reason = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        raise ModelError(
            "{name} is not on this machine, and the hub is out of reach: {why}", name=name, why=reason
        ) from None


def get_or_download_model(name: str) -> Path:
    """Return a model's folder or file from the Hub's cache, or else download it; errors as in `download_files`."""
    return cached_model(name) or download_files(list_hub_files(name))
