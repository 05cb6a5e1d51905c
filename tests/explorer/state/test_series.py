from explorer.state.run import checkpoints_of_training, model_name, step_label, training_step

NAMES = ["b", "fables", "fables/step-001024", "fables/step-16", "fables/step-000000", "group/alice", "group/bob"]


def test_a_name_tells_the_model_and_the_step():
    assert (model_name("fables/step-000512"), training_step("fables/step-000512")) == ("fables", 512)
    assert (model_name("fables"), training_step("fables")) == ("fables", None)
    assert (model_name("group/alice"), training_step("group/alice")) == ("group/alice", None)


def test_a_series_is_in_the_order_of_its_training():
    series = ["fables/step-000000", "fables/step-16", "fables/step-001024", "fables"]
    assert all(checkpoints_of_training(name, NAMES) == series for name in series)
    assert checkpoints_of_training("b", NAMES) == ["b"]
    assert checkpoints_of_training("group/bob", NAMES) == ["group/bob"]


def test_a_moment_is_told_in_words():
    text = [step_label(name) for name in checkpoints_of_training("fables", NAMES)]
    assert text == ["step 0", "step 16", "step 1,024", "at its end"]
