"""One query's way from its products with keys to what it fetches."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.attention import stages
from explorer.architecture.attention import divisor, divisor_in_numbers
from explorer.explain.notation import number, quoted, visible
from explorer.explain.walks.walk import Segment, Walk, numbers
from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace

MOST_KEYS = 8  # of a long text those that are looked at most
MOST_DIMENSIONS = 16  # of a value, as a strip of cells


def attention(trace: Trace, s: Selection) -> Walk:
    """The query meets each key, the products are scaled, the mask hides what comes later, softmax makes shares, and the
    values are mixed by them.

    Raises:
        UserError: the run has no scores, or no values.
    """
    layer, head, query = s.layer, s.head, s.query
    if not (trace.has("blocks.*.attn.scores") and trace.has("blocks.*.attn.v")):
        raise UserError(_("This run has no attention to go through."))
    steps = stages(trace, layer, head, query)
    shown = keys_of(steps.weights, steps.allowed, query)
    masked = np.where(steps.allowed, steps.capped, -np.inf)
    columns = ["q·k", _("score"), _("after the mask"), _("weight")]
    values = [steps.dots[shown], steps.scores[shown], masked[shown], steps.weights[shown]]
    names = [visible(trace.tokens[key]) for key in shown]
    asking = quoted(trace.tokens[query])
    is_whole = int(steps.allowed.sum()) == int(steps.allowed[shown].sum())

    def rows(says: str, count: int, one_by_one: bool = False) -> Segment:
        drawn = [numbers(column) for column in values[:count]]
        whole = [{"label": name, "key": int(key), "cells": list(cells)}
                 for name, key, cells in zip(names, shown, zip(*drawn, strict=True), strict=True)]  # fmt: skip
        lengths = range(1, len(whole) + 1) if one_by_one else [len(whole)]
        frames = [{"columns": columns[:count], "rows": whole[:length]} for length in lengths]
        return Segment(says, "rows", frames)

    later = [name for name, key in zip(names, shown, strict=True) if key > query]
    hidden = _("What comes after {query} must not be seen: −∞ in its place.", query=asking)
    nothing = _("The mask would hide what comes after {query}: here nothing does.", query=asking)
    meets = (
        _(
            "The query of {query} meets each key: q·k, the sum of the products of their {count} numbers.",
            query=asking,
            count=trace.config.d_head,
        )
        if is_whole
        else _(
            "The query of {query} meets each key: q·k, the sum of the products of their {count} numbers. Shown are the "
            "keys that it looks at most.",
            query=asking,
            count=trace.config.d_head,
        )
    )
    title = _("Attention of head {head} in layer {layer}, from {query}", head=head, layer=layer, query=asking)
    segments = [
        rows(meets, 1, one_by_one=True),
        rows(_("Each is divided by {divisor}: the score.", divisor=_divisor(trace)), 2),
        rows(hidden if later else nothing, 3),
        rows(_("Softmax turns the scores into shares of 1: e to the power of each, divided by the sum of all."), 4),
        mix(trace, layer, head, query, [key for key in shown if key <= query]),
    ]  # fmt: skip
    return Walk(title, segments)


def keys_of(weights: np.ndarray, allowed: np.ndarray, query: int) -> list[int]:
    """Which keys are shown, in their order: those with most weight, and one that the mask hides if there is one."""
    later = [query + 1] if query + 1 < len(weights) else []
    seen = np.flatnonzero(allowed)
    most = seen[np.argsort(-weights[seen], kind="stable")[: MOST_KEYS - len(later)]]
    return [*sorted(int(key) for key in most), *later]


def mix(trace: Trace, layer: int, head: int, query: int, keys: Sequence[int]) -> Segment:
    """Each value times its weight, and the sum of all: what the head fetches."""
    part = slice(0, MOST_DIMENSIONS)
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query]
    values = trace.of_head(f"blocks.{layer}.attn.v", head)[:, part].astype(np.float64)
    fetched = trace[f"blocks.{layer}.attn.z"][head, query, part].astype(np.float64)
    largest = max(float(np.abs(values[list(keys)]).max(initial=0.0)), float(np.abs(fetched).max(initial=0.0)))

    def strip(label: str, vector: np.ndarray, weight: float) -> dict:
        shares = [float(share) for share in (vector / largest if largest > 0 else vector * 0).clip(-1, 1)]
        return {"label": label, "weight": number(weight), "opacity": float(weight), "shares": shares,
                "first": number(vector[0])}  # fmt: skip

    parts = [strip(visible(trace.tokens[key]), values[key], weights[key]) for key in keys]
    whole = strip(_("the sum, z"), fetched, 1.0) | {"is_sum": True}
    frames = [{"strips": parts[:count]} for count in range(1, len(parts) + 1)] + [{"strips": [*parts, whole]}]
    says = _(
        "Each token’s value, as strong as its weight, is added up: that is what the head fetches. Shown are the first "
        "{count} of {all} numbers, and the first of them in digits.",
        count=len(fetched),
        all=trace.config.d_head,
    )
    return Segment(says, "strips", frames)


def _divisor(trace: Trace) -> str:
    symbols, written = divisor(trace.config), divisor_in_numbers(trace.config)
    return symbols if symbols == written else f"{symbols} = {written} = {number(trace.config.divisor)}"
