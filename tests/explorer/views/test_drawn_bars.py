"""Bars and dots as the browser shows them: their lengths and heights, the words under the pointer, and their clicks."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from explorer.explain.point import Point as Clicked
from explorer.state.interventions import Edit, Intervention
from explorer.tracing.capture import capture
from explorer.tracing.intervening import edited
from explorer.views.style import label, positions
from tests.drawn import tells
from tests.look import PRE_NORM, Look, Parts, Seen, at_tokens, check, panel_of


def products(look: Look) -> np.ndarray:
    """(d,) of the chosen query and key, over √d."""
    turned = "_rot" * (look.trace.config.position == "rope")
    q, k = (look.trace[f"blocks.1.attn.{name}{turned}"].astype(float) for name in "qk")
    return q[2, 9] * k[2 * len(k) // len(q), 4] / np.sqrt(q.shape[-1])


def row(look: Look) -> Parts:
    weights = at_tokens(look, "key", look.trace["blocks.1.attn.pattern"][2, 9, :10], "key")
    return [weights, weights[4:5]]


def dimensions(look: Look) -> Parts:
    parts = products(look)
    assert parts.sum() == pytest.approx(look.trace["blocks.1.attn.scores"][2, 9, 4], abs=1e-4)
    return [[Seen(value, f"dimension {i}\n") for i, value in enumerate(parts)]]


def strongest(look: Look) -> Parts:
    block, gated = "blocks.1.ffn", look.trace.config.ffn == "swiglu"
    hidden = look.trace[f"{block}.hidden"][9]
    lengths = np.abs(hidden) * np.sqrt((look.weight(f"{block}.down_proj.weight") ** 2).sum(0))
    shown = [*np.argsort(-lengths, kind="stable")[:20], *([] if 7 in np.argsort(-lengths)[:20] else [7])]
    steps = {"gate": look.trace[f"{block}.gate"][9]} if gated else {}
    steps |= {"up" if gated else "before": look.trace[f"{block}.up"][9], "hidden": hidden}
    return [[Seen(values[n], step, {"neuron": n}) for n in shown] for step, values in steps.items()]


def across_tokens(look: Look) -> Parts:
    return [at_tokens(look, "token", look.trace["blocks.1.ffn.hidden"][:, 7], "query")]


def pushed(look: Look) -> Parts:
    """By the last layer, through the final norm as it divided at the query."""
    by = look.added(look.weight("blocks.1.ffn.down_proj.weight")[:, 7], to=look.weight("lm_head.weight"))  # (V,)
    order = np.argsort(-by, kind="stable")
    return [[Seen(by[i], label(look.trace.vocabulary[i])) for i in (*order[:10], *order[-10:])]]


def path(look: Look) -> Parts:
    chances = look.predicted(look.stream[:, 9])  # (2 L + 1, V)
    where = ["at the embedding"]
    where += [f"after the {part} of layer {layer}" for layer in (0, 1) for part in ("attention", "feed-forward")]
    return [[Seen(p, place) for p, place in zip(chances[:, i], where, strict=True)] for i in look.explained]


def rollout(look: Look) -> Parts:
    mixed = np.eye(len(look.trace))
    for attention in look.trace.stack("blocks.*.attn.pattern").mean(1):
        mixed = (attention + np.eye(len(mixed))) / 2 @ mixed
    return [at_tokens(look, "from", mixed[9, :10], "key")]


def logit_parts(look: Look) -> Parts:
    """Green, then blue and orange of each layer, with the biases of W_O after the blue where there are any."""
    trace, bias = look.trace, look.trace.config.bias
    positions = trace["position_embed"][9] if "position_embed" in trace else 0
    seen = [Seen(look.added(trace["embed"][9] - positions), "embedding", {"layer": 1})]
    if "position_embed" in trace:
        seen.append(Seen(look.added(positions), "position", {"layer": 1}))
    for i in (0, 1):
        heads = look.added(look.head_outputs(i)).sum()
        seen.append(Seen(heads, f"heads of layer {i}", {"layer": i}))
        if bias:
            vector = look.weight(f"blocks.{i}.attn.o_proj.bias")
            seen.append(Seen(look.added(vector), f"layer {i}", {"layer": i}))
        seen.append(Seen(look.added(trace[f"blocks.{i}.ffn.out"][9]), f"feed-forward of layer {i}", {"layer": i}))
    if bias:
        token, rival = (look.weight("lm_head.weight")[i] for i in look.explained)
        seen.append(Seen(look.weight("final_norm.bias") @ (token - rival), "β", {"layer": 1}))
    return [seen]


def actual(look: Look) -> Parts:
    trace = look.trace
    chances, following = look.predicted(look.stream[-1])[:-1], trace.token_ids[1:]
    own = [row[i] for row, i in zip(chances, following, strict=True)]
    ranks = [(row > row[i]).sum() + 1 for row, i in zip(chances, following, strict=True)]
    return [at_tokens(look, "after", values, "query") for values in (own, ranks)]


def embedding(look: Look) -> Parts:
    row = look.weight("token_embedding.weight")[look.trace.token_ids[9]]
    rows = [row * look.trace.config.embedding_scale]
    if "position_embed" in look.trace:
        rows += [look.trace["position_embed"][9], look.trace["embed"][9]]
    bars = [[Seen(value, f"dimension {i}\n", {"dim": i}) for i, value in enumerate(values)] for values in rows]
    return [part for every in bars for part in (every, every[5:6])]


def nearest(look: Look) -> Parts:
    table, own = look.weight("token_embedding.weight"), look.trace.token_ids[9]
    units = table / np.sqrt((table**2).sum(1, keepdims=True))
    cosines = units @ units[own]
    order = [i for i in np.argsort(-cosines, kind="stable") if i != own][:15]
    return [[Seen(cosines[i], f"{label(look.trace.vocabulary[i])}, id {i}") for i in order]]


def without_sublayers(look: Look) -> Parts:
    def bits(*edits: Intervention) -> float:
        run = capture(look.lm, look.trace.token_ids, edits)
        return np.log2(look.predicted(run["blocks.1.resid_post"][9])[look.explained[0]])

    parts = [(i, part, tap) for i in (0, 1) for part, tap in (("attention", "attn.z"), ("feed-forward", "ffn.hidden"))]
    changes = [bits(Edit(f"blocks.{i}.{tap}", "zero")) - bits() for i, _, tap in parts]
    return [[Seen(by, f"without {i} {part}", {"layer": i}) for by, (i, part, _) in zip(changes, parts, strict=True)]]


def expected(look: Look) -> Parts:
    """The first token has none; the chosen one's bar is drawn over its own."""
    trace, chances = look.trace, look.predicted(look.stream[-1])[:-1]
    own = [row[i] for row, i in zip(chances, trace.token_ids[1:], strict=True)]
    places = positions(trace.tokens)
    bars = [Seen(p, places[i], {"query": i}) for i, p in enumerate(own, 1)]
    return [bars, bars[8:9]]


