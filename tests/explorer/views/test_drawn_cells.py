"""Heatmaps as the browser receives them: colours, hover texts and clicks."""

import html
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose

from explorer.interventions import Intervention, make_intervention
from explorer.tracing.capture import capture
from explorer.views.style import position_labels
from tests.evaluation_case import PRE_NORM, Case
from tests.rendered_figures import contains_number
from tests.subtest_loops import subtest_each

STAGES, LAYER_OF_STAGE = (
    ("embedding", *(f"{i} {part}" for i in (0, 1) for part in ("attention", "feed-forward"))),
    (0, 0, 0, 1, 1),
)


class Cells(NamedTuple):
    """Expected cells of a heatmap.

    Attributes:
        values: (R, C), NaN where no cell is drawn.
        rows, columns: text that names a row or column in the hover text.
        click: row, column -> the selection after a click.
    """

    values: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    click: Callable[[int, int], dict[str, int]]


def tokens(case: Case, axis: str) -> list[str]:
    return [f"{axis} {token_label}" for token_label in position_labels(case.trace.tokens)]


def numbered_labels(name: str, size: int) -> list[str]:
    return [f"{name} {i}" for i in range(size)]


def token_pair_cells(case: Case, weights: np.ndarray) -> Cells:
    """Return cells of attention weights (T, T), row = query, column = key, NaN for future keys."""
    visible = np.where(np.tri(len(weights)), weights, np.nan)
    return Cells(visible, tokens(case, "query"), tokens(case, "key"), lambda i, j: {"query": i, "key": j})


def head_cells(values: np.ndarray) -> Cells:
    """Return cells of values (L, H), one per head."""
    layers, heads = (numbered_labels(axis, size) for axis, size in zip(("layer", "head"), values.shape, strict=True))
    return Cells(values, layers, heads, lambda i, j: {"layer": i, "head": j})


def pattern(case: Case) -> Cells:
    return token_pair_cells(case, case.trace["blocks.1.attn.pattern"][2])


def previous_token(case: Case) -> Cells:
    patterns = case.trace.stack("blocks.*.attn.pattern")
    return head_cells(np.mean([patterns[..., q, q - 1] for q in range(1, len(case.trace))], axis=0))


def stream_lengths(case: Case) -> Cells:
    lengths = np.sqrt((case.stream**2).sum(-1))
    return Cells(lengths, STAGES, tokens(case, "token"), lambda i, j: {"query": j, "layer": LAYER_OF_STAGE[i]})


def stage_cosines(case: Case) -> Cells:
    vectors = case.stream[:, 9]
    cosines = [[a @ b / np.sqrt(a @ a * (b @ b)) for b in vectors] for a in vectors]
    return Cells(np.array(cosines), STAGES, STAGES, lambda i, j: {"layer": LAYER_OF_STAGE[i]})


def lens(case: Case) -> Cells:
    rows = ["at the embedding"]
    rows += [f"after the {part} of layer {layer}" for layer in (0, 1) for part in ("attention", "feed-forward")]
    likeliest = case.stream_probabilities(case.stream).max(-1)
    return Cells(likeliest, rows, tokens(case, "after"), lambda i, j: {"query": j})


def added_by_heads(case: Case) -> Cells:
    return head_cells(np.stack([case.logit_contributions(case.head_outputs(layer)) for layer in (0, 1)]))


def queries_of_a_head(case: Case) -> Cells:
    q = case.trace["blocks.1.attn.q"][2]
    dimensions = numbered_labels("dimension", q.shape[1])
    return Cells(q, tokens(case, "position"), dimensions, lambda i, j: {"query": i, "dim": j})


def added_positions(case: Case) -> Cells:
    values = case.trace["position_embed"]
    dimensions = numbered_labels("dimension", values.shape[1])
    return Cells(values, tokens(case, "position"), dimensions, lambda i, j: {"query": i, "dim": j})


def cached_norms(case: Case, vector: str) -> list[np.ndarray]:
    """Return the norms (G, T) of each layer's cached keys or values, NaN after the query."""
    suffix = "_rot" * (vector == "k" and case.trace.config.position == "rope")
    lengths = (np.sqrt((case.trace[f"blocks.{i}.attn.{vector}{suffix}"] ** 2).sum(-1)) for i in (0, 1))
    return [np.where(np.arange(len(case.trace)) <= 9, length, np.nan) for length in lengths]


def cached_key_cells(case: Case) -> Cells:
    whole = np.stack([np.sqrt((lengths**2).sum(0)) for lengths in cached_norms(case, "k")])
    layers = numbered_labels("layer", len(whole))
    return Cells(whole, layers, tokens(case, "position"), lambda i, j: {"layer": i, "query": j})


def stored_norm_cells(vector: str) -> Callable[[Case], Cells]:
    def compute(case: Case) -> Cells:
        lengths = cached_norms(case, vector)[1]
        heads = numbered_labels("kv head", len(lengths))
        return Cells(lengths, heads, tokens(case, "position"), lambda i, j: {"query": j})

    return compute


