from explorer.web.widgets.runs import beside

NAMES = ["b", "f/step-000000", "f/step-000004", "f/step-000016"]


def test_another_training_step_is_the_one_before_or_of_the_first_the_one_after():
    assert beside("f/step-000016", NAMES) == "f/step-000004"
    assert beside("f/step-000004", NAMES) == "f/step-000000"
    assert beside("f/step-000000", NAMES) == "f/step-000004"
    assert beside("b", NAMES) == beside("gone", NAMES) == ""
