from explorer.web.widgets.view_tools import neighbour_checkpoint

NAMES = ["b", "f/step-000000", "f/step-000004", "f/step-000016"]


def test_another_training_step_is_the_one_before_or_of_the_first_the_one_after():
    assert neighbour_checkpoint("f/step-000016", NAMES) == "f/step-000004"
    assert neighbour_checkpoint("f/step-000004", NAMES) == "f/step-000000"
    assert neighbour_checkpoint("f/step-000000", NAMES) == "f/step-000004"
    assert neighbour_checkpoint("b", NAMES) == neighbour_checkpoint("gone", NAMES) == ""
