"""Walkthrough of one query's attention, from dot products to the head output."""

from collections.abc import Sequence

import numpy as np

from explorer.analysis.attention import query_attention_stages
from explorer.architecture.attention import score_divisor_formula, score_divisor_in_numbers
from explorer.explain.notation import escape_token, format_number, quote_token
from explorer.explain.walkthroughs.walkthrough import Walkthrough, WalkthroughStep, display_numbers
from explorer.state.errors import UserError
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _

MAX_KEYS = 8  # of a long text those that are looked at most
MAX_DIMENSIONS = 16  # of a value, as a strip of cells


def attention_walkthrough(trace: Trace, selection: Selection) -> Walkthrough:
    """Return the walkthrough: dot products, scaling, mask, softmax, weighted sum of the values.

    Raises:
        UserError: the run has no scores, or no values.
    """
    layer, head, query = selection.layer, selection.head, selection.query
    if not (trace.has_tap("blocks.*.attn.scores") and trace.has_tap("blocks.*.attn.v")):
        raise UserError(_("No attention was captured for this run."))
    steps = query_attention_stages(trace, layer, head, query)
    keys = select_keys(steps.weights, steps.allowed, query)
    masked = np.where(steps.allowed, steps.capped, -np.inf)
    columns = ["q·k", _("score"), _("after the mask"), _("weight")]
    values = [steps.dots[keys], steps.scores[keys], masked[keys], steps.weights[keys]]
    names = [escape_token(trace.tokens[key]) for key in keys]
    query_token = quote_token(trace.tokens[query])
    is_whole = int(steps.allowed.sum()) == int(steps.allowed[keys].sum())

    def rows(text: str, count: int, one_by_one: bool = False) -> WalkthroughStep:
        display_columns = [display_numbers(column) for column in values[:count]]
        all_rows = [{"label": name, "key": int(key), "cells": list(cells)}
                 for name, key, cells in zip(names, keys, zip(*display_columns, strict=True), strict=True)]  # fmt: skip
        row_counts = range(1, len(all_rows) + 1) if one_by_one else [len(all_rows)]
        frames = [{"columns": columns[:count], "rows": all_rows[:num_rows]} for num_rows in row_counts]
        return WalkthroughStep(text, "rows", frames)

    later = [name for name, key in zip(names, keys, strict=True) if key > query]
    mask_text = _("What comes after {query} must not be seen: −∞ in its place.", query=query_token)
    no_mask_text = _("The mask would hide what comes after {query}: here nothing does.", query=query_token)
    product_text = (
        _(
            "The query of {query} meets each key: q·k, the sum of the products of their {count} numbers.",
            query=query_token,
            count=trace.config.d_head,
        )
        if is_whole
        else _(
            "The query of {query} meets each key: q·k, the sum of the products of their {count} numbers. Shown are the "
            "keys that it looks at most.",
            query=query_token,
            count=trace.config.d_head,
        )
    )
    title = _("Attention of head {head} in layer {layer}, from {query}", head=head, layer=layer, query=query_token)
    segments = [
        rows(product_text, 1, one_by_one=True),
        rows(_("Each is divided by {divisor}: the score.", divisor=_divisor(trace)), 2),
        rows(mask_text if later else no_mask_text, 3),
        rows(_("Softmax turns the scores into shares of 1: e to the power of each, divided by the sum of all."), 4),
        value_mix_step(trace, layer, head, query, [key for key in keys if key <= query]),
    ]  # fmt: skip
    return Walkthrough(title, segments)


def select_keys(weights: np.ndarray, allowed: np.ndarray, query: int) -> list[int]:
    """Return the displayed keys in order: those with the largest weights, and one masked key if there is one."""
    later = [query + 1] if query + 1 < len(weights) else []
    visible_keys = np.flatnonzero(allowed)
    top_keys = visible_keys[np.argsort(-weights[visible_keys], kind="stable")[: MAX_KEYS - len(later)]]
    return [*sorted(int(key) for key in top_keys), *later]


def value_mix_step(trace: Trace, layer: int, head: int, query: int, keys: Sequence[int]) -> WalkthroughStep:
    """Return the step that multiplies each value by its weight and sums up: the head output."""
    dims = slice(0, MAX_DIMENSIONS)
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query]
    values = trace.head_value(f"blocks.{layer}.attn.v", head)[:, dims].astype(np.float64)
    fetched = trace[f"blocks.{layer}.attn.z"][head, query, dims].astype(np.float64)
    largest = max(float(np.abs(values[list(keys)]).max(initial=0.0)), float(np.abs(fetched).max(initial=0.0)))

    def strip(label: str, vector: np.ndarray, weight: float) -> dict:
        shares = [float(share) for share in (vector / largest if largest > 0 else vector * 0).clip(-1, 1)]
        return {"label": label, "weight": format_number(weight), "opacity": float(weight), "shares": shares,
                "first": format_number(vector[0])}  # fmt: skip

    strips = [strip(escape_token(trace.tokens[key]), values[key], weights[key]) for key in keys]
    sum_strip = strip(_("the sum, z"), fetched, 1.0) | {"is_sum": True}
    frames = [{"strips": strips[:count]} for count in range(1, len(strips) + 1)] + [{"strips": [*strips, sum_strip]}]
    text = _(
        "Each token’s value, as strong as its weight, is added up: that is what the head fetches. Shown are the first "
        "{count} of {all} numbers, and the first of them in digits.",
        count=len(fetched),
        all=trace.config.d_head,
    )
    return WalkthroughStep(text, "strips", frames)


def _divisor(trace: Trace) -> str:
    symbols, in_numbers = score_divisor_formula(trace.config), score_divisor_in_numbers(trace.config)
    return symbols if symbols == in_numbers else f"{symbols} = {in_numbers} = {format_number(trace.config.divisor)}"
