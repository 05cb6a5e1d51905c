"""Diagnosis of planted bugs: each is found at its tap and by its name, and nothing else is called a bug."""

import time
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from explorer import diagnose
from explorer.diagnosis.bug_search import BugSearch
from explorer.diagnosis.bugs import BUG_BY_NAME
from explorer.diagnosis.bugs.norms_and_feed_forward import find_reduced_precision
from explorer.diagnosis.match_weights import match_weights
from explorer.diagnosis.model_segments import BlockSegment
from explorer.diagnosis.record_values import record_values
from explorer.diagnosis.reference_formulas import KnownBug
from explorer.diagnosis.reference_formulas import reference_formulas as formulas
from explorer.diagnosis.run_module import build_with_weights, copy_module
from model.config import ModelConfig
from model.transformer_lm import TransformerLM
from tests import raw_parameters
from tests.course import SIZES, Attention, RMSNorm, SwiGLU, course_model
from tests.course_bug_methods import replace_methods, replace_norm, root_mean_square, rotate_halves
from tests.course_bugs import COURSE_BUGS, UNEXPLAINED, make_buggy_model
from tests.exhaustive import every_nth_in_core
from tests.nanogpt import gpt
from tests.subtest_loops import subtest_each

MAX_SECONDS = 10


@subtest_each("name", every_nth_in_core(4, list(COURSE_BUGS)), per_case=12)
def test_planted_bug_is_named_with_its_tap(name):
    began = time.process_time()
    report = diagnose(make_buggy_model(name))
    assert time.process_time() - began < MAX_SECONDS
    assert (report.first, report.cause.name) == (COURSE_BUGS[name].tap, COURSE_BUGS[name].name)
    assert report.cause.is_clear and len(report.differences) == 1
    is_in_blocks, is_a_number = report.first.startswith("blocks.0."), name != "mask hides itself"
    assert not (is_in_blocks and is_a_number) or report.first.replace("0", "1", 1) in report.differences[0].also


@pytest.mark.parametrize("name", UNEXPLAINED)
@pytest.mark.exhaustive
def test_unknown_bug_is_reported_as_unexplained(name):
    plant, first_tap = UNEXPLAINED[name]
    report = diagnose(plant(course_model()))
    assert report.first == first_tap and report.cause is None
    assert all(difference.cause is None for difference in report.differences)
    assert "not explained" in str(report)


@pytest.mark.exhaustive
def test_unexplained_difference_names_equal_tap():
    plant, _first_tap = UNEXPLAINED["temperature of 0.9"]
    assert diagnose(plant(course_model())).differences[0].equal_to == "blocks.0.attn.k_rot"


BUG_PAIRS = [
    ("gain left out", "gate and up swapped"),
    ("rotation of halves", "scale 1/d"),
    ("mask sees the next", "no scale"),
    ("ε outside of the root", "no final norm"),
    ("sublayers side by side", "GELU in the place of SiLU"),
    ("heads split by a view", "mask after the softmax"),
]


@pytest.mark.parametrize(("one", "other"), BUG_PAIRS)
@pytest.mark.exhaustive
def test_two_bugs_are_found(one, other):
    model = course_model()
    methods = {}
    for name in (one, other):
        for part in COURSE_BUGS[name].plant(course_model()).modules():
            attributes = {key: value for key, value in vars(type(part)).items() if not key.startswith("__")}
            if type(part).__mro__[1].__module__ == "tests.course":
                methods.setdefault(type(part).__mro__[1], {}).update(attributes)
    for base_class, changed in methods.items():
        replace_methods(base_class, **changed)(model)
    report = diagnose(model)
    assert {difference.cause.name for difference in report.differences} == {
        COURSE_BUGS[one].name,
        COURSE_BUGS[other].name,
    }
    assert report.first == COURSE_BUGS[one].tap or one == "mask sees the next"


def layer_norm_without_gain(self, x):
    return F.layer_norm(x, x.shape[-1:], eps=self.eps)


def sum_norm_with_larger_epsilon(self, x):
    return x / ((x * x).sum(-1, keepdim=True) + 1e-3).sqrt() * self.weight


def half_precision_norm_without_gain(self, x):
    return rms_norm_in_half(x, self.eps).float()


def rms_norm_in_half(x, eps):
    x = x.half()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


@pytest.mark.parametrize(
    ("forward", "names"),
    [
        (layer_norm_without_gain, {"mean_subtracted", "gain_left_out"}),
        (sum_norm_with_larger_epsilon, {"sum_for_mean", "epsilon_1e-3"}),
        (half_precision_norm_without_gain, {"float16_norm", "gain_left_out"}),
    ],
)
def test_two_bugs_in_every_norm_are_found(forward, names):
    report = diagnose(replace_norm(forward)(course_model()))
    assert {difference.cause.name for difference in report.differences} == names
    assert all(difference.tap == "blocks.0.attn_norm" for difference in report.differences)
    assert all(len(difference.also) == 4 for difference in report.differences)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_reduced_precision_of_norm_is_identified(kind):
    """Most values that bfloat16 represents exactly, float16 does too."""
    dtype, x = getattr(torch, kind), torch.linspace(0.1, 2.0, 48).reshape(2, 24)
    assert find_reduced_precision(x.to(dtype).float(), x, x, torch.ones(24), lambda x: x).name == f"{kind}_norm"