def weights(look: Look) -> Parts:
    """Of the head that adds most to the logit of the likeliest token, by its output through the last norm."""
    row = look.weight("lm_head.weight")[look.predicted(look.stream[-1])[9].argmax()]
    added = [look.added(look.head_outputs(i), to=row) for i in (0, 1)]
    layer, head = np.unravel_index(np.argmax(added), (2, len(added[0])))
    places = positions(look.trace.tokens)
    shown = look.trace[f"blocks.{layer}.attn.pattern"][head, 9, :10]
    bars = [Seen(weight, places[i], {"key": i}) for i, weight in enumerate(shown)]
    return [bars, [bars[int(shown.argmax())]]]


def early(look: Look) -> Parts:
    chances = look.predicted(look.stream[::2, 9])  # (L + 1, V)
    where = ["no layer", "layer 0", "layer 1"]
    told = [f"{place}\n{label(look.trace.vocabulary[row.argmax()])}" for place, row in zip(where, chances, strict=True)]
    return [[Seen(row.max(), words) for row, words in zip(chances, told, strict=True)]]


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
    rows = {
        "gradient × input": (x * slope(x)).sum(-1)[0].tolist(),
        "integrated gradients": ((x - start) * path).sum(-1)[0].tolist(),
        "attention rollout": [seen.value for seen in rollout(look)[0]],
        "knock-out": without,
    }
    places = positions(look.trace.tokens)
    return [[Seen(v, f"{places[i]}: {name}", {"key": i}) for i, v in enumerate(row)] for name, row in rows.items()]


@pytest.mark.parametrize("style", PRE_NORM)
def test_every_token_has_a_bar_of_each_method_in_its_own_row(look, style):
    seen = look(style)
    picture, parts = seen.picture("prediction", "by_token"), contributions(seen)
    points = [p for p in picture.points() if not (p.part == 3 and p.x == 9)]  # nothing comes after the last one
    check(points, parts)
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


