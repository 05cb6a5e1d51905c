"""Columns of the table of sampling stages, with the calculation of each number."""

from explorer.analysis.sampling_table import SamplingRow, SamplingTable
from explorer.explain.notation import format_number
from explorer.state.generation_settings import GenerationSettings
from explorer.translations import _, translate
from explorer.web.widgets.distribution.column import StageColumn, format_logit, format_subtracted_logit
from explorer.web.widgets.distribution.filter_columns import (
    LIMITS,
    argmax_column,
    min_p_column,
    top_k_column,
    top_p_column,
)


def stage_columns(table: SamplingTable, settings: GenerationSettings) -> list[StageColumn]:
    """Return the columns of the stages that these settings have, in order of application."""
    stages = [logit_column(), model_probability_column()]
    if settings.repetition_penalty != 1:
        stages.append(penalty_column(settings.repetition_penalty))
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


def logit_column() -> StageColumn:
    return StageColumn(
        "logit",
        _("logit"),
        _("The model's score for the token: the larger, the likelier."),
        cell=lambda row: format_logit(row.logit),
        arithmetic=lambda row: _("logit {logit}: as the model gave it", logit=format_logit(row.logit)),
    )


def model_probability_column() -> StageColumn:
    return StageColumn(
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


def penalty_column(penalty: float) -> StageColumn:
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

    return StageColumn(
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


def temperature_column(temperature: float) -> StageColumn:
    return StageColumn(
        "scaled",
        f"÷ {temperature:g}",
        _(
            "Divided by the temperature, {temperature:g}: below 1 the differences grow, above 1 they shrink.",
            temperature=temperature,
        ),
        cell=lambda row: format_logit(row.scaled),
        arithmetic=lambda row: f"{format_logit(row.penalised)} / {temperature:g} = {format_logit(row.scaled)}",
    )


def sampling_probability_column(table: SamplingTable, greedy: bool) -> StageColumn:
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

    return StageColumn(
        "probability",
        _("after temperature\nand filters"),
        _(
            "The probability that the token is drawn with: e^(score − largest) over the sum of that of all tokens kept "
            "(softmax). The grey tick is the model’s own."
        ),
        cell=lambda row: "0" if row.cut_by else format_number(row.probability),
        arithmetic=arithmetic,
    )


def cumulative_column() -> StageColumn:
    def arithmetic(row: SamplingRow) -> str:
        if row.cut_by:
            return _("cut, so no random number falls on it")
        return _(
            "{before} + {probability} = {sum}: drawn where the random number is from {before} to {sum}",
            before=format_number(max(0.0, row.cumulative - row.probability)),
            probability=format_number(row.probability),
            sum=format_number(row.cumulative),
        )

    return StageColumn(
        "cumulative",
        _("sum\nso far"),
        _(
            "Cumulative probability, of the token and all likelier ones together: where its stretch of the bar below "
            "ends."
        ),
        cell=lambda row: "" if row.cut_by else format_number(row.cumulative),
        arithmetic=arithmetic,
    )
