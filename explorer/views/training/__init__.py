"""Training: how the model came about, step by step."""

from explorer.language import N_, _
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, checked, filled, given, inputs_recomputed
from explorer.views.training.formula import formula
from explorer.views.training.worked_out import CURVES, inspect_score, inspect_text_loss, scores, text_losses
from explorer.views.training.written import COPYING, LOSSES, copying, has_any, losses
from explorer.views.two_runs.alone import alone
from explorer.views.view import Panel, View

WRITTEN = given(N_("read from training.jsonl, as training wrote it: nothing here checks these numbers"))

FROM_FILE = N_("what training wrote down is a number in a file, worked out from text that is not here")


def at_every_step(*templates: str):
    """For a picture of what an analysis makes of captured values at every step of training: those of all steps are
    recomputed."""

    def mark(trace: Trace, selection: Selection) -> Mark:
        checks = {}
        for step, (_lm, run) in trace.at_steps().items():
            found = checked(run, filled(templates, run, selection))
            checks |= {_("{name} at step {step:,}", name=name, step=step): check for name, check in found.items()}
        details = _("{values} at each of {count} steps", values=", ".join(templates), count=len(trace.at_steps()))
        return Mark.of(checks, inputs_recomputed(checks), details, trace)

    return mark


def was_kept(trace: Trace) -> bool:
    """Whether the model was kept at several steps of its training."""
    return trace.training is not None and bool(trace.training.snapshots)


VIEW = View(
    name="training",
    title=N_("Training"),
    words=N_(
        "How did the model come about? Training changes its weights step by step, so that the next token of its text "
        "gets likelier: the loss falls, and heads learn where to look. Of a model that was kept on the way, the slider "
        "above the tabs and a click on a curve go to another step."
    ),
    formula=formula,
    needs=("blocks.*.attn.pattern", "logits"),
    otherwise=lambda config: _("Too little was captured of this model to follow its training."),
    controls=("head_score", "first_token", "layer", "head"),
    panels=(
        Panel(
            name="loss",
            title=N_("Loss, as training wrote it down"),
            draw=lambda trace, selection: losses(trace),
            where=lambda trace: has_any(trace, LOSSES),
            to_steps=True,
            once=True,
            mark=WRITTEN,
            no_inspection=FROM_FILE,
            height=300,
            width="half",
        ),
        Panel(
            name="text",
            title=N_("Loss of this very text, read by the model at every step that was kept"),
            draw=lambda trace, selection: text_losses(trace),
            where=was_kept,
            to_steps=True,
            once=True,
            mark=at_every_step("logits"),
            inspect=inspect_text_loss,
            height=300,
            width="half",
        ),
        Panel(
            name="scores",
            title=N_("What each head does on this text, step by step: choose a head score above"),
            draw=lambda trace, s: scores(trace, s.head_score, s.first_token == "hidden", s.layer, s.head),
            alone=alone(CURVES),
            where=was_kept,
            to_steps=True,
            mark=at_every_step("blocks.*.attn.pattern"),
            inspect=inspect_score,
            height=380,
            width="half",
        ),
        Panel(
            name="copying",
            title=N_("Its best copying heads on random tokens written twice, as training wrote them down"),
            draw=lambda trace, selection: copying(trace),
            where=lambda trace: has_any(trace, COPYING),
            to_steps=True,
            once=True,
            mark=WRITTEN,
            no_inspection=FROM_FILE,
            height=380,
            width="half",
        ),
    ),
)
