"""One token's way up the layers: what each part writes into its stream, and what would be said if the model stopped."""

import numpy as np

from explorer.analysis.lens import readings
from explorer.analysis.readings import TOP
from explorer.analysis.residual import SUBLAYERS, has_stages, residual_norms
from explorer.architecture.stream import sublayers
from explorer.explain.notation import number, quoted, visible
from explorer.explain.walks.walk import Number, Segment, Walk
from explorer.language import _, look_up
from explorer.state.errors import UserError
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

MOST_STOPS = 13  # of a deep model some of its sums


def layers(trace: Trace, s: Selection) -> Walk:
    """The stream of the chosen token from its embedding up, stop by stop.

    Raises:
        UserError: the run has not kept the stream.
    """
    if not has_stages(trace) or not trace.has_weights:
        raise UserError(_("This run has no stream to go up."))
    norms, guesses = residual_norms(trace), readings(trace, range(s.query, s.query + 1))
    lengths = norms.stream[:, s.query]
    token = quoted(trace.tokens[s.query])
    before, floors, segments = 0, [], []
    for stop in stops_of(len(norms.stages)):
        floors = [*floors, {"label": norms.stages[stop], "length": vars(Number.of(lengths[stop], lengths.max()))}]
        likeliest = [
            {"token": visible(trace.vocabulary[token_id]), **vars(Number.of(probability, 1.0))}
            for token_id, probability in zip(guesses.top[stop, 0][:TOP], guesses.probabilities[stop, 0], strict=True)
        ]
        sentences = [
            _(
                "In layer {layer} {part} writes a vector of length {length}.",
                layer=layer,
                part=look_up(SUBLAYERS[part]),
                length=number(written),
            )
            for (layer, part), place, written in zip(
                sublayers(trace.config), norms.places, norms.updates[:, s.query], strict=True
            )
            if before < place <= stop
        ]
        begins = _("The way begins with the embedding of {token}.", token=token)
        grown = _("Now the stream is {length} long.", length=number(lengths[stop]))
        says = " ".join([*(sentences if stop else [begins]), grown])
        segments.append(Segment(says, "tower", [{"floors": floors, "guesses": likeliest}]))
        before = stop
    return Walk(_("{token} on its way up the layers", token=token), segments)


def stops_of(count: int) -> list[int]:
    """Which of so many sums are stopped at, the first and the last among them."""
    return sorted({round(at) for at in np.linspace(0, count - 1, min(count, MOST_STOPS))})
