"""The request for a run: a model, its input tokens and interventions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from explorer.errors import UserError
from explorer.interventions import SEPARATOR, CrossRunIntervention, Intervention, parse_interventions
from explorer.state.selection import parse_index
from explorer.state.token_alignment import Pins
from explorer.translations import _
from model.config import window_start

MAX_TOKENS = 2048  # of the prompt and as many after it: their ids still fit into a URL


@dataclass(frozen=True)
class RunRequest:
    """The request for a run: small and hashable, so that state, caches and URLs can hold it instead of the result.

    Attributes:
        checkpoint: name of the model.
        prompt: ids of the prompt's tokens.
        generated: ids of the tokens generated after them.
        dropped: number of tokens before `prompt` that were left out because the model cannot see so many.
        edits: interventions.
    """

    checkpoint: str
    prompt: tuple[int, ...]
    generated: tuple[int, ...] = ()
    dropped: int = 0
    edits: tuple[Intervention, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "edits", tuple(intervention.for_prompt(self.prompt) for intervention in self.edits))

    @property
    def token_ids(self) -> tuple[int, ...]:
        return self.prompt + self.generated

    def first_visible(self, num_visible: int) -> int:
        """Return the position in the whole text of the first token that the model sees."""
        return self.dropped + len(self.token_ids) - num_visible

    def with_patch_source(self, other: "RunRequest | None", pins: Pins) -> "RunRequest":
        """Return the run with another run as the source of its patches.

        The source is that run's prompt, without its own patches. None: there is none, and the patches cannot be
        applied.
        """
        source = other and replace(other.without_patches(), generated=())
        interventions = (
            replace(e, source=source, pins=pins) if isinstance(e, CrossRunIntervention) else e for e in self.edits
        )
        return replace(self, edits=tuple(interventions))

    def without_patches(self) -> "RunRequest":
        """Return the run without patches."""
        return replace(
            self,
            edits=tuple(
                intervention for intervention in self.edits if not isinstance(intervention, CrossRunIntervention)
            ),
        )

    @property
    def patches(self) -> tuple[CrossRunIntervention, ...]:
        """Interventions that take values of another run."""
        return tuple(intervention for intervention in self.edits if isinstance(intervention, CrossRunIntervention))

    def window(self, context_length: int) -> tuple[int, ...]:
        """Return the last tokens, as many as the model sees when it predicts the next."""
        return self.token_ids[window_start(len(self.token_ids), context_length) :]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "RunRequest":
        """Parse a run from an untrusted mapping.

        Ids are numbers or text like "12.7.300", interventions a list of texts or one text like
        "rope.angles*shift*5~blocks.2.attn.z.1*zero".

        Raises:
            UserError: the checkpoint, the ids or the interventions are invalid.
        """
        checkpoint = values.get("checkpoint")
        if not isinstance(checkpoint, str):
            raise UserError(_("the checkpoint must be a name, got {got!r}", got=checkpoint))
        prompt, generated = (parse_token_ids(values.get(name) or ()) for name in ("prompt", "generated"))
        dropped = parse_index(values.get("dropped", 0)) or 0
        return cls(checkpoint, prompt, generated, dropped, parse_interventions(values.get("edits") or ()))

    def as_dict(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "prompt": list(self.prompt),
            "generated": list(self.generated),
            "dropped": self.dropped,
            "edits": SEPARATOR.join(map(str, self.edits)),
        }


def parse_token_ids(ids: str | Sequence) -> tuple[int, ...]:
    """Parse token ids from a list of whole numbers or from text, joined by dots; raise UserError for anything else."""
    parts = ids.split(".") if isinstance(ids, str) else ids
    if not isinstance(parts, list | tuple) or len(parts) > MAX_TOKENS:
        raise UserError(_("token ids are at most {most} whole numbers", most=MAX_TOKENS))
    numbers = tuple(parse_index(part) for part in parts)
    if None in numbers:
        raise UserError(_("token ids are whole numbers"))
    return numbers
