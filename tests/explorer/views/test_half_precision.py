"""Figures of 16-bit models: verification distinguishes rounding from wrong values."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch

from explorer.explain.captured import check_captured_value
from explorer.interventions import parse_interventions
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from tests.exhaustive import first_in_core
from tests.panels import PANELS, read_values, shows, subject
from tests.sample_models import STYLES, capture_edited_style, models, tokenizer
from tests.subtest_loops import subtest_each, subtest_groups

DTYPES = torch.bfloat16, torch.float16
LENGTH = 12


@cache
def model(style: str, dtype: torch.dtype):
    return deepcopy(models()[style]).to(dtype)


@cache
def run(style: str, dtype: torch.dtype, changed: bool) -> Trace:
    """Return a run in a lower precision of the same tokens, and edits, as the float32 specimen."""
    reference = capture_edited_style(style, LENGTH)
    trace = capture(model(style, dtype), reference.token_ids, tokenizer=tokenizer())
    if not changed:
        return trace
    return replace(
        capture(model(style, dtype), reference.token_ids, reference.edits, tokenizer=tokenizer()), baseline=trace
    )


@cache
def with_wrong_value(trace: Trace, tap: str) -> Trace:
    """Return the run with one value 5 % too large; cached, because its checks are."""
    return replace(trace, values=trace.values | {tap: trace[tap] * np.float32(1.05)})


def figure_cases() -> dict[str, list[dict]]:
    """Return the cases of each style: of each panel every fourth style, alternating between the two dtypes."""
    cases = {style: [] for style in STYLES}
    for name in PANELS:
        styles = [style for style in STYLES if shows(name, replace(capture_edited_style(style, LENGTH), training=None))]
        for index, style in enumerate(styles):
            if (index - len(name) % len(styles)) % 4 == 0:
                cases[style].append({"name": name, "style": style, "dtype": DTYPES[(index + len(name)) % 2]})
    return cases


def selections(trace: Trace) -> list[Selection]:
    last = len(trace) - 1
    return [
        Selection(query=last, key=last // 2).clamp_to_trace(trace),
        Selection(layer=1, head=2, query=last // 2, key=0, rival=2).clamp_to_trace(trace),
    ]


@subtest_groups({}, figure_cases())
def test_figures_are_drawn_and_verified(name, style, dtype):
    panel = PANELS[name][1]
    trace = run(style, dtype, changed=panel.compared_run)
    assert trace.dtype == str(dtype).removeprefix("torch.")
    about = subject(panel, trace)
    for selection in selections(trace):
        assert panel.draw(about, selection) is not None
        mark = panel.verify(about, selection) if panel.verify else None
        assert mark is None or mark.state in ("recomputed", "unchecked"), mark
        read, _of_baseline = read_values(name, trace, selection)
        for tap in read if mark else ():
            if trace[tap].any():
                assert panel.verify(subject(panel, with_wrong_value(trace, tap)), selection).state == "off", tap


def test_verification_names_precision():
    trace = run("rope", torch.bfloat16, changed=False)
    mark = PANELS["attention-pattern"][1].verify(trace, Selection().clamp_to_trace(trace))
    assert "bfloat16" in mark.details
    exact = capture_edited_style("rope", LENGTH).baseline
    assert "float32" not in PANELS["attention-pattern"][1].verify(exact, Selection().clamp_to_trace(exact)).details


@pytest.mark.parametrize("dtype", first_in_core(DTYPES), ids=str)
def test_figures_receive_float32_values(dtype):
    trace = run("rope", dtype, changed=True)
    assert {trace[name].dtype for name in trace.values} == {np.dtype(np.float32)}
    for name, (view, panel) in PANELS.items():
        if shows(name, trace) and view.is_applicable(trace):
            figure = panel.draw(subject(panel, trace), Selection(query=3).clamp_to_trace(trace))
            assert not isinstance(figure, go.Figure) or figure.to_json()


@subtest_each("dtype", DTYPES)
def test_interventions_keep_dtype(dtype):
    lm = model("rope", dtype)
    edits = parse_interventions(
        "blocks.0.attn_norm*norm*layernorm~embed*add*unembed.17*0.4~blocks.1.attn.pattern.1@2-*mask*0"
    )
    assert capture(lm, [5, 6, 7, 8], edits).dtype == str(dtype).removeprefix("torch.")


@subtest_each("style, dtype", product(STYLES, DTYPES))
def test_lazy_values_pass_verification(style, dtype):
    """Values are bit-identical to those of a pass that stores all of them: fused kernels would round differently."""
    lm = model(style, dtype)
    ids = tokenizer().encode("Once upon a time there was a fox who")[:LENGTH]
    at_once, on_demand = capture(lm, ids), capture(lm, ids, max_bytes=0)
    assert on_demand.is_lazy
    for name in at_once.values:
        assert np.array_equal(on_demand[name], at_once[name]), name
        assert check_captured_value(on_demand, name).is_within_tolerance
