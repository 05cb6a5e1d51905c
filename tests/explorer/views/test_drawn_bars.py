"""Bars and dots as the browser receives them: values, hover texts and clicks."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from explorer.explain.notation import format_number
from explorer.interventions import Intervention, make_intervention
from explorer.tracing.capture import capture
from explorer.views.shared_plots import share_axis
from explorer.views.style import label, position_labels
from tests.evaluation_case import PRE_NORM, Case, ExpectedPoint, ExpectedPoints, check_points, points_at_tokens
from tests.subtest_loops import subtest_each

from .expected_bars import logit_parts, rollout


def products(case: Case) -> np.ndarray:
    """Return the products q_i k_i / √d (d,) of the chosen query and key."""
    suffix = "_rot" * (case.trace.config.position == "rope")
    q, k = (case.trace[f"blocks.1.attn.{name}{suffix}"].astype(float) for name in "qk")
    return q[2, 9] * k[2 * len(k) // len(q), 4] / np.sqrt(q.shape[-1])


def row(case: Case) -> ExpectedPoints:
    weights = points_at_tokens(case, "key", case.trace["blocks.1.attn.pattern"][2, 9, :10], "key")
    return [weights, weights[4:5]]


def dimensions(case: Case) -> ExpectedPoints:
    parts = products(case)
    assert parts.sum() == pytest.approx(case.trace["blocks.1.attn.scores"][2, 9, 4], abs=1e-4)
    return [[ExpectedPoint(value, f"dimension {i}\n") for i, value in enumerate(parts)]]


def strongest_neurons(case: Case) -> ExpectedPoints:
    block, gated = "blocks.1.ffn", case.trace.config.ffn == "swiglu"
    hidden = case.trace[f"{block}.hidden"][9]
    lengths = np.abs(hidden) * np.sqrt((case.weight(f"{block}.down_proj.weight") ** 2).sum(0))
    neuron_ids = [*np.argsort(-lengths, kind="stable")[:20], *([] if 7 in np.argsort(-lengths)[:20] else [7])]
    steps = {"gate": case.trace[f"{block}.gate"][9]} if gated else {}
    steps |= {"up" if gated else "before": case.trace[f"{block}.up"][9], "hidden": hidden}
    return [[ExpectedPoint(values[n], step, {"neuron": n}) for n in neuron_ids] for step, values in steps.items()]


def across_tokens(case: Case) -> ExpectedPoints:
    return [points_at_tokens(case, "token", case.trace["blocks.1.ffn.hidden"][:, 7], "query")]


def neuron_logit_bars(case: Case) -> ExpectedPoints:
    """Return the logit contributions of neuron 7 of the last layer, with the final norm's scale at the query."""
    hidden = float(case.trace["blocks.1.ffn.hidden"][9, 7])
    unit_effects = case.logit_contributions(
        case.weight("blocks.1.ffn.down_proj.weight")[:, 7], unembedding_rows=case.weight("lm_head.weight")
    )  # (V,)
    order = np.argsort(-np.copysign(1, hidden) * unit_effects, kind="stable")  # a dead neuron counts as positive
    chosen = (*order[:10], *order[-10:])
    return [[ExpectedPoint(hidden * unit_effects[i], label(case.trace.vocabulary[i])) for i in chosen]]


def neurons_of_all_layers(case: Case) -> ExpectedPoints:
    bars = []
    for layer in (0, 1):
        block, hidden = f"blocks.{layer}.ffn", case.trace[f"blocks.{layer}.ffn.hidden"][9].astype(float)
        added = hidden * case.logit_contributions(case.weight(f"{block}.down_proj.weight").T)  # (F,)
        bias = case.weight(f"{block}.down_proj.bias") if case.trace.config.bias else np.zeros(case.trace.config.d_model)
        whole = case.logit_contributions(case.trace[f"{block}.out"][9])
        assert added.sum() + case.logit_contributions(bias) == pytest.approx(whole, abs=1e-4)
        bars += [
            ExpectedPoint(
                adds, f"layer {layer} neuron {n}\nhidden {format_number(value)}", {"layer": layer, "neuron": n}
            )
            for n, (adds, value) in enumerate(zip(added, hidden, strict=True))
        ]
    return [sorted(bars, key=lambda bar: -abs(bar.value))[:20]]


def path(case: Case) -> ExpectedPoints:
    chances = case.stream_probabilities(case.stream[:, 9])  # (2 L + 1, V)
    stages = ["at the embedding"]
    stages += [f"after the {part} of layer {layer}" for layer in (0, 1) for part in ("attention", "feed-forward")]
    return [
        [ExpectedPoint(p, stage) for p, stage in zip(chances[:, i], stages, strict=True)]
        for i in case.target_and_contrast
    ]


def actual_token_points(case: Case) -> ExpectedPoints:
    trace = case.trace
    chances, following = case.stream_probabilities(case.stream[-1])[:-1], trace.token_ids[1:]
    probabilities = [row[i] for row, i in zip(chances, following, strict=True)]
    ranks = [(row > row[i]).sum() + 1 for row, i in zip(chances, following, strict=True)]
    return [points_at_tokens(case, "after", values, "query") for values in (probabilities, ranks)]


