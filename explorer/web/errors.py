"""What went wrong, in a sentence."""

import logging
import secrets

from explorer.language import _, look_up
from explorer.state.errors import UserError
from explorer.web.log_lines import has_room
from model.errors import ModelError
from model.overflow import OverflowedRunError

LOG = logging.getLogger(__name__)
# Mistakes that say in their own words what the visitor can do about them.
VISITORS = (UserError, ModelError, OverflowedRunError)

MAX_CHARACTERS = 2000  # of a sentence, which may quote all that somebody sent
NO_MEMORY = "can't allocate memory", "out of memory"  # as torch says it of the CPU and of other devices


def told(error: Exception) -> str:
    """The sentence that the visitor gets to read; a mistake of ours goes to the log with its traceback, under an id
    that the sentence names."""
    if isinstance(error, VISITORS):
        text = sentence(error)
        return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"
    name, is_logged = secrets.token_hex(4), has_room()
    LOG.error("%s: %s", name, type(error).__name__, exc_info=error)
    if is_out_of_memory(error):
        return _("The server has not enough memory for this just now: ask again in a while, or take a shorter prompt.")
    if not is_logged:
        return _("Something broke here, by no mistake of yours: tell the person who runs the server.")
    return _("Something broke here, by no mistake of yours. It is in the log as {name}.", name=name)


def is_out_of_memory(error: Exception) -> bool:
    """Whether there was no room for something, be it numpy's, torch's or a GPU's."""
    of_torch = isinstance(error, RuntimeError) and any(said in str(error) for said in NO_MEMORY)
    return isinstance(error, MemoryError) or of_torch


def sentence(error: Exception) -> str:
    """What an error says, of the model's in the visitor's language, and so what an error among its values says."""
    if not isinstance(error, ModelError):
        return str(error)
    values = {name: sentence(value) if isinstance(value, Exception) else value for name, value in error.values.items()}
    return look_up(error.template, **values)
