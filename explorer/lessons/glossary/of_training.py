"""Words about how a model came about."""

import numpy as np

from explorer.analysis.training import NATS_A_BIT, loss_of_text
from explorer.explain.notation import number
from explorer.language import N_, _
from explorer.lessons.glossary.entry import Entry, Look


def of_text(look: Look) -> str:
    if len(look.trace) < 2:
        return _("Here is a single token, and so none.")
    loss = loss_of_text(look.trace)
    return _(
        "That of this text is {nats} nats a token, {bits} bits.", nats=number(loss), bits=number(loss / NATS_A_BIT)
    )


def when_kept(look: Look) -> str:
    training = look.trace.training
    if training is None or training.step is None:
        return _("After how many this model was kept, its name does not say.")
    return _("This model was kept after {step:,}.", step=training.step)


def last_written(look: Look, name: str, told: str) -> str:
    """A number that training wrote at the step the model was kept at, or else the last."""
    training = look.trace.training
    written = np.isfinite(training.record[name]) if training and name in training.record else np.zeros(0, bool)
    if not written.any():
        return _("Nothing is known of it here: the model came without a record of its training.")
    steps, values = training.record["step"], training.record[name]
    now = written & (steps == training.step)
    row = np.flatnonzero(now if now.any() else written)[-1]
    return told.format(value=number(values[row]), step=int(steps[row]))


ENTRIES = (
    Entry(
        (N_("loss"),),
        N_("what training makes small: −ln of the probability that the model gave each token of a text, its mean"),
        of_text,
    ),
    Entry(
        (N_("nats"),), N_("what surprise is counted in where ln stands in the place of log₂: 1.44 bits each"), of_text
    ),
    Entry(
        (N_("training step"), N_("training steps")),
        N_("one change of all weights, after the model has read a little of the training text"),
        when_kept,
    ),
    Entry(
        (N_("held out"),),
        N_("of text: kept from training, to see how well the model predicts what it has not read"),
        lambda look: last_written(
            look, "validation_loss", _("After step {step:,} the loss on such text was {value} nats a token.")
        ),
    ),
    Entry(
        (N_("learning rate"),),
        N_("how far a step of training moves the weights"),
        lambda look: last_written(look, "learning_rate", _("It was {value} at step {step:,}.")),
    ),
)