def without_heads(case: Case) -> Cells:
    def bits(*edits: Intervention) -> float:
        run = capture(case.lm, case.trace.token_ids, edits)
        return np.log2(case.stream_probabilities(run["blocks.1.resid_post"][9])[case.target_and_contrast[0]])

    heads = range(case.trace.config.num_heads)
    return head_cells(
        np.array([[bits(make_intervention(f"blocks.{i}.attn.z", "zero", index=j)) for j in heads] for i in (0, 1)])
        - bits()
    )


def stream_change(case: Case) -> Cells:
    before = Case(case.trace.baseline, case.lm, case.selection).stream
    distances = np.linalg.norm(case.stream - before, axis=-1) / np.linalg.norm(before, axis=-1)
    return Cells(distances, STAGES, tokens(case, "token"), lambda i, j: {"query": j, "layer": LAYER_OF_STAGE[i]})


def attention_shift(case: Case) -> Cells:
    after, before = (run.stack("blocks.*.attn.pattern") for run in (case.trace, case.trace.baseline))
    return head_cells(np.abs(after - before).sum((-2, -1)) / 2 / len(case.trace))


def pattern_change(case: Case) -> Cells:
    after, before = (run["blocks.1.attn.pattern"][2] for run in (case.trace, case.trace.baseline))
    return token_pair_cells(case, after - before)


PLAIN_PANELS = {
    ("attention", "pattern"): pattern,
    ("attention", "scores"): previous_token,
    ("residual", "lengths"): stream_lengths,
    ("residual", "similarity"): stage_cosines,
    ("prediction", "lens"): lens,
    ("prediction", "heads"): added_by_heads,
    ("activations", "heatmap"): queries_of_a_head,
    ("kv_cache", "cells"): cached_key_cells,
    ("kv_cache", "keys"): stored_norm_cells("k"),
    ("kv_cache", "values"): stored_norm_cells("v"),
    ("experiments", "heads"): without_heads,
}


def added_change(case: Case) -> Cells:
    """Return the change of each head's contribution through the final norm, edited less original run."""
    unchanged = Case(case.trace.baseline, case.lm, case.selection)
    token, rival = (case.weight("lm_head.weight")[i] for i in unchanged.target_and_contrast)
    after, before = (
        np.stack(
            [run_case.logit_contributions(run_case.head_outputs(i), unembedding_rows=token - rival) for i in (0, 1)]
        )
        for run_case in (case, unchanged)
    )
    return head_cells(after - before)


INTERVENTION_PANELS = {
    ("experiments", "grown_heads"): added_change,
    ("experiments", "spread"): stream_change,
    ("experiments", "other_heads"): attention_shift,
    ("experiments", "pattern_change"): pattern_change,
}


def check_cells(case: Case, panel: tuple[str, str], expected: Cells):
    figure = case.figure(*panel)
    (heatmap,) = figure.parts
    values = np.array(heatmap["z"], dtype=float)
    assert_allclose(values, expected.values, rtol=2e-4, atol=2e-5)
    points = figure.points()
    assert {(p.y, p.x) for p in points} == set(zip(*np.nonzero(~np.isnan(expected.values)), strict=True))
    for p in points:
        i, j = int(p.y), int(p.x)
        assert all(html.unescape(name) in p.hover_text for name in (expected.rows[i], expected.columns[j])), (
            p.hover_text
        )
        assert contains_number(p.hover_text, values[i, j]), (p.hover_text, values[i, j])
        assert p.change == expected.click(i, j)


@subtest_each("panel, style", product(PLAIN_PANELS, PRE_NORM))
def test_cells_equal_recomputed_values(make_case, panel, style):
    check_cells(case := make_case(style, tap="blocks.1.attn.q"), panel, PLAIN_PANELS[panel](case))


@subtest_each("panel, style", product(INTERVENTION_PANELS, PRE_NORM))
def test_cells_equal_recomputed_changes(make_case, panel, style):
    check_cells(case := make_case(style, changed=True), panel, INTERVENTION_PANELS[panel](case))


@subtest_each("style", PRE_NORM)
def test_head_changes_show_contributions_before_and_after(make_case, style):
    changed, unchanged = make_case(style, changed=True), make_case(style)
    token, rival = (changed.weight("lm_head.weight")[i] for i in unchanged.target_and_contrast)
    after, before = (
        np.stack(
            [run_case.logit_contributions(run_case.head_outputs(i), unembedding_rows=token - rival) for i in (0, 1)]
        )
        for run_case in (changed, unchanged)
    )
    figure = changed.figure("experiments", "grown_heads")
    for p in figure.points():
        cell = int(p.y), int(p.x)
        now, then = p.hover_text.split("adds ")[1].split("\n")[0].split(", unchanged ")
        assert contains_number(now, after[cell]) and contains_number(then, before[cell])
    (frame,) = figure.layout["shapes"]
    assert [frame[side] for side in ("x0", "x1", "y0", "y1")] == [1.5, 2.5, 0.5, 1.5]


@subtest_each("style", ["gpt", "learned"])
def test_position_cells_equal_position_embeddings(make_case, style):
    check_cells(case := make_case(style), ("tokens", "positions"), added_positions(case))
