"""Which parts of a model can be put from one run into another."""

from explorer.language import _
from explorer.state.errors import UserError
from explorer.tracing.patching_question import BY_HEAD, BY_POSITION

PARTS = BY_POSITION + BY_HEAD


def check_part(part: str):
    """UserError where it is none of PARTS."""
    if part not in PARTS:
        raise UserError(_("wanted one of {known}, got {got!r}", known=", ".join(PARTS), got=part))


def taps_of(part: str, num_layers: int) -> list[str]:
    """The names of the part's values, layer by layer."""
    return [f"blocks.{layer}.{part}" for layer in range(num_layers)]
