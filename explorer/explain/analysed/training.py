"""How well a model predicts a text, in a number."""

import math

import numpy as np

from explorer.analysis.training import loss_of_text
from explorer.explain.analysed.arithmetic import mean
from explorer.explain.derivation import Derivation
from explorer.explain.source import Source
from explorer.explain.working import Input, take
from explorer.language import N_, _, look_up
from explorer.tracing.trace import Trace


def text_loss(trace: Trace) -> Derivation | None:
    """The loss of the run's text; None of a single token, which nothing precedes."""
    value = loss_of_text(trace)
    if math.isnan(value):
        return None
    read, losses = Input("logits", (), trace.shape("logits")), []
    for position, token_id in enumerate(trace.token_ids[1:]):
        row, _row = take(trace, "logits", position)
        top = row.max()
        losses.append(top + math.log(math.fsum(np.exp(row - top))) - row[token_id])
    return Derivation(
        _("loss of this text, in nats a token"),
        look_up(EACH, count=len(losses)),
        value,
        mean(_("loss = mean of −ln p over the tokens"), losses, (read,), _("loss")),
        Source("explorer/analysis/training.py", "return float(np.mean(bits"),
    )


EACH = N_("of {count} tokens, all but the first: −ln of the probability that the model gave each")
