"""What went wrong, in a sentence."""

import logging
import secrets

from explorer.language import _
from explorer.state.errors import UserError
from model.checkpoint import CheckpointError

LOG = logging.getLogger(__name__)
VISITORS = (UserError, CheckpointError)  # mistakes that say in their own words what the visitor can do about them


def told(error: Exception) -> str:
    """The sentence that the visitor gets to read; a mistake of ours goes to the log with its traceback, under an id
    that the sentence names."""
    if isinstance(error, VISITORS):
        return str(error)
    name = secrets.token_hex(4)
    LOG.error("%s: %s", name, type(error).__name__, exc_info=error)
    return _("Something broke here, by no mistake of yours. It is in the log as {name}.", name=name)
