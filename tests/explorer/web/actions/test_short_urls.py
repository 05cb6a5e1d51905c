"""URLs of the page without the fields that have their defaults."""

import pytest

from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection, field_choices
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.shared_constants import url_field_defaults


@pytest.fixture(scope="module")
def state_builder(library) -> PageStateBuilder:
    return PageStateBuilder(RunService(library))


def shorten_fields(fields: dict) -> dict[str, str]:
    """Return a URL's fields as the browser writes them (`urlOfState` in static/history.js)."""
    texts = {
        name: ".".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in fields.items()
    }
    defaults = url_field_defaults()
    return {name: text for name, text in texts.items() if text and text != str(defaults.get(name))}


def make_other_values() -> dict[str, str | int | float]:
    """Return a value other than the default for each field of the state that has one."""
    choices, changed = field_choices(), {}
    for name, default in (Selection().as_dict() | GenerationSettings().as_dict()).items():
        others = [value for value in choices.get(name, ()) if value != default]
        changed[name] = others[0] if others else default + 1 if isinstance(default, int) else default
    return changed | {"view": "attention", "temperature": 0.3, "top_p": 0.5, "min_p": 0.1, "tap": "blocks.1.resid_post"}


@pytest.mark.parametrize(
    "change",
    [{}, {"layer": 0, "head": 0, "neuron": 0}, {"layer": 1, "head": 0}, {"query": 3}, make_other_values()],
    ids=str,
)
def test_short_url_equals_full_url(state_builder, change):
    run = state_builder.create_run("rope", "the fox asked the owl")
    fields = (
        run.as_dict()
        | Selection(view="prediction", query=2, layer=1).as_dict()
        | GenerationSettings().as_dict()
        | change
    )
    whole = state_builder.clamp_selection(PageState.parse(fields))
    short = shorten_fields(whole.as_dict() | GenerationSettings.parse(fields).as_dict())
    assert state_builder.state_from_query(short) == whole
    assert GenerationSettings.parse(short) == GenerationSettings.parse(fields)
    assert change or len(short) == 7


def test_short_url_has_second_run(state_builder):
    run, other = (state_builder.create_run("rope", text) for text in ("the fox asked", "the owl asked"))
    fields = PageState(run, Selection(view="compare", layer=1), other=other).as_dict()
    state = state_builder.state_from_query(shorten_fields(fields))
    assert (state.run, state.other.prompt) == (run, other.prompt)