def test_two_bugs_in_one_formula_are_found():
    feed_forward_bug = replace_methods(SwiGLU, forward=lambda self, x: self.w2(F.gelu(self.w3(x)) * self.w1(x)))
    assert {difference.cause.name for difference in diagnose(feed_forward_bug(course_model())).differences} == {
        "gate_and_up_swapped",
        "gelu_for_silu",
    }
    rotation_bug = replace_methods(
        Attention, rotated=lambda self, q, k, m: (rotate_halves(self.rope, q, m + 1), rotate_halves(self.rope, k, m))
    )
    assert {difference.cause.name for difference in diagnose(rotation_bug(course_model())).differences} == {
        "rotation_of_halves",
        "query_positions_off_by_one",
    }


def test_fix_that_breaks_other_value_is_rejected():
    """A change that repairs one value and breaks another is not reported as the cause."""
    model, ids = COURSE_BUGS["gate and up swapped"].plant(course_model()), list(range(9))
    weight_match = match_weights(model)
    lm = build_with_weights(ModelConfig.llama_style(**SIZES), weight_match)
    recorded = record_values(copy_module(model), weight_match, ids, lm.config.vocab_size)
    block = BlockSegment(lm.config, recorded, lm.state_dict(), 0, recorded.values["blocks.0.in"])
    search = BugSearch(block, formulas(lm.config))
    assert search.differing_taps(search.formulas) == ["ffn.hidden"]
    correct = BUG_BY_NAME["gate_and_up_swapped"]
    harmful = KnownBug(
        "harmful",
        "",
        "",
        correct.visible_at,
        lambda f, tap: replace(correct.change(f, tap), divisor=lambda config: 1.0),
    )
    assert [
        hypothesis.bugs for hypothesis in search.iter_hypotheses([(correct,), (harmful,)], "ffn.hidden", ["ffn.hidden"])
    ] == [(correct,)]


def test_bug_in_one_layer_is_found_only_there():
    model = COURSE_BUGS["gain left out"].plant(course_model(), condition=lambda name: name == "layers.1.ln2")
    report = diagnose(model)
    assert report.first == "blocks.1.ffn_norm" and report.cause.name == "gain_left_out"
    assert report.differences[0].also == ()


def test_difference_has_size_and_positions():
    model = COURSE_BUGS["positions of queries from 1"].plant(course_model())
    ids = list(range(9))
    difference = diagnose(model, example_ids=ids).differences[0]
    assert difference.positions == tuple(range(1, 9))  # the first token attends only to itself
    assert difference.largest > 1e-3 and difference.scale > difference.largest / 10


def test_equally_good_explanations_are_both_named():
    model = course_model(d_model=64, num_heads=8, num_layers=1)  # √64 = 64 / 8
    COURSE_BUGS["scale 1/d"].plant(model)
    cause = diagnose(model).cause
    assert cause.slips == ("scale_1_over_d", "scale_of_model") and not cause.is_clear
    assert "equally well" in str(diagnose(model))


def test_bug_hidden_in_run_is_found_with_shorter_vectors():
    report = diagnose(COURSE_BUGS["another ε"].plant(course_model()))
    assert report.differences[0].probed > 100 and "times shorter" in str(report)


def test_gain_of_ones_is_checked():
    model = replace_norm(lambda self, x: x / root_mean_square(self, x))(course_model())
    assert all((part.weight == 1).all() for part in model.modules() if isinstance(part, RMSNorm))
    assert diagnose(model).cause.name == "gain_left_out"
    assert all((part.weight == 1).all() for part in model.modules() if isinstance(part, RMSNorm))  # unchanged


def test_given_reference_decides():
    halves = COURSE_BUGS["rotation of halves"].plant(course_model())
    sizes = {name: size for name, size in SIZES.items() if name != "rope_theta"}
    lm = TransformerLM(ModelConfig.llama_style(**sizes, rope_layout="half_split"))
    assert diagnose(halves, lm).first is None
    assert diagnose(course_model(), lm).cause.name == "rotation_of_halves"
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("product", [raw_parameters.F.linear, raw_parameters.multiply_and_sum])
def test_bug_in_unrecorded_component_is_found_at_next_tap(product):
    """Weights that are no modules are recorded where a product reads them; others are diagnosed at the next tap."""
    names, is_recorded = raw_parameters.NAMES, product is not raw_parameters.multiply_and_sum
    torch.manual_seed(0)
    equal = diagnose(raw_parameters.TransformerLM(product=product), names=names)
    assert equal.is_equal and equal.logits_apart < 1e-4
    unseen = {row.tap for row in equal.rows if not row.is_recorded}
    assert unseen == (
        set() if is_recorded else {f"blocks.{layer}.attn.{name}" for layer in range(2) for name in "qkvz"}
    )
    report = diagnose(raw_parameters.TransformerLM(scale=1.0, product=product), names=names)
    assert (report.first, report.cause.name) == ("blocks.0.attn.scores", "no_scale")
    assert report.differences[0].seen_at == ("blocks.0.attn.z" if is_recorded else "blocks.0.attn.out")


def test_zero_bias_is_checked():
    model = gpt()
    linear_without_bias = type(
        "Linear", (nn.Linear,), {"forward": lambda self, x: nn.functional.linear(x, self.weight)}
    )
    model.transformer.h[1].mlp.c_proj.__class__ = linear_without_bias
    nn.init.zeros_(model.transformer.h[1].mlp.c_proj.bias)
    report = diagnose(model)
    assert (report.first, report.cause.name) == ("blocks.1.ffn.out", "bias_left_out")
