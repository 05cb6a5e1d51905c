"""Columns of the filters: argmax, top-k, top-p and min-p."""

from collections.abc import Callable

from explorer.analysis.sampling_table import SamplingRow
from explorer.explain.notation import format_number
from explorer.translations import N_, _, translate
from explorer.web.widgets.distribution.column import StageColumn, format_logit, format_subtracted_logit

CUT, KEPT = N_("cut"), "✓"


LIMITS = {"top_k": N_("top-k"), "top_p": N_("top-p"), "min_p": N_("min-p")}


def argmax_column() -> StageColumn:
    def arithmetic(row: SamplingRow) -> str:
        if row.cut_by:
            return _("rank {rank:,}: not the largest, cut", rank=row.rank)
        return _("rank {rank:,}: the largest, taken", rank=row.rank)

    return StageColumn(
        "argmax",
        _("largest"),
        _("Temperature 0 takes the token with the largest logit and no other (argmax)."),
        cell=lambda row: translate(CUT) if row.cut_by else KEPT,
        arithmetic=arithmetic,
    )


def top_k_column(k: int) -> StageColumn:
    def arithmetic(row: SamplingRow) -> str:
        if row.cut_by == "top_k":
            return _("rank {rank:,} > top-k {k:,}: cut", rank=row.rank, k=k)
        return _("rank {rank:,} ≤ top-k {k:,}: kept", rank=row.rank, k=k)

    description = _("Only the {k:,} likeliest tokens are kept.", k=k)
    return cutoff_column("top_k", _("top-k\n{k:,}", k=k), description, (), arithmetic)


def top_p_column(p: float) -> StageColumn:
    def arithmetic(row: SamplingRow) -> str:
        if row.rank == 1:
            return _("rank 1: always kept")
        if row.cut_by == "top_p":
            return _("likelier ones hold {ahead} ≥ top-p {p:g}: cut", ahead=format_number(row.ahead), p=p)
        return _("likelier ones hold {ahead} < top-p {p:g}: kept", ahead=format_number(row.ahead), p=p)

    description = _(
        "Of those kept so far, only the fewest that have the probability {p:g} together, the likeliest (nucleus).", p=p
    )
    return cutoff_column("top_p", _("top-p\n{p:g}", p=p), description, ("top_k",), arithmetic)


def min_p_column(p: float, largest: float) -> StageColumn:
    def arithmetic(row: SamplingRow) -> str:
        if row.rank == 1:
            return _("rank 1: always kept")
        template = _("{power} = {weight} times the likeliest ≥ min-p {p:g}: kept")
        if row.cut_by == "min_p":
            template = _("{power} = {weight} times the likeliest < min-p {p:g}: cut")
        power = f"e^({format_logit(row.scaled)} − {format_subtracted_logit(largest)})"
        return template.format(power=power, weight=format_number(row.weight), p=p)

    description = _("Of those kept so far, only tokens at least {p:g} times as likely as the likeliest.", p=p)
    return cutoff_column("min_p", _("min-p\n{p:g}", p=p), description, ("top_k", "top_p"), arithmetic)


def cutoff_column(
    name: str, title: str, description: str, before: tuple[str, ...], arithmetic: Callable[[SamplingRow], str]
) -> StageColumn:
    """Return the column of a filter; tokens that the filters in `before` have cut stay empty."""

    def cell(row: SamplingRow) -> str:
        return "" if row.cut_by in before else translate(CUT) if row.cut_by == name else KEPT

    def explain(row: SamplingRow) -> str:
        return (
            _("{limit} has cut it already", limit=translate(LIMITS[row.cut_by]))
            if row.cut_by in before
            else arithmetic(row)
        )

    return StageColumn(name, title, description, cell, explain)
