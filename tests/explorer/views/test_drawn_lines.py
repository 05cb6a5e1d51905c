"""Lines, dots and further bars as the browser shows them: their heights, the words under the pointer, their clicks."""

import html
from collections.abc import Callable

import numpy as np
import pytest

from explorer.analysis.next_token import next_token
from explorer.views import VIEWS
from explorer.views.style import label, positions
from model.counting import kv_cache_bytes_per_token
from tests.drawn import tells
from tests.look import PRE_NORM, Look, Parts, Seen, at_tokens, check

SUBLAYERS = [(layer, part) for layer in (0, 1) for part in ("attn", "ffn")]
STAGES = ["embedding", *(f"{i} {part}" for i in (0, 1) for part in ("attention", "feed-forward"))]


def normed(look: Look) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Of layer 1's two norms: name, what they read and what they leave."""
    reads = (("attn_norm", "resid_pre"), ("ffn_norm", "resid_mid"))
    return [(name, look.trace[f"blocks.1.{before}"], look.trace[f"blocks.1.{name}"]) for name, before in reads]


def lengths(look: Look) -> Parts:
    stream = np.sqrt((look.stream**2).sum(-1))
    added = [np.sqrt((look.trace[f"blocks.{i}.{part}.out"][9] ** 2).sum()) for i, part in SUBLAYERS]
    lines = [
        [Seen(v, f"{name}\n") for v, name in zip(vs, STAGES, strict=True)]
        for vs in (np.median(stream, 1), stream[:, 9])
    ]
    return [*lines, [Seen(value, f"{name} ") for value, name in zip(added, STAGES[1:], strict=True)]]


def directions(look: Look) -> Parts:
    before = look.stream[:-1, 9]
    added = np.stack([look.trace[f"blocks.{i}.{part}.out"][9] for i, part in SUBLAYERS]).astype(float)
    cosines = (before * added).sum(-1) / np.sqrt((before**2).sum(-1) * (added**2).sum(-1))
    return [[Seen(v, name, {"layer": i}) for v, name, (i, _) in zip(cosines, STAGES[1:], SUBLAYERS, strict=True)]]


def divisors(look: Look) -> Parts:
    centred, parts = look.trace.config.norm == "layernorm", []
    for _, read, _ in normed(look):
        means = read.mean(-1) if centred else np.zeros(len(read))
        parts.append(at_tokens(look, "token", np.sqrt(((read.T - means) ** 2).mean(0)), "query"))
        parts += [at_tokens(look, "token", means, "query")] * centred
    return parts


def gains(look: Look) -> Parts:
    parts = []
    for name, _, _ in normed(look):
        weights = look.weight(f"blocks.1.{name}.weight")
        order = np.argsort(-weights, kind="stable")
        parts.append([Seen(weights[i], f"{name}, dimension {i}\n") for i in order])
    return parts


def before_and_after(look: Look) -> Parts:
    return [
        [Seen(value, f"dimension {i}\n{when} {name}") for i, value in enumerate(values[9])]
        for name, *pair in normed(look)
        for when, values in zip(("before", "after"), pair, strict=True)
    ]


def cache_size(look: Look) -> Parts:
    config = look.trace.config
    filled = np.arange(1, config.context_length + 1)
    each = 2 * config.num_layers * config.kv_heads * config.d_head * 4
    assert each == kv_cache_bytes_per_token(config)
    sizes = [each, *([2 * config.num_layers * config.d_model * 4] if config.kv_heads < config.num_heads else [])]
    return [[Seen(n * size / 1e6, f"{n} positions") for n in filled] for size in sizes]


def cache_work(look: Look) -> Parts:
    n = np.arange(1, len(look.trace) + 1)
    return [[Seen(value, f"{i} steps") for i, value in zip(n, values, strict=True)] for values in (n, np.cumsum(n))]


def sparsity(look: Look) -> Parts:
    hidden = [np.abs(look.trace[f"blocks.{i}.ffn.hidden"]) for i in (0, 1)]
    near = [h <= (0 if look.trace.config.ffn in ("relu", "relu2") else 0.1 * np.sqrt((h**2).mean())) for h in hidden]
    shares = [n.mean() for n in near], [n.all(0).mean() for n in near]
    return [[Seen(share, f"layer {i}\n", {"layer": i}) for i, share in enumerate(each)] for each in shares]


PANELS: dict[tuple[str, str], Callable[[Look], Parts]] = {
    ("residual", "norms"): lengths,
    ("residual", "directions"): directions,
    ("residual", "scales"): divisors,
    ("residual", "gains"): gains,
    ("residual", "normalised"): before_and_after,
    ("kv_cache", "size"): cache_size,
    ("kv_cache", "work"): cache_work,
    ("feed_forward", "layers"): sparsity,
}


@pytest.mark.parametrize("style", PRE_NORM)
@pytest.mark.parametrize("panel", PANELS, ids="-".join)
def test_every_point_is_what_was_computed(look, panel, style):
    seen = look(style)
    points = seen.picture(*panel).points()
    if panel == ("residual", "directions"):  # these tell of lengths, too
        assert all("cosine" in p.told for p in points)
    check(points, PANELS[panel](seen))


