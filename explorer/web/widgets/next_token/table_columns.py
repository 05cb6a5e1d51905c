"""Columns of the table of the next token's distribution, and the texts below it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis.next_token import NextTokenDistribution, SamplingRow, SamplingTable, kl_divergence
from explorer.explain.notation import (
    bracket_negative,
    format_contribution,
    format_number,
    format_percent,
    format_signed,
    quote_token,
)
from explorer.state.generation_settings import GenerationSettings
from explorer.translations import N_, _, translate
from model.generation.sampling import sampling_distribution


@dataclass(frozen=True)
class SamplingStageColumn:
    """Column of the table for one sampling stage.

    Attributes:
        name: unique name.
        title: heading of one or two lines.
        description: the stage's effect, in a sentence.
        cell: returns a token's number or mark, "" if the token was cut before.
        arithmetic: returns the calculation of that number.
    """

    name: str
    title: str
    description: str
    cell: Callable[[SamplingRow], str]
    arithmetic: Callable[[SamplingRow], str]


def format_logit(value: float) -> str:
    """Format a logit with two decimals and a true minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def format_subtracted_logit(value: float) -> str:
    """Format a logit after a minus sign, in parentheses if it is negative."""
    return f"({format_logit(value)})" if value < 0 else format_logit(value)


CUT, KEPT = N_("cut"), "✓"


LIMITS = {"top_k": N_("top-k"), "top_p": N_("top-p"), "min_p": N_("min-p")}


def argmax_column() -> SamplingStageColumn:
    """Return the column of greedy decoding."""

    def arithmetic(row: SamplingRow) -> str:
        if row.cut_by:
            return _("rank {rank:,}: not the largest, cut", rank=row.rank)
        return _("rank {rank:,}: the largest, taken", rank=row.rank)

    return SamplingStageColumn(
        "argmax",
        _("largest"),
        _("Temperature 0 takes the token with the largest logit and no other (argmax)."),
        cell=lambda row: translate(CUT) if row.cut_by else KEPT,
        arithmetic=arithmetic,
    )


def top_k_column(k: int) -> SamplingStageColumn:
    """Return the column of top-k."""

    def arithmetic(row: SamplingRow) -> str:
        if row.cut_by == "top_k":
            return _("rank {rank:,} > top-k {k:,}: cut", rank=row.rank, k=k)
        return _("rank {rank:,} ≤ top-k {k:,}: kept", rank=row.rank, k=k)

    description = _("Only the {k:,} likeliest tokens are kept.", k=k)
    return filter_column("top_k", _("top-k\n{k:,}", k=k), description, (), arithmetic)


def top_p_column(p: float) -> SamplingStageColumn:
    """Return the column of top-p (nucleus sampling)."""

    def arithmetic(row: SamplingRow) -> str:
        if row.rank == 1:
            return _("rank 1: always kept")
        if row.cut_by == "top_p":
            return _("likelier ones hold {ahead} ≥ top-p {p:g}: cut", ahead=format_number(row.ahead), p=p)
        return _("likelier ones hold {ahead} < top-p {p:g}: kept", ahead=format_number(row.ahead), p=p)

    description = _("Of the tokens kept so far, the likeliest that together reach probability {p:g} (nucleus).", p=p)
    return filter_column("top_p", _("top-p\n{p:g}", p=p), description, ("top_k",), arithmetic)


def min_p_column(p: float, largest: float) -> SamplingStageColumn:
    """Return the column of min-p; `largest` is the largest scaled logit."""

    def arithmetic(row: SamplingRow) -> str:
        if row.rank == 1:
            return _("rank 1: always kept")
        template = _("{power} = {weight} times the likeliest ≥ min-p {p:g}: kept")
        if row.cut_by == "min_p":
            template = _("{power} = {weight} times the likeliest < min-p {p:g}: cut")
        power = f"e^({format_logit(row.scaled)} − {format_subtracted_logit(largest)})"
        return template.format(power=power, weight=format_number(row.weight), p=p)

    description = _("Of those kept so far, only tokens at least {p:g} times as likely as the likeliest.", p=p)
    return filter_column("min_p", _("min-p\n{p:g}", p=p), description, ("top_k", "top_p"), arithmetic)