PANELS: dict[tuple[str, str], Callable[[Look], Parts]] = {
    ("attention", "row"): row,
    ("attention", "dimensions"): dimensions,
    ("feed_forward", "strongest"): strongest,
    ("feed_forward", "tokens"): across_tokens,
    ("feed_forward", "promoted"): pushed,
    ("prediction", "path"): path,
    ("prediction", "rollout"): rollout,
    ("prediction", "parts"): logit_parts,
    ("prediction", "actual"): actual,
    ("tokens", "vector"): embedding,
    ("tokens", "nearest"): nearest,
    ("experiments", "sublayers"): without_sublayers,
    ("pieces", "expected"): expected,
    ("looks", "weights"): weights,
    ("guesses", "layers"): early,
}


@pytest.mark.parametrize("style", PRE_NORM)
@pytest.mark.parametrize("panel", PANELS, ids="-".join)
def test_every_bar_is_what_was_computed(look, panel, style):
    seen = look(style)
    check(seen.picture(*panel).points(), PANELS[panel](seen))


def together(look: Look, measure: str) -> list[float]:
    """With each change alone, the sum, with all, and what all do beyond the sum."""
    unchanged = Look(look.trace.baseline, look.lm, look.selection)
    token = unchanged.explained[0]

    def of(*edits: Intervention) -> float:
        logits = capture(look.lm, look.trace.token_ids, edits)["logits"][9].astype(float)
        return logits[token] if measure == "logit" else np.exp(logits[token]) / np.exp(logits).sum()

    alone = [of(edit) - of() for edit in look.trace.edits]
    joint = of(*look.trace.edits) - of()
    return [*alone, sum(alone), joint, joint - sum(alone)]


@pytest.mark.parametrize("style", PRE_NORM)
@pytest.mark.parametrize("measure", ["logit", "probability"])
def test_every_change_has_a_bar_and_so_have_sum_and_all(look, style, measure):
    seen = look(style, changed=True)
    words = [label(edit.words(seen.trace.config), longest=60) for edit in seen.trace.edits]
    values = together(seen, measure)
    names = [*words, "sum of the single", "all together", "less the sum"]
    picture = seen.picture("experiments", f"together_{measure}")
    points = picture.points()
    assert picture.axis("y")["ticktext"][-3:] == ["sum", "together", "together − sum"]
    (line,) = picture.layout["shapes"]
    assert line["y0"] == line["y1"] == len(words) - 0.5
    unchanged = seen.trace.baseline["logits"][9].astype(float)
    token = Look(seen.trace.baseline, seen.lm, seen.selection).explained[0]
    before = unchanged[token] if measure == "logit" else np.exp(unchanged[token]) / np.exp(unchanged).sum()
    for p, value in zip(points, values[: len(words)], strict=False):
        first, then = p.told.split("\n")[1].split(" → ")
        assert tells(first, before) and tells(then, before + value)
    check(points, [[Seen(value, name) for value, name in zip(values, names, strict=True)]])


@pytest.mark.parametrize("style", PRE_NORM)
def test_what_every_part_adds_more_has_a_bar(look, style):
    changed, unchanged = look(style, changed=True), look(style)
    points = changed.picture("experiments", "grown_parts").points()
    lead = [run["logits"][9, unchanged.explained].astype(float) @ (1, -1) for run in (changed.trace, unchanged.trace)]
    assert sum(p.value for p in points) == pytest.approx(lead[0] - lead[1], abs=1e-3)
    (before,) = logit_parts(unchanged)
    for p, part in zip(points, before, strict=False):
        assert part.words in p.told and p.change == part.click and tells(p.told, part.value)
    divisors = [norm_divisor(one) for one in (changed, unchanged)]
    said = changed.picture("experiments", "grown_parts").title("x").replace("<br>", " ")
    by, was, times = said.partition("divides by ")[2].replace(", unchanged by ", ": ").split(": ", 2)
    assert tells(by, divisors[0]) and tells(was, divisors[1]) and tells(times, divisors[1] / divisors[0])
    (silenced,) = [p for p in points if "heads of layer 1" in p.told]
    rows = changed.head_outputs(1)
    assert not rows[1].any() and tells(silenced.told, silenced.value)


def norm_divisor(look: Look) -> float:
    """What the final norm divides by at the query."""
    x = look.stream[-1, 9]
    x = x - x.mean() if look.trace.config.norm == "layernorm" else x
    return float(np.sqrt((x**2).mean() + look.trace.config.norm_eps))
