"""Which model reads which tokens, and what is changed on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from explorer.language import _
from explorer.state.alignment import Pins
from explorer.state.errors import UserError
from explorer.state.interventions import BETWEEN, FromOther, Intervention, parse_edits
from explorer.state.selection import as_index
from model.generation.window import window_start

MOST_TOKENS = 2048  # of the prompt and as many after it: their ids still fit into a URL


@dataclass(frozen=True)
class Run:
    """A question to a model: small and hashable, so that state, caches and URLs can hold it instead of the answer.

    Attributes:
        checkpoint: name of the model.
        prompt: ids of the prompt's tokens.
        generated: ids of the tokens generated after them.
        dropped: tokens of the text before `prompt` that were left out because the model cannot see so many.
        edits: changes that the model's computation follows.
    """

    checkpoint: str
    prompt: tuple[int, ...]
    generated: tuple[int, ...] = ()
    dropped: int = 0
    edits: tuple[Intervention, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "edits", tuple(edit.of_prompt(self.prompt) for edit in self.edits))

    @property
    def token_ids(self) -> tuple[int, ...]:
        return self.prompt + self.generated

    def taking_from(self, other: "Run | None", pins: Pins) -> "Run":
        """The same, with another run to take values from where its changes do: that run's prompt, without what it takes
        from this one. None: there is none, and the changes cannot be made."""
        source = other and replace(other.without_patches(), generated=())
        edits = (replace(e, source=source, pins=pins) if isinstance(e, FromOther) else e for e in self.edits)
        return replace(self, edits=tuple(edits))

    def without_patches(self) -> "Run":
        """The same without changes that take values of another run."""
        return replace(self, edits=tuple(edit for edit in self.edits if not isinstance(edit, FromOther)))

    @property
    def patches(self) -> tuple[FromOther, ...]:
        """The changes that take values of another run."""
        return tuple(edit for edit in self.edits if isinstance(edit, FromOther))

    def window(self, context_length: int) -> tuple[int, ...]:
        """The last tokens, as many as the model sees at once when it predicts the next."""
        return self.token_ids[window_start(len(self.token_ids), context_length) :]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "Run":
        """The run in a mapping that anybody may have written; ids come as numbers or as text like "12.7.300",
        edits as a list of texts or as one like "rope.angles*shift*5~blocks.2.attn.z.1*zero".

        Raises:
            UserError: the checkpoint is no text, the ids are no ids, or the edits no edits.
        """
        checkpoint = values.get("checkpoint")
        if not isinstance(checkpoint, str):
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        prompt, generated = (parse_ids(values.get(name) or ()) for name in ("prompt", "generated"))
        dropped = as_index(values.get("dropped", 0)) or 0
        return cls(checkpoint, prompt, generated, dropped, parse_edits(values.get("edits") or ()))

    def as_dict(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "prompt": list(self.prompt),
            "generated": list(self.generated),
            "dropped": self.dropped,
            "edits": BETWEEN.join(map(str, self.edits)),
        }


def parse_ids(ids: str | Sequence) -> tuple[int, ...]:
    """Token ids from a list of whole numbers or from their text, joined by dots; UserError for anything else."""
    parts = ids.split(".") if isinstance(ids, str) else ids
    if not isinstance(parts, list | tuple) or len(parts) > MOST_TOKENS:
        raise UserError(_("token ids are at most {most} whole numbers", most=MOST_TOKENS))
    numbers = tuple(as_index(part) for part in parts)
    if None in numbers:
        raise UserError(_("token ids are whole numbers"))
    return numbers