@pytest.mark.parametrize("style", PRE_NORM)
def test_a_run_and_its_change_stand_side_by_side(look, style):
    seen = look(style, changed=True)
    before, after = (next_token(run, 9).plain for run in (seen.trace.baseline, seen.trace))
    shown = np.argsort(-np.maximum(before, after), kind="stable")[:8]
    for view in (view.name for view in VIEWS if seen.has(view.name, "next_token_change")):
        picture = seen.picture(view, "next_token_change")
        runs = {"unchanged": before, "changed": after}
        check(
            picture.points(),
            [[Seen(p[i], f"{label(seen.trace.vocabulary[i], 12)}\n{run} ") for i in shown] for run, p in runs.items()],
        )
        assert [part["name"] for part in picture.parts] == list(runs)


@pytest.mark.parametrize("style", PRE_NORM)
def test_each_tokens_surprisal_before_and_after_a_change(look, style):
    seen = look(style, changed=True)
    ids = seen.trace.token_ids

    def bits(run) -> np.ndarray:
        rows = Look(run, seen.lm, seen.selection).predicted(Look(run, seen.lm, seen.selection).stream[-1])
        return np.array([-np.log2(row[i]) for row, i in zip(rows[:-1], ids[1:], strict=True)])

    before, after = bits(seen.trace.baseline), bits(seen.trace)
    points = seen.picture("experiments", "text_change").points()
    for i, (p, old, new) in enumerate(zip(points, before, after, strict=True), start=1):
        assert p.value == pytest.approx(new - old, abs=1e-3)
        assert html.unescape(positions(seen.trace.tokens)[i]) in p.told
        assert tells(p.told, old) and tells(p.told, new)
        assert p.change == {"query": i}


@pytest.mark.parametrize("style", PRE_NORM)
def test_every_neuron_is_a_dot_on_its_curve(look, style):
    seen = look(style)
    gated = seen.trace.config.ffn == "swiglu"
    before, after = ("gate_pre", "gate") if gated else ("up", "hidden")
    into, out = (seen.trace[f"blocks.1.ffn.{name}"][9] for name in (before, after))
    points = seen.picture("feed_forward", "curve").points()
    assert sorted(p.change["neuron"] for p in points) == list(range(seen.trace.config.d_ff))
    for p in points:
        n = p.change["neuron"]
        assert (p.x, p.y) == pytest.approx((into[n], out[n]))
        assert f"neuron {n}\n" in p.told and tells(p.told, into[n]) and tells(p.told, out[n])


@pytest.mark.parametrize("style", PRE_NORM)
def test_tokens_are_spread_along_two_directions_at_right_angles(look, style):
    seen = look(style, depth=1)
    points = seen.picture("tokens", "spread").points()
    vectors = seen.stream[2] - seen.stream[2].mean(0)
    first, second = np.linalg.svd(vectors)[0].T[:2]  # (T,) each, of length 1
    for letter, direction in (("x", first), ("y", second)):
        drawn = np.array([getattr(p, letter) for p in points])
        assert abs(drawn @ direction) == pytest.approx(np.linalg.norm(direction @ vectors), rel=1e-3)
        assert np.linalg.norm(drawn) == pytest.approx(abs(drawn @ direction), rel=1e-3)
    for i, p in enumerate(points):
        assert p.told.startswith(html.unescape(positions(seen.trace.tokens)[i]))
        assert tells(p.told, p.x) and tells(p.told, p.y) and p.change == {"query": i}


@pytest.mark.parametrize("style", PRE_NORM)
def test_dots_at_the_lines_tell_the_weight_to_the_chosen_key_and_from_the_chosen_query(look, style):
    seen = look(style)
    weights = seen.trace["blocks.1.attn.pattern"][2]
    points = seen.picture("attention", "lines").points()
    assert [(p.x, p.y) for p in points] == [(x, i) for x in (0, 1) for i in range(12)]
    for p in points:
        assert p.told.startswith(f"{('query', 'key')[int(p.x)]} {int(p.y)} ")
        query, key = (9, int(p.y)) if p.x else (int(p.y), 4)
        assert tells(p.told, weights[query, key]) if key <= query else "not seen" in p.told
        assert p.change == {"query": max(query, key) if p.x else query, "key": key if p.x else min(query, key)}


@pytest.mark.parametrize("style", PRE_NORM)
def test_the_numbers_of_a_query_stand_at_their_keys(look, style):
    seen = look(style)
    scores, weights = (seen.trace[f"blocks.1.attn.{name}"][2, 9] for name in ("scores", "pattern"))
    values = (
        seen.trace.of_head("blocks.1.attn.v", 2)
        @ seen.weight("blocks.1.attn.o_proj.weight")[:, 2 * seen.trace.config.d_head : 3 * seen.trace.config.d_head].T
    )
    lengths = np.sqrt((values**2).sum(-1))
    rows = scores * seen.trace.config.divisor, scores, scores, weights, lengths, weights * lengths
    for p in seen.picture("attention", "stages").points():
        i, key = int(p.y), int(p.x)
        assert f"key {key} " in p.told and p.change == {"key": key}
        assert "−∞" in p.told if i == 2 and key > 9 else tells(p.told, rows[i][key]), (p.told, rows[i][key])
