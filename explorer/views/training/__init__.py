"""Training view: the model's metrics over its training."""

from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _
from explorer.views.head_score_field import HEAD_SCORE_FIELD
from explorer.views.training.formula import formula
from explorer.views.training.step_metrics import (
    CHANCE_DIFFERS,
    head_score_lines,
    inspect_head_score,
    inspect_text_loss,
    text_loss_curve,
)
from explorer.views.training.training_log import (
    COPYING,
    LOSSES,
    has_any_metric,
    logged_copying_curves,
    logged_loss_curves,
)
from explorer.views.two_runs.no_difference import make_no_difference_reason
from explorer.views.verification import Verification, check_values, expand_names, input_error_text, make_unverified
from explorer.views.view import Panel, View

LOG_NOT_VERIFIED = make_unverified(
    N_("read from training.jsonl, as training wrote it: nothing here checks these numbers")
)

FROM_FILE = N_("what training wrote down is a number in a file, worked out from text that is not here")


def verify_every_step(*templates: str):
    """Return a verifier of an analysis of captured values at all steps of training: all are recomputed."""

    def verify(trace: Trace, selection: Selection) -> Verification:
        checks = {}
        for step, (_lm, run) in trace.at_training_steps().items():
            step_checks = check_values(run, expand_names(templates, run, selection))
            checks |= {_("{name} at step {step:,}", name=name, step=step): check for name, check in step_checks.items()}
        details = _(
            "{values} at each of {count} steps", values=", ".join(templates), count=len(trace.at_training_steps())
        )
        return Verification.from_checks(checks, input_error_text(checks), details, trace)

    return verify


def has_checkpoints(trace: Trace) -> bool:
    """Return whether the model has checkpoints from its training."""
    return trace.training is not None and bool(trace.training.snapshots)


VIEW = View(
    name="training",
    title=N_("Training"),
    group="further",
    order=140,
    reads_other_files=True,
    fields=(HEAD_SCORE_FIELD,),
    description=N_(
        "Training makes the next token likelier step by step: the loss falls, heads learn where to look. Click a "
        "curve to go there."
    ),
    formula=formula,
    required_taps=("blocks.*.attn.pattern", "logits"),
    unavailable_message=lambda config: _("Too little was captured of this model to follow its training."),
    controls=("head_score", "first_token", "layer", "head"),
    panels=(
        Panel(
            name="loss",
            title=N_("Loss, as training wrote it down"),
            draw=lambda trace, selection: logged_loss_curves(trace),
            condition=lambda trace: has_any_metric(trace, LOSSES),
            click_opens_checkpoint=True,
            is_selection_independent=True,
            verify=LOG_NOT_VERIFIED,
            no_inspection=FROM_FILE,
            height=300,
            width="half",
        ),
        Panel(
            name="text",
            title=N_("Loss of this very text, read by the model at every step that was kept"),
            draw=lambda trace, selection: text_loss_curve(trace),
            condition=has_checkpoints,
            click_opens_checkpoint=True,
            is_selection_independent=True,
            verify=verify_every_step("logits"),
            inspect=inspect_text_loss,
            height=300,
            width="half",
        ),
        Panel(
            name="scores",
            title=N_("What each head does on this text, step by step: choose a head score above"),
            draw=lambda trace, s: head_score_lines(
                trace, s.option("head_score"), s.first_token == "hidden", s.layer, s.head
            ),
            no_difference_reason=make_no_difference_reason(CHANCE_DIFFERS),
            condition=has_checkpoints,
            click_opens_checkpoint=True,
            verify=verify_every_step("blocks.*.attn.pattern"),
            inspect=inspect_head_score,
            height=380,
            width="half",
        ),
        Panel(
            name="copying",
            title=N_("Its best copying heads on random tokens written twice, as training wrote them down"),
            draw=lambda trace, selection: logged_copying_curves(trace),
            condition=lambda trace: has_any_metric(trace, COPYING),
            click_opens_checkpoint=True,
            is_selection_independent=True,
            verify=LOG_NOT_VERIFIED,
            no_inspection=FROM_FILE,
            height=380,
            width="half",
        ),
    ),
)
