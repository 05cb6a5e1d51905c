"""The text about the model's training, in numbers."""

import math

import numpy as np

from explorer.analysis.next_token import NATS_PER_BIT, mean_text_loss
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.tracing.training_history import TrainingHistory
from explorer.translations import N_, _, ngettext, translate

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
