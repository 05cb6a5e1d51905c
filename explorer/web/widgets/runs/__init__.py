"""One run or two, and which of them the pictures show."""

from collections.abc import Sequence
from typing import Any

from explorer.explain.place import as_text
from explorer.language import N_, _, look_up
from explorer.state.page_state import PageState
from explorer.state.series import model_of, series_of
from explorer.tracing.comparison import Comparison
from explorer.web.widgets.picker import Picker
from explorer.web.widgets.series import Series
from explorer.web.widgets.widget import Widget, with_words

# kind of an alignment -> what is said of it
ALIGNED = {
    "same": N_("the same tokens"),
    "length": N_("as many tokens: each stands beside the one at its position"),
    "edited": N_("tokens aligned by a shortest edit script"),
    "pinned": N_("tokens aligned as you put them"),
    "none": N_("no token of B stands for one of A: only side by side"),
}


class Runs(Widget):
    """The ways to a second run while there is one alone; with two what they are, the switch between A, B and A − B, and
    how their tokens stand beside each other."""

    def __init__(self, **kwargs):
        html = with_words(
            '<div class="runs" role="group" aria-label="{name}"><div class="ways"></div><div class="two" hidden></div>'
            '<div class="training-step" hidden></div></div>',
            name=_("A second run to compare with"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(
        asked: PageState, comparison: Comparison | None, checkpoints: Sequence[str], prompts: tuple[str, str]
    ) -> dict[str, Any]:
        """The widget's value.

        Args:
            comparison: of the two runs, where there are two.
            checkpoints: names of all that there are.
            prompts: the texts of both runs' prompts.
        """
        own = model_of(asked.run.checkpoint)
        models = [pair for pair in Picker.pack(checkpoints) if pair[0] != own]
        step = beside(asked.run.checkpoint, checkpoints)
        ways = {"models": models, "step": step, "changed": bool(asked.run.edits), "prompt": prompts[0]}
        if not asked.seen_other or comparison is None:
            return ways | {"two": None}
        alignment = comparison.alignment
        same_text = comparison.trace.tokens == comparison.other.tokens
        about = [
            model_of(asked.other.checkpoint) if model_of(asked.other.checkpoint) != own else "",
            _("the same text") if same_text else prompts[1],
            "; ".join(edit.words(comparison.other.config, as_text(comparison.other)) for edit in comparison.other.edits)
            or (_("without the changes") if comparison.is_unchanged else ""),
        ]
        return ways | {
            "two": {
                "prompt": prompts[1],
                "about": " · ".join(filter(None, about)),
                "aligned": look_up(ALIGNED[alignment.kind]),
                "gaps": [alignment.partners.count(None), alignment.back.count(None)],
                "partners": list(alignment.partners),
                "back": list(alignment.back),
                "pins": len(asked.pins),
                "comparable": comparison.comparable,
                "moments": Series.pack(asked.other.checkpoint, checkpoints),
            }
        }


def beside(checkpoint: str, checkpoints: Sequence[str]) -> str:
    """Of the same training the step before, or of the first the one after; "" where there is no other."""
    series = series_of(checkpoint, checkpoints)
    if len(series) < 2 or checkpoint not in series:
        return ""
    at = series.index(checkpoint)
    return series[at - 1 if at else 1]