def embedding(case: Case) -> ExpectedPoints:
    row = case.weight("token_embedding.weight")[case.trace.token_ids[9]]
    rows = [row * case.trace.config.embedding_scale]
    if "position_embed" in case.trace:
        rows += [case.trace["position_embed"][9], case.trace["embed"][9]]
    bars = [[ExpectedPoint(value, f"dimension {i}\n", {"dim": i}) for i, value in enumerate(values)] for values in rows]
    return [part for bar_set in bars for part in (bar_set, bar_set[5:6])]


def nearest(case: Case) -> ExpectedPoints:
    table, own = case.weight("token_embedding.weight"), case.trace.token_ids[9]
    units = table / np.sqrt((table**2).sum(1, keepdims=True))
    cosines = units @ units[own]
    order = [i for i in np.argsort(-cosines, kind="stable") if i != own][:15]
    return [[ExpectedPoint(cosines[i], f"{label(case.trace.vocabulary[i])}, id {i}") for i in order]]


def without_sublayers(case: Case) -> ExpectedPoints:
    def bits(*edits: Intervention) -> float:
        run = capture(case.lm, case.trace.token_ids, edits)
        return np.log2(case.stream_probabilities(run["blocks.1.resid_post"][9])[case.target_and_contrast[0]])

    sublayers = [
        (i, part, tap) for i in (0, 1) for part, tap in (("attention", "attn.z"), ("feed-forward", "ffn.hidden"))
    ]
    changes = [bits(make_intervention(f"blocks.{i}.{tap}", "zero")) - bits() for i, _, tap in sublayers]
    return [
        [
            ExpectedPoint(effect, f"{i} {part} ablated", {"layer": i})
            for effect, (i, part, _) in zip(changes, sublayers, strict=True)
        ]
    ]


def actual_token_bars(case: Case) -> ExpectedPoints:
    """Return the probabilities of the actual tokens, none for the first; the chosen bar is drawn apart."""
    trace, chances = case.trace, case.stream_probabilities(case.stream[-1])[:-1]
    probabilities = [row[i] for row, i in zip(chances, trace.token_ids[1:], strict=True)]
    labels = position_labels(trace.tokens)
    bars = [ExpectedPoint(p, labels[i], {"query": i}) for i, p in enumerate(probabilities, 1)]
    return [bars[:8] + bars[9:], bars[8:9]]


def weights(case: Case) -> ExpectedPoints:
    """Return the weights of the head whose output, through the final norm, adds most to the top token's logit."""
    row = case.weight("lm_head.weight")[case.stream_probabilities(case.stream[-1])[9].argmax()]
    added = [case.logit_contributions(case.head_outputs(i), unembedding_rows=row) for i in (0, 1)]
    layer, head = np.unravel_index(np.argmax(added), (2, len(added[0])))
    labels = position_labels(case.trace.tokens)
    head_weights = case.trace[f"blocks.{layer}.attn.pattern"][head, 9, :10]
    bars = [ExpectedPoint(weight, labels[i], {"key": i}) for i, weight in enumerate(head_weights)]
    strongest = int(head_weights.argmax())
    return [bars[:strongest] + bars[strongest + 1 :], [bars[strongest]]]


def early_predictions(case: Case) -> ExpectedPoints:
    chances = case.stream_probabilities(case.stream[::2, 9])  # (L + 1, V)
    stages = ["no layer", "layer 0", "layer 1"]
    texts = [
        f"{stage}\n{label(case.trace.vocabulary[row.argmax()])}" for stage, row in zip(stages, chances, strict=True)
    ]
    bars = [ExpectedPoint(row.max(), text) for row, text in zip(chances, texts, strict=True)]
    is_final = chances.argmax(-1) == chances[-1].argmax()
    groups = [[bar for bar, final in zip(bars, is_final, strict=True) if final == chosen] for chosen in (False, True)]
    return [group for group in groups if group]


PANELS: dict[tuple[str, str], Callable[[Case], ExpectedPoints]] = {
    ("attention", "row"): row,
    ("attention", "dimensions"): dimensions,
    ("feed_forward", "strongest"): strongest_neurons,
    ("feed_forward", "tokens"): across_tokens,
    ("feed_forward", "promoted"): neuron_logit_bars,
    ("feed_forward", "all_layers"): neurons_of_all_layers,
    ("prediction", "path"): path,
    ("prediction", "rollout"): rollout,
    ("prediction", "parts"): logit_parts,
    ("prediction", "actual"): actual_token_points,
    ("tokens", "vector"): embedding,
    ("tokens", "nearest"): nearest,
    ("experiments", "sublayers"): without_sublayers,
    ("pieces", "expected"): actual_token_bars,
    ("looks", "weights"): weights,
    ("guesses", "layers"): early_predictions,
}


def test_an_axis_ends_above_its_longest_bar():
    for shares, end in (([0.02, np.nan, 0.031], 0.031), ([0.02, 0.21], 0.21), ([0.2, 1.0], 1), ([0.0], 1)):
        assert share_axis(np.array(shares))["range"] == [0, pytest.approx(1.1 * end)]


@subtest_each("panel, style", product(PANELS, PRE_NORM))
def test_bars_equal_recomputed_values(make_case, panel, style):
    case = make_case(style)
    check_points(case.figure(*panel).points(), PANELS[panel](case))
