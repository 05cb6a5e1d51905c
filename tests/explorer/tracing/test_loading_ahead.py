"""Other steps of a training are there before they are asked for."""

import pytest

from explorer.tracing.library import Library, bytes_of
from explorer.tracing.loading_ahead import LoadingAhead

from .test_training import STEPS, name, series  # noqa: F401


@pytest.fixture
def library(series) -> Library:  # noqa: F811
    library = Library("cpu")
    library.model(name(4))
    return library


def loaded(library: Library) -> list[int]:
    return [step for step in STEPS if library.has(name(step))]


def test_all_steps_are_loaded(library):
    LoadingAhead(library).load_steps(name(4)).result()
    assert loaded(library) == list(STEPS)
    assert LoadingAhead(library).load_steps(name(4)) is None


def test_a_model_that_was_kept_once_has_nothing_to_load(library):
    assert LoadingAhead(library).load_steps("tiny") is None


def test_no_more_is_loaded_than_may_be_and_the_nearest_first(library):
    size = bytes_of(library.model(name(4))[0])
    LoadingAhead(library, most_bytes=2 * size).load_steps(name(4)).result()
    assert loaded(library) == [0, 4]
    LoadingAhead(library, most_bytes=size // 2).load_steps(name(16))
    assert loaded(library) == [0, 4]


def test_no_model_is_let_go_for_it(series):  # noqa: F811
    size = bytes_of(Library("cpu").model(name(4))[0])
    library = Library("cpu", most_model_bytes=2 * size)
    library.model("tiny")
    library.model(name(4))
    LoadingAhead(library).load_steps(name(4)).result()
    assert library.has("tiny") and loaded(library) == [4]


def test_a_step_that_is_damaged_keeps_no_other_from_being_loaded(library, series):  # noqa: F811
    (series / "step-000000" / "model.safetensors").write_bytes(b"")
    LoadingAhead(library).load_steps(name(4)).result()
    assert loaded(library) == [4, 16]


def test_the_run_is_captured_at_the_step_that_somebody_is_on_the_way_to(library):
    ahead, ids = LoadingAhead(library), (3, 1, 2)
    ahead.load_steps(name(4)).result()
    library.trace(name(4), ids)
    assert ahead.capture_next(name(4), ids) is None  # nobody goes anywhere
    library.trace(name(0), ids)
    assert not library.has_trace(name(16), ids)
    ahead.capture_next(name(4), ids).result()
    assert library.has_trace(name(16), ids)
    assert ahead.capture_next(name(4), ids) is None  # both sides are there
    assert ahead.capture_next(name(16), ids) is None and ahead.capture_next("tiny", ids) is None
