"""Prediction: how the next token comes to be likely."""

from explorer.analysis.attribution import attribution
from explorer.analysis.next_token import next_token, rank_of
from explorer.analysis.norms import kinds, norm_scale
from explorer.architecture.caps import written
from explorer.architecture.stream import has_final_norm, input_of
from explorer.explain.analysed import rollout as shares
from explorer.explain.analysed.attribution import head_part, logit_part
from explorer.explain.analysed.lens import lens_cell
from explorer.explain.analysed.prediction import predicted, probability_of_actual
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number, quoted
from explorer.explain.point import Point, nth
from explorer.language import N_, _, look_up
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.checks import worked_out
from explorer.views.explained import PARTS, SUM, explained, explained_token, logit_of, sum_of_kinds
from explorer.views.lens_mark import mark_of_lens
from explorer.views.logit_bars import parts_in_order
from explorer.views.prediction.by_token import MARK_OF_TOKENS, by_token, inspect_by_token
from explorer.views.prediction.logit_lens import lens, path
from explorer.views.prediction.logit_parts import heads, parts
from explorer.views.prediction.text import actual, followed
from explorer.views.two_runs.alone import alone_by_rank
from explorer.views.view import Panel, View


def formula(trace: Trace, selection: Selection) -> str:
    query = selection.query
    token_id, rival_id = explained(trace, selection)
    taken = attribution(trace, query, token_id, rival_id)
    plain = next_token(trace, query).plain
    lines = [
        _(
            "after {query} ({position}): the model’s probability of {token} = e^logit / Σ e^logits = {probability}, "
            "rank {rank:,}",
            query=quoted(trace.tokens[query]),
            position=query,
            token=quoted(trace.vocabulary[token_id]),
            probability=number(plain[token_id]),
            rank=rank_of(trace, query, token_id),
        ),
        f"{logit_of(trace, token_id, rival_id)} = {sum_of_kinds(trace, taken)} = {number(taken.total)}",
        _(
            "captured {captured}, off by {error}; {norms}",
            captured=number(taken.logit),
            error=number(taken.error),
            norms=norms(trace, query),
        ),
    ]
    if cap := trace.config.logit_cap:
        told = _(
            "a logit is {capped}, u what the unembedding gives; each part is multiplied by the whole’s logit / u",
            capped=written("u", cap),
        )
        lines.append(told)
    if trace.config.tie_embeddings:
        lines.append(
            _(
                "embedding and unembedding are one table here, so that before the first block most tokens predict "
                "themselves"
            )
        )
    return "\n".join(lines)


def norms(trace: Trace, query: int) -> str:
    """How lens and parts deal with the model's norms."""
    if not has_final_norm(trace.config):
        return _(
            "each part goes through every norm after it, divided by what the whole was\n"
            "the lens reads the stream as each norm leaves it, as the unembedding does in the end (post-norm)"
        )
    scale = norm_scale(trace, trace[input_of(trace.config, "final_norm")][query], "final_norm", query)
    return look_up(THROUGH_FINAL_NORM[str(kinds(trace, "final_norm", query))], scale=number(scale))


THROUGH_FINAL_NORM = {
    "layernorm": N_("each part goes through the final norm, divided by the whole’s √(var x + ε) = {scale}"),
    "rmsnorm": N_("each part goes through the final norm, divided by the whole’s √(mean x² + ε) = {scale}"),
    "none": N_("each part goes through the final norm, which was made to divide nothing"),
}


MARK_OF_PARTS = worked_out(*PARTS, "logits", against=SUM)


def inspect_lens(trace: Trace, s: Selection, point: Point) -> Derivation:
    return lens_cell(trace, point.row, point.column, explained_token(trace, s), s.lens)


def inspect_path(trace: Trace, s: Selection, point: Point) -> Derivation:
    tokens = [token_id for token_id in explained(trace, s) if token_id is not None]
    if point.of("curve") >= len(tokens):
        raise NoSuchPoint(_("there is no such token"))
    return lens_cell(trace, point.of("item"), s.query, tokens[point.of("curve")], "target")


