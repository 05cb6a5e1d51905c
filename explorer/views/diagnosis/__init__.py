"""Diagnosis view: the differences of the user's own module from the reference."""

from explorer.diagnosis.report_text import report_lines
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views.diagnosis.figures import deviation_by_position, deviation_by_tap, run_difference_by_tap
from explorer.views.two_runs.no_difference import make_no_difference_reason
from explorer.views.verification import make_unverified
from explorer.views.view import Panel, View

DIAGNOSIS_NOT_VERIFIED = make_unverified(
    N_("found when the app was started, by running the module itself: nothing here checks these numbers")
)
RUN_AT_START = N_("the module was run when the app was started, and is not run again: its values are not here")
ONE_MODULE = N_("These are of the module alone, whatever it is compared with.")


def has_diagnosis(trace: Trace) -> bool:
    """Return whether the model is a user's module with a diagnosis."""
    return trace.diagnosis is not None


def formula(trace: Trace, selection: Selection) -> str:
    """Return the diagnosis report as text."""
    if trace.diagnosis is None:
        return _("The chosen model is no module of yours: choose it in the list of models.")
    return "\n".join(report_lines(trace.diagnosis))


SHARED = {
    "condition": has_diagnosis,
    "is_selection_independent": True,
    "verify": DIAGNOSIS_NOT_VERIFIED,
    "no_inspection": RUN_AT_START,
    "no_difference_reason": make_no_difference_reason(ONE_MODULE),
    "click_selects": {"customdata": ("view", "tap")},
}

VIEW = View(
    name="own_module",
    title=N_("Yours against the reference"),
    group="own",
    order=150,
    requires_own_module=True,
    reads_other_files=True,
    description=N_(
        "Your module beside the reference with the same weights: the first value that differs is where the bug is."
    ),
    formula=formula,
    required_taps=("logits",),
    unavailable_message=lambda config: _("Too little was captured of this model to compare it."),
    panels=(
        Panel(
            name="values",
            title=N_("Value by value: by how many times as much as rounding explains yours differs"),
            draw=lambda trace, selection: deviation_by_tap(trace.diagnosis),
            height=420,
            **SHARED,
        ),
        Panel(
            name="positions",
            title=N_("The same by position"),
            draw=lambda trace, selection: deviation_by_position(trace.diagnosis),
            height=480,
            width="half",
            **SHARED,
        ),
        Panel(
            name="runs",
            title=N_("How far the two runs have come apart by then"),
            draw=lambda trace, selection: run_difference_by_tap(trace.diagnosis),
            height=480,
            width="half",
            **SHARED,
        ),
    ),
)
