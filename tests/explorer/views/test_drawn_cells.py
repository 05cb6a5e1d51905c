"""Heatmaps as the browser shows them: every cell's colour, the words under the pointer, and what a click selects."""

import html
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.state.interventions import Edit, Intervention
from explorer.tracing.capture import capture
from explorer.views.style import positions
from tests.drawn import tells
from tests.look import PRE_NORM, Look

STAGES, LAYER_OF_STAGE = (
    ("embedding", *(f"{i} {part}" for i in (0, 1) for part in ("attention", "feed-forward"))),
    (0, 0, 0, 1, 1),
)


class Cells(NamedTuple):
    """What is to be seen.

    Attributes:
        values: (R, C), NaN where there is to be nothing.
        rows, columns: what names a row or column under the pointer.
        click: row, column -> what is selected.
    """

    values: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    click: Callable[[int, int], dict[str, int]]


def tokens(look: Look, what: str) -> list[str]:
    return [f"{what} {place}" for place in positions(look.trace.tokens)]


def counted(what: str, size: int) -> list[str]:
    return [f"{what} {i}" for i in range(size)]


def of_weights(look: Look, weights: np.ndarray) -> Cells:
    """(T, T), row = query, column = key; nobody looks ahead."""
    seen = np.where(np.tri(len(weights)), weights, np.nan)
    return Cells(seen, tokens(look, "query"), tokens(look, "key"), lambda i, j: {"query": i, "key": j})


def of_heads(values: np.ndarray) -> Cells:
    """(L, H)."""
    layers, heads = (counted(what, size) for what, size in zip(("layer", "head"), values.shape, strict=True))
    return Cells(values, layers, heads, lambda i, j: {"layer": i, "head": j})


def pattern(look: Look) -> Cells:
    return of_weights(look, look.trace["blocks.1.attn.pattern"][2])


def previous_token(look: Look) -> Cells:
    patterns = look.trace.stack("blocks.*.attn.pattern")
    return of_heads(np.mean([patterns[..., q, q - 1] for q in range(1, len(look.trace))], axis=0))


def stream_lengths(look: Look) -> Cells:
    lengths = np.sqrt((look.stream**2).sum(-1))
    return Cells(lengths, STAGES, tokens(look, "token"), lambda i, j: {"query": j, "layer": LAYER_OF_STAGE[i]})


def directions_alike(look: Look) -> Cells:
    vectors = look.stream[:, 9]
    cosines = [[a @ b / np.sqrt(a @ a * (b @ b)) for b in vectors] for a in vectors]
    return Cells(np.array(cosines), STAGES, STAGES, lambda i, j: {"layer": LAYER_OF_STAGE[i]})


def lens(look: Look) -> Cells:
    rows = ["at the embedding"]
    rows += [f"after the {part} of layer {layer}" for layer in (0, 1) for part in ("attention", "feed-forward")]
    likeliest = look.predicted(look.stream).max(-1)
    return Cells(likeliest, rows, tokens(look, "after"), lambda i, j: {"query": j})


def added_by_heads(look: Look) -> Cells:
    return of_heads(np.stack([look.added(look.head_outputs(layer)) for layer in (0, 1)]))


def queries_of_a_head(look: Look) -> Cells:
    q = look.trace["blocks.1.attn.q"][2]
    dimensions = counted("dimension", q.shape[1])
    return Cells(q, tokens(look, "position"), dimensions, lambda i, j: {"query": i, "dim": j})


def added_positions(look: Look) -> Cells:
    values = look.trace["position_embed"]
    dimensions = counted("dimension", values.shape[1])
    return Cells(values, tokens(look, "position"), dimensions, lambda i, j: {"query": i, "dim": j})


def cached(look: Look, part: str) -> list[np.ndarray]:
    """(G, T) lengths of each layer's keys or values, up to the query."""
    turned = "_rot" * (part == "k" and look.trace.config.position == "rope")
    lengths = (np.sqrt((look.trace[f"blocks.{i}.attn.{part}{turned}"] ** 2).sum(-1)) for i in (0, 1))
    return [np.where(np.arange(len(look.trace)) <= 9, length, np.nan) for length in lengths]


def cache(look: Look) -> Cells:
    whole = np.stack([np.sqrt((lengths**2).sum(0)) for lengths in cached(look, "k")])
    layers = counted("layer", len(whole))
    return Cells(whole, layers, tokens(look, "position"), lambda i, j: {"layer": i, "query": j})


def stored(part: str) -> Callable[[Look], Cells]:
    def of(look: Look) -> Cells:
        lengths = cached(look, part)[1]
        heads = counted("kv head", len(lengths))
        return Cells(lengths, heads, tokens(look, "position"), lambda i, j: {"query": j})

    return of


