"""Notes on how a model's files were read, for the user."""

from typing import Any


class Note:
    """A remark for the user on how a model's files were read: a template and its values, for translation.

    Args:
        template: the statement, a literal without a full stop, with names in braces as in `str.format`.
        values: by name.
    """

    def __init__(self, template: str, /, **values: Any):
        self.template, self.values = template, values

    def __str__(self) -> str:
        return self.template.format(**self.values)

    def __repr__(self) -> str:
        return f"Note({str(self)!r})"