def filter_column(
    name: str, title: str, description: str, before: tuple[str, ...], arithmetic: Callable[[SamplingRow], str]
) -> SamplingStageColumn:
    """Return the column of a filter; tokens that the filters in `before` have cut stay empty."""

    def cell(row: SamplingRow) -> str:
        return "" if row.cut_by in before else translate(CUT) if row.cut_by == name else KEPT

    def explain(row: SamplingRow) -> str:
        return (
            _("{limit} has cut it already", limit=translate(LIMITS[row.cut_by]))
            if row.cut_by in before
            else arithmetic(row)
        )

    return SamplingStageColumn(name, title, description, cell, explain)


def stage_columns(table: SamplingTable, settings: GenerationSettings) -> list[SamplingStageColumn]:
    """Return the columns of the stages that these settings have, in order of application."""
    stages = [logit_column(), model_probability_column()]
    if settings.repetition_penalty != 1:
        stages.append(repetition_penalty_column(settings.repetition_penalty))
    if settings.temperature == 0:
        stages.append(argmax_column())
    else:
        stages.append(temperature_column(settings.temperature))
        if settings.top_k:
            stages.append(top_k_column(settings.top_k))
        if settings.top_p < 1:
            stages.append(top_p_column(settings.top_p))
        if settings.min_p:
            stages.append(min_p_column(settings.min_p, table.largest))
    return [*stages, sampling_probability_column(table, greedy=settings.temperature == 0), cumulative_column()]


def logit_column() -> SamplingStageColumn:
    """Return the column of the logits."""
    return SamplingStageColumn(
        "logit",
        _("logit"),
        _("The model’s score for the token: the larger, the likelier."),
        cell=lambda row: format_logit(row.logit),
        arithmetic=lambda row: _("logit {logit}: as the model gave it", logit=format_logit(row.logit)),
    )


def model_probability_column() -> SamplingStageColumn:
    """Return the column of the model's own probabilities."""
    return SamplingStageColumn(
        "model",
        _("model"),
        _("The model’s own probability: softmax of the logits, at temperature 1 and with all tokens kept."),
        cell=lambda row: format_number(row.plain),
        arithmetic=lambda row: _(
            "e^{logit} / Σ e^logits = {probability}",
            logit=format_subtracted_logit(row.logit),
            probability=format_number(row.plain),
        ),
    )


def repetition_penalty_column(penalty: float) -> SamplingStageColumn:
    """Return the column of the logits after the repetition penalty."""

    def arithmetic(row: SamplingRow) -> str:
        if row.penalised == row.logit:
            return _("{logit} stays: the token is not in the text so far", logit=format_logit(row.logit))
        return _(
            "{logit} {sign} {penalty:g} = {penalised}: the token is in the text already",
            logit=format_logit(row.logit),
            sign="/" if row.logit > 0 else "×",
            penalty=penalty,
            penalised=format_logit(row.penalised),
        )

    return SamplingStageColumn(
        "penalised",
        _("penalty\n{penalty:g}", penalty=penalty),
        _(
            "Repetition penalty: logits of tokens that the text has already are divided by {penalty:g}, or multiplied "
            "where they are negative.",
            penalty=penalty,
        ),
        cell=lambda row: format_logit(row.penalised),
        arithmetic=arithmetic,
    )


def temperature_column(temperature: float) -> SamplingStageColumn:
    """Return the column of the logits divided by the temperature."""
    return SamplingStageColumn(
        "scaled",
        f"÷ {temperature:g}",
        _(
            "Divided by the temperature, {temperature:g}: below 1 the differences grow, above 1 they shrink.",
            temperature=temperature,
        ),
        cell=lambda row: format_logit(row.scaled),
        arithmetic=lambda row: f"{format_logit(row.penalised)} / {temperature:g} = {format_logit(row.scaled)}",
    )


