import pytest

from explorer.tracing.jobs import Job
from explorer.web.widgets.header import ModelPicker, OpenModelForm
from model.pretrained.reference_logits import LogitAgreement

CHECK = Job(("check", "it"), lambda: iter(()), 1, 0)


@pytest.mark.parametrize(
    ("reference", "largest", "words", "differs"),
    [
        ("transformers", 2e-6, "✓ agrees with transformers: logits differ by at most 2.00e−06", False),
        ("stored", 2e-6, "✓ agrees with the logits that came with it: they differ by at most 2.00e−06", False),
        ("transformers", 0.53, "⚠ differs from transformers: logits by up to 0.530", True),
        ("stored", 0.53, "⚠ differs from the logits that came with it, by up to 0.530", True),
        ("stored", float("nan"), "⚠ differs from the logits that came with it, by up to nan", True),
    ],
)
def test_a_comparison_is_told_with_a_tick_only_where_it_holds(reference, largest, words, differs):
    payload = OpenModelForm.pack([], LogitAgreement(reference, largest, 20.0), None, is_external=True)
    assert (payload["words"], payload["differs"], payload["check"]) == (words, differs, "")


def test_what_was_not_compared_is_said_of_others_models_alone():
    waiting = OpenModelForm.pack(["a/b"], None, CHECK, is_external=True)
    assert waiting["words"] == "not checked against another implementation"
    assert waiting == waiting | {"names": ["a/b"], "differs": False, "check": CHECK.name}
    assert OpenModelForm.pack([], None, None, is_external=False)["words"] == ""


def test_the_steps_of_a_training_are_one_model_which_is_trained_furthest_at_first():
    names = ["b", "series/step-000512", "series/step-1024", "series/step-000000", "a", "group/c", "group/d"]
    assert ModelPicker.pack(names) == [
        ["a", "a"],
        ["b", "b"],
        ["group/c", "group/c"],
        ["group/d", "group/d"],
        ["series", "series/step-1024"],
    ]


def test_a_model_may_stand_beside_its_steps():
    assert ModelPicker.pack(["a/step-8", "a"]) == [["a", "a"]]
