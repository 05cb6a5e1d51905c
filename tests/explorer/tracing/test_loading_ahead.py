"""Other steps of a training are there before they are asked for."""

import pytest

from explorer.tracing.model_library import ModelLibrary, TrainingStepPrefetcher, model_num_bytes

from .test_training import STEPS, name, series  # noqa: F401


@pytest.fixture
def library(series) -> ModelLibrary:  # noqa: F811
    library = ModelLibrary("cpu")
    library.model(name(4))
    return library


def loaded_steps(library: ModelLibrary) -> list[int]:
    return [step for step in STEPS if library.has(name(step))]


def test_all_steps_are_loaded(library):
    TrainingStepPrefetcher(library).prefetch_steps(name(4)).result()
    assert loaded_steps(library) == list(STEPS)
    assert TrainingStepPrefetcher(library).prefetch_steps(name(4)) is None


def test_a_model_that_was_kept_once_has_nothing_to_load(library):
    assert TrainingStepPrefetcher(library).prefetch_steps("tiny") is None


def test_no_more_is_loaded_than_may_be_and_the_nearest_first(library):
    size = model_num_bytes(library.model(name(4))[0])
    TrainingStepPrefetcher(library, max_bytes=2 * size).prefetch_steps(name(4)).result()
    assert loaded_steps(library) == [0, 4]
    TrainingStepPrefetcher(library, max_bytes=size // 2).prefetch_steps(name(16))
    assert loaded_steps(library) == [0, 4]


def test_no_model_is_let_go_for_it(series):  # noqa: F811
    size = model_num_bytes(ModelLibrary("cpu").model(name(4))[0])
    library = ModelLibrary("cpu", max_model_cache_bytes=2 * size)
    library.model("tiny")
    library.model(name(4))
    TrainingStepPrefetcher(library).prefetch_steps(name(4)).result()
    assert library.has("tiny") and loaded_steps(library) == [4]


def test_a_step_that_is_damaged_keeps_no_other_from_being_loaded(library, series):  # noqa: F811
    (series / "step-000000" / "model.safetensors").write_bytes(b"")
    TrainingStepPrefetcher(library).prefetch_steps(name(4)).result()
    assert loaded_steps(library) == [4, 16]


def test_the_run_is_captured_at_the_step_that_somebody_is_on_the_way_to(library):
    ahead, ids = TrainingStepPrefetcher(library), (3, 1, 2)
    ahead.prefetch_steps(name(4)).result()
    library.trace(name(4), ids)
    assert ahead.prefetch_next_token(name(4), ids) is None  # the user has not changed steps yet
    library.trace(name(0), ids)
    assert not library.has_trace(name(16), ids)
    ahead.prefetch_next_token(name(4), ids).result()
    assert library.has_trace(name(16), ids)
    assert ahead.prefetch_next_token(name(4), ids) is None  # both sides are there
    assert ahead.prefetch_next_token(name(16), ids) is None and ahead.prefetch_next_token("tiny", ids) is None
