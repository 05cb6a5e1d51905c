"""Slider of training steps."""

from collections.abc import Sequence

from explorer.state.checkpoint_names import checkpoints_of_training, step_label, training_step
from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template


class TrainingStepSlider(Widget):
    """A slider over a model's checkpoints, with a button that plays them; hidden for a model with one checkpoint."""

    def __init__(self, **kwargs):
        html = fill_template(
            '<div class="series training-step" role="group" aria-label="{name}" hidden><button type="button" '
            'class="play" title="{play_is}"></button></div>',
            name=_("step of its training"),
            play_is=_("goes through the steps, each once the one before is drawn, until you press anything"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(checkpoint: str, checkpoints: Sequence[str]) -> list[list[str]]:
        """Return name, label and tick of every checkpoint of the same training; empty if there is only one."""
        series = checkpoints_of_training(checkpoint, checkpoints)
        return [[name, step_label(name), tick_text(name)] for name in series] if len(series) > 1 else []


def tick_text(checkpoint: str) -> str:
    """Return the label of a checkpoint's tick on the slider."""
    step = training_step(checkpoint)
    return "" if step is None else f"{step:,}"
