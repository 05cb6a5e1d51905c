"""The model map as the browser receives it: colours, hover texts, clicks."""

import re

import numpy as np
import pytest

from explorer.views.overview.map_layout import LANDSCAPE_NEXT_TOKENS, LandscapeLayout
from explorer.views.style import ATTENTION, FEED_FORWARD, shorten_token
from tests.evaluation_case import PRE_NORM, Case
from tests.rendered_figures import Point, RenderedMap, contains_number
from tests.subtest_loops import subtest_each

pre_norm_styles = subtest_each("style", PRE_NORM)


def draw_map(case: Case) -> RenderedMap:
    return case.figure("overview", "map")


def element_under(model_map: RenderedMap, x: float, y: float) -> Point:
    """Return the element under the pointer at (x, y): the last one drawn around it."""
    boxes = [part["box"] for part in model_map.parts]
    around = [i for i, (left, upper, right, lower) in enumerate(boxes) if left < x < right and upper < y < lower]
    return model_map.points()[around[-1]]


@pre_norm_styles
def test_heads_are_coloured_by_their_contribution(make_case, style):
    run_case = make_case(style)
    rendered_map = draw_map(run_case)
    plan = LandscapeLayout(run_case.trace.config)
    for layer in (0, 1):
        added, norms = (
            run_case.logit_contributions(run_case.head_outputs(layer)),
            np.linalg.norm(run_case.head_outputs(layer), axis=-1),
        )
        for head in range(run_case.trace.config.num_heads):
            left, upper, right, lower = plan.head(layer, head)
            p = element_under(rendered_map, (left + right) / 2, (upper + lower) / 2)
            assert p.hover_text.startswith(f"layer {layer} head {head}\n")
            assert rendered_map.parts[p.item]["written"] == str(head)
            assert p.value == pytest.approx(added[head], rel=1e-3, abs=1e-5)
            assert contains_number(p.hover_text, norms[head]) and contains_number(p.hover_text, p.value)
            assert p.change == {"view": "attention", "layer": layer, "head": head}


@pre_norm_styles
def test_feed_forwards_are_coloured_by_their_contribution(make_case, style):
    run_case = make_case(style)
    rendered_map = draw_map(run_case)
    plan = LandscapeLayout(run_case.trace.config)
    for layer in (0, 1):
        out = run_case.trace[f"blocks.{layer}.ffn.out"][9].astype(float)
        p = element_under(rendered_map, np.mean(plan.span(layer, "feed_forward")), np.mean(plan.feed_forward))
        assert p.hover_text.startswith(f"layer {layer} feed-forward")
        assert p.value == pytest.approx(run_case.logit_contributions(out), rel=1e-3, abs=1e-5)
        assert contains_number(p.hover_text, np.linalg.norm(out)) and contains_number(p.hover_text, p.value)
        assert p.change == {"view": "feed_forward", "layer": layer}


@pre_norm_styles
def test_scale_ends_at_largest_contribution(make_case, style):
    rendered_map = draw_map(make_case(style))
    coloured = [part["value"] for part in rendered_map.parts if part["kind"] in ("head", "feed_forward")]
    assert rendered_map.content["largest"] == max(map(abs, coloured))


@pre_norm_styles
def test_line_widths_are_proportional_to_norms(make_case, style):
    run_case = make_case(style)
    rendered_map = draw_map(run_case)
    lengths = np.linalg.norm(run_case.stream[:, 9], axis=-1)
    widths = [width for kind, _, width, arrow in rendered_map.content["lines"] if kind == "residual" and not arrow]
    expected_widths = lengths / lengths.max() * max(widths)
    np.testing.assert_allclose(widths, np.maximum(1, expected_widths), atol=0.011)
    for kind, sublayer in (("attention", "attn"), ("feed_forward", "ffn")):
        update_norms = [np.linalg.norm(run_case.trace[f"blocks.{layer}.{sublayer}.out"][9]) for layer in (0, 1)]
        thick = [width for name, _, width, _ in rendered_map.content["lines"] if name == kind]
        np.testing.assert_allclose(
            thick, np.maximum(1, np.array(update_norms) / lengths.max() * max(widths)), atol=0.02
        )


@pre_norm_styles
def test_next_tokens_are_listed_by_probability(make_case, style):
    run_case = make_case(style)
    rendered_map = draw_map(run_case)
    logits = run_case.trace["logits"][9].astype(float)
    chances = np.exp(logits) / np.exp(logits).sum()
    order = np.argsort(-logits, kind="stable")
    listed = [p for p in rendered_map.points() if "target" in p.change]
    assert [p.change for p in listed] == [{"target": rank} for rank in range(1, 7)]  # the sixth is the chosen rival
    words = [word[:3] for word in rendered_map.content["words"]]
    for p in listed:
        token_id = order[p.change["target"] - 1]
        token = run_case.trace.vocabulary[token_id]
        assert p.hover_text.startswith(f"{shorten_token(token)}: rank {p.change['target']}, ")
        assert p.value == pytest.approx(chances[token_id], rel=1e-4)
        assert contains_number(p.hover_text, chances[token_id]) and contains_number(p.hover_text, logits[token_id])
        _, upper, _, lower = rendered_map.parts[p.item]["box"]
        name, number = (text for x, y, text in words if upper < y < lower and x > LANDSCAPE_NEXT_TOKENS[0])
        assert name == shorten_token(token, 7) and contains_number(number, chances[token_id])


@pre_norm_styles
def test_hover_text_names_layer_a_click_opens(make_case, style):
    rendered_map = draw_map(make_case(style))
    discs = [p for p in rendered_map.points() if re.match(r"layer \d", p.hover_text)]
    assert len(discs) >= 2 * 5
    for p in discs:
        assert p.change["layer"] == int(re.match(r"layer (\d+)", p.hover_text)[1])


@pre_norm_styles
def test_running_sum_adds_components_in_order(make_case, style):
    run_case = make_case(style)
    figure = run_case.figure("overview", "sum")
    bars = figure.parts[0]
    ends = np.add(bars["base"], bars["y"])
    attention = [run_case.logit_contributions(run_case.trace[f"blocks.{i}.attn.out"][9].astype(float)) for i in (0, 1)]
    feed_forward = [
        run_case.logit_contributions(run_case.trace[f"blocks.{i}.ffn.out"][9].astype(float)) for i in (0, 1)
    ]
    points = [p for p in figure.points() if p.group == 0]
    for colour, values in ((ATTENTION, attention), (FEED_FORWARD, feed_forward)):
        some = [p for p in points if p.colour == colour]
        assert [p.value for p in some] == pytest.approx(values, rel=1e-3, abs=1e-4)
        assert [p.change["layer"] for p in some] == [0, 1]
        assert all(
            f"of layer {i} " in p.hover_text and contains_number(p.hover_text, p.value) for i, p in enumerate(some)
        )
    token, rival = run_case.target_and_contrast
    lead = run_case.trace["logits"][9, token] - run_case.trace["logits"][9, rival]
    assert ends[-1] == pytest.approx(lead, abs=1e-4) and contains_number(points[-1].hover_text, lead)
