"""What each token of the text contributes, by four methods, as the browser shows it."""

import numpy as np
import pytest
import torch
from torch import Tensor

from explorer.explain.point import Point as Clicked
from explorer.state.interventions import Edit
from explorer.tracing.intervening import edited
from explorer.views.style import ATTENTION, EMBEDDING, positions
from tests.drawn import tells
from tests.look import PRE_NORM, Look, Parts, Seen, check, panel_of

from .bars_by_hand import rollout

NAMES = ("gradient × input", "integrated gradients", "attention rollout", "knock-out")


def contributions(look: Look) -> Parts:
    """Rows of four methods, each worked out by itself; of the last token the knock-out has nothing to hide."""
    token, rival = look.explained
    ids = torch.tensor([look.trace.token_ids[:10]])
    x = torch.tensor(look.trace["embed"][None, :10])

    def f(vectors: Tensor, hides: tuple[Edit, ...] = ()) -> Tensor:
        handle = look.lm.taps["embed"].register_forward_hook(lambda module, inputs, output: vectors)
        try:
            with edited(look.lm, hides):
                logits = look.lm(ids)[0, -1]
        finally:
            handle.remove()
        return logits[token] - logits[rival]

    def slope(vectors: Tensor) -> Tensor:
        vectors = vectors.clone().requires_grad_()
        return torch.autograd.grad(f(vectors), vectors)[0]

    table, added = look.weight("token_embedding.weight") * look.trace.config.embedding_multiplier, 0
    if "position_embed" in look.trace:
        added = look.trace["position_embed"][:10]
    start = torch.tensor(np.broadcast_to(table.mean(0), (10, table.shape[1])) + added, dtype=torch.float32)[None]
    path = sum(slope(start + (i + 0.5) / 50 * (x - start)) for i in range(50)) / 50
    without = []
    for key in range(9):
        hidden = [Edit(f"blocks.{i}.attn.pattern", "mask", key, positions=f"{key + 1}-") for i in (0, 1)]
        without.append(float(f(x) - f(x, tuple(hidden))))
    by_gradient, integrated = (x * slope(x)).sum(-1)[0].tolist(), ((x - start) * path).sum(-1)[0].tolist()
    rows = dict(zip(NAMES, (by_gradient, integrated, [seen.value for seen in rollout(look)[0]], without), strict=True))
    places = positions(look.trace.tokens)
    return [[Seen(v, f"{places[i]}: {name}", {"key": i}) for i, v in enumerate(row)] for name, row in rows.items()]


@pytest.mark.parametrize("style", PRE_NORM)
def test_every_token_has_a_bar_of_each_method_in_its_own_row(look, style):
    seen = look(style)
    picture, parts = seen.picture("prediction", "by_token"), contributions(seen)
    points = [p for p in picture.points() if not (p.part == 3 and p.x == 9)]  # nothing comes after the last one
    check(points, parts)
    where = [ATTENTION if name in ("attention rollout", "knock-out") else EMBEDDING for name in NAMES]
    assert [part["marker"]["color"] for part in picture.parts] == where  # it is counted
    titles = sorted(picture.layout["annotations"], key=lambda note: -note["y"])
    tops = [picture.axis("y", part)["domain"][1] for part in picture.parts]
    for row, (title, top, bars) in enumerate(zip(titles, tops, parts, strict=True)):
        name = bars[0].words.partition(": ")[2]
        assert title["text"].startswith(name) and title["y"] == pytest.approx(top)
        low, high = picture.axis("y", picture.parts[row])["range"]
        assert -low == high > max(abs(bar.value) for bar in bars)
    total, change, error = titles[1]["text"].split("Σ ")[1].split(", ")
    assert tells(total, sum(bar.value for bar in parts[1]))
    of, rival = (seen.trace["logits"][9].astype(float)[i] for i in seen.explained)
    assert tells(titles[0]["text"], of - rival)
    start = found_at_baseline(seen)
    assert tells(change.partition("f(baseline) ")[2], of - rival - start)
    assert tells(error, abs(sum(bar.value for bar in parts[1]) - (of - rival - start)))
    column = next(shape for shape in picture.layout["shapes"] if shape["type"] == "rect")
    assert (column["x0"], column["x1"]) == (3.5, 4.5)


def found_at_baseline(look: Look) -> float:
    """The lead of the explained token where all tokens are the mean of the vocabulary."""
    table, added = look.weight("token_embedding.weight") * look.trace.config.embedding_multiplier, 0
    if "position_embed" in look.trace:
        added = look.trace["position_embed"][:10]
    start = torch.tensor(np.broadcast_to(table.mean(0), (10, table.shape[1])) + added, dtype=torch.float32)[None]
    handle = look.lm.taps["embed"].register_forward_hook(lambda module, inputs, output: start)
    try:
        with torch.no_grad():
            logits = look.lm(torch.tensor([look.trace.token_ids[:10]]))[0, -1].double()
    finally:
        handle.remove()
    token, rival = look.explained
    return float(logits[token] - logits[rival])


@pytest.mark.parametrize("style", PRE_NORM)
@pytest.mark.exhaustive
def test_how_far_the_methods_agree_is_said_of_each_with_the_knock_out(look, style):
    seen = look(style)
    rows = {bars[0].words.partition(": ")[2]: [bar.value for bar in bars[:9]] for bars in contributions(seen)}
    said = " ".join(seen.picture("prediction", "by_token").title("x").split("<br>"))
    for name in ("gradient × input", "integrated gradients", "attention rollout"):
        order = [np.argsort(np.argsort(rows[other])) for other in (name, "knock-out")]
        assert tells(
            said.partition(f"{name} ")[2].split(",")[0].split(";")[0].split(" and ")[0], np.corrcoef(*order)[0, 1]
        )


@pytest.mark.parametrize("style", PRE_NORM)
def test_a_clicked_bar_of_a_method_is_the_one_that_is_told(look, style):
    seen = look(style)
    panel = panel_of("prediction", "by_token")
    for p in seen.picture("prediction", "by_token").points():
        if p.x in (0, 4) and not (p.part == 3 and p.x == 9):
            derivation = panel.inspect(seen.trace, seen.selection, Clicked(x=p.x, y=p.y, curve=p.part, item=p.item))
            assert derivation.value == pytest.approx(p.value, abs=1e-9)
            assert derivation.recomputed == pytest.approx(p.value, abs=1e-3)