def without_heads(look: Look) -> Cells:
    def bits(*edits: Intervention) -> float:
        run = capture(look.lm, look.trace.token_ids, edits)
        return np.log2(look.predicted(run["blocks.1.resid_post"][9])[look.explained[0]])

    heads = range(look.trace.config.num_heads)
    return of_heads(
        np.array([[bits(Edit(f"blocks.{i}.attn.z", "zero", index=j)) for j in heads] for i in (0, 1)]) - bits()
    )


def stream_moved(look: Look) -> Cells:
    before = Look(look.trace.baseline, look.lm, look.selection).stream
    moved = np.linalg.norm(look.stream - before, axis=-1) / np.linalg.norm(before, axis=-1)
    return Cells(moved, STAGES, tokens(look, "token"), lambda i, j: {"query": j, "layer": LAYER_OF_STAGE[i]})


def attention_moved(look: Look) -> Cells:
    after, before = (run.stack("blocks.*.attn.pattern") for run in (look.trace, look.trace.baseline))
    return of_heads(np.abs(after - before).sum((-2, -1)) / 2 / len(look.trace))


def pattern_change(look: Look) -> Cells:
    after, before = (run["blocks.1.attn.pattern"][2] for run in (look.trace, look.trace.baseline))
    return of_weights(look, after - before)


UNCHANGED = {
    ("attention", "pattern"): pattern,
    ("attention", "scores"): previous_token,
    ("residual", "lengths"): stream_lengths,
    ("residual", "similarity"): directions_alike,
    ("prediction", "lens"): lens,
    ("prediction", "heads"): added_by_heads,
    ("activations", "heatmap"): queries_of_a_head,
    ("kv_cache", "cells"): cache,
    ("kv_cache", "keys"): stored("k"),
    ("kv_cache", "values"): stored("v"),
    ("experiments", "heads"): without_heads,
}


def grown(look: Look) -> Cells:
    """What a head adds through the last norm of each run, changed less unchanged."""
    unchanged = Look(look.trace.baseline, look.lm, look.selection)
    token, rival = (look.weight("lm_head.weight")[i] for i in unchanged.explained)
    after, before = (
        np.stack([one.added(one.head_outputs(i), to=token - rival) for i in (0, 1)]) for one in (look, unchanged)
    )
    return of_heads(after - before)


CHANGED = {
    ("experiments", "grown_heads"): grown,
    ("experiments", "spread"): stream_moved,
    ("experiments", "other_heads"): attention_moved,
    ("experiments", "pattern_change"): pattern_change,
}


def check(look: Look, panel: tuple[str, str], expected: Cells):
    picture = look.picture(*panel)
    (heatmap,) = picture.parts
    drawn = np.array(heatmap["z"], dtype=float)
    assert_allclose(drawn, expected.values, rtol=2e-4, atol=2e-5)
    points = picture.points()
    assert {(p.y, p.x) for p in points} == set(zip(*np.nonzero(~np.isnan(expected.values)), strict=True))
    for p in points:
        i, j = int(p.y), int(p.x)
        assert all(html.unescape(name) in p.told for name in (expected.rows[i], expected.columns[j])), p.told
        assert tells(p.told, drawn[i, j]), (p.told, drawn[i, j])
        assert p.change == expected.click(i, j)


@pytest.mark.parametrize("style", PRE_NORM)
@pytest.mark.parametrize("panel", UNCHANGED, ids="-".join)
def test_every_cell_is_what_was_computed(look, panel, style):
    check(seen := look(style, tap="blocks.1.attn.q"), panel, UNCHANGED[panel](seen))


@pytest.mark.parametrize("style", PRE_NORM)
@pytest.mark.parametrize("panel", CHANGED, ids="-".join)
def test_every_cell_is_what_was_changed(look, panel, style):
    check(seen := look(style, changed=True), panel, CHANGED[panel](seen))


@pytest.mark.parametrize("style", PRE_NORM)
def test_what_a_head_adds_more_is_told_with_what_it_added(look, style):
    changed, unchanged = look(style, changed=True), look(style)
    token, rival = (changed.weight("lm_head.weight")[i] for i in unchanged.explained)
    after, before = (
        np.stack([one.added(one.head_outputs(i), to=token - rival) for i in (0, 1)]) for one in (changed, unchanged)
    )
    picture = changed.picture("experiments", "grown_heads")
    for p in picture.points():
        place = int(p.y), int(p.x)
        now, then = p.told.split("adds ")[1].split("\n")[0].split(", unchanged ")
        assert tells(now, after[place]) and tells(then, before[place])
    (frame,) = picture.layout["shapes"]
    assert [frame[side] for side in ("x0", "x1", "y0", "y1")] == [1.5, 2.5, 0.5, 1.5]


@pytest.mark.parametrize("style", ["gpt", "learned"])
def test_every_cell_is_what_is_added_for_its_position(look, style):
    check(seen := look(style), ("tokens", "positions"), added_positions(seen))
