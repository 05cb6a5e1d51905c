"""Walkthroughs: a computation step by step, each step with a sentence and a drawing of the run's numbers."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from explorer.analysis.attention import query_attention_stages, select_keys
from explorer.analysis.logit_lens import lens_summaries
from explorer.analysis.positions import main_pair, pair_scales, rotated_pairs, rotation_angles
from explorer.analysis.residual import SUBLAYERS, has_residual_stages, residual_norms
from explorer.architecture.formulas import angles_tap, score_divisor_formula, score_divisor_in_numbers
from explorer.architecture.residual_stream import sublayers
from explorer.errors import UserError
from explorer.explain.captured.formulas import first_token_position
from explorer.explain.notation import (
    escape_token,
    escape_token_in_text,
    format_number,
    quote_token,
    quote_token_in_text,
    token_formatter,
)
from explorer.interventions import PositionShift, RopeBaseReplacement
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import _, translate


@dataclass(frozen=True)
class DisplayNumber:
    """A number as text, with its size relative to the largest number it is compared with.

    Attributes:
        text: with three significant digits.
        share: fraction of the largest number it is compared with, -1 to 1, for its size or shade.
    """

    text: str
    share: float

    @classmethod
    def from_value(
        cls, value: float, largest: float, format_value: Callable[[float], str] = format_number
    ) -> "DisplayNumber":
        """Format a value, and give its share of the largest, from −1 to 1."""
        share = value / largest if largest > 0 and np.isfinite(value) else 0.0
        return cls("−∞" if value == -np.inf else format_value(value), float(np.clip(share, -1, 1)))


def display_numbers(values: np.ndarray, format_value: Callable[[float], str] = format_number) -> list[DisplayNumber]:
    """Return values as text, each with its size relative to the largest of them."""
    finite = np.abs(values[np.isfinite(values)])
    return [DisplayNumber.from_value(value, finite.max(initial=0.0), format_value) for value in values]


def format_weight(weight: float) -> str:
    """Format a share of 1 with four decimals, so that a column of them can be compared at a glance."""
    return f"{weight:.4f}"


@dataclass(frozen=True)
class ComputationStep:
    """One step of a walkthrough.

    Attributes:
        says: explanation, one or two sentences.
        kind: of drawing: "rows", "strips", "hands" or "tower".
        frames: animation frames; their keys depend on the kind.
    """

    says: str
    kind: str
    frames: list[dict[str, Any]]


@dataclass(frozen=True)
class Walkthrough:
    """A walkthrough: a title and its steps in order."""

    title: str
    segments: list[ComputationStep]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


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
    keys = select_keys(steps.weights, steps.allowed, query, selection.key, MAX_KEYS)
    masked = np.where(steps.allowed, steps.capped, -np.inf)
    columns = ["q·k", _("score"), _("after the mask"), _("weight")]
    values = [display_numbers(value[keys]) for value in (steps.dots, steps.scores, masked)]
    values.append(display_numbers(steps.weights[keys], format_weight))
    names = [escape_token_in_text(trace.tokens, key) for key in keys]
    query_token = quote_token_in_text(trace.tokens, query)
    is_whole = int(steps.allowed.sum()) == int(steps.allowed[keys].sum())

    def rows(text: str, count: int, one_by_one: bool = False) -> ComputationStep:
        all_rows = [{"label": name, "key": int(key), "chosen": key == selection.key, "cells": list(cells)}
                 for name, key, cells in zip(names, keys, zip(*values[:count], strict=True), strict=True)]  # fmt: skip
        row_counts = range(1, len(all_rows) + 1) if one_by_one else [len(all_rows)]
        frames = [{"columns": columns[:count], "rows": all_rows[:num_rows]} for num_rows in row_counts]
        return ComputationStep(text, "rows", frames)

    later = [name for name, key in zip(names, keys, strict=True) if key > query]
    mask_text = _("What comes after {query} must not be seen: −∞ in its place.", query=query_token)
    no_mask_text = _("The mask would hide what comes after {query}: here nothing does.", query=query_token)
    product_text = _(
        "The query of {query} meets each key: q·k is the sum of the products of their {count} numbers. The better they "
        "fit, the larger it is.",
        query=query_token,
        count=trace.config.d_head,
    )
    if any(name.endswith(f" ({key})") for name, key in zip(names, keys, strict=True)):
        position_text = _("A number in brackets is the token’s position.")
        product_text = f"{product_text} {position_text}"
    if not is_whole:
        shown_text = (
            _("Shown are the chosen key, those that {query} looks at most, and one after it.", query=query_token)
            if later
            else _("Shown are the chosen key and those that {query} looks at most.", query=query_token)
        )
        product_text = f"{product_text} {shown_text}"
    title = _("Attention of head {head} in layer {layer}, from {query}", head=head, layer=layer, query=query_token)
    segments = [
        rows(product_text, 1, one_by_one=True),
        rows(_("Each is divided by {divisor}: the score.", divisor=_divisor(trace)), 2),
        rows(mask_text if later else no_mask_text, 3),
        rows(_("Softmax turns the scores into shares of 1: e to the power of each, divided by the sum of all."), 4),
        value_mix_step(trace, layer, head, query, [key for key in keys if key <= query]),
    ]  # fmt: skip
    return Walkthrough(title, segments)


def value_mix_step(trace: Trace, layer: int, head: int, query: int, keys: Sequence[int]) -> ComputationStep:
    """Return the step that multiplies each value by its weight and sums up: the head output."""
    dims = slice(0, MAX_DIMENSIONS)
    weights = trace[f"blocks.{layer}.attn.pattern"][head, query]
    values = trace.head_value(f"blocks.{layer}.attn.v", head)[:, dims].astype(np.float64)
    fetched = trace[f"blocks.{layer}.attn.z"][head, query, dims].astype(np.float64)
    largest = max(float(np.abs(values[list(keys)]).max(initial=0.0)), float(np.abs(fetched).max(initial=0.0)))

    def strip(label: str, vector: np.ndarray, weight: float) -> dict:
        shares = [float(share) for share in (vector / largest if largest > 0 else vector * 0).clip(-1, 1)]
        return {"label": label, "weight": format_weight(weight), "opacity": float(weight), "shares": shares,
                "first": format_number(vector[0])}  # fmt: skip

    strips = [strip(escape_token_in_text(trace.tokens, key), values[key], weights[key]) for key in keys]
    sum_strip = strip(_("the sum, z"), fetched, 1.0) | {"is_sum": True}
    frames = [{"strips": strips[:count]} for count in range(1, len(strips) + 1)] + [{"strips": [*strips, sum_strip]}]
    text = _(
        "Each token’s value, as strong as its weight, is added up: that is what the head fetches. Shown are the first "
        "{count} of {all} numbers, and the first of them in digits.",
        count=len(fetched),
        all=trace.config.d_head,
    )
    return ComputationStep(text, "strips", frames)


def _divisor(trace: Trace) -> str:
    symbols, in_numbers = score_divisor_formula(trace.config), score_divisor_in_numbers(trace.config)
    return symbols if symbols == in_numbers else f"{symbols} = {in_numbers} = {format_number(trace.config.divisor)}"


MAX_STOPS = 13  # of a deep model some of its sums


def layers_walkthrough(trace: Trace, selection: Selection) -> Walkthrough:
    """Return the walkthrough of the selected token's stream from its embedding up.

    Raises:
        UserError: the run has no captured stream or no weights.
    """
    if not has_residual_stages(trace) or not trace.has_weights:
        raise UserError(_("No residual stream was captured for this run."))
    norms, guesses = residual_norms(trace), lens_summaries(trace, range(selection.query, selection.query + 1))
    stream_norms = norms.stream[:, selection.query]
    token = quote_token(trace.tokens[selection.query])
    before, floors, segments = 0, [], []
    for stop in select_step_indices(len(norms.stages)):
        floors = [
            *floors,
            {
                "label": norms.stages[stop],
                "length": vars(DisplayNumber.from_value(stream_norms[stop], stream_norms.max())),
            },
        ]
        likeliest = [
            {"token": escape_token(trace.vocabulary[token_id]), **vars(DisplayNumber.from_value(probability, 1.0))}
            for token_id, probability in zip(guesses.top[stop, 0], guesses.probabilities[stop, 0], strict=True)
        ]
        sentences = [
            _(
                "In layer {layer} {part} writes a vector of length {length}.",
                layer=layer,
                part=translate(SUBLAYERS[sublayer]),
                length=format_number(update_norm),
            )
            for (layer, sublayer), stage_index, update_norm in zip(
                sublayers(trace.config), norms.stage_indices, norms.updates[:, selection.query], strict=True
            )
            if before < stage_index <= stop
        ]
        begins = _("The way begins with the embedding of {token}.", token=token)
        norm_text = _("Now the stream is {length} long.", length=format_number(stream_norms[stop]))
        text = " ".join([*(sentences if stop else [begins]), norm_text])
        segments.append(ComputationStep(text, "tower", [{"floors": floors, "guesses": likeliest}]))
        before = stop
    return Walkthrough(_("{token} on its way up the layers", token=token), segments)


def select_step_indices(count: int) -> list[int]:
    """Return the indices of the sums that get a step, including the first and the last."""
    return sorted({round(index) for index in np.linspace(0, count - 1, min(count, MAX_STOPS))})


MAX_FRAMES = 24  # positions shown, evenly spaced


def rotation_walkthrough(trace: Trace, selection: Selection) -> Walkthrough:
    """Return the walkthrough for the pair that the view names (`main_pair`).

    The query's pair is rotated position by position, then the key's, then both are shown with their angle.

    Raises:
        UserError: the layer has no RoPE.
    """
    if not trace.has_tap("blocks.*.attn.q_rot") or not trace.config.has_rope(selection.layer):
        raise UserError(_("This layer has no RoPE."))
    q, k = (
        rotated_pairs(trace, name, selection.layer, selection.head, at)
        for name, at in (("q", selection.query), ("k", selection.key))
    )
    pair = main_pair(trace, selection.layer, selection.head, selection.query, selection.key)
    angles = rotation_angles(trace, selection.layer)[:, pair].astype(np.float64)
    scale = float(np.broadcast_to(pair_scales(trace, selection.layer), trace.config.d_head // 2)[pair])
    first, changed = first_token_position(trace), _rotation_changes(trace, selection.layer)
    positions = {"q": first + selection.query, "k": first + selection.key}  # where the run counts them as standing
    hands = {"q": (q, selection.query), "k": (k, selection.key)}
    largest = max(float(np.linalg.norm(at[pair])) for pairs in (q, k) for at in (pairs.before, pairs.after)) or 1.0

    def make_hand(name: str, point: np.ndarray) -> dict:
        a, b = (float(value) for value in point)
        return {"name": name, "x": a / largest, "y": b / largest, "text": f"({format_number(a)}, {format_number(b)})"}

    def rotation_frames(name: str) -> list[dict]:
        (pairs, token_index), position = hands[name], positions[name]
        before, angle = pairs.before[pair].astype(np.float64), float(angles[token_index])
        intermediate = [] if changed else [(p, angle * p / position) for p in select_positions(position)[:-1]]
        frames = [(rotate(before * scale, rotation_angle), p, rotation_angle) for p, rotation_angle in intermediate] + [
            (pairs.after[pair], position, angle)
        ]
        return [
            {
                "hands": [make_hand(name, point), make_faint_hand(name, before)],
                "position": p,
                "angle": format_number(rotation_angle),
            }
            for point, p, rotation_angle in frames
        ]

    def make_faint_hand(name: str, point: np.ndarray) -> dict:
        return make_hand(name, point) | {"is_before": True}

    query_token, key_token = (quote_token(trace.tokens[at]) for at in (selection.query, selection.key))
    both_hands = {
        "hands": [make_hand("q", q.after[pair]), make_hand("k", k.after[pair])],
        "angle": format_number(angles[selection.query] - angles[selection.key]),
    }
    dot = float(q.after[pair].astype(np.float64) @ k.after[pair])
    product = {
        "divisor": score_divisor_in_numbers(trace.config),
        "dot": format_number(dot),
        "adds": format_number(dot / trace.config.divisor),
    }
    segments = [
        ComputationStep(
            _("Pair {pair} of the query of {query}: two of its numbers, drawn as the hand of a clock, before its "
              "position is known.", pair=pair, query=query_token),
            "hands", [{"hands": [make_hand("q", q.before[pair])]}],
        ),
        ComputationStep(
            _("At position {position} it would be rotated, but the rotation is changed in this run: {changes}.",
              position=positions["q"], changes=changed)
            if changed else
            _("Each position rotates it by the same angle, up to position {position}. Its length stays.",
              position=positions["q"]) if scale == 1 else
            _(
                "Each position rotates it by the same angle, up to position {position}. Its length is multiplied by "
                "{scale}.", position=positions["q"], scale=format_number(scale)),
            "hands", rotation_frames("q"),
        ),
        ComputationStep(
            _("The same pair of the key of {key}, at position {position}, with the same change.",
              key=key_token, position=positions["k"])
            if changed else
            _("The same pair of the key of {key} is rotated to its own position, {position}.",
              key=key_token, position=positions["k"]),
            "hands", rotation_frames("k"),
        ),
        ComputationStep(
            _("The score sees both as they are now. This pair adds q·k ÷ {divisor} = {dot} ÷ {divisor} = {adds} to it.",
              **product)
            if changed else
            _(
                "The score sees both rotated. This pair adds q·k ÷ {divisor} = {dot} ÷ {divisor} = {adds} to it. If "
                "both moved by equally many positions, their angle and the score would stay.", **product),
            "hands", [both_hands],
        ),
    ]  # fmt: skip
    title = _("How position rotates pair {pair}: {query} at {at}, {key} at {other}",
              pair=pair, query=query_token, at=positions["q"], key=key_token, other=positions["k"])  # fmt: skip
    return Walkthrough(title, segments)


def _rotation_changes(trace: Trace, layer: int) -> str:
    """Name the interventions that change a rotation beyond its position and base; "" if there are none."""
    taps = (angles_tap(trace.config, layer), *(f"blocks.{layer}.attn.{name}_rot" for name in "qk"))
    interventions = [
        intervention
        for intervention in trace.edits
        if not isinstance(intervention, PositionShift | RopeBaseReplacement) and any(map(intervention.affects, taps))
    ]
    return "; ".join(intervention.describe(trace.config, token_formatter(trace)) for intervention in interventions)


def rotate(point: np.ndarray, angle: float) -> np.ndarray:
    """Rotate a point (2,) by an angle in radians."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([point[0] * cos - point[1] * sin, point[0] * sin + point[1] * cos])


def select_positions(last: int) -> list[int]:
    """Return positions from 0 to `last`, at most `MAX_FRAMES` of them."""
    return sorted({round(position) for position in np.linspace(0, last, min(last + 1, MAX_FRAMES))})


WALKTHROUGHS = {"attention": attention_walkthrough, "rotation": rotation_walkthrough, "layers": layers_walkthrough}


def get_walkthrough(name: str, trace: Trace, selection: Selection) -> Walkthrough:
    """Return a walkthrough by its name, at the selected head and tokens.

    Raises:
        UserError: there is no such walkthrough, or this run lacks the values that it needs.
    """
    if not isinstance(name, str) or name not in WALKTHROUGHS:
        raise UserError(_("there is no walk {name!r:.40}", name=name))
    return WALKTHROUGHS[name](trace, selection.clamp_to_trace(trace))
