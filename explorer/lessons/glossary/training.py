"""Glossary entries on training."""

import numpy as np

from explorer.analysis.next_token import NATS_PER_BIT, mean_text_loss
from explorer.explain.notation import format_number
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.translations import N_, _


def text_loss_example(context: GlossaryContext) -> str:
    if len(context.trace) < 2:
        return _("Here is a single token, and so none.")
    loss = mean_text_loss(context.trace)
    return _(
        "That of this text is {nats} nats a token, {bits} bits.",
        nats=format_number(loss),
        bits=format_number(loss / NATS_PER_BIT),
    )


def training_step_example(context: GlossaryContext) -> str:
    training = context.trace.training
    if training is None or training.step is None:
        return _("After how many this model was kept, its name does not say.")
    return _("This model was kept after {step:,}.", step=training.step)


def format_logged_value(context: GlossaryContext, name: str, template: str) -> str:
    """Return a sentence on the value that training logged at the checkpoint's step, or else on the last one."""
    training = context.trace.training
    is_logged = np.isfinite(training.record[name]) if training and name in training.record else np.zeros(0, bool)
    if not is_logged.any():
        return _("Nothing is known of it here: the model came without a record of its training.")
    steps, values = training.record["step"], training.record[name]
    now = is_logged & (steps == training.step)
    row = np.flatnonzero(now if now.any() else is_logged)[-1]
    return template.format(value=format_number(values[row]), step=int(steps[row]))


ENTRIES = (
    Entry(
        (N_("loss"),),
        N_("what training makes small: −ln of the probability that the model gave each token of a text, its mean"),
        text_loss_example,
    ),
    Entry(
        (N_("nats"),),
        N_("what surprise is counted in where ln stands in the place of log₂: 1.44 bits each"),
        text_loss_example,
    ),
    Entry(
        (N_("training step"), N_("training steps")),
        N_("one change of all weights, after the model has read a little of the training text"),
        training_step_example,
    ),
    Entry(
        (N_("held out"),),
        N_("of text: kept from training, to see how well the model predicts what it has not read"),
        lambda look: format_logged_value(
            look, "validation_loss", _("After step {step:,} the loss on such text was {value} nats a token.")
        ),
    ),
    Entry(
        (N_("learning rate"),),
        N_("how far a step of training moves the weights"),
        lambda look: format_logged_value(look, "learning_rate", _("It was {value} at step {step:,}.")),
    ),
)