def sampling_probability_column(table: SamplingTable, greedy: bool) -> SamplingStageColumn:
    """Return the column of the probabilities that are sampled from."""

    def arithmetic(row: SamplingRow) -> str:
        if row.cut_by:
            limit = LIMITS[row.cut_by]
            return _("cut, so never drawn") if greedy else _("cut by {limit}, so never drawn", limit=translate(limit))
        if greedy:
            return _("the largest, so its probability is 1")
        power = f"e^({format_logit(row.scaled)} − {format_subtracted_logit(table.largest)}) / Σ"
        return (
            f"{power} = {format_number(row.weight)} / {format_number(table.total)} = {format_number(row.probability)}"
        )

    return SamplingStageColumn(
        "probability",
        _("after the\nsettings"),
        _(
            "The probability of drawing the token: e^(score − largest), divided by the sum over all tokens kept "
            "(softmax). The grey tick is the model’s own."
        ),
        cell=lambda row: "0" if row.cut_by else format_number(row.probability),
        arithmetic=arithmetic,
    )


def cumulative_column() -> SamplingStageColumn:
    """Return the column of the cumulative probabilities."""

    def arithmetic(row: SamplingRow) -> str:
        if row.cut_by:
            return _("cut, so no random number falls on it")
        return _(
            "{before} + {probability} = {sum}: drawn where the random number is from {before} to {sum}",
            before=format_number(max(0.0, row.cumulative - row.probability)),
            probability=format_number(row.probability),
            sum=format_number(row.cumulative),
        )

    return SamplingStageColumn(
        "cumulative",
        _("sum\nso far"),
        _(
            "Cumulative probability: this token and all likelier ones together. Its stretch of the bar below ends "
            "there."
        ),
        cell=lambda row: "" if row.cut_by else format_number(row.cumulative),
        arithmetic=arithmetic,
    )


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
    def sampled_token(self) -> str:
        """Text of the token that the random number samples."""
        return self.vocabulary[self.prediction.sampled_token_id]

    @property
    def has_common_tokens(self) -> bool:
        """Tell whether the two vocabularies have a token in common."""
        return bool(np.isfinite(self.plain).any())


def unchanged_columns(columns: Sequence[SamplingStageColumn], unchanged: np.ndarray) -> list[SamplingStageColumn]:
    """Return the columns of a changed model, with its logits (V,) and probabilities without the changes."""
    probabilities = sampling_distribution(unchanged)
    before = SamplingStageColumn(
        "before",
        _("p\nbefore"),
        _("What the model gives the token without the changes, before temperature and filters."),
        cell=lambda row: format_number(probabilities[row.token_id]),
        arithmetic=lambda row: _(
            "without the changes {before}, with them {after}: {points} percentage points",
            before=format_number(probabilities[row.token_id]),
            after=format_number(row.plain),
            points=format_contribution(100 * (row.plain - probabilities[row.token_id])),
        ),
    )
    logit, model, *rest = columns
    logits = [
        replace(
            logit,
            name="logit_before",
            title=_("logit\nbefore"),
            description=_("The token’s logit without the changes."),
            cell=lambda row: format_logit(unchanged[row.token_id]),
            arithmetic=lambda row: _("logit {logit}: without the changes", logit=format_logit(unchanged[row.token_id])),
        ),
        replace(logit, title=_("logit\nnow")),
        SamplingStageColumn(
            "logit_change",
            _("Δ\nlogit"),
            _("What the changes did to the token’s logit: now − before."),
            cell=lambda row: format_logit_change(row, unchanged),
            arithmetic=lambda row: (
                f"{format_logit(row.logit)} − {format_subtracted_logit(unchanged[row.token_id])} = "
                f"{format_logit_change(row, unchanged)}"
            ),
        ),
    ]
    return [*logits, before, replace(model, title=_("p\nnow")), *rest]


