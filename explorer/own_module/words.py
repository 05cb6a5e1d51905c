"""A report in words."""

from collections.abc import Iterator, Sequence

from explorer.explain.notation import number
from explorer.language import _, look_up
from explorer.tracing.diagnosis import Cause, Difference, Report

MOST_LISTED = 8


def told(report: Report) -> str:
    """All of it, as lines of plain text."""
    return "\n".join(lines(report))


def lines(report: Report) -> Iterator[str]:
    yield verdict(report)
    for place, difference in enumerate(report.differences, 1):
        yield f"{place}. {of_difference(difference)}"
    seen = sum(row.is_seen for row in report.rows)
    yield _(
        "{seen} of {count} values were seen, on {tokens} tokens, in {seconds} s.",
        seen=seen,
        count=len(report.rows),
        tokens=len(report.token_ids),
        seconds=number(report.seconds),
    )
    yield from report.notes


def verdict(report: Report) -> str:
    """The first sentence."""
    if report.is_equal:
        return _(
            "{module} computes what the reference does: its logits differ by at most {apart}.",
            module=report.module,
            apart=number(report.logits_apart),
        )
    return _(
        "{module} parts from the reference at {tap}: its logits differ by up to {apart}, where the reference’s are up "
        "to {scale}.",
        module=report.module,
        tap=report.first,
        apart=number(report.logits_apart),
        scale=number(report.scale),
    )


def of_difference(difference: Difference) -> str:
    where = _(
        "{tap}: {cause}. Seen at {seen_at}: off by up to {largest}, of numbers up to {scale}, at {positions}.",
        tap=difference.tap,
        cause=of_cause(difference),
        seen_at=difference.seen_at,
        largest=number(difference.largest),
        scale=number(difference.scale),
        positions=of_positions(difference.positions),
    )
    if difference.probed:
        if difference.probed >= 1:
            told = _(
                "It does not show on these tokens, but on the same vectors {times} times shorter.",
                times=number(difference.probed),
            )
        else:
            told = _(
                "It does not show on these tokens, but on the same vectors {times} times longer.",
                times=number(1 / difference.probed),
            )
        where = f"{where} {told}"
    if difference.also:
        told = _("The same at {places}.", places=listed(difference.also))
        where = f"{where} {told}"
    return where


def of_cause(difference: Difference) -> str:
    if difference.cause is not None:
        return in_words(difference.cause)
    if difference.equal_to:
        return _("not explained by any slip that was tried; {tap} is still as it should be", tap=difference.equal_to)
    return _("not explained by any slip that was tried")


def in_words(cause: Cause) -> str:
    words = [
        look_up(each, **{name: look_up(value) for name, value in values.items()}) for each, values in cause.filled()
    ]
    if cause.is_clear:
        return words[0]
    return _("{count} slips explain it equally well: {slips}", count=len(words), slips="; ".join(words))


def of_positions(positions: Sequence[int]) -> str:
    if not positions:
        return _("no position")
    if len(positions) > 1 and len(positions) == positions[-1] - positions[0] + 1:
        return _("positions {first} to {last}", first=positions[0], last=positions[-1])
    return _("positions {listed}", listed=listed(tuple(map(str, positions))))


def listed(names: Sequence[str]) -> str:
    if len(names) <= MOST_LISTED:
        return ", ".join(names)
    return _("{names} and {count} more", names=", ".join(names[:MOST_LISTED]), count=len(names) - MOST_LISTED)
