"""Runs of models in 16 bits are drawn and vouched for: a mark tells what rounding explains from what it does not."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from explorer.explain.captured import check
from explorer.state.interventions import parse_edits
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from tests.exhaustive import first_of
from tests.panels import PANELS, drawn_from, shows, subject
from tests.specimens import STYLES, edited_trace_of, models, tokenizer

DTYPES = torch.bfloat16, torch.float16
LENGTH = 12


@cache
def model(style: str, dtype: torch.dtype):
    return deepcopy(models()[style]).to(dtype)


@cache
def run(style: str, dtype: torch.dtype, changed: bool) -> Trace:
    """As the specimens' of float32."""
    known = edited_trace_of(style, LENGTH)
    trace = capture(model(style, dtype), known.token_ids, tokenizer=tokenizer())
    if not changed:
        return trace
    return replace(capture(model(style, dtype), known.token_ids, known.edits, tokenizer=tokenizer()), baseline=trace)


@cache
def spoiled(trace: Trace, tap: str) -> Trace:
    """The run with one value 5 % too large; kept, as its checks are."""
    return replace(trace, values=trace.values | {tap: trace[tap] * np.float32(1.05)})


def cases():
    for name, (_view, panel) in PANELS.items():
        styles = [style for style in STYLES if shows(name, replace(edited_trace_of(style, LENGTH), training=None))]
        if not styles:
            continue  # of a training: of models of ours, which are in float32
        for nth, style in enumerate(styles):  # each with one of the two in turn
            dtype, core = DTYPES[(nth + len(name)) % 2], nth == len(name) % len(styles)
            case = (name, style, dtype, panel.compares)
            yield pytest.param(*case, marks=() if core else pytest.mark.exhaustive, id=f"{name}-{style}-{dtype}")


def selections(trace: Trace) -> list[Selection]:
    last = len(trace) - 1
    return [
        Selection(query=last, key=last // 2).within(trace),
        Selection(layer=1, head=2, query=last // 2, key=0, rival=2).within(trace),
    ]


@pytest.mark.parametrize(("name", "style", "dtype", "changed"), list(cases()))
@pytest.mark.exhaustive
def test_every_picture_is_drawn_and_its_mark_true(name, style, dtype, changed):
    trace = run(style, dtype, changed)
    assert trace.dtype == str(dtype).removeprefix("torch.")
    panel = PANELS[name][1]
    about = subject(panel, trace)
    for selection in selections(trace):
        assert panel.draw(about, selection) is not None
        mark = panel.mark(about, selection) if panel.mark else None
        assert mark is None or mark.state in ("recomputed", "unchecked"), mark
        read, _of_baseline = drawn_from(name, trace, selection)
        for tap in read if mark else ():
            if trace[tap].any():
                assert panel.mark(subject(panel, spoiled(trace, tap)), selection).state == "off", tap


def test_marks_say_what_they_are_held_to():
    trace = run("rope", torch.bfloat16, changed=False)
    mark = PANELS["attention-pattern"][1].mark(trace, Selection().within(trace))
    assert "bfloat16" in mark.details
    exact = edited_trace_of("rope", LENGTH).baseline
    assert "float32" not in PANELS["attention-pattern"][1].mark(exact, Selection().within(exact)).details


@pytest.mark.parametrize("dtype", first_of(DTYPES), ids=str)
def test_values_are_float32_and_nothing_else_reaches_a_picture(dtype):
    trace = run("rope", dtype, changed=True)
    assert {trace[name].dtype for name in trace.values} == {np.dtype(np.float32)}
    for name, (view, panel) in PANELS.items():
        if shows(name, trace) and view.applies_to(trace):
            drawn = panel.draw(subject(panel, trace), Selection(query=3).within(trace))
            assert not isinstance(drawn, go.Figure) or drawn.to_json()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_edits_of_a_run_keep_its_type(dtype):
    lm = model("rope", dtype)
    edits = parse_edits("blocks.0.attn_norm*norm*layernorm~embed*add*unembed.17*0.4~blocks.1.attn.pattern.1@2-*mask*0")
    assert capture(lm, [5, 6, 7, 8], edits).dtype == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("style", STYLES)
def test_values_computed_when_they_are_looked_at_are_vouched_for(style, dtype):
    """Bit for bit those of a pass that keeps every value: fused kernels would round otherwise."""
    lm = model(style, dtype)
    ids = tokenizer().encode("Once upon a time there was a fox who")[:LENGTH]
    at_once, on_demand = capture(lm, ids), capture(lm, ids, most_bytes=0)
    assert on_demand.is_on_demand
    for name in at_once.values:
        assert np.array_equal(on_demand[name], at_once[name]), name
        assert check(on_demand, name).passed