def format_logit_change(row: SamplingRow, unchanged: np.ndarray) -> str:
    """Format the change of a token's logit with its sign."""
    change = float(row.logit) - float(unchanged[row.token_id])
    return f"{'+' if round(change, 2) > 0 else ''}{format_logit(change)}"


def other_run_columns(plain: np.ndarray, logits: np.ndarray) -> list[SamplingStageColumn]:
    """Return the columns of B's logits, of its probabilities, and of A's less those."""

    def explain(row) -> str:
        value = plain[row.token_id]
        if np.isnan(value):
            return _("the model of B has no such token")
        return _(
            "B: logit {logit}, probability {probability}, before temperature and filters",
            logit=format_logit(logits[row.token_id]),
            probability=format_number(value),
        )

    def format_value(row: SamplingRow, text: Callable[[float], str], value: float) -> str:
        return "–" if np.isnan(plain[row.token_id]) else text(value)

    other_logit = SamplingStageColumn(
        "other_logit",
        f"{logit_column().title} B",
        _("The token’s logit in the other run."),
        cell=lambda row: format_value(row, format_logit, logits[row.token_id]),
        arithmetic=explain,
    )
    other = SamplingStageColumn(
        "other",
        "p B",
        _("What the other run’s model gives the token, before temperature and filters."),
        cell=lambda row: format_value(row, format_number, plain[row.token_id]),
        arithmetic=explain,
    )
    difference = SamplingStageColumn(
        "other_difference",
        "p A − B",
        _("The model’s own probability in A less that in B."),
        cell=lambda row: format_value(row, format_thousandths, row.plain - plain[row.token_id]),
        arithmetic=lambda row: (
            explain(row)
            if np.isnan(plain[row.token_id])
            else f"A {format_number(row.plain)} − B {format_number(plain[row.token_id])} = "
            f"{format_number(row.plain - plain[row.token_id])}"
        ),
    )
    return [other_logit, other, difference]


def format_thousandths(difference: float) -> str:
    """Format a difference of probabilities with three decimals and its sign, as the column is narrow."""
    if abs(difference) < 0.0005:
        return "≈ 0" if difference else "0"
    return f"{difference:+.3f}".replace("-", "−")


def difference_columns(prediction: NextTokenDistribution, other: SecondRunPrediction) -> list[dict[str, Any]]:
    """Return the columns of A − B: of logits, the models' own probabilities, and those after the settings."""

    def column(
        name: str, title: str, about: str, a: np.ndarray, b: np.ndarray, **formats: Callable[[float], str]
    ) -> dict[str, Any]:
        def explain(token_id: int) -> str:
            if np.isnan(b[token_id]):
                return _("the model of B has no such token")
            text_a, text_b = (formats["number"](values[token_id]) for values in (a, b))
            return f"A {text_a} − B {bracket_negative(text_b)} = {cell(token_id)}"

        def cell(token_id: int) -> str:
            return "–" if np.isnan(b[token_id]) else formats["signed"](a[token_id] - b[token_id])

        return {"name": name, "title": title, "about": about, "cell": cell, "arithmetic": explain}

    probabilities = {"number": format_number, "signed": format_signed}
    return [
        column(
            "logit",
            f"{logit_column().title}\nA − B",
            _("The token’s logit in A less that in B."),
            prediction.stages.logits,
            other.logits,
            number=format_logit,
            signed=format_contribution,
        ),
        column(
            "model",
            _("p A − B,\nmodel"),
            _("The model’s own probability in A less that in B."),
            prediction.plain,
            other.plain,
            **probabilities,
        ),
        column(
            "probability",
            _("p A − B, after\nthe settings"),
            _("The probability after temperature and filters in A less that in B."),
            prediction.sampled,
            other.sampled,
            **probabilities,
        ),
    ]


