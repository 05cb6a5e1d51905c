"""The stages from logit to probability as columns of a table: what a cell says, and how its number comes about."""

from explorer.analysis.sampling_table import Row, SamplingTable
from explorer.explain.notation import number
from explorer.language import _, look_up
from explorer.state.settings import GenerationSettings
from explorer.web.widgets.distribution.column import Column, bracketed, score
from explorer.web.widgets.distribution.filter_columns import LIMITS, argmax, min_p, top_k, top_p


def columns(table: SamplingTable, settings: GenerationSettings) -> list[Column]:
    """The stages that these settings have, in the order in which they act."""
    shown = [logit(), model()]
    if settings.repetition_penalty != 1:
        shown.append(penalised(settings.repetition_penalty))
    if settings.temperature == 0:
        shown.append(argmax())
    else:
        shown.append(scaled(settings.temperature))
        if settings.top_k:
            shown.append(top_k(settings.top_k))
        if settings.top_p < 1:
            shown.append(top_p(settings.top_p))
        if settings.min_p:
            shown.append(min_p(settings.min_p, table.largest))
    return [*shown, probability(table, greedy=settings.temperature == 0), cumulative()]


def logit() -> Column:
    return Column(
        "logit",
        _("logit"),
        _("The model's score for the token: the larger, the likelier."),
        cell=lambda row: score(row.logit),
        arithmetic=lambda row: _("logit {logit}: as the model gave it", logit=score(row.logit)),
    )


def model() -> Column:
    return Column(
        "model",
        _("model"),
        _("The model’s own probability: softmax of the logits, at temperature 1 and with all tokens kept."),
        cell=lambda row: number(row.plain),
        arithmetic=lambda row: _(
            "e^{logit} / Σ e^logits = {probability}", logit=bracketed(row.logit), probability=number(row.plain)
        ),
    )


def penalised(penalty: float) -> Column:
    def arithmetic(row: Row) -> str:
        if row.penalised == row.logit:
            return _("{logit} stays: the token is not in the text so far", logit=score(row.logit))
        return _(
            "{logit} {sign} {penalty:g} = {penalised}: the token is in the text already",
            logit=score(row.logit),
            sign="/" if row.logit > 0 else "×",
            penalty=penalty,
            penalised=score(row.penalised),
        )

    return Column(
        "penalised",
        _("penalty\n{penalty:g}", penalty=penalty),
        _(
            "Repetition penalty: logits of tokens that the text has already are divided by {penalty:g}, or multiplied "
            "where they are negative.",
            penalty=penalty,
        ),
        cell=lambda row: score(row.penalised),
        arithmetic=arithmetic,
    )


def scaled(temperature: float) -> Column:
    return Column(
        "scaled",
        f"÷ {temperature:g}",
        _(
            "Divided by the temperature, {temperature:g}: below 1 the differences grow, above 1 they shrink.",
            temperature=temperature,
        ),
        cell=lambda row: score(row.scaled),
        arithmetic=lambda row: f"{score(row.penalised)} / {temperature:g} = {score(row.scaled)}",
    )


def probability(table: SamplingTable, greedy: bool) -> Column:
    def arithmetic(row: Row) -> str:
        if row.cut_by:
            limit = LIMITS[row.cut_by]
            return _("cut, so never drawn") if greedy else _("cut by {limit}, so never drawn", limit=look_up(limit))
        if greedy:
            return _("the largest, so its probability is 1")
        power = f"e^({score(row.scaled)} − {bracketed(table.largest)}) / Σ"
        return f"{power} = {number(row.weight)} / {number(table.total)} = {number(row.probability)}"

    return Column(
        "probability",
        _("after temperature\nand filters"),
        _(
            "The probability that the token is drawn with: e^(score − largest) over the sum of that of all tokens kept "
            "(softmax). The grey tick is the model’s own."
        ),
        cell=lambda row: "0" if row.cut_by else number(row.probability),
        arithmetic=arithmetic,
    )


def cumulative() -> Column:
    def arithmetic(row: Row) -> str:
        if row.cut_by:
            return _("cut, so no random number falls on it")
        return _(
            "{before} + {probability} = {sum}: drawn where the random number is from {before} to {sum}",
            before=number(max(0.0, row.cumulative - row.probability)),
            probability=number(row.probability),
            sum=number(row.cumulative),
        )

    return Column(
        "cumulative",
        _("sum\nso far"),
        _(
            "Cumulative probability, of the token and all likelier ones together: where its stretch of the bar below "
            "ends."
        ),
        cell=lambda row: "" if row.cut_by else number(row.cumulative),
        arithmetic=arithmetic,
    )
