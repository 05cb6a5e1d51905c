"""Components of a model that can be patched."""

from explorer.state.errors import UserError
from explorer.tracing.patching.experiment import BY_HEAD, BY_POSITION
from explorer.translations import _

COMPONENTS = BY_POSITION + BY_HEAD


def check_component(component: str):
    """Raise UserError if the name is none of COMPONENTS."""
    if component not in COMPONENTS:
        raise UserError(_("wanted one of {known}, got {got!r}", known=", ".join(COMPONENTS), got=component))


def component_taps(component: str, num_layers: int) -> list[str]:
    """Return the taps of a component, layer by layer."""
    return [f"blocks.{layer}.{component}" for layer in range(num_layers)]
