"""Choosing the model."""

from collections.abc import Sequence

from explorer.language import _
from explorer.state.series import model_of, series_of
from explorer.web.widgets.widget import Widget, attribute, with_words


class Picker(Widget):
    """A list of models. One that was kept at several steps of its training is one of them: the slider of its steps is
    another widget (`Series`).

    Its value is the name of a checkpoint; it follows the state's. Emits "input" when a person chose another.

    Args:
        checkpoints: names of all that there are.
        opens: whether another may be opened (`OpenModel`), for which the list has an entry, too.
    """

    EMITS = ("input",)

    def __init__(self, checkpoints: Sequence[str], opens: bool = False, **kwargs):
        data = f'data-models="{attribute(self.pack(checkpoints))}" data-opens="{attribute(opens)}"'
        models = f'<div class="picker" {data}>'
        models += with_words('<select aria-label="{model}"></select></div>', model=_("model"))
        super().__init__(html=models, **kwargs)

    @staticmethod
    def pack(checkpoints: Sequence[str]) -> list[list[str]]:
        """The name of every model, and that of its checkpoint which is trained furthest."""
        models = dict.fromkeys(map(model_of, sorted(checkpoints)))
        return [[model, furthest(model, checkpoints)] for model in models]


def furthest(model: str, checkpoints: Sequence[str]) -> str:
    """Of a model's checkpoints the last of its training."""
    return series_of(model, checkpoints)[-1]
