"""Yours against the reference: where the module that the app was started with parts from ours."""

from explorer.language import N_, _
from explorer.own_module.words import lines
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import given
from explorer.views.own_module.pictures import by_position, runs_apart, values_apart
from explorer.views.two_runs.alone import alone
from explorer.views.view import Panel, View

WALKED = given(N_("found when the app was started, by running the module itself: nothing here checks these numbers"))
RUN_AT_START = N_("the module was run when the app was started, and is not run again: its values are not here")
ONE_MODULE = N_("These are of the module alone, whatever it is compared with.")


def was_walked(trace: Trace) -> bool:
    return trace.diagnosis is not None


def formula(trace: Trace, selection: Selection) -> str:
    if trace.diagnosis is None:
        return _("The chosen model is no module of yours: choose it in the list of models.")
    return "\n".join(lines(trace.diagnosis))


SHARED = {
    "where": was_walked,
    "once": True,
    "mark": WALKED,
    "no_inspection": RUN_AT_START,
    "alone": alone(ONE_MODULE),
    "selects": {"customdata": ("view", "tap")},
}

VIEW = View(
    name="own_module",
    title=N_("Yours against the reference"),
    words=N_(
        "Where does your module part from the reference with the same weights? Both read the same tokens, and each "
        "value of yours is held against what the reference makes of your own values before it: the first that differs "
        "is where the slip is, and what differs after it is a slip of its own. All other tabs show the reference with "
        "your weights; a click on a value opens it there."
    ),
    formula=formula,
    needs=("logits",),
    otherwise=lambda config: _("Too little was captured of this model to compare it."),
    panels=(
        Panel(
            name="values",
            title=N_("Value by value: by how many times as much as rounding explains yours differs"),
            draw=lambda trace, selection: values_apart(trace.diagnosis),
            height=420,
            **SHARED,
        ),
        Panel(
            name="positions",
            title=N_("The same by position"),
            draw=lambda trace, selection: by_position(trace.diagnosis),
            height=480,
            width="half",
            **SHARED,
        ),
        Panel(
            name="runs",
            title=N_("How far the two runs have come apart by then"),
            draw=lambda trace, selection: runs_apart(trace.diagnosis),
            height=480,
            width="half",
            **SHARED,
        ),
    ),
)