def other_run_summary(prediction: NextTokenDistribution, other: SecondRunPrediction) -> str:
    """Return the token that the same random number selects in B, and the divergence of the distributions, as text."""
    sampled_text = _(
        "In B, after {after} (position {position}), the same random number falls on {token}.",
        after=quote_token(other.after),
        position=other.position,
        token=quote_token(other.sampled_token),
    )
    if np.isnan(other.plain).any():
        return _("{drawn} The models have different tokens: no divergence.", drawn=sampled_text)
    return _(
        "{drawn} Divergence of the models’ probabilities: KL(A‖B) = {there} bits, KL(B‖A) = {back} bits.",
        drawn=sampled_text,
        there=format_number(kl_divergence(prediction.plain, other.plain)),
        back=format_number(kl_divergence(other.plain, prediction.plain)),
    )


def summarise_difference(
    prediction: NextTokenDistribution, vocabulary: Sequence[str], other: SecondRunPrediction
) -> str:
    """Name the token whose probability differs most between the runs, after temperature and filters.

    Where these leave no difference: by the models' own probabilities.
    """
    if not other.has_common_tokens:
        return _("A and B have no token in common, so their probabilities have no difference.")
    probabilities, other_probabilities, template = prediction.sampled, other.sampled, DIFFERS_MOST
    if not np.nan_to_num(probabilities - other_probabilities).any():
        probabilities, other_probabilities, template = prediction.plain, other.plain, MODEL_DIFFERS_MOST
    differences = probabilities - other_probabilities
    token_id = int(np.nan_to_num(np.abs(differences)).argmax())
    return translate(
        template,
        token=quote_token(vocabulary[token_id]),
        a=format_number(100 * probabilities[token_id]),
        b=format_number(100 * other_probabilities[token_id]),
        points=format_signed(100 * differences[token_id]),
    )


DIFFERS_MOST = N_(
    "A − B, after temperature and filters: {token} differs most: A {a}%, B {b}%, {points} percentage points."
)
MODEL_DIFFERS_MOST = N_(
    "The settings leave no difference. In the models’ own probabilities {token} differs most: A {a}%, B {b}%, "
    "{points} percentage points."
)


def summarise_distribution(
    prediction: NextTokenDistribution, vocabulary: Sequence[str], after: str, position: int
) -> str:
    """Summarise the distribution in a sentence or two."""
    num_candidates = int((prediction.sampled > 0).sum())
    text = _(
        "After {token} (position {position}), {kept:,} of {size:,} tokens can be sampled. Entropy {entropy} bits; "
        "{own} bits before temperature and filters.",
        token=quote_token(after),
        position=position,
        kept=num_candidates,
        size=len(prediction.sampled),
        entropy=format_number(prediction.entropy),
        own=format_number(prediction.plain_entropy),
    )
    if prediction.actual is None:
        return text
    actual_text = _(
        "The text continues with {token}: rank {rank:,}, {probability} before temperature.",
        token=quote_token(vocabulary[prediction.actual]),
        rank=prediction.rank(prediction.actual),
        probability=format_percent(prediction.plain[prediction.actual]),
    )
    return f"{text} {actual_text}"


def random_draw_text(vocabulary: Sequence[str], seed: int, u: float, sampled_id: int, actual: int | None) -> str:
    """Return a sentence on the token that the random number selects.

    Args:
        u: the random number of this seed and position.
        sampled_id: the token that it selects.
        actual: the token that the text has here; None at its end.
    """
    values = {"seed": seed, "u": format_number(u), "token": quote_token(vocabulary[sampled_id])}
    if actual is None:
        return _(
            "Seed {seed} gives the random number u = {u} here. It selects {token}, which Step would write.", **values
        )
    if actual == sampled_id:
        return _(
            "Seed {seed} gives the random number u = {u} here. It selects {token}, as in the text.",
            **values,
        )
    return _(
        "Seed {seed} gives the random number u = {u} here. It selects {token}; the text has {other}.",
        other=quote_token(vocabulary[actual]),
        **values,
    )
