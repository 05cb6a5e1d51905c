"""What can go wrong, by whose mistake."""


class UserError(ValueError):
    """The visitor asked for what there is not; the message is a sentence for them: what was wanted, what came, and
    what to do. Any other exception is a mistake of ours."""


class NoSuchPoint(UserError, IndexError):
    """A picture has nothing at the point that was asked about."""
