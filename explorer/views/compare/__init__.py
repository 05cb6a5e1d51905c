"""Compare view: the differences of two runs."""

from explorer.analysis.residual import residual_stages
from explorer.explain.derived.run_difference import head_attention_distance, residual_distance, surprisal_gap
from explorer.translations import N_, _
from explorer.views.compare.difference_text import formula
from explorer.views.compare.distances import (
    head_attention_difference_map,
    residual_distance_map,
    surprisal_difference_bars,
)
from explorer.views.compare.predictions import (
    contribution_difference_bars,
    inspect_component,
    inspect_next_token_probability,
    next_token_comparison,
)
from explorer.views.target_token import NORMS, PARTS
from explorer.views.verification import verify_comparison
from explorer.views.view import Panel, View

VIEW = View(
    name="compare",
    title=N_("Compare"),
    group="try",
    order=120,
    description=N_("Where do two runs part? Streams, heads, parts of the logit and the next token, of A beside B."),
    formula=formula,
    is_comparison=True,
    required_taps=("blocks.*.attn.pattern", "blocks.*.resid_post", "logits"),
    unavailable_message=lambda config: _("Too little was captured of this model to compare it."),
    controls=("query", "target", "rival", "layer", "head"),
    panels=(
        Panel(
            name="streams",
            title=N_("How far apart the residual streams are"),
            draw=lambda runs, s: residual_distance_map(runs, s.query),
            compared_run="other",
            click_selects={"x": "query", "customdata": "layer"},
            verify=lambda runs, s: verify_comparison(*(stage.tap for stage in residual_stages(runs.trace)))(runs, s),
            inspect=lambda runs, s, point: residual_distance(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="heads",
            title=N_("How differently each head looks"),
            draw=lambda runs, s: head_attention_difference_map(runs, s.layer, s.head),
            compared_run="other",
            click_selects={"x": "head", "y": "layer"},
            verify=verify_comparison("blocks.*.attn.pattern"),
            inspect=lambda runs, s, point: head_attention_distance(runs, point.row, point.column),
            width="half",
        ),
        Panel(
            name="parts",
            title=N_("What each part adds to the explained logit: A − B"),
            draw=contribution_difference_bars,
            compared_run="other",
            click_selects={"customdata": "layer"},
            verify=verify_comparison(*PARTS, *NORMS, "final_norm", "logits"),
            inspect=inspect_component,
            width="half",
        ),
        Panel(
            name="next_token",
            title=N_("The next token after the query in A and in B"),
            draw=lambda runs, s: next_token_comparison(runs, s.query),
            compared_run="other",
            verify=verify_comparison("logits"),
            inspect=inspect_next_token_probability,
            width="half",
        ),
        Panel(
            name="text",
            title=N_("Which tokens surprise A more (up) or less than B"),
            draw=lambda runs, s: surprisal_difference_bars(runs, s.query),
            compared_run="other",
            click_selects={"x": "query"},
            verify=verify_comparison("logits"),
            inspect=lambda runs, s, point: surprisal_gap(runs, point.column),
            height=300,
            min_width=640,
        ),
    ),
)
