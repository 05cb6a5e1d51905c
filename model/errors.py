"""Errors in a model's files and settings, and notes on how files were read."""

from typing import Any


class ModelError(ValueError):
    """An error in a model's files or settings; its message is a template and values, so that it can be translated.

    Args:
        template: the message, a literal, with names in braces as in `str.format`; unformatted if there are no
            values.
        values: by name; one may be an error that gives the reason.
    """

    def __init__(self, template: str, /, **values: Any):
        super().__init__(template.format(**values) if values else template)
        self.template, self.values = template, values


class NonFiniteLogitsError(ModelError):
    """A run whose logits are infinite or NaN; the message proposes a remedy."""


class LoadingNote:
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
        return f"LoadingNote({str(self)!r})"
