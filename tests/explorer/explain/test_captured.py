"""Explanations of every captured value of every kind of model agree with its formula."""

import ast
import re
import sys
from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from explorer.architecture.residual_stream import block_output_tap
from explorer.explain.captured import _CHECKED, check_captured_value, derive, input_names, recompute
from explorer.explain.captured.tap_formulas import get_formula
from explorer.explain.source_code import ROOT
from explorer.tracing.capture import capture
from model.config import RopeScaling
from model.transformer_lm import TransformerLM
from tests.sample_models import capture_all_kinds_edited_style, capture_stream_edited_style
from tests.subtest_loops import each_style, subtest_each


def sample_indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the indices of the first and last element and of two between."""
    return [tuple(int(index * (size - 1)) for size in shape) for index in (0, 0.3, 0.6, 1)]


@each_style
@subtest_each("length", [1, 2, 12, 32])
def test_captured_values_match_formulas(capture_trace, style, length):
    trace = capture_trace(style, length)
    for name, value in trace.values.items():
        recomputed = recompute(trace, name).value
        assert (recomputed.shape, recomputed.dtype) == (value.shape, np.float64), name
        assert check_captured_value(trace, name).is_within_tolerance, (name, check_captured_value(trace, name))


@each_style
def test_edited_run_matches_formulas_with_interventions(capture_edited_trace, style):
    trace = capture_edited_trace(style)
    assert trace.edits
    for name in trace.values:
        assert check_captured_value(trace, name).is_within_tolerance, (name, check_captured_value(trace, name))


@each_style
def test_stream_edited_run_matches_formulas(style):
    assert_all_within_tolerance(capture_stream_edited_style(style))


@each_style
def test_run_with_all_interventions_matches_formulas(style):
    assert_all_within_tolerance(capture_all_kinds_edited_style(style))


def assert_all_within_tolerance(trace):
    for name in trace.values:
        assert check_captured_value(trace, name).is_within_tolerance, (name, check_captured_value(trace, name))


@each_style
def test_edited_run_without_its_interventions_fails_checks(capture_edited_trace, style):
    trace = replace(capture_edited_trace(style), edits=())
    wrong = {name for name in trace.values if not check_captured_value(trace, name).is_within_tolerance}
    local = {"local_rope.angles"} & set(trace.values)  # shifted together with rope.angles
    assert wrong == {edit.tap for edit in capture_edited_trace(style).edits} | local


@each_style
@subtest_each("changed", [False, True])
@subtest_each("length", [1, 12])
def test_element_derivation_matches_whole_value(capture_trace, capture_edited_trace, style, length, changed):
    trace = (capture_edited_trace if changed else capture_trace)(style, length)
    for name, value in trace.values.items():
        whole = recompute(trace, name)
        for index in sample_indices(value.shape):
            working = derive(trace, name, index).working
            assert working.value == pytest.approx(whole.value[index], abs=1e-9), (name, index)
            assert working.sizes == pytest.approx(whole.sizes[index], abs=1e-9), (name, index)
            names, of_all = ({used_input.name for used_input in inputs} for inputs in (working.inputs, whole.inputs))
            assert names == of_all == set(input_names(trace, name)), (name, index)
            assert "=" in working.symbols and "=" in working.numbers()


@each_style
def test_row_recomputation_matches_whole_value(trace):
    row = recompute(trace, "logits", (3, slice(None)))
    whole = recompute(trace, "logits")
    np.testing.assert_allclose(row.value, whole.value[3], atol=1e-9)
    np.testing.assert_allclose(row.sizes, whole.sizes[3], atol=1e-9)


@each_style
def test_values_depend_only_on_earlier_values_and_weights(trace):
    order = list(trace.values)
    for name in order:
        for used_name in input_names(trace, name):
            assert used_name in trace.weights or order.index(used_name) < order.index(name), (name, used_name)


@each_style
def test_derivation_inputs_have_stated_shapes(trace):
    for name, value in trace.values.items():
        for index in sample_indices(value.shape):
            for used_input in derive(trace, name, index).working.inputs:
                whole = trace.weights[used_input.name] if used_input.name in trace.weights else trace[used_input.name]
                assert whole[used_input.index].shape == used_input.shape
                assert used_input.name in input_names(trace, name)


@each_style
def test_altered_value_is_detected(trace):
    """A changed value no longer follows from its inputs."""
    for name, value in trace.values.items():
        changed = value.copy()
        index = tuple(size // 2 for size in value.shape)
        changed[index] += 0.5
        other = replace(trace, values=trace.values | {name: changed})
        assert check_captured_value(other, name).error == pytest.approx(0.5, abs=1e-3), name
        assert not check_captured_value(other, name).is_within_tolerance, name


@each_style
def test_kernel_rounding_passes_and_altered_value_fails(lms, style):
    """The run stores only the outputs of blocks: other values are recomputed."""
    lm = lms[style]
    trace = capture(lm, range(30), max_bytes=0)
    out, values = block_output_tap(lm.config, 0), trace.values
    sizes = np.abs(values[out]).max(-1, keepdims=True)
    rounded = values[out] + np.float32(1e-6) * sizes * np.random.default_rng(0).uniform(-1, 1, values[out].shape)
    for changed, wrong in ((rounded, set()), (np.where(values[out] == sizes, sizes * 1.01, values[out]), {out})):
        stored = {**values.stored, out: changed.astype(np.float32)}
        stored["blocks.1.resid_pre"] = stored[out]
        run = replace(trace, values=replace(values, stored=stored))
        assert {
            name
            for name in (out, "blocks.0.resid_mid")
            if name in run and not check_captured_value(run, name).is_within_tolerance
        } == wrong


def test_tolerance_near_mean_follows_its_terms(lms):
    """x − mean has the rounding error of the mean, whose terms are large even where the mean and x are small."""
    lm = deepcopy(lms["gpt"])
    norm = lm.blocks[0].attn_norm
    with torch.no_grad():
        norm.bias.zero_()
        trace = capture(lm, range(12))
        x = np.random.default_rng(0).normal(size=trace["blocks.0.resid_pre"].shape)
        x[:, 1:] -= x[:, 1:].mean(-1, keepdims=True)
        x[:, 0] = 1e-7
        x = x.astype(np.float32)
        read = {"blocks.0.resid_pre": x, "blocks.0.attn_norm": norm(torch.tensor(x)).numpy()}
    run = replace(trace, values={**trace.values, **read})
    assert check_captured_value(run, "blocks.0.attn_norm").is_within_tolerance
    run["blocks.0.attn_norm"][:, 1] *= 1.01
    assert not check_captured_value(replace(run), "blocks.0.attn_norm").is_within_tolerance


@each_style
def test_altered_weight_is_detected(trace):
    for weight, tap in (("blocks.1.attn.o_proj.weight", "blocks.1.attn.out"), ("lm_head.weight", "logits")):
        other = replace(trace, weights={**trace.weights, weight: trace.weights[weight] * 1.1})
        assert not check_captured_value(other, tap).is_within_tolerance


@subtest_each(
    "scaling, heads",
    product(
        [
            None,
            RopeScaling(kind="linear", factor=3),
            RopeScaling(kind="ntk", factor=3),
            RopeScaling(kind="llama3", factor=8, original_context_length=16),
            RopeScaling(kind="yarn", factor=8, original_context_length=256),
            RopeScaling(
                kind="yarn", factor=8, original_context_length=64, high_frequency_factor=3.5, rounds_ramp=False
            ),
            RopeScaling(kind="longrope", factor=4, original_context_length=16, pair_factors=(1.5,)),
        ],
        [3, 12],
    ),
)
def test_angles_match_for_each_rope_scaling(tiny_config, scaling, heads):
    if scaling and scaling.pair_factors:
        scaling = replace(scaling, pair_factors=tuple(range(1, 1 + tiny_config.d_model // heads // 2)))
    lm = TransformerLM(replace(tiny_config, rope_scaling=scaling, num_heads=heads)).eval()
    trace = capture(lm, list(range(32)))
    assert check_captured_value(trace, "rope.angles").is_within_tolerance


@each_style
def test_unknown_tap_is_named(trace):
    for name in ("blocks.0.attn.nonsense", "nonsense"):
        with pytest.raises(KeyError, match="nonsense"):
            get_formula(trace.config, name)


def test_check_is_freed_with_its_run(lms):
    trace = capture(lms["rope"], [1, 2, 3])
    before = len(_CHECKED)
    check_captured_value(trace, "logits")
    assert len(_CHECKED) == before + 1
    del trace
    assert len(_CHECKED) == before


@each_style
def test_formula_sources_are_lines_of_model(trace):
    for name in trace.values:
        source = get_formula(trace.config, name).source
        lines = (ROOT / source.path).read_text("utf-8").splitlines()
        assert source.path.startswith("model/")
        assert lines[source.line - 1].strip() == source.text and source.fragment in source.text


@each_style
def test_formula_source_lines_run_in_forward_pass(lms, capture_trace, style):
    """Python's tracer sees the line run in a forward pass or while the model is built."""
    run = set()

    def tracer(frame, event, argument):
        path = frame.f_code.co_filename
        if not path.startswith(str(ROOT / "model")):
            return None
        run.add((path.removeprefix(f"{ROOT}/"), frame.f_lineno))
        return tracer

    trace = capture_trace(style)
    sys.settrace(tracer)
    try:
        capture(TransformerLM(lms[style].config).eval(), trace.token_ids)
    finally:
        sys.settrace(None)
    for name in trace.values:
        source = get_formula(trace.config, name).source
        assert any((source.path, source.line + below) in run for below in range(2)), (name, str(source))


def test_explanations_do_not_use_model_code():
    """Check that explanations are independent: they import only the config of `model`, and no figures."""
    files = [path for folder in ("explain", "analysis") for path in (ROOT / "explorer" / folder).rglob("*.py")]
    assert len(files) > 25
    num_derivations = 0
    for path in files:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
        assert not [node for node in imports if "torch" in ast.unparse(node)]
        assert "explorer/views" not in text and "explorer.views" not in text
        of_model = [node for node in imports if getattr(node, "module", "").startswith("model")]
        names = {alias.asname or alias.name for node in of_model for alias in node.names} - {"ModelConfig"}
        assert not names or "explain" not in path.parts
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.returns]
        for node in functions:
            if re.search("Derivation|Calculation", ast.unparse(node.returns)):
                num_derivations += 1
                used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                assert not used & names, (path, node.name)
    assert num_derivations > 80
