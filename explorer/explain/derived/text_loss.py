"""The derivation of a text's loss."""

import math

import numpy as np

from explorer.analysis.text_loss import mean_text_loss
from explorer.explain.calculation import Input, read_input
from explorer.explain.derivation import Derivation
from explorer.explain.derived.arithmetic import mean
from explorer.explain.source_line import SourceLine
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate


def text_loss(trace: Trace) -> Derivation | None:
    """Derive the loss of the run's text; None for a single token."""
    value = mean_text_loss(trace)
    if math.isnan(value):
        return None
    read, losses = Input("logits", (), trace.shape("logits")), []
    for position, token_id in enumerate(trace.token_ids[1:]):
        row, _row = read_input(trace, "logits", position)
        top = row.max()
        losses.append(top + math.log(math.fsum(np.exp(row - top))) - row[token_id])
    return Derivation(
        _("loss of this text, in nats a token"),
        translate(LOSS_LOCATION, count=len(losses)),
        value,
        mean(_("loss = mean of −ln p over the tokens"), losses, (read,), _("loss")),
        SourceLine("explorer/analysis/text_loss.py", "return float(np.mean(bits"),
    )


LOSS_LOCATION = N_("of {count} tokens, all but the first: −ln of the probability that the model gave each")
