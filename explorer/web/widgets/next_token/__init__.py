"""Numbers of the next token's distribution, which the browser words; presets of settings; explanations on demand."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from explorer.analysis.next_token import NextTokenDistribution, SamplingTable, find_tokens, kl_divergence
from explorer.lessons.prediction_explanation import ExplanationSentence
from explorer.state.generation_settings import GenerationSettings
from explorer.translations import _
from explorer.web.widgets import HtmlWidget, escape_text, fill_template, json_attribute
from model.generation.sampling import sampling_distribution

NUM_ROWS, MAX_MATCHES = 10, 4  # tokens shown, and those shown besides when somebody looks for some
MIN_INTERVAL_WIDTH = 0.003  # stretches of the random number's bar that can still be seen


@dataclass(frozen=True)
class SecondRunPrediction:
    """The other run's prediction after the aligned token.

    Attributes:
        prediction: its distribution, with the same random number and settings.
        vocabulary: texts of its tokens.
        plain, sampled, logits: its probabilities and logits on the first run's vocabulary (V,); NaN for tokens that
            the other lacks.
        after: text of the aligned token.
        position: of the aligned token.
    """

    prediction: NextTokenDistribution
    vocabulary: Sequence[str]
    plain: np.ndarray
    sampled: np.ndarray
    logits: np.ndarray
    after: str
    position: int

    @property
    def has_common_tokens(self) -> bool:
        """Tell whether the two vocabularies have a token in common."""
        return bool(np.isfinite(self.plain).any())


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
            unchanged: logits (V,) of a changed model without the changes; None for none. Rows have them
                where there is no other run, the token that was the likeliest always.
            guess_id: the token that the user guessed, which has one of the rows whatever its rank; None for none.
        """
        table = SamplingTable(prediction.stages)
        sampled_id, actual = prediction.sampled_token_id, prediction.actual
        always = {sampled_id} if actual is None else {sampled_id, actual}
        always |= set() if unchanged is None else {int(unchanged.argmax())}
        matches = find_tokens(vocabulary, find, table.ranking, MAX_MATCHES)
        compared = {}
        if other:
            compared = {"other": (other.logits, other.plain)}
        elif unchanged is not None:
            compared = {"before": (unchanged, sampling_distribution(unchanged))}
        rows = [
            asdict(row)
            | {
                "token": vocabulary[row.token_id],
                "found": row.token_id in matches,
                "guessed": row.token_id == guess_id,
            }
            | {name: take_token(row.token_id, logit=a, plain=b) for name, (a, b) in compared.items()}
            for row in table.rows(NUM_ROWS, always | (set() if guess_id is None else {guess_id}), matches)
        ]
        return {
            "run": "a" if other else "",
            "settings": settings.as_dict(),
            "size": len(vocabulary),
            "largest": table.largest,
            "total": table.total,
            "rows": rows,
            "actual": actual,
            "drawn": sampled_id,
            "find": find,
            "found": len(matches),
            "u": prediction.u,
            "other": other and pack_other_run(prediction, other),
            "stretches": [
                asdict(interval) | {"token": vocabulary[interval.token_id]}
                for interval in table.intervals(MIN_INTERVAL_WIDTH, always)
            ],
        }

    @classmethod
    def pack_other(
        cls, prediction: NextTokenDistribution, settings: GenerationSettings, find: str, other: SecondRunPrediction
    ) -> dict[str, Any]:
        """Return the widget's value for the other run's distribution, compared with the first's."""
        value = cls.pack(other.prediction, other.vocabulary, settings, find)
        return value | {"run": "b", "other": pack_other_run(prediction, other)}

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
        runs = {
            "a": {"logit": prediction.stages.logits, "model": prediction.plain, "probability": prediction.sampled},
            "b": {"logit": other.logits, "model": other.plain, "probability": other.sampled},
        }
        model_sizes, sizes = (
            np.nan_to_num(np.abs(runs["a"][name] - runs["b"][name]), nan=-1) for name in ("model", "probability")
        )
        ranking = np.lexsort((-model_sizes, -sizes)).tolist()
        matches = find_tokens(vocabulary, find, ranking, MAX_MATCHES)
        rows = [
            {"token_id": token_id, "token": vocabulary[token_id], "rank": rank, "found": token_id in matches}
            | {run: take_token(token_id, **values) for run, values in runs.items()}
            for rank, token_id in enumerate(ranking, 1)
            if rank <= NUM_ROWS or token_id in matches
        ]
        return {
            "run": "difference",
            "settings": settings.as_dict(),
            "rows": rows,
            "actual": None,
            "drawn": None,
            "find": find,
            "found": len(matches),
            "u": prediction.u,
            "other": pack_other_run(prediction, other),
            "stretches": [],
        }


