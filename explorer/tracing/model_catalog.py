"""Catalog of the available models, by name."""

from collections.abc import Collection, Container
from pathlib import Path

from explorer.state.checkpoint_names import checkpoints_of_training
from explorer.translations import _
from model.checkpoint import (
    CheckpointError,
    find_checkpoint,
    is_checkpoint,
    is_remote_checkpoint,
    list_checkpoints,
    summarize_names,
)
from model.loading_notes import Note
from model.pretrained.hub import cached_folder, get_or_download_folder, is_hub_name


class _AnyName(Container):
    def __contains__(self, name: object) -> bool:
        return True


ANY_NAME = _AnyName()


class ModelCatalog:
    """The checkpoints in `checkpoints/`, models opened from elsewhere, and models of the hub on this machine.

    Args:
        hub_names: names on the hub that users may open in the page.

    Attributes:
        own_module: name of the checkpoint made from the owner's own module; "" if there is none.
        own_tokenizer: instead of the tokenizer in its folder.
        own_vocabulary: a note for users about its vocabulary; None for none.
    """

    def __init__(self, hub_names: Collection[str] | _AnyName = ()):
        self.hub_names = hub_names
        self._opened: dict[str, Path] = {}
        self.own_module, self.own_tokenizer = "", None
        self.own_vocabulary: Note | None = None

    @property
    def names(self) -> list[str]:
        return sorted({*list_checkpoints(), *self._opened})

    def resolve(self, name: str) -> str:
        """Return the checkpoint that a name stands for.

        For the name of a model with checkpoints at several steps of its training, this is the last step. Any other
        name is returned unchanged.
        """
        if not isinstance(name, str) or name in self._opened or is_checkpoint(name):
            return name
        return next(reversed(checkpoints_of_training(name, self.names)), name)

    def open(self, name_or_path: str | Path) -> str:
        """Add a model from a path or the hub to the catalog and return its name.

        The name is that on the hub, or the last part of the path of a folder, or of a file without its extension. A
        model of the hub that is not on this machine is downloaded.

        Raises:
            CheckpointError: there is nothing that can be opened, or a checkpoint has that name already.
            ModelError: the hub has no such model, or cannot be reached.
        """
        if is_remote_checkpoint(name_or_path):
            name, path = str(name_or_path), get_or_download_folder(str(name_or_path))
        else:
            path, last_part = find_checkpoint(name_or_path).absolute(), Path(name_or_path).absolute().name
            name = path.stem if path.is_file() else path.name if (path / last_part).is_file() else last_part
        if is_checkpoint(name) or self._opened.get(name, path) != path:
            message = _("a checkpoint has the name {name!r} already: give the folder or file another", name=name)
            raise CheckpointError(message)
        self._opened[name] = path
        return name

    @property
    def allows_opening(self) -> bool:
        """True if users may open models."""
        return self.hub_names is ANY_NAME or bool(self.allowed_names)

    @property
    def allowed_names(self) -> list[str]:
        """Names on the hub that users may open; empty if they may open any."""
        return [] if self.hub_names is ANY_NAME else sorted(self.hub_names)

    def is_external(self, name: str) -> bool:
        """Return True if the model was opened from elsewhere."""
        return name in self._opened

    def may_open(self, name: object) -> bool:
        """Return True if a user may open the model."""
        return isinstance(name, str) and is_hub_name(name) and name in self.hub_names

    def locate(self, name: str) -> str | Path:
        """Return the path of a model, or its name in `checkpoints/`; downloads nothing.

        Raises:
            CheckpointError: the model is not in the catalog: a path in a request, for example, is never opened.
        """
        if name in self._opened:
            return self._opened[name]
        if is_checkpoint(name):
            return name
        if self.may_open(name):
            if folder := cached_folder(name):
                self._opened[name] = folder
                return folder
            message = _("{name} is not on this machine: choose “Open a model…” in the list of models", name=name)
            raise CheckpointError(message)
        message = _("there is no checkpoint {name!r}; there are: {names}")
        raise CheckpointError(message.format(name=name, names=summarize_names(self.names)))
