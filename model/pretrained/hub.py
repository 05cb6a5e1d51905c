"""Models by their names on the Hugging Face Hub, such as "HuggingFaceTB/SmolLM2-135M"."""

import re
from collections.abc import Callable, Iterator, Mapping
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
from model.file_formats import explain_files
from model.pretrained.self_check import KNOWN_LOGITS
from model.pretrained.tokenizer_files import TOKENIZER_FILES
from model.pretrained.weight_files import choose_files, find_weights, read_index

ENDPOINT: str | None = None  # where the hub is, other than where HF_ENDPOINT says
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9._-]{1,96}")
BESIDE = ("config.json", "generation_config.json", *TOKENIZER_FILES, KNOWN_LOGITS)
UNGATED = {  # owner -> a model like theirs that needs no licence to be accepted
    "meta-llama": "HuggingFaceTB/SmolLM2-135M",
    "google": "HuggingFaceTB/SmolLM2-135M",
    "mistralai": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
}


@dataclass(frozen=True)
class Listing:
    """What of a model is needed.

    Attributes:
        name: its owner's and its own.
        revision: the commit that is meant, so that all files are of one.
        sizes: file -> bytes.
    """

    name: str
    revision: str
    sizes: Mapping[str, int]

    @property
    def num_bytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def weight_bytes(self) -> int:
        """Of the weights, in the type that they are stored in."""
        return sum(size for file, size in self.sizes.items() if file.endswith(".safetensors") and file != KNOWN_LOGITS)


def is_hub_name(name: str) -> bool:
    """Whether it could be one: an owner and a name; a bare name is none."""
    return NAME.fullmatch(name) is not None and ".." not in name


def on_disk(name: str) -> Path | None:
    """The folder that the hub's cache has of a model; None where a file of it is missing. Nothing is asked of the
    network."""
    try:
        folder = Path(snapshot_download(name, local_files_only=True))
        complete = (folder / "config.json").exists() and all(path.exists() for path in find_weights(folder))
    except (LocalEntryNotFoundError, HFValidationError, ModelError, OSError):
        return None
    return folder if complete else None


def listing(name: str) -> Listing:
    """What the hub has of a model.

    Raises:
        ModelError: it has none of that name, or one that cannot be opened here, or is out of reach.
    """
    with told(name):
        info = HfApi(ENDPOINT).model_info(name, files_metadata=True, timeout=10)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    if "config.json" not in sizes:
        raise _not_readable(name, explain_files(sizes, name))
    try:
        weights = choose_files(sizes, name)
        if weights[0].endswith(".json"):
            with told(name):
                index = hf_hub_download(name, weights[0], revision=info.sha or "main", endpoint=ENDPOINT)
            weights += read_index(Path(index))
        if missing := [file for file in weights if file not in sizes]:
            raise ModelError("it lacks {file}, which its index names", file=missing[0])
    except ModelError as error:
        raise _not_readable(name, error) from None
    wanted = [*weights, *(file for file in BESIDE if file in sizes)]
    return Listing(name, info.sha or "main", {file: sizes[file] for file in wanted})


def _not_readable(name: str, why: ModelError | None) -> ModelError:
    if why is None:
        return ModelError("{name} is no model with config.json and safetensors", name=name)
    return ModelError("{name} cannot be opened: {why}", name=name, why=why)


def downloaded(wanted: Listing, tell: Callable[[int], None] | None = None) -> Path:
    """The folder with all files of a listing, which are fetched unless they are there.

    Args:
        tell: is called with the bytes that are there, again and again; an error that it raises ends the download. None
            shows bars on the terminal.

    Raises:
        ModelError: a file cannot be fetched.
    """
    done, folder = 0, Path()
    for file, size in wanted.sizes.items():
        bar = {"tqdm_class": telling(tell, done)} if tell else {}
        with told(wanted.name):
            path = hf_hub_download(wanted.name, file, revision=wanted.revision, endpoint=ENDPOINT, **bar)
            folder = Path(path).parents[file.count("/")]
        done += size
    # A download by commit does not say which one a name stands for.
    pointer = folder.parents[1] / "refs" / "main"
    pointer.parent.mkdir(exist_ok=True)
    pointer.write_text(wanted.revision, encoding="ascii")
    return folder


def telling(tell: Callable[[int], None], before: int) -> type[tqdm]:
    """The kind of progress bar that the hub's client is given: it draws nothing, and tells.

    Args:
        before: bytes of the files before this one.
    """

    class Teller(tqdm):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **{**kwargs, "disable": True})
            self.there = kwargs.get("initial") or 0

        def update(self, n: float | None = 1):
            self.there += n or 0
            tell(before + int(self.there))

    return Teller


@contextmanager
def told(name: str) -> Iterator[None]:
    """What the hub's client raises becomes a ModelError that says what to do."""
    owner = name.partition("/")[0]
    try:
        yield
    except GatedRepoError:
        raise ModelError(
            "{name} is given only to those who accepted its licence: do so at https://huggingface.co/{name} and start "
            "with HF_TOKEN set to a token of yours, or take one without, such as {other}",
            name=name,
            other=UNGATED.get(owner, "HuggingFaceTB/SmolLM2-135M"),
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise ModelError("the hub has no model {name!r}, or only for its owner: mind its spelling", name=name) from None
    except (HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        why = str(error).strip().partition("\n")[0][:200] or type(error).__name__
        raise ModelError(
            "{name} is not on this machine, and the hub is out of reach: {why}", name=name, why=why
        ) from None


def folder_of(name: str) -> Path:
    """The folder of a model, from the cache where it is there, or else downloaded; errors as of these."""
    return on_disk(name) or downloaded(listing(name))