def take_token(token_id: int, **values: np.ndarray) -> dict[str, float] | None:
    """Return a token's element of each array (V,) by name; None if the run's model lacks the token."""
    elements = {name: float(array[token_id]) for name, array in values.items()}
    return None if any(map(math.isnan, elements.values())) else elements


def pack_other_run(prediction: NextTokenDistribution, other: SecondRunPrediction) -> dict[str, Any]:
    """Return the token that the same random number selects in B, and both divergences in bits.

    The divergences are None for models with different tokens, and one that is infinite is None.
    """
    divergences = kl_divergence(prediction.plain, other.plain), kl_divergence(other.plain, prediction.plain)
    return {
        "after": other.after,
        "position": other.position,
        "token": other.vocabulary[other.prediction.sampled_token_id],
        "divergences": None
        if any(map(math.isnan, divergences))
        else [bits if math.isfinite(bits) else None for bits in divergences],
    }


class NextTokenSummary(HtmlWidget):
    """Sentences on the distribution below its table, or on the largest difference of two."""

    kind = "next_token_summary"

    def __init__(self, **kwargs):
        super().__init__(html='<div class="prose"></div>', **kwargs)

    @staticmethod
    def pack(
        prediction: NextTokenDistribution, vocabulary: Sequence[str], after: str, position: int, run: str = "a"
    ) -> dict[str, Any]:
        """Return the widget's value for the distribution of run "a" or "b" after a token at a position."""
        actual = prediction.actual
        return {
            "run": run,
            "after": after,
            "position": position,
            "kept": int((prediction.sampled > 0).sum()),
            "size": len(prediction.sampled),
            "entropy": prediction.entropy,
            "plain_entropy": prediction.plain_entropy,
            "actual": None if actual is None else pack_ranked_token(prediction, vocabulary, actual),
        }

    @staticmethod
    def pack_difference(
        prediction: NextTokenDistribution, vocabulary: Sequence[str], other: SecondRunPrediction
    ) -> dict[str, Any]:
        """Return the token whose probability differs most between the runs, after temperature and filters.

        Where these leave no difference: by the models' own probabilities. None if the runs have no common token.
        """
        if not other.has_common_tokens:
            return {"run": "difference", "token": None}
        a, b = prediction.sampled, other.sampled
        is_own = not np.nan_to_num(a - b).any()
        if is_own:
            a, b = prediction.plain, other.plain
        token_id = int(np.nan_to_num(np.abs(a - b)).argmax())
        values = {"token": vocabulary[token_id], "a": float(a[token_id]), "b": float(b[token_id])}
        return {"run": "difference", "is_own": is_own} | values


def pack_ranked_token(prediction: NextTokenDistribution, vocabulary: Sequence[str], token_id: int) -> dict[str, Any]:
    """Return a token's text, and its rank and probability before any setting."""
    rank, probability = prediction.rank(token_id), float(prediction.plain[token_id])
    return {"token": vocabulary[token_id], "rank": rank, "plain": probability}


def pack_change_effect(
    prediction: NextTokenDistribution,
    before: NextTokenDistribution,
    vocabulary: Sequence[str],
    logits: tuple[np.ndarray, np.ndarray],
    is_story: bool = False,
) -> dict[str, Any]:
    """Return what interventions did to the token that was the likeliest, and to the one that is now if it is another.

    In the story the likeliest to be picked, otherwise the model's own. Each number is a pair: before and now.

    Args:
        before: the same prediction without interventions.
        logits: (V,) without interventions, and with them.
    """
    runs = before, prediction
    first, now = (int((run.sampled if is_story else run.plain).argmax()) for run in runs)

    def pack_token(token_id: int) -> dict[str, Any]:
        return {
            "token": vocabulary[token_id],
            "plain": [float(run.plain[token_id]) for run in runs],
            "sampled": [float(run.sampled[token_id]) for run in runs],
            "logits": [float(row[token_id]) for row in logits],
        }

    return {"is_story": is_story, "first": pack_token(first), "now": None if now == first else pack_token(now)}


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
