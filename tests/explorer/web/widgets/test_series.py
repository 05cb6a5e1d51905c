from explorer.web.widgets.view_tools import TrainingStepSlider

NAMES = ["b", "series/step-000512", "series/step-001024", "series", "series/step-000000"]


def test_the_slider_has_every_step_with_its_number():
    assert TrainingStepSlider.pack("series/step-000512", NAMES) == [
        ["series/step-000000", "step 0", "0"],
        ["series/step-000512", "step 512", "512"],
        ["series/step-001024", "step 1,024", "1,024"],
        ["series", "at its end", ""],
    ]


def test_a_model_that_was_kept_once_has_none():
    assert TrainingStepSlider.pack("b", NAMES) == []
