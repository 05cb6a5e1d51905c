"""Training view: the model's metrics over its training."""

import math

import numpy as np

from explorer.analysis.next_token import NATS_PER_BIT, mean_text_loss
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.tracing.training_history import TrainingHistory
from explorer.translations import N_, _, ngettext, translate
from explorer.views.head_scores import HEAD_SCORE_FIELD
from explorer.views.training.metrics import (
    CHANCE_DIFFERS,
    COPYING,
    LOSSES,
    has_any_metric,
    head_score_lines,
    inspect_head_score,
    inspect_text_loss,
    logged_copying_curves,
    logged_loss_curves,
    text_loss_curve,
)
from explorer.views.verification import Verification, check_values, expand_names, input_error_text, make_unverified
from explorer.views.view import Panel, View, make_no_difference_reason

UNKNOWN = N_(
    "This model came without a record of its training (training.jsonl), and was kept once alone: nothing is known here "
    "of how it came about."
)


def formula(trace: Trace, selection: Selection) -> str:
    """Return the checkpoint's training step, losses and settings as text."""
    training = trace.training
    has_history = training is not None and bool(training.snapshots or training.record)
    lines = [_checkpoint_text(training), *_log_texts(training)] if has_history else [translate(UNKNOWN)]
    return "\n".join([*lines, _text_loss_text(trace)])


def _text_loss_text(trace: Trace) -> str:
    count, loss = len(trace) - 1, mean_text_loss(trace)
    if not count:
        return _("this text: tokens that something precedes = {count}, and so no loss", count=count)
    return ngettext(
        "this text: loss = mean of −ln p over {count} token = {nats} nats = {bits} bits",
        "this text: loss = mean of −ln p over {count} tokens = {nats} nats = {bits} bits",
        count,
        nats=format_number(loss),
        bits=format_number(loss / NATS_PER_BIT),
    )


def _checkpoint_text(training: TrainingHistory) -> str:
    if not training.snapshots:
        return _("{model} was kept once alone: there is no other step of its training to go to", model=training.model)
    steps = list(training.snapshots)
    fields = {"model": training.model, "count": len(steps), "first": steps[0], "last": steps[-1]}
    if training.step is None:
        return _("{model} was kept at {count} steps of its training, {first:,} to {last:,}, and at its end", **fields)
    return _(
        "{model} after step {step:,}, one of {count} that it was kept at, {first:,} to {last:,}",
        step=training.step,
        **fields,
    )


def _log_texts(training: TrainingHistory) -> list[str]:
    """Return the training log's entries at the current step, or the last ones."""
    record = training.record
    if not record:
        return [_("no record of its training came with it (training.jsonl)")]
    step = training.step if training.step is not None else int(record["step"][-1])
    (rows,) = np.nonzero(record["step"] == step)
    if not len(rows):
        first, last = (int(record["step"][end]) for end in (0, -1))
        template = _("training wrote nothing down after step {step:,}, only now and then from {first:,} to {last:,}")
        return [template.format(step=step, first=first, last=last)]
    row = {name: values[rows[-1]] for name, values in record.items()}
    entries = [
        translate(text, value=format_number(row[name]))
        for name, text in LOG_ENTRIES
        if math.isfinite(row.get(name, math.nan))
    ]
    if not entries:
        return []
    template = N_("written down after step {step:,}: {numbers}")
    if training.step is None:
        template = N_("written down last, after step {step:,}: {numbers}")
    return [translate(template, step=step, numbers=", ".join(entries))]


LOG_ENTRIES = (
    ("validation_loss", N_("loss on text held out = {value} nats a token")),
    ("bits_per_byte", N_("bits a byte = {value}")),
    ("train_loss", N_("loss on training text = {value}")),
    ("learning_rate", N_("learning rate = {value}")),
)


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