def inspect_rollout(trace: Trace, s: Selection, point: Point) -> Derivation:
    if point.column > s.query:
        raise NoSuchPoint(_("no bar is after the query"))
    return shares.share(trace, s.query, point.column)


def inspect_part(trace: Trace, s: Selection, point: Point) -> Derivation:
    part, layer = nth(parts_in_order(trace), point.of("item"))
    return logit_part(trace, s.query, *explained(trace, s), part, layer)


def inspect_actual(trace: Trace, s: Selection, point: Point) -> Derivation:
    position = point.of("item")
    return predicted(trace, position + 1, "rank") if point.of("curve") else probability_of_actual(trace, position)


VIEW = View(
    name="prediction",
    title=N_("Prediction"),
    words=N_(
        "What would the model say next if it stopped early? Each cell below has the likeliest next token after the "
        "token of that column, read off at the depth of that row (the logit lens). Further down, the logit of one next "
        "token is taken apart into what every part of the model added to it (direct logit attribution). "
        "Choose which token to explain, and against which other: what they differ by decides which is likelier."
    ),
    formula=formula,
    needs=(
        *("embed", "blocks.*.resid_post", "blocks.*.attn.pattern", "blocks.*.attn.z", "blocks.*.ffn.out", "logits"),
        "lm_head.weight",
    ),
    otherwise=lambda config: _("Too little was captured of this model to follow its prediction."),
    controls=("query", "target", "rival", "lens"),
    panels=(
        Panel(
            name="lens",
            alone=alone_by_rank,
            title=N_("The likeliest next token at every depth (logit lens): from the embedding down to the last block"),
            draw=lambda trace, s: lens(trace, s.query, explained_token(trace, s), s.lens),
            selects={"x": "query"},
            mark=mark_of_lens,
            inspect=inspect_lens,
            height=480,
            min_width=880,
        ),
        Panel(
            name="path",
            title=N_("The explained token's probability, depth by depth"),
            draw=lambda trace, s: path(trace, s.query, *explained(trace, s)),
            inspect=inspect_path,
            mark=mark_of_lens,
            height=320,
            width="half",
        ),
        Panel(
            name="rollout",
            title=N_("Where it came from, by attention alone (attention rollout)"),
            draw=lambda trace, s: followed(trace, s.query, s.key),
            inspect=inspect_rollout,
            selects={"x": "key"},
            mark=worked_out("blocks.*.attn.pattern"),
            height=320,
            width="half",
        ),
        Panel(
            name="parts",
            title=N_("What each part added to the logit (direct logit attribution)"),
            draw=lambda trace, s: parts(trace, s.query, *explained(trace, s), s.layer),
            inspect=inspect_part,
            selects={"customdata": "layer"},
            mark=MARK_OF_PARTS,
            height=360,
            width="half",
        ),
        Panel(
            name="heads",
            title=N_("The blue bars, head by head"),
            draw=lambda trace, s: heads(trace, s.query, *explained(trace, s), s.layer, s.head),
            selects={"x": "head", "y": "layer"},
            mark=MARK_OF_PARTS,
            inspect=lambda trace, s, point: head_part(trace, s.query, *explained(trace, s), point.row, point.column),
            height=360,
            width="half",
        ),
        Panel(
            name="by_token",
            title=N_("What each token contributes to that logit, f, by four methods"),
            draw=by_token,
            selects={"x": "key"},
            mark=MARK_OF_TOKENS,
            inspect=inspect_by_token,
            height=620,
            min_width=640,
        ),
        Panel(
            name="actual",
            title=N_("The token that does come next: its probability and rank, position by position"),
            draw=lambda trace, s: actual(trace, s.query),
            inspect=inspect_actual,
            selects={"x": "query"},
            mark=worked_out("logits"),
            height=360,
            min_width=640,
        ),
    ),
)
