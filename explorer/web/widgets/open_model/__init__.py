"""Opening a model of the hub, and how one compares with another implementation."""

from collections.abc import Sequence
from typing import Any

from explorer.explain.notation import number
from explorer.language import _
from explorer.tracing.jobs import Job
from explorer.web.widgets.widget import Widget, with_words
from model.pretrained.self_check import Agreement


class OpenModel(Widget):
    """A row that appears once somebody chooses to open a model (`Picker`), or looks at one from elsewhere.

    Its value is the name of the model that was opened. Emits "input" when it may be chosen.
    """

    EMITS = ("input",)

    def __init__(self, **kwargs):
        html = with_words(
            '<div class="open-model" hidden><form hidden><label>{name} <input type="text" maxlength="200" '
            'placeholder="{such_as}" spellcheck="false" autocapitalize="off" list="hub-names">'
            '</label><datalist id="hub-names"></datalist><button type="submit">{look}</button>'
            '<button type="button" class="close" aria-label="{close}">×</button></form>'
            '<div class="opening" role="status"></div><p class="check" role="status" hidden></p></div>',
            name=_("model on the Hugging Face Hub"),
            such_as=_("such as {name}", name="HuggingFaceTB/SmolLM2-135M"),
            look=_("Look it up"),
            close=_("open none"),
        )
        super().__init__(html=html, **kwargs)

    @staticmethod
    def pack(names: Sequence[str], agreement: Agreement | None, check: Job | None, elsewhere: bool) -> dict[str, Any]:
        """The widget's value.

        Args:
            names: of the hub, of those that may be opened where not all may.
            agreement: of the model shown.
            check: that would find it, where it was not compared yet and can be.
            elsewhere: whether the model was trained elsewhere.
        """
        words = in_words(agreement) if agreement else _("not checked against another implementation") * elsewhere
        return {
            "names": list(names),
            "words": words,
            "differs": bool(agreement and not agreement.holds),
            "check": check.name if check else "",
        }


def in_words(found: Agreement) -> str:
    """What a comparison says."""
    size = number(found.largest)
    if found.holds:
        if found.reference == "transformers":
            return _("✓ agrees with transformers: logits differ by at most {size}", size=size)
        return _("✓ agrees with the logits that came with it: they differ by at most {size}", size=size)
    if found.reference == "transformers":
        return _("⚠ differs from transformers: logits by up to {size}", size=size)
    return _("⚠ differs from the logits that came with it, by up to {size}", size=size)
