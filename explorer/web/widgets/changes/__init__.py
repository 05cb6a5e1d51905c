"""List of the interventions of both runs."""

from explorer.explain.labels import token_formatter
from explorer.state.interventions import CrossRunIntervention, Intervention
from explorer.tracing.trace import Trace
from explorer.translations import _
from explorer.web.widgets.widget import Widget


class ActiveInterventions(Widget):
    """The interventions of both runs, each with a button that removes it; empty if there are none."""

    def __init__(self, **kwargs):
        super().__init__(html='<div class="changes" role="status"></div>', **kwargs)

    @staticmethod
    def pack(trace: Trace, other: Trace | None = None) -> dict[str, list[list[str]]]:
        """Return each run's interventions, as text and description, by the state's field that holds them.

        Args:
            other: the second run's trace; None without one.
        """
        runs = {"edits": trace} | ({"b.edits": other} if other else {})
        is_foreign = other is not None and trace.model != other.model

        def describe(run: Trace, intervention: Intervention) -> str:
            description = intervention.describe(run.config, token_formatter(run))
            return (
                _("{change}: another model’s value", change=description)
                if is_foreign and isinstance(intervention, CrossRunIntervention)
                else description
            )

        return {
            name: [[str(intervention), describe(run, intervention)] for intervention in run.edits]
            for name, run in runs.items()
        }
