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
def test_comparison_with_reference_has_tick_only_if_it_agrees(reference, largest, words, differs):
    payload = OpenModelForm.pack([], LogitAgreement(reference, largest, 20.0), None, is_external=True)
    assert (payload["words"], payload["differs"], payload["check"]) == (words, differs, "")


def test_missing_comparison_is_noted_for_external_models_only():
    waiting = OpenModelForm.pack(["a/b"], None, CHECK, is_external=True)
    assert waiting["words"] == "not checked against another implementation"
    assert waiting == waiting | {"names": ["a/b"], "differs": False, "check": CHECK.name}
    assert OpenModelForm.pack([], None, None, is_external=False)["words"] == ""


def test_training_steps_are_one_model_at_its_last_step():
    names = ["b", "series/step-000512", "series/step-1024", "series/step-000000", "a", "group/c", "group/d"]
    assert ModelPicker.pack(names) == [
        ["a", "a"],
        ["b", "b"],
        ["group/c", "group/c"],
        ["group/d", "group/d"],
        ["series", "series/step-1024"],
    ]


def test_model_may_have_name_of_training_folder():
    assert ModelPicker.pack(["a/step-8", "a"]) == [["a", "a"]]
