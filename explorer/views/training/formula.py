"""What is known of how the model came about, in numbers."""

import math

import numpy as np

from explorer.analysis.training import NATS_A_BIT, loss_of_text
from explorer.explain.notation import number
from explorer.language import N_, _, look_up, ngettext
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.tracing.training import Training

UNKNOWN = N_(
    "This model came without a record of its training (training.jsonl), and was kept once alone: nothing is known here "
    "of how it came about."
)


def formula(trace: Trace, selection: Selection) -> str:
    training = trace.training
    known = training is not None and bool(training.snapshots or training.record)
    lines = [_kept(training), *_written(training)] if known else [look_up(UNKNOWN)]
    return "\n".join([*lines, _of_text(trace)])


def _of_text(trace: Trace) -> str:
    count, loss = len(trace) - 1, loss_of_text(trace)
    if not count:
        return _("this text: tokens that something precedes = {count}, and so no loss", count=count)
    return ngettext(
        "this text: loss = mean of −ln p over {count} token = {nats} nats = {bits} bits",
        "this text: loss = mean of −ln p over {count} tokens = {nats} nats = {bits} bits",
        count,
        nats=number(loss),
        bits=number(loss / NATS_A_BIT),
    )


def _kept(training: Training) -> str:
    if not training.snapshots:
        return _("{model} was kept once alone: there is no other step of its training to go to", model=training.model)
    steps = list(training.snapshots)
    told = {"model": training.model, "count": len(steps), "first": steps[0], "last": steps[-1]}
    if training.step is None:
        return _("{model} was kept at {count} steps of its training, {first:,} to {last:,}, and at its end", **told)
    return _(
        "{model} after step {step:,}, one of {count} that it was kept at, {first:,} to {last:,}",
        step=training.step,
        **told,
    )


def _written(training: Training) -> list[str]:
    """What training wrote at the present step, or in the end."""
    record = training.record
    if not record:
        return [_("no record of its training came with it (training.jsonl)")]
    step = training.step if training.step is not None else int(record["step"][-1])
    (rows,) = np.nonzero(record["step"] == step)
    if not len(rows):
        first, last = (int(record["step"][end]) for end in (0, -1))
        told = _("training wrote nothing down after step {step:,}, only now and then from {first:,} to {last:,}")
        return [told.format(step=step, first=first, last=last)]
    row = {name: values[rows[-1]] for name, values in record.items()}
    named = [look_up(text, value=number(row[name])) for name, text in PARTS if math.isfinite(row.get(name, math.nan))]
    if not named:
        return []
    told = N_("written down after step {step:,}: {numbers}")
    if training.step is None:
        told = N_("written down last, after step {step:,}: {numbers}")
    return [look_up(told, step=step, numbers=", ".join(named))]


PARTS = (
    ("validation_loss", N_("loss on text held out = {value} nats a token")),
    ("bits_per_byte", N_("bits a byte = {value}")),
    ("train_loss", N_("loss on training text = {value}")),
    ("learning_rate", N_("learning rate = {value}")),
)
