from explorer.web.widgets.header import ModelPicker


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
