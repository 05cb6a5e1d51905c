"""The stages from logit to probability as columns of a table: what a cell says, and how its number comes about."""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.analysis.sampling_table import Row, SamplingTable
from explorer.explain.notation import number
from explorer.state.settings import GenerationSettings

CUT, KEPT = "cut", "✓"


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
        "logit",
        "The model's score for the token: the larger, the likelier.",
        cell=lambda row: score(row.logit),
        arithmetic=lambda row: f"logit {score(row.logit)}: as the model gave it",
    )


def model() -> Column:
    return Column(
        "model",
        "model",
        "The model’s own probability: softmax of the logits, at temperature 1 and with all tokens kept.",
        cell=lambda row: number(row.plain),
        arithmetic=lambda row: f"e^{bracketed(row.logit)} / Σ e^logits = {number(row.plain)}",
    )


def penalised(penalty: float) -> Column:
    def arithmetic(row: Row) -> str:
        if row.penalised == row.logit:
            return f"{score(row.logit)} stays: the token is not in the text so far"
        sign = "/" if row.logit > 0 else "×"
        return f"{score(row.logit)} {sign} {penalty:g} = {score(row.penalised)}: the token is in the text already"

    return Column(
        "penalised",
        f"penalty\n{penalty:g}",
        f"Repetition penalty: logits of tokens that the text has already are divided by {penalty:g}, or multiplied "
        "where they are negative.",
        cell=lambda row: score(row.penalised),
        arithmetic=arithmetic,
    )


def scaled(temperature: float) -> Column:
    return Column(
        "scaled",
        f"÷ {temperature:g}",
        f"Divided by the temperature, {temperature:g}: below 1 the differences grow, above 1 they shrink.",
        cell=lambda row: score(row.scaled),
        arithmetic=lambda row: f"{score(row.penalised)} / {temperature:g} = {score(row.scaled)}",
    )


def argmax() -> Column:
    return Column(
        "argmax",
        "largest",
        "Temperature 0 takes the token with the largest logit and no other (argmax).",
        cell=lambda row: CUT if row.cut_by else KEPT,
        arithmetic=lambda row: f"rank {row.rank:,}: {'not the largest, cut' if row.cut_by else 'the largest, taken'}",
    )


def top_k(k: int) -> Column:
    def arithmetic(row: Row) -> str:
        cut = row.cut_by == "top_k"
        return f"rank {row.rank:,} {'>' if cut else '≤'} top-k {k:,}: {'cut' if cut else 'kept'}"

    return limit("top_k", f"top-k\n{k:,}", f"Only the {k:,} likeliest tokens are kept.", (), arithmetic)


def top_p(p: float) -> Column:
    def arithmetic(row: Row) -> str:
        cut = row.cut_by == "top_p"
        if row.rank == 1:
            return "rank 1: always kept"
        return f"likelier ones hold {number(row.ahead)} {'≥' if cut else '<'} top-p {p:g}: {'cut' if cut else 'kept'}"

    about = f"Of those kept so far, only the fewest that have the probability {p:g} together, the likeliest (nucleus)."
    return limit("top_p", f"top-p\n{p:g}", about, ("top_k",), arithmetic)


def min_p(p: float, largest: float) -> Column:
    def arithmetic(row: Row) -> str:
        cut = row.cut_by == "min_p"
        if row.rank == 1:
            return "rank 1: always kept"
        times = f"e^({score(row.scaled)} − {bracketed(largest)}) = {number(row.weight)} times the likeliest"
        return f"{times} {'<' if cut else '≥'} min-p {p:g}: {'cut' if cut else 'kept'}"

    about = f"Of those kept so far, only tokens at least {p:g} times as likely as the likeliest."
    return limit("min_p", f"min-p\n{p:g}", about, ("top_k", "top_p"), arithmetic)


def limit(name: str, title: str, about: str, before: tuple[str, ...], arithmetic: Callable[[Row], str]) -> Column:
    """A stage that cuts tokens, but for those that the limits `before` it have cut."""

    def cell(row: Row) -> str:
        return "" if row.cut_by in before else CUT if row.cut_by == name else KEPT

    def explained(row: Row) -> str:
        return f"{written(row.cut_by)} has cut it already" if row.cut_by in before else arithmetic(row)

    return Column(name, title, about, cell, explained)


def probability(table: SamplingTable, greedy: bool) -> Column:
    def arithmetic(row: Row) -> str:
        if row.cut_by:
            return f"cut{'' if greedy else f' by {written(row.cut_by)}'}, so never drawn"
        if greedy:
            return "the largest, so its probability is 1"
        power = f"e^({score(row.scaled)} − {bracketed(table.largest)}) / Σ"
        return f"{power} = {number(row.weight)} / {number(table.total)} = {number(row.probability)}"

    return Column(
        "probability",
        "after temperature\nand filters",
        "The probability that the token is drawn with: e^(score − largest) over the sum of that of all tokens kept "
        "(softmax). The grey tick is the model’s own.",
        cell=lambda row: "0" if row.cut_by else number(row.probability),
        arithmetic=arithmetic,
    )


def cumulative() -> Column:
    def arithmetic(row: Row) -> str:
        if row.cut_by:
            return "cut, so no random number falls on it"
        before = max(0.0, row.cumulative - row.probability)
        return (
            f"{number(before)} + {number(row.probability)} = {number(row.cumulative)}: drawn where the random number "
            f"is from {number(before)} to {number(row.cumulative)}"
        )

    return Column(
        "cumulative",
        "sum\nso far",
        "Cumulative probability, of the token and all likelier ones together: where its stretch of the bar below ends.",
        cell=lambda row: "" if row.cut_by else number(row.cumulative),
        arithmetic=arithmetic,
    )


def written(limit: str) -> str:
    return limit.replace("_", "-")


def score(value: float) -> str:
    """Two decimals, as logits stand below one another, with a true minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def bracketed(value: float) -> str:
    """A score after a minus sign."""
    return f"({score(value)})" if value < 0 else score(value)
