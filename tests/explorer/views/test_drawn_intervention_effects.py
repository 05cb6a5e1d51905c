"""Effects of interventions, jointly and by component, as the browser receives them."""

from itertools import product

import numpy as np
import pytest

from explorer.interventions import Intervention
from explorer.tracing.capture import capture
from explorer.views.style import label
from tests.evaluation_case import PRE_NORM, Case, ExpectedPoint, check_points
from tests.rendered_figures import contains_number
from tests.subtest_loops import subtest_each

from .expected_bars import logit_parts


def combined_effects(case: Case, measure: str) -> list[float]:
    """Return the effect of each intervention alone, their sum, the joint effect, and the joint effect less the sum."""
    unchanged = Case(case.trace.baseline, case.lm, case.selection)
    token = unchanged.target_and_contrast[0]

    def measured_value(*edits: Intervention) -> float:
        logits = capture(case.lm, case.trace.token_ids, edits)["logits"][9].astype(float)
        return logits[token] if measure == "logit" else np.exp(logits[token]) / np.exp(logits).sum()

    single = [measured_value(edit) - measured_value() for edit in case.trace.edits]
    joint = measured_value(*case.trace.edits) - measured_value()
    return [*single, sum(single), joint, joint - sum(single)]


@subtest_each("style, measure", product(PRE_NORM, ["logit", "probability"]))
def test_interventions_their_sum_and_joint_effect_have_bars(make_case, style, measure):
    case = make_case(style, changed=True)
    labels = [label(edit.describe(case.trace.config), max_chars=60) for edit in case.trace.edits]
    values = combined_effects(case, measure)
    names = [*labels, "sum of the single", "all together", "less the sum"]
    figure = case.figure("experiments", f"together_{measure}")
    points = figure.points()
    assert figure.axis("y")["ticktext"][-3:] == ["sum", "together", "together − sum"]
    (line,) = figure.layout["shapes"]
    assert line["y0"] == line["y1"] == len(labels) - 0.5
    unchanged = case.trace.baseline["logits"][9].astype(float)
    token = Case(case.trace.baseline, case.lm, case.selection).target_and_contrast[0]
    before = unchanged[token] if measure == "logit" else np.exp(unchanged[token]) / np.exp(unchanged).sum()
    for p, value in zip(points, values[: len(labels)], strict=False):
        first, then = p.hover_text.split("\n")[1].split(" → ")
        assert contains_number(first, before) and contains_number(then, before + value)
    check_points(points, [[ExpectedPoint(value, name) for value, name in zip(values, names, strict=True)]])


@subtest_each("style", PRE_NORM)
def test_components_have_bars_of_contribution_changes(make_case, style):
    changed, unchanged = make_case(style, changed=True), make_case(style)
    points = changed.figure("experiments", "grown_parts").points()
    lead = [
        run["logits"][9, unchanged.target_and_contrast].astype(float) @ (1, -1)
        for run in (changed.trace, unchanged.trace)
    ]
    assert sum(p.value for p in points) == pytest.approx(lead[0] - lead[1], abs=1e-3)
    (before,) = logit_parts(unchanged)
    for p, part in zip(points, before, strict=False):
        assert part.text in p.hover_text and p.change == part.click and contains_number(p.hover_text, part.value)
    divisors = [norm_divisor(one) for one in (changed, unchanged)]
    title = changed.figure("experiments", "grown_parts").title("x").replace("<br>", " ")
    by, was, times = title.partition("divides by ")[2].replace(", unchanged by ", ": ").split(": ", 2)
    assert (
        contains_number(by, divisors[0])
        and contains_number(was, divisors[1])
        and contains_number(times, divisors[1] / divisors[0])
    )
    (ablated,) = [p for p in points if "heads of layer 1" in p.hover_text]
    rows = changed.head_outputs(1)
    assert not rows[1].any() and contains_number(ablated.hover_text, ablated.value)


def norm_divisor(case: Case) -> float:
    """Return the divisor of the final norm at the query."""
    x = case.stream[-1, 9]
    x = x - x.mean() if case.trace.config.norm == "layernorm" else x
    return float(np.sqrt((x**2).mean() + case.trace.config.norm_eps))
