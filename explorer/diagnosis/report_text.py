"""Text of a diagnosis report."""

from collections.abc import Iterator, Sequence

from explorer.explain.notation import format_number
from explorer.tracing.diagnosis_report import BugExplanation, DiagnosisReport, Difference
from explorer.translations import _, translate

MAX_LISTED = 8


def format_report(report: DiagnosisReport) -> str:
    """Format a report as lines of plain text."""
    return "\n".join(report_lines(report))


def report_lines(report: DiagnosisReport) -> Iterator[str]:
    """Yield the lines of a diagnosis report as text."""
    yield summary(report)
    for number, difference in enumerate(report.differences, 1):
        yield f"{number}. {format_difference(difference)}"
    num_recorded = sum(row.is_recorded for row in report.rows)
    yield _(
        "{seen} of {count} values were seen, on {tokens} tokens, in {seconds} s.",
        seen=num_recorded,
        count=len(report.rows),
        tokens=len(report.token_ids),
        seconds=format_number(report.seconds),
    )
    yield from report.notes


def summary(report: DiagnosisReport) -> str:
    """Return the report's first sentence."""
    if report.is_equal:
        return _(
            "{module} computes what the reference does: its logits differ by at most {apart}.",
            module=report.module,
            apart=format_number(report.logits_apart),
        )
    return _(
        "{module} parts from the reference at {tap}: its logits differ by up to {apart}, where the reference’s are up "
        "to {scale}.",
        module=report.module,
        tap=report.first,
        apart=format_number(report.logits_apart),
        scale=format_number(report.scale),
    )


def format_difference(difference: Difference) -> str:
    """Format a difference: its tap, its cause, and where and how much it shows."""
    text = _(
        "{tap}: {cause}. Seen at {seen_at}: off by up to {largest}, of numbers up to {scale}, at {positions}.",
        tap=difference.tap,
        cause=format_cause(difference),
        seen_at=difference.seen_at,
        largest=format_number(difference.largest),
        scale=format_number(difference.scale),
        positions=format_positions(difference.positions),
    )
    if difference.probed:
        if difference.probed >= 1:
            detail = _(
                "It does not show on these tokens, but on the same vectors {times} times shorter.",
                times=format_number(difference.probed),
            )
        else:
            detail = _(
                "It does not show on these tokens, but on the same vectors {times} times longer.",
                times=format_number(1 / difference.probed),
            )
        text = f"{text} {detail}"
    if difference.also:
        detail = _("The same at {places}.", places=join_names(difference.also))
        text = f"{text} {detail}"
    return text


def format_cause(difference: Difference) -> str:
    """Format the cause of a difference, or that none was identified."""
    if difference.cause is not None:
        return format_bug_explanation(difference.cause)
    if difference.equal_to:
        return _("not explained by any bug that was tried; {tap} is still as it should be", tap=difference.equal_to)
    return _("not explained by any bug that was tried")


def format_bug_explanation(cause: BugExplanation) -> str:
    """Format the bug that explains a difference, or all that explain it equally well."""
    texts = [
        translate(template, **{name: translate(value) for name, value in values.items()})
        for template, values in cause.templates_with_values()
    ]
    if cause.is_clear:
        return texts[0]
    return _("{count} bugs explain it equally well: {slips}", count=len(texts), slips="; ".join(texts))


def format_positions(positions: Sequence[int]) -> str:
    """Format positions as a range or a list."""
    if not positions:
        return _("no position")
    if len(positions) > 1 and len(positions) == positions[-1] - positions[0] + 1:
        return _("positions {first} to {last}", first=positions[0], last=positions[-1])
    return _("positions {listed}", listed=join_names(tuple(map(str, positions))))


def join_names(names: Sequence[str]) -> str:
    """Join names by commas; beyond `MAX_LISTED` give their count."""
    if len(names) <= MAX_LISTED:
        return ", ".join(names)
    return _("{names} and {count} more", names=", ".join(names[:MAX_LISTED]), count=len(names) - MAX_LISTED)
