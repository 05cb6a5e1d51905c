"""Which parts of a model can be put from one run into another."""

from explorer.language import _
from explorer.state.errors import UserError

BY_POSITION = ("resid_pre", "attn.out", "ffn.out")  # values (1, T, D): a position at a time
BY_HEAD = ("attn.z", "attn.q", "attn.k", "attn.v", "attn.pattern")  # (1, H, …): a head at a time, at all positions
PARTS = BY_POSITION + BY_HEAD


def check_part(part: str):
    """UserError where it is none of PARTS."""
    if part not in PARTS:
        raise UserError(_("wanted one of {known}, got {got!r}", known=", ".join(PARTS), got=part))


def taps_of(part: str, num_layers: int) -> list[str]:
    """The names of the part's values, layer by layer."""
    return [f"blocks.{layer}.{part}" for layer in range(num_layers)]
