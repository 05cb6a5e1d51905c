"""Models with unusual weight names: correct ones are equal to the reference, and bugs in others are found."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from explorer import diagnose, from_module
from explorer.errors import UserError
from model.config import ModelConfig
from tests import unusual_modules
from tests.course import SIZES, Attention, Block, RotaryPositionalEmbedding, SwiGLU, course_model
from tests.course_bug_methods import replace_methods, rotate_halves
from tests.course_bugs import COURSE_BUGS
from tests.exhaustive import first_in_core
from tests.subtest_loops import subtest_each
from tests.unusual_modules import (
    FLAT,
    FlatModel,
    FusedModel,
    ModelWithoutFinalNorm,
    OlderModel,
    make_gainless_model,
    make_transposed_model,
)

OLDER = ModelConfig.gpt_style(**SIZES)
POST = replace(OLDER, norm_placement="post")


def causes_by_tap(report):
    return [(difference.tap, difference.cause and difference.cause.name) for difference in report.differences]


@pytest.mark.parametrize(
    ("module", "reference", "names"),
    [
        (FusedModel, None, None),
        (FlatModel, None, FLAT),
        (make_transposed_model, None, None),
        (OlderModel, None, None),
        (lambda: OlderModel(post=True), POST, None),
    ],
    ids=["fused", "flat", "transposed maps", "older", "post-norm"],
)
def test_correct_model_is_equal_to_reference(module, reference, names):
    report = diagnose(module(), reference, names)
    assert report.is_equal and report.logits_apart < 1e-4
    assert sum(row.is_recorded for row in report.rows) > 0.7 * len(report.rows)
    from_module(module(), config=reference, names=names, example_ids=[3, 1, 4, 1, 5])


@subtest_each(
    ("made", "slips"),
    [
        ({"order": "qvk"}, [("attn.k", "keys_and_values_swapped")]),
        ({"order": "vqk"}, [("attn.q", "keys_values_queries_in_turn")]),
        ({"order": "kvq"}, [("attn.q", "values_keys_queries_in_turn")]),
        ({"causal": False}, [("attn.pattern", "no_mask")]),
        ({"gate": torch.relu}, [("ffn.gate", "relu_for_silu")]),
        ({"causal": False, "gate": F.gelu}, [("attn.pattern", "no_mask"), ("ffn.gate", "gelu_for_silu")]),
    ],
)
@pytest.mark.exhaustive
def test_fused_model_names_only_its_bug(made, slips):
    """The names do not reveal the rotary layout, which must not be reported as a bug."""
    assert causes_by_tap(diagnose(FusedModel(**made))) == [(f"blocks.0.{tap}", name) for tap, name in slips]


@pytest.mark.parametrize(
    ("made", "slips"),
    [
        ({"eps": 1e-3}, [("blocks.0.attn_norm", "epsilon_1e-3")]),
        ({"divisor": 1.0}, [("blocks.0.attn.scores", "no_scale")]),
        ({"diagonal": 2}, [("blocks.0.attn.pattern", "mask_sees_next")]),
        ({"gate": "w3", "other": "w1"}, [("blocks.0.ffn.gate", "gate_and_up_swapped")]),
        ({"divisor": 8.0, "diagonal": 0}, None),
    ],
)
@pytest.mark.exhaustive
def test_unwrapped_weights_are_recorded_where_used(made, slips):
    names = causes_by_tap(diagnose(FlatModel(**made), names=FLAT))
    assert names == slips if slips else {name for _tap, name in names} >= {"scale_1_over_d"}


def test_bug_in_transposed_model_is_named():
    model = COURSE_BUGS["gate and up swapped"].plant(make_transposed_model())
    assert causes_by_tap(diagnose(model)) == [("blocks.0.ffn.gate", "gate_and_up_swapped")]


@subtest_each("post", [False, True])
@subtest_each(
    ("made", "slip"),
    [
        ({"first": 1}, ("embed", "added_positions_off_by_one")),
        ({"diagonal": 2}, ("blocks.0.attn.pattern", "mask_sees_next")),
        ({"activation": F.gelu}, ("blocks.0.ffn.hidden", "gelu_for_activation")),
    ],
)
@pytest.mark.exhaustive
def test_bug_in_older_model_is_named(post, made, slip):
    assert causes_by_tap(diagnose(OlderModel(post=post, **made), POST if post else OLDER)) == [slip]


def test_sinusoidal_reference_is_chosen_automatically():
    assert causes_by_tap(diagnose(OlderModel(first=1))) == [("embed", "added_positions_off_by_one")]


class PostNormBugs:
    """Wrong residual connections of a post-norm block."""

    without_residual = staticmethod(lambda self, x: self.n2((y := self.n1(self.look(x))) + self.think(y)))
    norm_of_output = staticmethod(lambda self, x: (y := x + self.n1(self.look(x))) + self.n2(self.think(y)))
    one_norm = staticmethod(lambda self, x: self.n1((y := self.n1(x + self.look(x))) + self.think(y)))
    no_gain = staticmethod(
        lambda self, x: self.n2((y := F.layer_norm(x + self.look(x), x.shape[-1:], bias=self.n1.bias)) + self.think(y))
    )


@pytest.mark.parametrize(
    ("forward", "slip"),
    [
        (PostNormBugs.without_residual, ("blocks.0.resid_mid", "no_residual_of_attention_after")),
        (PostNormBugs.norm_of_output, ("blocks.0.resid_mid", "norm_of_output_alone")),
        (PostNormBugs.one_norm, ("blocks.0.ffn_norm", "first_norm_twice_after")),
        (PostNormBugs.no_gain, ("blocks.0.attn_norm", "gain_left_out")),
    ],
)
@pytest.mark.exhaustive
def test_post_norm_bugs_are_named(forward, slip):
    model = replace_methods(unusual_modules.OlderBlock, forward=forward)(OlderModel(post=True))
    assert causes_by_tap(diagnose(model, POST)) == [slip]


def test_pre_norm_is_bug_if_reference_is_post_norm():
    assert causes_by_tap(diagnose(OlderModel(post=True, before=True), POST)) == [("blocks.0.resid_pre", "norm_before")]


def parallel_forward(self, x):
    return x + self.attn(self.ln1(x)) + self.ffn(self.ln2(x))


def normalise_outputs(self, x):
    x = x + self.ln1(self.attn(x))
    return x + self.ln2(self.ffn(x))


@pytest.mark.parametrize(
    ("placement", "forward", "slip"),
    [
        ("parallel", parallel_forward, ("blocks.0.ffn_norm", "serial")),
        ("output", normalise_outputs, ("blocks.0.resid_pre", "norm_before")),
    ],
)
@pytest.mark.exhaustive
def test_bugs_under_other_norm_placements_are_named(placement, forward, slip):
    config = ModelConfig.llama_style(**SIZES, norm_placement=placement)
    assert diagnose(replace_methods(Block, forward=forward)(course_model()), config).is_equal
    assert causes_by_tap(diagnose(course_model(), config)) == [slip]
    relu = replace_methods(SwiGLU, forward=lambda self, x: self.w2(F.relu(self.w1(x)) * self.w3(x)))
    model = relu(replace_methods(Block, forward=forward)(course_model()))
    assert causes_by_tap(diagnose(model, config)) == [("blocks.0.ffn.gate", "relu_for_silu")]


@pytest.mark.parametrize("heads", first_in_core([8, 2, 16]))
def test_number_of_heads_is_found_despite_bug(heads):
    """The module has no attribute for its number of heads, and with its bug no number gives its logits."""
    model = course_model(d_model=64, num_heads=heads)
    for part in model.modules():
        vars(part).pop("num_heads", None)
    width = 64 // heads
    split = lambda self, x: x.view(*x.shape[:2], heads, width).transpose(1, 2)  # noqa: E731
    model = replace_methods(Attention, split=split)(
        replace_methods(RotaryPositionalEmbedding, forward=rotate_halves)(model)
    )
    report = diagnose(model)
    assert {difference.cause.name for difference in report.differences} == {"rotation_of_halves"}
    assert f"num_heads={heads}." in str(report)


@pytest.mark.parametrize(
    "setting", [{"qk_norm": True}, {"windows": (None, 4)}, {"rotary_layers": (True, False)}], ids=str
)
def test_unsupported_reference_setting_is_refused(setting):
    with pytest.raises(UserError, match=rf"with these settings: {next(iter(setting))}\. Use one without"):
        diagnose(course_model(), ModelConfig.llama_style(**SIZES, **setting))


def test_missing_norm_is_named():
    report = diagnose(ModelWithoutFinalNorm())
    assert causes_by_tap(report) == [("final_norm", "final_norm_missing")]
    assert "no weights for 1 norms of the reference, such as final_norm" in str(report)
    assert causes_by_tap(diagnose(make_gainless_model())) == [("blocks.0.attn_norm", "gain_left_out")]
    assert diagnose(make_gainless_model()).differences[0].also[-1] == "final_norm"
