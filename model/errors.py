"""Errors in a model's files and settings."""

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
