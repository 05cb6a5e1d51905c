"""Walkthroughs show the run's numbers in every frame, worded by the page's script."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from explorer import capture, make_intervention
from explorer.analysis.positions import pair_scales, rotated_pairs, score_by_pair
from explorer.analysis.residual import residual_norms
from explorer.analysis.walkthroughs import MAX_KEYS, WALKTHROUGHS, get_walkthrough
from explorer.errors import UserError
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from tests.explorer.web.script_calls import call_script
from tests.sample_models import tokenizer
from tests.subtest_loops import each_rotating_style, each_style

SELECTION = Selection(layer=1, head=1, query=5, key=2)


def show_walk(name: str, trace: Trace, selection: Selection) -> dict[str, Any]:
    """Return a walkthrough as the browser shows it."""
    walkthrough = get_walkthrough(name, trace, selection)
    (shown,) = call_script("widgets/teaching/walkthrough_steps.js", "describeWalkthrough", (walkthrough,))
    return shown


def parse_float(text: str) -> float:
    return -np.inf if text == "−∞" else float(text.replace("−", "-"))


@each_style
def test_attention_walk_leads_from_products_to_output(trace):
    clamped, walk = SELECTION.clamp_to_trace(trace), show_walk("attention", trace, SELECTION)
    products, scores, masked, weights, mix = walk["segments"]
    q, k = ("q_rot", "k_rot") if trace.has_tap("blocks.1.attn.q_rot") else ("q", "k")
    query = trace[f"blocks.{clamped.layer}.attn.{q}"][clamped.head, clamped.query]
    keys = trace.head_value(f"blocks.{clamped.layer}.attn.{k}", clamped.head)
    pattern = trace[f"blocks.{clamped.layer}.attn.pattern"][clamped.head, clamped.query]
    assert [len(frame["rows"]) for frame in products["frames"]] == list(range(1, len(products["frames"]) + 1))
    for row in weights["frames"][-1]["rows"]:
        dot, score, after, weight = (parse_float(cell["text"]) for cell in row["cells"])
        key = row["key"]
        assert dot == pytest.approx(keys[key] @ query, rel=6e-3, abs=1e-4)
        assert score == pytest.approx(dot / trace.config.divisor, rel=1.2e-2, abs=1e-4)
        assert weight == pytest.approx(pattern[key], abs=6e-5)
        assert (after == -np.inf) == (key > clamped.query or pattern[key] == 0)
    assert [len(segment["frames"][-1]["rows"][0]["cells"]) for segment in (products, scores, masked, weights)] == [
        1,
        2,
        3,
        4,
    ]
    shown_keys = [row["key"] for row in products["frames"][-1]["rows"]]
    assert clamped.query + 1 in shown_keys and shown_keys == sorted(shown_keys)
    whole = mix["frames"][-1]["strips"][-1]
    fetched = trace[f"blocks.{clamped.layer}.attn.z"][clamped.head, clamped.query]
    assert whole["is_sum"] and whole["first"] == format_number(fetched[0])
    for strip, key in zip(
        mix["frames"][-1]["strips"][:-1], [key for key in shown_keys if key <= clamped.query], strict=True
    ):
        value = trace.head_value(f"blocks.{clamped.layer}.attn.v", clamped.head)[key]
        assert (strip["first"], strip["weight"]) == (format_number(value[0]), f"{pattern[key]:.4f}")
        assert np.sign(strip["shares"]).tolist() == np.sign(value[: len(strip["shares"])]).tolist()


def test_selected_key_is_shown_even_with_least_weight(capture_trace):
    trace = capture_trace("rope", 12)
    least = int(trace["blocks.1.attn.pattern"][0, 11].argmin())
    walk = show_walk("attention", trace, Selection(layer=1, head=0, query=11, key=least))
    rows = walk["segments"][0]["frames"][-1]["rows"]
    assert [row["key"] for row in rows if row["chosen"]] == [least] and len(rows) == MAX_KEYS


def test_long_prompt_shows_keys_with_most_weight(capture_trace):
    trace = capture_trace("rope", 30)
    walk = show_walk("attention", trace, Selection(layer=1, head=0, query=29, key=4))
    labels = {row["key"]: row["label"] for row in walk["segments"][0]["frames"][-1]["rows"]}
    keys = list(labels)
    weights = trace["blocks.1.attn.pattern"][0, 29]
    assert sorted(keys) == sorted(np.argsort(-weights)[:8])
    assert "looks at most" in walk["segments"][0]["says"]
    for key, label in labels.items():  # a token that the text repeats has its position
        assert label.endswith(f" ({key})") == (list(trace.tokens).count(trace.tokens[key]) > 1)
    assert len(set(labels.values())) == len(labels) and len(set(trace.tokens)) < len(trace)


@each_rotating_style
def test_rotation_walk_ends_at_captured_vectors(trace):
    layer = next(layer for layer in (1, 0) if trace.config.has_rope(layer))  # some models rotate only one layer
    selection = replace(SELECTION, layer=layer)
    clamped = selection.clamp_to_trace(trace)
    before, q, k, both = show_walk("rotation", trace, selection)["segments"]
    for segment, name, position in ((q, "q", clamped.query), (k, "k", clamped.key)):
        rotated = trace.head_value(f"blocks.{clamped.layer}.attn.{name}_rot", clamped.head)[position]
        last = segment["frames"][-1]
        a, b = (parse_float(text) for text in last["hands"][0]["text"].strip("()").split(", "))
        assert a in [parse_float(format_number(value)) for value in rotated]
        assert b in [parse_float(format_number(value)) for value in rotated]
        assert [frame["position"] for frame in segment["frames"]] == list(range(position + 1))
        lengths = [np.hypot(frame["hands"][0]["x"], frame["hands"][0]["y"]) for frame in segment["frames"]]
        assert lengths == pytest.approx([lengths[0]] * len(lengths), rel=1e-4)
    x, y = (both["frames"][0]["hands"][i] for i in (0, 1))
    assert (x["text"], y["text"]) == (q["frames"][-1]["hands"][0]["text"], k["frames"][-1]["hands"][0]["text"])
    (a, b), (c, d) = ([parse_float(text) for text in hand["text"].strip("()").split(", ")] for hand in (x, y))
    quotient, adds = re.search(r"q·k ÷ \S+ = (\S+) ÷ \S+ = (\S+) to it", both["says"]).groups()
    assert parse_float(quotient) == pytest.approx(a * c + b * d, rel=0.02, abs=0.02)  # of the numbers shown
    assert parse_float(adds) == pytest.approx(parse_float(quotient) / trace.config.divisor, rel=0.01)
    pair_scores = score_by_pair(trace, clamped.layer, clamped.head, clamped.query, clamped.key)
    assert np.abs(pair_scores - parse_float(adds)).min() < 0.01
    assert len(before["frames"]) == 1


@each_rotating_style
def test_rotation_walk_shows_pair_that_rotation_changes_most(trace):
    layer = next(layer for layer in (1, 0) if trace.config.has_rope(layer))
    selection = replace(SELECTION, layer=layer).clamp_to_trace(trace)
    q, k = (
        rotated_pairs(trace, name, layer, selection.head, position)
        for name, position in (("q", selection.query), ("k", selection.key))
    )
    scale = np.square(pair_scales(trace, layer))
    effects = np.abs((q.after * k.after).sum(-1) - (q.before * k.before).sum(-1) * scale)
    walk = show_walk("rotation", trace, selection)
    assert int(re.search(r"pair (\d+)", walk["title"])[1]) == effects.argmax()


def test_rotation_walk_uses_shifted_positions(lms, capture_trace):
    shifted = capture(
        lms["rope"],
        capture_trace("rope").token_ids,
        [make_intervention("rope.angles", "shift", 40)],
        tokenizer=tokenizer(),
    )
    walk = show_walk("rotation", shifted, SELECTION)
    assert f"at {40 + SELECTION.query}, " in walk["title"] and walk["title"].endswith(f" at {40 + SELECTION.key}")
    for segment, position in ((walk["segments"][1], 40 + SELECTION.query), (walk["segments"][2], 40 + SELECTION.key)):
        assert f"position {position}" in segment["says"] or f"position, {position}" in segment["says"]
        last, before = segment["frames"][-1], segment["frames"][-2]
        assert last["position"] == position
        ratio = parse_float(last["angle"]) / parse_float(before["angle"])
        assert ratio == pytest.approx(position / before["position"], rel=1e-2)  # the same angle per position


def test_rotation_walk_mentions_intervention(lms, capture_trace):
    unrotated = capture(
        lms["rope"], capture_trace("rope").token_ids, [make_intervention("rope.angles", "zero")], tokenizer=tokenizer()
    )
    segments = show_walk("rotation", unrotated, SELECTION)["segments"]
    assert "rotation off" in segments[1]["says"] and "same angle" not in " ".join(
        segment["says"] for segment in segments
    )
    assert [frame["angle"] for frame in segments[1]["frames"]] == ["0"]


@each_style
def test_layers_walk_ends_with_model_prediction(trace):
    walk = show_walk("layers", trace, SELECTION)
    last = walk["segments"][-1]["frames"][-1]
    logits = trace["logits"][SELECTION.query].astype(np.float64)
    p = np.exp(logits - logits.max())
    p /= p.sum()
    assert parse_float(last["guesses"][0]["text"]) == pytest.approx(p.max(), rel=6e-3)
    norms = residual_norms(trace)
    assert last["floors"][-1]["length"]["text"] == format_number(norms.stream[-1, SELECTION.query])
    assert [len(segment["frames"][0]["floors"]) for segment in walk["segments"]] == list(
        range(1, len(walk["segments"]) + 1)
    )


def test_walks_are_json_and_unknown_walk_is_refused(rope_trace):
    for name in WALKTHROUGHS:
        json.dumps(get_walkthrough(name, rope_trace, SELECTION), allow_nan=False)
    for name in ("", "nothing", None, 7, ["attention"]):
        with pytest.raises(UserError, match="no walk"):
            get_walkthrough(name, rope_trace, SELECTION)
