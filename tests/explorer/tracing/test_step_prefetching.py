"""Prefetching of a training run's other steps."""

import pytest

from explorer.tracing.model_library import ModelLibrary, TrainingStepPrefetcher, model_num_bytes

from .test_training_history import STEPS, name, series  # noqa: F401


@pytest.fixture
def library(series) -> ModelLibrary:  # noqa: F811
    library = ModelLibrary("cpu")
    library.model(name(4))
    return library


def loaded_steps(library: ModelLibrary) -> list[int]:
    return [step for step in STEPS if library.has(name(step))]


def test_all_steps_are_prefetched(library):
    TrainingStepPrefetcher(library).prefetch_steps(name(4)).result()
    assert loaded_steps(library) == list(STEPS)
    assert TrainingStepPrefetcher(library).prefetch_steps(name(4)) is None


def test_model_without_steps_prefetches_nothing(library):
    assert TrainingStepPrefetcher(library).prefetch_steps("tiny") is None


def test_nearest_steps_are_prefetched_within_limit(library):
    size = model_num_bytes(library.model(name(4))[0])
    TrainingStepPrefetcher(library, max_bytes=2 * size).prefetch_steps(name(4)).result()
    assert loaded_steps(library) == [0, 4]
    TrainingStepPrefetcher(library, max_bytes=size // 2).prefetch_steps(name(16))
    assert loaded_steps(library) == [0, 4]


def test_prefetching_evicts_no_model(series):  # noqa: F811
    size = model_num_bytes(ModelLibrary("cpu").model(name(4))[0])
    library = ModelLibrary("cpu", max_model_cache_bytes=2 * size)
    library.model("tiny")
    library.model(name(4))
    TrainingStepPrefetcher(library).prefetch_steps(name(4)).result()
    assert library.has("tiny") and loaded_steps(library) == [4]


def test_damaged_step_does_not_block_others(library, series):  # noqa: F811
    (series / "step-000000" / "model.safetensors").write_bytes(b"")
    TrainingStepPrefetcher(library).prefetch_steps(name(4)).result()
    assert loaded_steps(library) == [4, 16]


def test_run_is_captured_at_next_step(library):
    ahead, ids = TrainingStepPrefetcher(library), (3, 1, 2)
    ahead.prefetch_steps(name(4)).result()
    library.trace(name(4), ids)
    assert ahead.prefetch_next_token(name(4), ids) is None  # the user has not changed steps yet
    library.trace(name(0), ids)
    assert not library.has_trace(name(16), ids)
    ahead.prefetch_next_token(name(4), ids).result()
    assert library.has_trace(name(16), ids)
    assert ahead.prefetch_next_token(name(4), ids) is None  # both neighbours are captured
    assert ahead.prefetch_next_token(name(16), ids) is None and ahead.prefetch_next_token("tiny", ids) is None
