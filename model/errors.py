"""What can be wrong with a model's files and settings."""

from typing import Any


class ModelError(ValueError):
    """A sentence and the values in it, apart, so that whoever tells it can tell it in another language.

    Args:
        template: the sentence, a literal, with names in braces as `str.format` has them; without values it is told as
            it is.
        values: by name; one may be an error, which says why.
    """

    def __init__(self, template: str, /, **values: Any):
        super().__init__(template.format(**values) if values else template)
        self.template, self.values = template, values
