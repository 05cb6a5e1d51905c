"""Opening a model of the Hugging Face Hub, and its comparison with another implementation."""

from collections.abc import Sequence
from typing import Any

from explorer.explain.notation import format_number
from explorer.tracing.jobs import Job
from explorer.translations import _
from explorer.web.widgets.widget import Widget, fill_template
from model.pretrained.reference_logits import LogitAgreement


class HubModelForm(Widget):
    """Form that opens a model of the Hugging Face Hub, and the result of the visible model's check."""

    def __init__(self, **kwargs):
        html = fill_template(
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
    def pack(
        names: Sequence[str], agreement: LogitAgreement | None, check_job: Job | None, is_external: bool
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            names: names on the Hub that may be opened, if not all may.
            agreement: of the visible model; None if it is unknown.
            check_job: job that would compute it; None if there is none.
            is_external: whether the model was trained elsewhere.
        """
        text = agreement_text(agreement) if agreement else _("not checked against another implementation") * is_external
        return {
            "names": list(names),
            "words": text,
            "differs": bool(agreement and not agreement.holds),
            "check": check_job.name if check_job else "",
        }


def agreement_text(agreement: LogitAgreement) -> str:
    """Format the result of a comparison with another implementation."""
    size = format_number(agreement.max_difference)
    if agreement.holds:
        if agreement.reference == "transformers":
            return _("✓ agrees with transformers: logits differ by at most {size}", size=size)
        return _("✓ agrees with the logits that came with it: they differ by at most {size}", size=size)
    if agreement.reference == "transformers":
        return _("⚠ differs from transformers: logits by up to {size}", size=size)
    return _("⚠ differs from the logits that came with it, by up to {size}", size=size)
