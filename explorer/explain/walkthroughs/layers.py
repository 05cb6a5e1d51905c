"""Walkthrough of one token's residual stream through the layers, with logit-lens predictions."""

import numpy as np

from explorer.analysis.logit_lens import lens_summaries
from explorer.analysis.logit_summaries import TOP
from explorer.analysis.residual import SUBLAYERS, has_residual_stages, residual_norms
from explorer.architecture.residual_stream import sublayers
from explorer.explain.notation import escape_token, format_number, quote_token
from explorer.explain.walkthroughs.walkthrough import DisplayNumber, Walkthrough, WalkthroughStep
from explorer.state.errors import UserError
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _, translate

MAX_STOPS = 13  # of a deep model some of its sums


def layers_walkthrough(trace: Trace, selection: Selection) -> Walkthrough:
    """Return the walkthrough of the selected token's stream from its embedding up.

    Raises:
        UserError: the run has no captured stream or no weights.
    """
    if not has_residual_stages(trace) or not trace.has_weights:
        raise UserError(_("No residual stream was captured for this run."))
    norms, guesses = residual_norms(trace), lens_summaries(trace, range(selection.query, selection.query + 1))
    stream_norms = norms.stream[:, selection.query]
    token = quote_token(trace.tokens[selection.query])
    before, floors, segments = 0, [], []
    for stop in select_step_indices(len(norms.stages)):
        floors = [
            *floors,
            {
                "label": norms.stages[stop],
                "length": vars(DisplayNumber.from_value(stream_norms[stop], stream_norms.max())),
            },
        ]
        likeliest = [
            {"token": escape_token(trace.vocabulary[token_id]), **vars(DisplayNumber.from_value(probability, 1.0))}
            for token_id, probability in zip(guesses.top[stop, 0][:TOP], guesses.probabilities[stop, 0], strict=True)
        ]
        sentences = [
            _(
                "In layer {layer} {part} writes a vector of length {length}.",
                layer=layer,
                part=translate(SUBLAYERS[sublayer]),
                length=format_number(update_norm),
            )
            for (layer, sublayer), stage_index, update_norm in zip(
                sublayers(trace.config), norms.stage_indices, norms.updates[:, selection.query], strict=True
            )
            if before < stage_index <= stop
        ]
        begins = _("The way begins with the embedding of {token}.", token=token)
        norm_text = _("Now the stream is {length} long.", length=format_number(stream_norms[stop]))
        text = " ".join([*(sentences if stop else [begins]), norm_text])
        segments.append(WalkthroughStep(text, "tower", [{"floors": floors, "guesses": likeliest}]))
        before = stop
    return Walkthrough(_("{token} on its way up the layers", token=token), segments)


def select_step_indices(count: int) -> list[int]:
    """Return the indices of the sums that get a step, including the first and the last."""
    return sorted({round(index) for index in np.linspace(0, count - 1, min(count, MAX_STOPS))})
