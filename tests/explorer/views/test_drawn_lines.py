"""Lines, dots and further bars as the browser receives them: values, hover texts and clicks."""

import html
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from explorer.analysis.next_token import next_token_distribution
from explorer.views import VIEWS
from explorer.views.style import label, position_labels
from model.config import kv_cache_bytes_per_token
from tests.evaluation_case import PRE_NORM, Case, ExpectedPoint, ExpectedPoints, check_points, points_at_tokens
from tests.rendered_figures import contains_number
from tests.subtest_loops import subtest_each

SUBLAYERS = [(layer, part) for layer in (0, 1) for part in ("attn", "ffn")]
STAGES = ["embedding", *(f"{i} {part}" for i in (0, 1) for part in ("attention", "feed-forward"))]


def norm_inputs_outputs(case: Case) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return name, input and output of both norms of layer 1."""
    reads = (("attn_norm", "resid_pre"), ("ffn_norm", "resid_mid"))
    return [(name, case.trace[f"blocks.1.{before}"], case.trace[f"blocks.1.{name}"]) for name, before in reads]


def lengths(case: Case) -> ExpectedPoints:
    stream = np.sqrt((case.stream**2).sum(-1))
    added = [np.sqrt((case.trace[f"blocks.{i}.{sublayer}.out"][9] ** 2).sum()) for i, sublayer in SUBLAYERS]
    lines = [
        [ExpectedPoint(v, f"{name}\n") for v, name in zip(vs, STAGES, strict=True)]
        for vs in (np.median(stream, 1), stream[:, 9])
    ]
    return [*lines, [ExpectedPoint(value, f"{name} ") for value, name in zip(added, STAGES[1:], strict=True)]]


def directions(case: Case) -> ExpectedPoints:
    before = case.stream[:-1, 9]
    added = np.stack([case.trace[f"blocks.{i}.{sublayer}.out"][9] for i, sublayer in SUBLAYERS]).astype(float)
    cosines = (before * added).sum(-1) / np.sqrt((before**2).sum(-1) * (added**2).sum(-1))
    return [
        [ExpectedPoint(v, name, {"layer": i}) for v, name, (i, _) in zip(cosines, STAGES[1:], SUBLAYERS, strict=True)]
    ]


def divisors(case: Case) -> ExpectedPoints:
    centred, parts = case.trace.config.norm == "layernorm", []
    for _, inputs, _ in norm_inputs_outputs(case):
        means = inputs.mean(-1) if centred else np.zeros(len(inputs))
        parts.append(points_at_tokens(case, "token", np.sqrt(((inputs.T - means) ** 2).mean(0)), "query"))
        parts += [points_at_tokens(case, "token", means, "query")] * centred
    return parts


def gains(case: Case) -> ExpectedPoints:
    parts = []
    for name, _, _ in norm_inputs_outputs(case):
        weights = case.weight(f"blocks.1.{name}.weight")
        order = np.argsort(-weights, kind="stable")
        parts.append([ExpectedPoint(weights[i], f"{name}, dimension {i}\n") for i in order])
    return parts


def before_and_after(case: Case) -> ExpectedPoints:
    return [
        [ExpectedPoint(value, f"dimension {i}\n{stage} {name}") for i, value in enumerate(values[9])]
        for name, *pair in norm_inputs_outputs(case)
        for stage, values in zip(("before", "after"), pair, strict=True)
    ]


def cache_size(case: Case) -> ExpectedPoints:
    config = case.trace.config
    filled = np.arange(1, config.context_length + 1)
    bytes_per_token = 2 * config.num_layers * config.kv_heads * config.d_head * 4
    assert bytes_per_token == kv_cache_bytes_per_token(config)
    sizes = [
        bytes_per_token,
        *([2 * config.num_layers * config.d_model * 4] if config.kv_heads < config.num_heads else []),
    ]
    return [[ExpectedPoint(n * size / 1e6, f"{n} positions") for n in filled] for size in sizes]


def cache_work(case: Case) -> ExpectedPoints:
    n = np.arange(1, len(case.trace) + 1)
    return [
        [ExpectedPoint(value, f"{i} steps") for i, value in zip(n, values, strict=True)] for values in (n, np.cumsum(n))
    ]


def sparsity(case: Case) -> ExpectedPoints:
    hidden = [np.abs(case.trace[f"blocks.{i}.ffn.hidden"]) for i in (0, 1)]
    near = [h <= (0 if case.trace.config.ffn in ("relu", "relu2") else 0.1 * np.sqrt((h**2).mean())) for h in hidden]
    shares = [n.mean() for n in near], [n.all(0).mean() for n in near]
    return [
        [ExpectedPoint(share, f"layer {i}\n", {"layer": i}) for i, share in enumerate(layer_shares)]
        for layer_shares in shares
    ]


PANELS: dict[tuple[str, str], Callable[[Case], ExpectedPoints]] = {
    ("residual", "norms"): lengths,
    ("residual", "directions"): directions,
    ("residual", "scales"): divisors,
    ("residual", "gains"): gains,
    ("residual", "normalised"): before_and_after,
    ("kv_cache", "size"): cache_size,
    ("kv_cache", "work"): cache_work,
    ("feed_forward", "layers"): sparsity,
}


@subtest_each("panel, style", product(PANELS, PRE_NORM))
def test_points_equal_recomputed_values(make_case, panel, style):
    case = make_case(style)
    points = case.figure(*panel).points()
    if panel == ("residual", "directions"):  # hover texts state norms, too
        assert all("cosine" in p.hover_text for p in points)
    check_points(points, PANELS[panel](case))


@subtest_each("style", PRE_NORM)
def test_runs_with_and_without_interventions_have_bars(make_case, style):
    case = make_case(style, changed=True)
    before, after = (next_token_distribution(run, 9).plain for run in (case.trace.baseline, case.trace))
    token_ids = np.argsort(-np.maximum(before, after), kind="stable")[:8]
    for view in (view.name for view in VIEWS if case.has(view.name, "next_token_change")):
        figure = case.figure(view, "next_token_change")
        runs = {"unchanged": before, "changed": after}
        check_points(
            figure.points(),
            [
                [ExpectedPoint(p[i], f"{label(case.trace.vocabulary[i], 12)}\n{run} ") for i in token_ids]
                for run, p in runs.items()
            ],
        )
        assert [plot_trace["name"] for plot_trace in figure.parts] == list(runs)


@subtest_each("style", PRE_NORM)
def test_surprisal_changes_show_both_values(make_case, style):
    case = make_case(style, changed=True)
    ids = case.trace.token_ids

    def bits(run) -> np.ndarray:
        rows = Case(run, case.lm, case.selection).stream_probabilities(Case(run, case.lm, case.selection).stream[-1])
        return np.array([-np.log2(row[i]) for row, i in zip(rows[:-1], ids[1:], strict=True)])

    before, after = bits(case.trace.baseline), bits(case.trace)
    points = case.figure("experiments", "text_change").points()
    for i, (p, old, new) in enumerate(zip(points, before, after, strict=True), start=1):
        assert p.value == pytest.approx(new - old, abs=1e-3)
        assert html.unescape(position_labels(case.trace.tokens)[i]) in p.hover_text
        assert contains_number(p.hover_text, old) and contains_number(p.hover_text, new)
        assert p.change == {"query": i}


@subtest_each("style", PRE_NORM)
def test_neurons_are_dots_on_activation_curve(make_case, style):
    case = make_case(style)
    gated = case.trace.config.ffn == "swiglu"
    before, after = ("gate_pre", "gate") if gated else ("up", "hidden")
    inputs, out = (case.trace[f"blocks.1.ffn.{name}"][9] for name in (before, after))
    points = case.figure("feed_forward", "curve").points()
    assert sorted(p.change["neuron"] for p in points) == list(range(case.trace.config.d_ff))
    for p in points:
        n = p.change["neuron"]
        assert (p.x, p.y) == pytest.approx((inputs[n], out[n]))
        assert (
            f"neuron {n}\n" in p.hover_text
            and contains_number(p.hover_text, inputs[n])
            and contains_number(p.hover_text, out[n])
        )


@subtest_each("style", PRE_NORM)
def test_tokens_are_projected_on_principal_components(make_case, style):
    case = make_case(style, residual_depth=1)
    points = case.figure("tokens", "spread").points()
    vectors = case.stream[2] - case.stream[2].mean(0)
    first, second = np.linalg.svd(vectors)[0].T[:2]  # (T,) each, of length 1
    for letter, direction in (("x", first), ("y", second)):
        projections = np.array([getattr(p, letter) for p in points])
        assert abs(projections @ direction) == pytest.approx(np.linalg.norm(direction @ vectors), rel=1e-3)
        assert np.linalg.norm(projections) == pytest.approx(abs(projections @ direction), rel=1e-3)
    for i, p in enumerate(points):
        assert p.hover_text.startswith(html.unescape(position_labels(case.trace.tokens)[i]))
        assert contains_number(p.hover_text, p.x) and contains_number(p.hover_text, p.y) and p.change == {"query": i}


@subtest_each("style", PRE_NORM)
def test_line_dots_give_weights_of_chosen_tokens(make_case, style):
    case = make_case(style)
    weights = case.trace["blocks.1.attn.pattern"][2]
    points = case.figure("attention", "lines").points()
    assert [(p.x, p.y) for p in points] == [(x, i) for x in (0, 1) for i in range(12)]
    for p in points:
        assert p.hover_text.startswith(f"{('query', 'key')[int(p.x)]} {int(p.y)} ")
        query, key = (9, int(p.y)) if p.x else (int(p.y), 4)
        assert contains_number(p.hover_text, weights[query, key]) if key <= query else "not seen" in p.hover_text
        assert p.change == {"query": max(query, key) if p.x else query, "key": key if p.x else min(query, key)}


@subtest_each("style", PRE_NORM)
def test_attention_stages_show_numbers_per_key(make_case, style):
    case = make_case(style)
    scores, weights = (case.trace[f"blocks.1.attn.{name}"][2, 9] for name in ("scores", "pattern"))
    values = (
        case.trace.head_value("blocks.1.attn.v", 2)
        @ case.weight("blocks.1.attn.o_proj.weight")[:, 2 * case.trace.config.d_head : 3 * case.trace.config.d_head].T
    )
    lengths = np.sqrt((values**2).sum(-1))
    rows = scores * case.trace.config.divisor, scores, scores, weights, lengths, weights * lengths
    for p in case.figure("attention", "stages").points():
        i, key = int(p.y), int(p.x)
        assert f"key {key} " in p.hover_text and p.change == {"key": key}
        assert "−∞" in p.hover_text if i == 2 and key > 9 else contains_number(p.hover_text, rows[i][key]), (
            p.hover_text,
            rows[i][key],
        )
