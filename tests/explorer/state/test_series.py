from explorer.state.series import model_of, moment, series_of, step_of

NAMES = ["b", "fables", "fables/step-001024", "fables/step-16", "fables/step-000000", "group/alice", "group/bob"]


def test_a_name_tells_the_model_and_the_step():
    assert (model_of("fables/step-000512"), step_of("fables/step-000512")) == ("fables", 512)
    assert (model_of("fables"), step_of("fables")) == ("fables", None)
    assert (model_of("group/alice"), step_of("group/alice")) == ("group/alice", None)


def test_a_series_is_in_the_order_of_its_training():
    series = ["fables/step-000000", "fables/step-16", "fables/step-001024", "fables"]
    assert all(series_of(name, NAMES) == series for name in series)
    assert series_of("b", NAMES) == ["b"]
    assert series_of("group/bob", NAMES) == ["group/bob"]


def test_a_moment_is_told_in_words():
    told = [moment(name) for name in series_of("fables", NAMES)]
    assert told == ["step 0", "step 16", "step 1,024", "at its end"]
