from explorer.web.widgets.picker import Picker


def test_snapshots_of_a_model_stand_together():
    names = ["b", "series/step-000512", "series/step-000000", "a"]
    assert Picker.pack(names) == [
        {"name": "a", "checkpoints": [["a", "at its end"]]},
        {"name": "b", "checkpoints": [["b", "at its end"]]},
        {
            "name": "series",
            "checkpoints": [["series/step-000000", "step 0"], ["series/step-000512", "step 512"]],
        },
    ]


def test_a_model_may_stand_beside_its_snapshots():
    assert Picker.pack(["a/best", "a"])[0]["checkpoints"] == [["a", "at its end"], ["a/best", "best"]]
