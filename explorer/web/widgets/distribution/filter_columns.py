"""The columns of what cuts tokens: argmax, top-k, top-p and min-p."""

from collections.abc import Callable

from explorer.analysis.sampling_table import Row
from explorer.explain.notation import number
from explorer.language import N_, _, look_up
from explorer.web.widgets.distribution.column import Column, bracketed, score

CUT, KEPT = N_("cut"), "✓"


LIMITS = {"top_k": N_("top-k"), "top_p": N_("top-p"), "min_p": N_("min-p")}


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
