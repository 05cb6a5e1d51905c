"""Directions: what the stream holds along one, what becomes of predictions when it is added or taken out."""

from explorer.analysis.steering import cosines, depths
from explorer.explain.notation import number, quoted
from explorer.explain.place import as_text
from explorer.language import N_, _
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.trace import Trace
from explorer.views.checks import Mark, worked_out
from explorer.views.directions.pictures import (
    direction_of,
    examples,
    inspect_example,
    inspect_projection,
    projection,
)
from explorer.views.view import Panel, View
from explorer.views.what_ifs import ALONG, ALONG_REMOVED

WRITTEN = 24  # tokens, with the changes and without


def formula(trace: Trace, selection: Selection) -> str:
    recipe, query = direction_of(trace, selection), selection.query
    value = cosines(trace, trace.direction(recipe))[selection.layer + 1, query]
    lines = [
        _("u: {direction}, made to have length 1", direction=recipe.words(as_text(trace))),
        _(
            "cos(x, u) = x·u / ‖x‖ = {value} at {token} ({position}) after layer {layer}",
            value=number(value),
            token=quoted(trace.tokens[query]),
            position=query,
            layer=selection.layer,
        ),
    ]
    return "\n".join(lines)


def written(trace: Trace, selection: Selection, settings: GenerationSettings) -> str:
    """How a changed run's text goes on, with the changes and without."""
    if trace.baseline is None:
        return ""
    after, before = (quoted(run.text(run.written(WRITTEN, settings))) for run in (trace, trace.baseline))
    return "\n".join(
        [
            _("with the changes the text goes on, with the sampling and the seed of the panel: {text}", text=after),
            _("without, on the same random numbers: {text}", text=before),
        ]
    )


def mark_of_projection(trace: Trace, selection: Selection) -> Mark:
    return worked_out(*depths(trace), "logits")(trace, selection)


VIEW = View(
    name="directions",
    title=N_("Directions"),
    words=N_(
        "Some of what the model knows lies along directions in the residual stream: from the mean over some prompts to "
        "that over others, say, or towards a token. Choose one and see which tokens have it, at which depth; then push "
        "the stream along it, or take it out, and see what is written, and what it does to each of several other "
        "prompts, as it may go backwards on some."
    ),
    formula=formula,
    written=written,
    recipe=direction_of,
    needs=("embed", "blocks.*.resid_post", "logits", "lm_head.weight"),
    otherwise=lambda config: _("Too little was captured of this model to look for directions."),
    controls=("direction", "layer", "query", "target", "rival", "head", "neuron"),
    what_ifs=(ALONG, ALONG_REMOVED),
    panels=(
        Panel(
            name="projection",
            title=N_("How far each token’s stream points along the direction, from the embedding down"),
            draw=projection,
            selects={"x": "query", "customdata": "layer"},
            mark=mark_of_projection,
            inspect=inspect_projection,
            height=360,
            min_width=640,
        ),
        Panel(
            name="examples",
            title=N_("What adding it does after other prompts, one by one"),
            draw=examples,
            mark=worked_out("logits"),
            inspect=inspect_example,
            height=420,
        ),
    ),
)
