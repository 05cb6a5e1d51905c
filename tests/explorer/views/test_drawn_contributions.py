"""Token contributions by four methods, as the browser receives them."""

import numpy as np
import pytest
import torch
from torch import Tensor

from explorer.explain.derivation import ClickedPoint as Clicked
from explorer.interventions import Intervention, make_intervention
from explorer.tracing.forward_hooks import apply_interventions
from explorer.views.style import ATTENTION, EMBEDDING, position_labels
from tests.evaluation_case import PRE_NORM, Case, ExpectedPoint, ExpectedPoints, check_points, get_panel
from tests.rendered_figures import contains_number
from tests.subtest_loops import subtest_each

from .expected_bars import rollout

NAMES = ("gradient × input", "integrated gradients", "attention rollout", "knock-out")


def contribution_bars(case: Case) -> ExpectedPoints:
    """Return a row of bars per method, each recomputed; knock-out has none for the last token."""
    token, rival = case.target_and_contrast
    ids = torch.tensor([case.trace.token_ids[:10]])
    x = torch.tensor(case.trace["embed"][None, :10])

    def f(vectors: Tensor, hides: tuple[Intervention, ...] = ()) -> Tensor:
        handle = case.lm.taps["embed"].register_forward_hook(lambda module, inputs, output: vectors)
        try:
            with apply_interventions(case.lm, hides):
                logits = case.lm(ids)[0, -1]
        finally:
            handle.remove()
        return logits[token] - logits[rival]

    def slope(vectors: Tensor) -> Tensor:
        vectors = vectors.clone().requires_grad_()
        return torch.autograd.grad(f(vectors), vectors)[0]

    table, added = case.weight("token_embedding.weight") * case.trace.config.embedding_multiplier, 0
    if "position_embed" in case.trace:
        added = case.trace["position_embed"][:10]
    start = torch.tensor(np.broadcast_to(table.mean(0), (10, table.shape[1])) + added, dtype=torch.float32)[None]
    path = sum(slope(start + (i + 0.5) / 50 * (x - start)) for i in range(50)) / 50
    without = []
    for key in range(9):
        hidden = [make_intervention(f"blocks.{i}.attn.pattern", "mask", key, positions=f"{key + 1}-") for i in (0, 1)]
        without.append(float(f(x) - f(x, tuple(hidden))))
    by_gradient, integrated = (x * slope(x)).sum(-1)[0].tolist(), ((x - start) * path).sum(-1)[0].tolist()
    rows = dict(zip(NAMES, (by_gradient, integrated, [bar.value for bar in rollout(case)[0]], without), strict=True))
    labels = position_labels(case.trace.tokens)
    return [
        [ExpectedPoint(v, f"{labels[i]}: {name}", {"key": i}) for i, v in enumerate(row)] for name, row in rows.items()
    ]


@subtest_each("style", PRE_NORM)
def test_tokens_have_a_bar_per_method(make_case, style):
    case = make_case(style)
    figure, parts = case.figure("prediction", "by_token"), contribution_bars(case)
    points = [p for p in figure.points() if not (p.group == 3 and p.x == 9)]  # the last token has no knock-out
    check_points(points, parts)
    colours = [ATTENTION if name in ("attention rollout", "knock-out") else EMBEDDING for name in NAMES]
    assert [plot_trace["marker"]["color"] for plot_trace in figure.parts] == colours
    titles = sorted(figure.layout["annotations"], key=lambda note: -note["y"])
    tops = [figure.axis("y", plot_trace)["domain"][1] for plot_trace in figure.parts]
    for row, (title, top, bars) in enumerate(zip(titles, tops, parts, strict=True)):
        name = bars[0].text.partition(": ")[2]
        assert title["text"].startswith(name) and title["y"] == pytest.approx(top)
        low, high = figure.axis("y", figure.parts[row])["range"]
        assert -low == high > max(abs(bar.value) for bar in bars)
    total, change, error = titles[1]["text"].split("Σ ")[1].split(", ")
    assert contains_number(total, sum(bar.value for bar in parts[1]))
    target, rival = (case.trace["logits"][9].astype(float)[i] for i in case.target_and_contrast)
    assert contains_number(titles[0]["text"], target - rival)
    start = baseline_lead(case)
    assert contains_number(change.partition("the logit ")[2], target - rival - start)
    assert contains_number(error, abs(sum(bar.value for bar in parts[1]) - (target - rival - start)))
    column = next(shape for shape in figure.layout["shapes"] if shape["type"] == "rect")
    assert (column["x0"], column["x1"]) == (3.5, 4.5)


def baseline_lead(case: Case) -> float:
    """Return the lead of the target token over the contrast where every token embedding is the vocabulary's mean."""
    table, added = case.weight("token_embedding.weight") * case.trace.config.embedding_multiplier, 0
    if "position_embed" in case.trace:
        added = case.trace["position_embed"][:10]
    start = torch.tensor(np.broadcast_to(table.mean(0), (10, table.shape[1])) + added, dtype=torch.float32)[None]
    handle = case.lm.taps["embed"].register_forward_hook(lambda module, inputs, output: start)
    try:
        with torch.no_grad():
            logits = case.lm(torch.tensor([case.trace.token_ids[:10]]))[0, -1].double()
    finally:
        handle.remove()
    token, rival = case.target_and_contrast
    return float(logits[token] - logits[rival])


@pytest.mark.exhaustive
@subtest_each("style", PRE_NORM)
def test_title_gives_rank_correlations_with_knockout(make_case, style):
    case = make_case(style)
    rows = {bars[0].text.partition(": ")[2]: [bar.value for bar in bars[:9]] for bars in contribution_bars(case)}
    text = " ".join(case.figure("prediction", "by_token").title("x").split("<br>"))
    for name in ("gradient × input", "integrated gradients", "attention rollout"):
        order = [np.argsort(np.argsort(rows[other])) for other in (name, "knock-out")]
        assert contains_number(
            text.partition(f"{name} ")[2].split(",")[0].split(";")[0].split(" and ")[0], np.corrcoef(*order)[0, 1]
        )


@subtest_each("style", PRE_NORM)
def test_clicked_bar_is_explained_one(make_case, style):
    case = make_case(style)
    panel = get_panel("prediction", "by_token")
    for p in case.figure("prediction", "by_token").points():
        if p.x in (0, 4) and not (p.group == 3 and p.x == 9):
            derivation = panel.inspect(case.trace, case.selection, Clicked(x=p.x, y=p.y, curve=p.group, item=p.item))
            assert derivation.value == pytest.approx(p.value, abs=1e-9)
            assert derivation.recomputed_value == pytest.approx(p.value, abs=1e-3)
