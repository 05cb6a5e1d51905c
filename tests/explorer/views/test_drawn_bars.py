"""Bars and dots as the browser shows them: their lengths and heights, the words under the pointer, and their clicks."""

from collections.abc import Callable

import numpy as np
import pytest

from explorer.state.interventions import Edit, Intervention
from explorer.tracing.capture import capture
from explorer.views.style import label, positions
from tests.look import PRE_NORM, Look, Parts, Seen, at_tokens, check

from .bars_by_hand import logit_parts, rollout


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
