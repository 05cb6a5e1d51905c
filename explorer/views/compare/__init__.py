"""Compare: where two runs part."""

from explorer.analysis.residual import stages
from explorer.explain.analysed.parting import heads_apart, stream_apart, surprisals_apart
from explorer.language import N_, _
from explorer.views.checks import compared
from explorer.views.compare.apart import heads, streams, text
from explorer.views.compare.predictions import inspect_next_token, inspect_part, next_tokens, parts
from explorer.views.compare.words import formula
from explorer.views.explained import NORMS, PARTS
from explorer.views.view import Panel, View

VIEW = View(
    name="compare",
    title=N_("Compare"),
    words=N_(
        "Where do two runs part? Choose above what to compare this run, A, with: another prompt, another model or step "
        "of its training, or the run without its changes. Then see layer by layer and token by token how far apart A "
        "and B are, which heads look elsewhere, and what of it reaches the next token."
    ),
    formula=formula,
    compares=True,
    needs=("blocks.*.attn.pattern", "blocks.*.resid_post", "logits"),
    otherwise=lambda config: _("Too little was captured of this model to compare it."),
    controls=("query", "target", "rival", "layer", "head"),
    panels=(
        Panel(
            name="streams",
            title=N_("How far apart the residual streams are, from the embedding down"),
            draw=lambda runs, s: streams(runs, s.query),
            compares="other",
            selects={"x": "query", "customdata": "layer"},
            mark=lambda runs, s: compared(*(stage.tap for stage in stages(runs.trace)))(runs, s),
            inspect=lambda runs, s, point: stream_apart(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="heads",
            title=N_("How differently each head looks (Jensen-Shannon distance of its weights)"),
            draw=lambda runs, s: heads(runs, s.layer, s.head),
            compares="other",
            selects={"x": "head", "y": "layer"},
            mark=compared("blocks.*.attn.pattern"),
            inspect=lambda runs, s, point: heads_apart(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="parts",
            title=N_("What each part adds to the explained logit: A − B"),
            draw=parts,
            compares="other",
            selects={"customdata": "layer"},
            mark=compared(*PARTS, *NORMS, "final_norm", "logits"),
            inspect=inspect_part,
            width="half",
        ),
        Panel(
            name="next_token",
            title=N_("The next token after the query in A and in B"),
            draw=lambda runs, s: next_tokens(runs, s.query),
            compares="other",
            mark=compared("logits"),
            inspect=inspect_next_token,
            width="half",
        ),
        Panel(
            name="text",
            title=N_("Which tokens surprise A more (up) or less than B"),
            draw=lambda runs, s: text(runs, s.query),
            compares="other",
            selects={"x": "query"},
            mark=compared("logits"),
            inspect=lambda runs, s, point: surprisals_apart(runs, point.column),
            height=300,
            min_width=640,
        ),
    ),
)
