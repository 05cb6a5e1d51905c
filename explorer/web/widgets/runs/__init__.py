"""Bar that compares two runs."""

from collections.abc import Sequence
from typing import Any

from explorer.explain.labels import token_formatter
from explorer.state.checkpoint_names import checkpoints_of_training, model_name
from explorer.state.page_state import PageState
from explorer.tracing.comparison import Comparison
from explorer.translations import N_, _, translate
from explorer.web.widgets.picker import ModelPicker
from explorer.web.widgets.series import TrainingStepSlider
from explorer.web.widgets.widget import Widget, fill_template

# kind of an alignment -> what is said of it
ALIGNMENT_TEXTS = {
    "same": N_("the same tokens"),
    "length": N_("as many tokens: each stands beside the one at its position"),
    "edited": N_("tokens aligned by a shortest edit script"),
    "pinned": N_("tokens aligned as you put them"),
    "none": N_("no token of B stands for one of A: only side by side"),
}


class ComparisonBar(Widget):
    """Ways to add a second run if there is one; with two runs a summary, the switch A, B, A − B, and the alignment."""

    def __init__(self, **kwargs):
        html = fill_template(
            '<div class="runs" role="group" aria-label="{name}"><div class="ways"></div><div class="two" hidden></div>'
            '<div class="training-step" hidden></div></div>',
            name=_("A second run to compare with"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(
        page_state: PageState, comparison: Comparison | None, checkpoints: Sequence[str], prompts: tuple[str, str]
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            comparison: of the two runs; None without a second one.
            checkpoints: names of all checkpoints.
            prompts: texts of both runs' prompts.
        """
        model = model_name(page_state.run.checkpoint)
        models = [pair for pair in ModelPicker.pack(checkpoints) if pair[0] != model]
        step = neighbour_checkpoint(page_state.run.checkpoint, checkpoints)
        fields = {"models": models, "step": step, "changed": bool(page_state.run.edits), "prompt": prompts[0]}
        if not page_state.visible_other or comparison is None:
            return fields | {"two": None}
        alignment = comparison.alignment
        same_text = comparison.trace.tokens == comparison.other.tokens
        about = [
            model_name(page_state.other.checkpoint) if model_name(page_state.other.checkpoint) != model else "",
            _("the same text") if same_text else prompts[1],
            "; ".join(
                intervention.describe(comparison.other.config, token_formatter(comparison.other))
                for intervention in comparison.other.edits
            )
            or (_("without the changes") if comparison.is_unchanged else ""),
        ]
        return fields | {
            "two": {
                "prompt": prompts[1],
                "about": " · ".join(filter(None, about)),
                "aligned": translate(ALIGNMENT_TEXTS[alignment.kind]),
                "gaps": [alignment.partners.count(None), alignment.inverse.count(None)],
                "partners": list(alignment.partners),
                "back": list(alignment.inverse),
                "pins": len(page_state.pins),
                "comparable": comparison.is_comparable,
                "moments": TrainingStepSlider.pack(page_state.other.checkpoint, checkpoints),
            }
        }


def neighbour_checkpoint(checkpoint: str, checkpoints: Sequence[str]) -> str:
    """Return the checkpoint before this one, or after the first one, of the same training; "" if there is no other."""
    series = checkpoints_of_training(checkpoint, checkpoints)
    if len(series) < 2 or checkpoint not in series:
        return ""
    index = series.index(checkpoint)
    return series[index - 1 if index else 1]
