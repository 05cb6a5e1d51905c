"""Errors that users cause."""


class UserError(ValueError):
    """The user's request is invalid.

    The message is a sentence for the user: what was expected, what was received, and what to do.

    Any other exception is a bug of this program.
    """


class PointNotFoundError(UserError, IndexError):
    """A figure has no element at the requested point."""
