"""Table of the next token's distribution, presets of settings, and explanations on demand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.analysis.next_token import NextTokenDistribution, ProbabilityInterval, SamplingTable, find_tokens
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.prediction_explanation import ExplanationSentence
from explorer.state.generation_settings import GenerationSettings
from explorer.translations import _, translate
from explorer.web.widgets import HtmlWidget, escape_text, fill_template, json_attribute
from explorer.web.widgets.next_token.table_columns import (
    CUT,
    SecondRunPrediction,
    difference_columns,
    other_run_columns,
    other_run_summary,
    random_draw_text,
    stage_columns,
    unchanged_columns,
)

NUM_ROWS, MAX_MATCHES = 10, 4  # tokens shown, and those shown besides when somebody looks for some
MIN_INTERVAL_WIDTH = 0.003  # stretches of the random number's bar that can still be seen


def next_token_table_html() -> str:
    """Return the markup of the empty table."""
    return fill_template(
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


class NextTokenTable(HtmlWidget):
    """A table of tokens by rank with a column per stage, and a bar of all probability with the random number's mark.

    Pointing at a number, or moving to it with the arrow keys, shows its calculation. The search box writes the
    state's `find`; a row's button appends its token to the run.
    """

    kind = "distribution"

    def __init__(self, **kwargs):
        super().__init__(html=next_token_table_html(), **kwargs)

    @staticmethod
    def pack(
        prediction: NextTokenDistribution,
        vocabulary: Sequence[str],
        settings: GenerationSettings,
        find: str,
        other: SecondRunPrediction | None = None,
        unchanged: np.ndarray | None = None,
        guess_id: int | None = None,
    ) -> dict[str, Any]:
        """Return the widget's value.

        Args:
            prediction: one with a random number.
            vocabulary: text of each token id.
            settings: those of the prediction.
            find: text or id of tokens to show in addition, see `find_tokens`.
            other: prediction of the other run; None without one.
            unchanged: logits (V,) of a changed model without the changes; None for none. Their columns
                stand where there is no other run, the token that was the likeliest always.
            guess_id: the token that the user guessed, which has one of the rows whatever its rank; None for none.
        """
        table = SamplingTable(prediction.stages)
        sampled_id, actual = prediction.sampled_token_id, prediction.actual
        always = {sampled_id} if actual is None else {sampled_id, actual}
        always |= set() if unchanged is None else {int(unchanged.argmax())}
        matches = find_tokens(vocabulary, find, table.ranking, MAX_MATCHES)
        stages = stage_columns(table, settings)
        if other:  # the sum so far has no room beside it, and the bar below says as much
            logit, model, *rest = stages[:-1]
            logit, model = replace(logit, title=f"{logit.title} A"), replace(model, title="p A")
            other_logit, *other_columns = other_run_columns(other.plain, other.logits)
            stages = [logit, other_logit, model, *other_columns, *rest]
        elif unchanged is not None:
            stages = unchanged_columns(stages, unchanged)
        rows = [
            {
                "id": row.token_id,
                "token": vocabulary[row.token_id],
                "rank": row.rank,
                "about": _(
                    "{token}: token {id}, rank {rank:,} of {size:,}",
                    token=quote_token(vocabulary[row.token_id]),
                    id=row.token_id,
                    rank=row.rank,
                    size=len(vocabulary),
                ),
                "cells": [column.cell(row) for column in stages],
                "notes": [column.arithmetic(row) for column in stages],
                "probability": row.probability,
                "plain": row.plain,
                "cut": row.cut_by is not None,
                "found": row.token_id in matches,
                "guessed": row.token_id == guess_id,
            }
            for row in table.rows(NUM_ROWS, always | (set() if guess_id is None else {guess_id}), matches)
        ]
        return {
            "run": "a" if other else "",
            "columns": [{"name": c.name, "title": c.title, "about": c.description} for c in stages],
            "rows": rows,
            "settings": quick_settings(settings),
            "cut": translate(CUT),
            "actual": actual,
            "drawn": sampled_id,
            "find": find,
            "found": len(matches),
            "u": prediction.u,
            "words": " ".join(
                [
                    random_draw_text(vocabulary, settings.seed, prediction.u, sampled_id, actual),
                    *([other_run_summary(prediction, other)] if other else []),
                ]
            ),
            "stretches": [
                interval_payload(interval, vocabulary) for interval in table.intervals(MIN_INTERVAL_WIDTH, always)
            ],
        }

    @classmethod
    def pack_other(
        cls, prediction: NextTokenDistribution, settings: GenerationSettings, find: str, other: SecondRunPrediction
    ) -> dict[str, Any]:
        """Return the widget's value for the other run's distribution, compared with the first's."""
        value = cls.pack(other.prediction, other.vocabulary, settings, find)
        return value | {"run": "b", "words": other_run_summary(prediction, other)}

    @staticmethod
    def pack_difference(
        prediction: NextTokenDistribution,
        vocabulary: Sequence[str],
        settings: GenerationSettings,
        find: str,
        other: SecondRunPrediction,
    ) -> dict[str, Any]:
        """Return the widget's value for the first run's probabilities less the other's, largest difference first.

        Tokens that the settings leave no difference are sorted by that of the models' own probabilities.
        """
        differences = {"model": prediction.plain - other.plain, "probability": prediction.sampled - other.sampled}
        columns = difference_columns(prediction, other)
        model_sizes, sizes = (np.nan_to_num(np.abs(values), nan=-1) for values in differences.values())
        ranking = np.lexsort((-model_sizes, -sizes))
        matches = find_tokens(vocabulary, find, ranking, MAX_MATCHES)
        first_ids = ranking[:NUM_ROWS].tolist()
        ids = [
            *first_ids,
            *(token_id for token_id in ranking.tolist() if token_id in matches and token_id not in first_ids),
        ]
        ranks = np.empty_like(ranking)
        ranks[ranking] = np.arange(1, len(ranking) + 1)
        rows = [
            {
                "id": token_id,
                "token": vocabulary[token_id],
                "rank": int(ranks[token_id]),
                "about": _("{token}: token {id}", token=quote_token(vocabulary[token_id]), id=token_id),
                "cells": [column["cell"](token_id) for column in columns],
                "notes": [column["arithmetic"](token_id) for column in columns],
                "probability": float(np.nan_to_num(differences["probability"][token_id])),
                "plain": 0.0,
                "cut": False,
                "found": token_id in matches,
            }
            for token_id in ids
        ]
        return {
            "run": "difference",
            "columns": [{name: column[name] for name in ("name", "title", "about")} for column in columns],
            "rows": rows,
            "settings": quick_settings(settings),
            "cut": translate(CUT),
            "actual": None,
            "drawn": None,
            "find": find,
            "found": len(matches),
            "u": prediction.u,
            "words": other_run_summary(prediction, other),
            "stretches": [],
        }


