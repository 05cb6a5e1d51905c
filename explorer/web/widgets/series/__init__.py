"""The step of its training that the model is looked at after."""

from collections.abc import Sequence

from explorer.language import _
from explorer.state.series import moment, series_of, step_of
from explorer.web.widgets.widget import Widget, with_words


class Series(Widget):
    """A slider over the steps that a model was kept at, with a button that goes through them; nothing of a model that
    was kept once."""

    def __init__(self, **kwargs):
        html = with_words(
            '<div class="series training-step" role="group" aria-label="{name}" hidden><button type="button" '
            'class="play" title="{play_is}"></button></div>',
            name=_("step of its training"),
            play_is=_("goes through the steps, each once the one before is drawn, until you press anything"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(checkpoint: str, checkpoints: Sequence[str]) -> list[list[str]]:
        """Name, words and tick of every checkpoint of the same training; none of a model that was kept once."""
        series = series_of(checkpoint, checkpoints)
        return [[name, moment(name), tick(name)] for name in series] if len(series) > 1 else []


def tick(checkpoint: str) -> str:
    """What is written below its place on the slider."""
    step = step_of(checkpoint)
    return "" if step is None else f"{step:,}"
