"""What changes of the model do, together and part by part, as the browser shows it."""

import numpy as np
import pytest

from explorer.state.interventions import Intervention
from explorer.tracing.capture import capture
from explorer.views.style import label
from tests.drawn import tells
from tests.look import PRE_NORM, Look, Seen, check

from .bars_by_hand import logit_parts


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
