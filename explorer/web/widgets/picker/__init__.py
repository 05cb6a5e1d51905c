"""Choosing the model."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from explorer.language import _
from explorer.web.widgets.widget import Widget, attribute, with_words


class Picker(Widget):
    """A list of models and, where the chosen one was kept at several moments of its training, a list of these.

    Its value is the name of a checkpoint; it follows the state's. Emits "input" when a person chose another.

    Args:
        checkpoints: names, those of a series being "series/snapshot".
    """

    EMITS = ("input",)

    def __init__(self, checkpoints: Sequence[str], **kwargs):
        models = f'<div class="picker" data-models="{attribute(self.pack(checkpoints))}">'
        lists = with_words(
            '<select class="model" aria-label="{model}"></select>'
            '<select class="snapshot" aria-label="{moment}" hidden></select></div>',
            model=_("model"),
            moment=_("moment of its training"),
        )
        super().__init__(html=models + lists, **kwargs)

    @staticmethod
    def pack(checkpoints: Sequence[str]) -> list[dict[str, Any]]:
        """A model each, with the name and the words of every checkpoint of it."""
        groups = groupby(sorted(checkpoints), key=lambda name: name.partition("/")[0])
        return [{"name": name, "checkpoints": [[one, moment(one)] for one in group]} for name, group in groups]


def moment(checkpoint: str) -> str:
    """A snapshot in words: "series/step-000512" is "step 512"."""
    _series, _slash, snapshot = checkpoint.partition("/")
    if step := re.match(r"step-0*(?=\d)", snapshot):
        return _("step {step}", step=snapshot[step.end() :])
    return snapshot or _("at its end")
