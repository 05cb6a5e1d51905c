"""Notes on how a model's files were read, for whoever opens it."""

from typing import Any


class Note:
    """A statement about a model's files, kept apart from its values so that it can be told in another language.

    Args:
        template: the statement, a literal without a full stop, with names in braces as `str.format` has them.
        values: by name.
    """

    def __init__(self, template: str, /, **values: Any):
        self.template, self.values = template, values

    def __str__(self) -> str:
        return self.template.format(**self.values)

    def __repr__(self) -> str:
        return f"Note({str(self)!r})"
