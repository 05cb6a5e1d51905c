"""The stages from logit to probability as columns of a table: what a cell says, and how its number comes about."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.analysis.sampling_table import Row, SamplingTable
from explorer.explain.notation import number
from explorer.language import N_, _, look_up
from explorer.state.settings import GenerationSettings

CUT, KEPT = N_("cut"), "✓"
LIMITS = {"top_k": N_("top-k"), "top_p": N_("top-p"), "min_p": N_("min-p")}


@dataclass(frozen=True)
class Column:
    """A stage.

    Attributes:
        name: tells columns apart.
        title: its heading, of one line or two.
        about: what the stage does, in a sentence.
        cell: a token's number or mark, "" where the token was cut before.
        arithmetic: how that comes about.
    """

    name: str
    title: str
    about: str
    cell: Callable[[Row], str]
    arithmetic: Callable[[Row], str]


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


def argmax() -> Column:
    def arithmetic(row: Row) -> str:
        if row.cut_by:
            return _("rank {rank:,}: not the largest, cut", rank=row.rank)
        return _("rank {rank:,}: the largest, taken", rank=row.rank)

    return Column(
        "argmax",
        _("largest"),
        _("Temperature 0 takes the token with the largest logit and no other (argmax)."),
        cell=lambda row: look_up(CUT) if row.cut_by else KEPT,
        arithmetic=arithmetic,
    )


def top_k(k: int) -> Column:
    def arithmetic(row: Row) -> str:
        if row.cut_by == "top_k":
            return _("rank {rank:,} > top-k {k:,}: cut", rank=row.rank, k=k)
        return _("rank {rank:,} ≤ top-k {k:,}: kept", rank=row.rank, k=k)

    about = _("Only the {k:,} likeliest tokens are kept.", k=k)
    return limit("top_k", _("top-k\n{k:,}", k=k), about, (), arithmetic)


def top_p(p: float) -> Column:
    def arithmetic(row: Row) -> str:
        if row.rank == 1:
            return _("rank 1: always kept")
        if row.cut_by == "top_p":
            return _("likelier ones hold {ahead} ≥ top-p {p:g}: cut", ahead=number(row.ahead), p=p)
        return _("likelier ones hold {ahead} < top-p {p:g}: kept", ahead=number(row.ahead), p=p)

    about = _(
        "Of those kept so far, only the fewest that have the probability {p:g} together, the likeliest (nucleus).", p=p
    )
    return limit("top_p", _("top-p\n{p:g}", p=p), about, ("top_k",), arithmetic)


def min_p(p: float, largest: float) -> Column:
    def arithmetic(row: Row) -> str:
        if row.rank == 1:
            return _("rank 1: always kept")
        told = _("{power} = {weight} times the likeliest ≥ min-p {p:g}: kept")
        if row.cut_by == "min_p":
            told = _("{power} = {weight} times the likeliest < min-p {p:g}: cut")
        power = f"e^({score(row.scaled)} − {bracketed(largest)})"
        return told.format(power=power, weight=number(row.weight), p=p)

    about = _("Of those kept so far, only tokens at least {p:g} times as likely as the likeliest.", p=p)
    return limit("min_p", _("min-p\n{p:g}", p=p), about, ("top_k", "top_p"), arithmetic)


def limit(name: str, title: str, about: str, before: tuple[str, ...], arithmetic: Callable[[Row], str]) -> Column:
    """A stage that cuts tokens, but for those that the limits `before` it have cut."""

    def cell(row: Row) -> str:
        return "" if row.cut_by in before else look_up(CUT) if row.cut_by == name else KEPT

    def explained(row: Row) -> str:
        return (
            _("{limit} has cut it already", limit=look_up(LIMITS[row.cut_by]))
            if row.cut_by in before
            else arithmetic(row)
        )

    return Column(name, title, about, cell, explained)


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


def score(value: float) -> str:
    """Two decimals, as logits stand below one another, with a true minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def bracketed(value: float) -> str:
    """A score after a minus sign."""
    return f"({score(value)})" if value < 0 else score(value)
