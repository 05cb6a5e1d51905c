"""Which models may be asked for, by name, and where they are."""

from collections.abc import Collection, Container
from pathlib import Path

from explorer.language import _
from explorer.state.series import series_of
from model.checkpoint import (
    CheckpointError,
    find_checkpoint,
    is_checkpoint,
    is_of_hub,
    list_checkpoints,
    summarize_names,
)
from model.notes import Note
from model.pretrained.hub import folder_of, is_hub_name, on_disk


class _AnyName(Container):
    def __contains__(self, name: object) -> bool:
        return True


ANY_NAME = _AnyName()


class OfferedModels:
    """The checkpoints in `checkpoints/`, what was opened from elsewhere, and models of the hub that are on this
    machine.

    Args:
        hub_names: which names of the hub may be asked for, and opened in the page.

    Attributes:
        own_module: the name of what was made of the owner's own module; "" where none was.
        own_tokenizer: in place of that in its folder.
        own_vocabulary: what users should know of its vocabulary; None for nothing.
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
        """Return the checkpoint that a name stands for: of a model that was kept at several steps of its training, and
        is listed by its own name, the last step. Any other name is returned as it is."""
        if not isinstance(name, str) or name in self._opened or is_checkpoint(name):
            return name
        return next(reversed(series_of(name, self.names)), name)

    def open(self, name_or_path: str | Path) -> str:
        """Offer what is at a path, or a model of the hub, to everybody who asks, under the name that is returned: that
        on the hub, or the last part of the path to the folder, or to the file without what follows the dot.

        A model of the hub that is not on this machine is downloaded.

        Raises:
            CheckpointError: nothing is there that can be opened, or a checkpoint has that name already.
            ModelError: the hub has no such model, or is out of reach.
        """
        if is_of_hub(name_or_path):
            name, path = str(name_or_path), folder_of(str(name_or_path))
        else:
            path, last_part = find_checkpoint(name_or_path).absolute(), Path(name_or_path).absolute().name
            name = path.stem if path.is_file() else path.name if (path / last_part).is_file() else last_part
        if is_checkpoint(name) or self._opened.get(name, path) != path:
            told = _("a checkpoint has the name {name!r} already: give the folder or file another", name=name)
            raise CheckpointError(told)
        self._opened[name] = path
        return name

    @property
    def opens(self) -> bool:
        """Whether visitors may have models opened."""
        return self.hub_names is ANY_NAME or bool(self.listed_names)

    @property
    def listed_names(self) -> list[str]:
        """Of the hub those that may be opened, where not all may."""
        return [] if self.hub_names is ANY_NAME else sorted(self.hub_names)

    def is_from_elsewhere(self, name: str) -> bool:
        """Whether others trained it, as far as is known here."""
        return name in self._opened

    def may_open(self, name: object) -> bool:
        """Whether a visitor may have it opened."""
        return isinstance(name, str) and is_hub_name(name) and name in self.hub_names

    def place(self, name: str) -> str | Path:
        """Where a model is: its path, or a name in `checkpoints/`. Nothing is downloaded.

        Raises:
            CheckpointError: it is not offered: a path that somebody asks for, say, is never opened.
        """
        if name in self._opened:
            return self._opened[name]
        if is_checkpoint(name):
            return name
        if self.may_open(name):
            if folder := on_disk(name):
                self._opened[name] = folder
                return folder
            told = _("{name} is not on this machine: choose “Open a model…” in the list of models", name=name)
            raise CheckpointError(told)
        told = _("there is no checkpoint {name!r}; there are: {names}")
        raise CheckpointError(told.format(name=name, names=summarize_names(self.names)))
