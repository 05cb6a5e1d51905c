"""Every slip that is planted is found, at its place and by its name; and what is none is not taken for one."""

import time

import pytest
import torch
from torch import nn

from explorer import diagnose
from model.config import ModelConfig
from model.transformer_lm import TransformerLM
from tests import raw_parameters
from tests.course import SIZES, RMSNorm, course_model
from tests.planted_slips import PLANTED, UNEXPLAINED, norm, planted, rms
from tests.spelled import gpt

MOST_SECONDS = 10


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_slip_is_named_with_its_place(name):
    began = time.process_time()
    report = diagnose(planted(name))
    assert time.process_time() - began < MOST_SECONDS
    assert (report.first, report.cause.name) == (PLANTED[name].tap, PLANTED[name].name)
    assert report.cause.is_clear and len(report.differences) == 1
    is_in_blocks, is_a_number = report.first.startswith("blocks.0."), name != "mask hides itself"
    assert not (is_in_blocks and is_a_number) or report.first.replace("0", "1", 1) in report.differences[0].also


@pytest.mark.parametrize("name", UNEXPLAINED)
@pytest.mark.exhaustive
def test_what_is_no_known_slip_is_told_as_unexplained(name):
    plant, seen_at = UNEXPLAINED[name]
    report = diagnose(plant(course_model()))
    assert report.first == seen_at and report.cause is None
    assert all(difference.cause is None for difference in report.differences)
    assert "not explained" in str(report)


@pytest.mark.exhaustive
def test_what_is_not_explained_is_narrowed_by_what_the_attention_still_has():
    plant, _seen_at = UNEXPLAINED["temperature of 0.9"]
    assert diagnose(plant(course_model())).differences[0].equal_to == "blocks.0.attn.k_rot"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gain left out", "gate and up swapped"),
        ("rotation of halves", "scale 1/d"),
        ("mask sees the next", "no scale"),
        ("ε outside of the root", "no final norm"),
        ("sublayers side by side", "GELU in the place of SiLU"),
        ("heads split by a view", "mask after the softmax"),
    ],
)
@pytest.mark.exhaustive
def test_two_slips_are_found_one_after_the_other(one, other):
    def both(model):
        for name in (one, other):
            PLANTED[name].plant(model)
        return model

    model = course_model()
    if {one, other} & {"rotation of halves"} or one.startswith(("ε", "gain")) or one.startswith("sublayers"):
        both(model)
    else:
        for layer in model.layers:  # both change methods of one class
            methods = {
                key: value
                for name in (one, other)
                for key, value in vars(type(PLANTED[name].plant(course_model()).layers[0].attn)).items()
                if not key.startswith("__")
            }
            layer.attn.__class__ = type("Attention", (type(layer.attn),), methods)
    report = diagnose(model)
    assert {difference.cause.name for difference in report.differences} == {PLANTED[one].name, PLANTED[other].name}
    assert report.first == PLANTED[one].tap or one == "mask sees the next"


def test_a_slip_in_one_layer_is_found_there_alone():
    model = PLANTED["gain left out"].plant(course_model(), where=lambda name: name == "layers.1.ln2")
    report = diagnose(model)
    assert report.first == "blocks.1.ffn_norm" and report.cause.name == "gain_left_out"
    assert report.differences[0].also == ()


def test_the_difference_has_its_size_and_positions():
    model = PLANTED["positions of queries from 1"].plant(course_model())
    ids = list(range(9))
    difference = diagnose(model, example_ids=ids).differences[0]
    assert difference.positions == tuple(range(1, 9))  # the first looks at nothing but itself
    assert difference.largest > 1e-3 and difference.scale > difference.largest / 10


def test_slips_that_explain_equally_are_both_named():
    model = course_model(d_model=64, num_heads=8, num_layers=1)  # √64 = 64 / 8
    PLANTED["scale 1/d"].plant(model)
    cause = diagnose(model).cause
    assert cause.slips == ("scale_1_over_d", "scale_of_model") and not cause.is_clear
    assert "equally well" in str(diagnose(model))


def test_a_slip_that_the_run_does_not_show_is_found_on_shorter_vectors():
    report = diagnose(PLANTED["another ε"].plant(course_model()))
    assert report.differences[0].probed > 100 and "times shorter" in str(report)


def test_a_gain_of_ones_hides_nothing():
    model = norm(lambda self, x: x / rms(self, x))(course_model())
    assert all((part.weight == 1).all() for part in model.modules() if isinstance(part, RMSNorm))
    assert diagnose(model).cause.name == "gain_left_out"
    assert all((part.weight == 1).all() for part in model.modules() if isinstance(part, RMSNorm))  # nor is it changed


def test_a_reference_that_is_given_decides():
    halves = PLANTED["rotation of halves"].plant(course_model())
    sizes = {name: size for name, size in SIZES.items() if name != "rope_theta"}
    lm = TransformerLM(ModelConfig.llama_style(**sizes, rope_layout="half_split"))
    assert diagnose(halves, lm).first is None
    assert diagnose(course_model(), lm).cause.name == "rotation_of_halves"
    assert torch.is_grad_enabled()


def test_what_parts_do_not_show_is_found_behind_them():
    torch.manual_seed(0)
    equal = diagnose(raw_parameters.TransformerLM(), names=raw_parameters.NAMES)
    assert equal.is_equal and equal.logits_apart < 1e-4
    unseen = {row.tap for row in equal.rows if not row.is_seen}
    assert unseen == {f"blocks.{layer}.attn.{name}" for layer in range(2) for name in "qkvz"}
    report = diagnose(raw_parameters.TransformerLM(scale=1.0), names=raw_parameters.NAMES)
    assert (report.first, report.cause.name) == ("blocks.0.attn.scores", "no_scale")
    assert report.differences[0].seen_at == "blocks.0.attn.out"


def test_biases_of_nothing_hide_nothing():
    model = gpt()
    forgetful = type("Linear", (nn.Linear,), {"forward": lambda self, x: nn.functional.linear(x, self.weight)})
    model.transformer.h[1].mlp.c_proj.__class__ = forgetful
    nn.init.zeros_(model.transformer.h[1].mlp.c_proj.bias)
    report = diagnose(model)
    assert (report.first, report.cause.name) == ("blocks.1.ffn.out", "bias_left_out")
