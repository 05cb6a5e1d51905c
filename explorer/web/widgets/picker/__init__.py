"""List of models."""

from collections.abc import Sequence

from explorer.state.checkpoint_names import checkpoints_of_training, model_name
from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template, json_attribute


class ModelPicker(Widget):
    """A drop-down list that selects a model.

    One with several checkpoints of its training is one entry (`TrainingStepSlider` selects the step).

    It follows the state's checkpoint.

    Args:
        checkpoints: names of all checkpoints.
        allows_opening: whether the list has an entry for opening another model (`HubModelForm`).
    """

    def __init__(self, checkpoints: Sequence[str], allows_opening: bool = False, **kwargs):
        data = f'data-models="{json_attribute(self.pack(checkpoints))}" data-opens="{json_attribute(allows_opening)}"'
        models = f'<div class="picker" {data}>'
        models += fill_template('<select aria-label="{model}"></select></div>', model=_("model"))
        super().__init__(html=models, **kwargs)

    @staticmethod
    def pack(checkpoints: Sequence[str]) -> list[list[str]]:
        """Return the name of every model with that of its last checkpoint."""
        models = dict.fromkeys(map(model_name, sorted(checkpoints)))
        return [[model, last_checkpoint(model, checkpoints)] for model in models]


def last_checkpoint(model: str, checkpoints: Sequence[str]) -> str:
    """Return the last checkpoint of a model's training."""
    return checkpoints_of_training(model, checkpoints)[-1]
