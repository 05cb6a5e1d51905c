"""How the next token is drawn: the stages from logit to probability, and the random number among them."""

from collections.abc import Sequence
from typing import Any

from explorer.analysis.next_token import NextToken
from explorer.analysis.sampling_table import SamplingTable, Stretch, matching
from explorer.explain.notation import number, quoted
from explorer.language import _
from explorer.state.settings import GenerationSettings
from explorer.web.widgets.distribution.other import OtherNextToken, beside, other_words
from explorer.web.widgets.distribution.table_columns import columns
from explorer.web.widgets.distribution.words import luck_words
from explorer.web.widgets.widget import Widget, with_words

ROWS, FOUND = 10, 4  # tokens shown, and those shown besides when somebody looks for some
NARROWEST = 0.003  # stretches of the random number's bar that can still be seen


def template() -> str:
    return with_words(
        '<div class="distribution">'
        '<div class="tools"><input type="search" aria-label="{find}" placeholder="{find_what}" '
        'maxlength="40" autocomplete="off" spellcheck="false">'
        '<label title="{log_is}"><input type="checkbox"> <span>{log}</span></label></div>'
        '<div class="table"><table role="grid" aria-label="{table}">'
        "<thead></thead><tbody></tbody></table></div>"
        '<output class="note"></output>'
        '<div class="line"><div class="stretches"></div><i class="luck"></i></div>'
        '<p class="falls"></p>'
        "</div>",
        find=_("find a token"),
        find_what=_("find a token or id"),
        log=_("log bars"),
        log_is=_("Bars by powers of ten, from a millionth to 1: small probabilities are seen, too."),
        table=_("The next token, stage by stage"),
    )


class Distribution(Widget):
    """A table of tokens by rank, a column a stage, and a bar of all probability with a mark at the random number.

    Pointing at a number, or moving to it with the arrow keys, tells how it comes about. The search writes the state's
    `find`; a row offers its token to the run.
    """

    def __init__(self, **kwargs):
        super().__init__(html=template(), **kwargs)

    @staticmethod
    def pack(
        prediction: NextToken,
        vocabulary: Sequence[str],
        settings: GenerationSettings,
        find: str,
        other: OtherNextToken | None = None,
    ) -> dict[str, Any]:
        """The widget's value.

        Args:
            prediction: one with a random number.
            vocabulary: the text of every token id.
            settings: those of the prediction.
            find: text or id of tokens to show besides, see `matching`.
            other: what the other run predicts there.
        """
        table = SamplingTable(prediction.stages)
        drawn, actual = prediction.drawn, prediction.actual
        always = {drawn} if actual is None else {drawn, actual}
        found = matching(vocabulary, find, table.ranking, FOUND)
        stages = columns(table, settings)
        if other:  # the sum so far has no room beside it, and the bar below says as much
            stages = [*stages[:2], beside(other.plain), *stages[2:-1]]
        rows = [
            {
                "id": row.token_id,
                "token": vocabulary[row.token_id],
                "rank": row.rank,
                "about": _(
                    "{token}: token {id}, rank {rank:,} of {size:,}",
                    token=quoted(vocabulary[row.token_id]),
                    id=row.token_id,
                    rank=row.rank,
                    size=len(vocabulary),
                ),
                "cells": [column.cell(row) for column in stages],
                "notes": [column.arithmetic(row) for column in stages],
                "probability": row.probability,
                "plain": row.plain,
                "cut": row.cut_by is not None,
                "found": row.token_id in found,
            }
            for row in table.rows(ROWS, always, found)
        ]
        return {
            "columns": [{"name": c.name, "title": c.title, "about": c.about} for c in stages],
            "rows": rows,
            "actual": actual,
            "drawn": drawn,
            "find": find,
            "found": len(found),
            "u": prediction.u,
            "words": " ".join(
                [
                    luck_words(vocabulary, settings.seed, prediction.u, drawn, actual),
                    *([other_words(prediction, other)] if other else []),
                ]
            ),
            "stretches": [packed(stretch, vocabulary) for stretch in table.stretches(NARROWEST, always)],
        }


def packed(stretch: Stretch, vocabulary: Sequence[str]) -> dict[str, Any]:
    token = vocabulary[stretch.token_id]
    note = _(
        "{token} is drawn where the random number is from {start} to {end}",
        token=quoted(token),
        start=number(stretch.start),
        end=number(stretch.end),
    )
    return {"id": stretch.token_id, "token": token, "start": stretch.start, "end": stretch.end, "note": note}