def quick_settings(settings: GenerationSettings) -> dict[str, Any]:
    """Return the settings whose sliders the browser follows by itself."""
    return {name: getattr(settings, name) for name in ("temperature", "top_k", "top_p", "min_p")}


def interval_payload(interval: ProbabilityInterval, vocabulary: Sequence[str]) -> dict[str, Any]:
    """Return a token's interval of the random number, with a note, for the browser."""
    token = vocabulary[interval.token_id]
    note = _(
        "{token} is drawn where the random number is from {start} to {end}",
        token=quote_token(token),
        start=format_number(interval.start),
        end=format_number(interval.end),
    )
    return {"id": interval.token_id, "token": token, "start": interval.start, "end": interval.end, "note": note}


class SamplingPresetButtons(HtmlWidget):
    """A button for each preset; the one whose settings the state has is pressed.

    Args:
        presets: name -> its settings.
    """

    kind = "presets"

    def __init__(self, presets: Mapping[str, Mapping[str, Any]], **kwargs):
        buttons = (
            f'<button type="button" data-settings="{json_attribute(dict(settings))}">{escape_text(name)}</button>'
            for name, settings in presets.items()
        )
        group = fill_template('<div class="presets" role="group" aria-label="{presets}">', presets=_("presets"))
        super().__init__(html=f"{group}{''.join(buttons)}</div>", **kwargs)


EXPLANATION_HTML = """<button type="button" class="asked" aria-expanded="false" data-field="{field}">{asked}</button>
<ul class="clauses" hidden></ul>"""


class ExplanationButton(HtmlWidget):
    """A button that shows an explanation's clauses, each with a link to its figure.

    Args:
        field: field of the state that holds "open" while it is shown.
        question: text of the button.
    """

    kind = "explanation"

    def __init__(self, *, field: str = "why", question: str = "", **kwargs):
        super().__init__(html=fill_template(EXPLANATION_HTML, field=field, asked=question), **kwargs)

    @staticmethod
    def pack(clauses: Iterable[ExplanationSentence]) -> list[dict[str, Any]]:
        """Return the widget's value."""
        return [
            {
                "words": clause.text,
                "look": clause.selection_change,
                "figure": clause.figure_id,
                "ablation": clause.ablation,
            }
            for clause in clauses
        ]
