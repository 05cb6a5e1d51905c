"""From every component of the map to its tab and others, whose figures must follow the selection."""

import numpy as np
import pytest
from playwright.sync_api import TimeoutError, expect

from explorer.state.page_state import PageState
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.views import FULL
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.open_view import make_open_view
from explorer.web.browser_api.page_contents import figure_payload

from .map_expectations import make_accessible_name

# The tab that each kind of component opens.
TABS = {"token": "tokens", "position": "positions", "rotation": "positions", "head": "attention", "o_proj": "attention"}
TABS |= {"feed_forward": "feed_forward", "norm": "residual", "addition": "residual", "lm_head": "prediction"}
COMPONENTS = """(map) => [...map.querySelectorAll(".part")].map((part, item) => {
  const label = part.getAttribute("aria-label"), [, kind] = part.classList;
  const number = (name) => Number(label.match(`^(?:layer \\\\d+ )?${name} (\\\\d+)`)?.[1] ?? -1);
  return { item, kind, layer: number("layer"), head: number("head") };
})"""
LABELS_AND_TEXTS = """() => {
  const all = (what) => [...document.querySelectorAll(`#overview-map ${what}`)];
  const labels = all(".part").map((part) => part.getAttribute("aria-label"));
  return [labels, all(".words text").map((word) => word.textContent)];
}"""
# Figures painted with outdated data, or not visible; without those computed on request. Plotly adds decoded
# arrays to its input, and texts of cells are not part of that input.
UNPAINTED = """(figures) => Object.entries(figures).filter(([id, data]) => {
  const plot = document.querySelector(`#${id} .plot`), given = (name, value) => (name[0] === "_" ? undefined : value);
  if (document.querySelector(`#${id} .job button`)) return false;
  const drawn = (trace) => {
    const { texttemplate, ...rest } = trace;
    return trace.type === "heatmap" && texttemplate ? { ...rest, meta: texttemplate } : trace;
  };
  return !plot?.clientWidth || JSON.stringify(plot.data, given) !== JSON.stringify(JSON.parse(data).map(drawn));
}).map(([id]) => id).join()"""
LARGE_PATTERN = """() => Array.from(
  document.querySelector("#attention-pattern .plot")._fullData[0].z, (row) => Array.from(row, (weight) => weight || 0)
)"""


@pytest.mark.by_hand
def test_every_tab_shows_component_selected_on_map(open_page):
    person = open_page(view="overview", layer=0, head=0)
    state_builder, overview = (
        PageStateBuilder(RunService(ModelLibrary("cpu"))),
        person.page.locator("#overview-map .map"),
    )
    for view in FULL:  # all are drawn with another selection first
        visit_view(person, state_builder, view)
    visit_view(person, state_builder, FULL[0])
    components = [
        component | {"view": TABS[component["kind"]]}
        for component in overview.evaluate(COMPONENTS)
        if component["kind"] in TABS
    ]
    components = list({component["view"]: component for component in components}.values())  # last one of each view
    assert {component["view"] for component in components} >= {
        "tokens",
        "attention",
        "feed_forward",
        "residual",
        "prediction",
    }
    for i, component in enumerate(components):
        overview.locator(".part").nth(component["item"]).click()
        person.wait_until("page.state.view === given", component["view"])
        state = person.state
        assert all(component[name] in (-1, state[name]) for name in ("layer", "head")), (component, state)
        tab = person.page.locator(f"[role=tab][data-view={component['view']}]")
        expect(tab).to_have_attribute("aria-selected", "true")
        expect_painted(person, state_builder)
        visit_view(person, state_builder, FULL[1 + i % (len(FULL) - 1)])  # from a component to every tab
        visit_view(person, state_builder, FULL[0])


def visit_view(person, state_builder, view):
    person.tab(view.title)
    person.wait_until("page.state.view === given", view.name)
    expect_painted(person, state_builder)


def expect_painted(person, state_builder):
    """Wait until every figure of the open tab is painted with the data of the page's state."""
    state = person.state
    open_view = make_open_view(state_builder.runs, PageState.parse(state))
    figures = [panel for panel in open_view.panels(newly=True) if panel.kind == "figure" and open_view.has(panel)]
    figures = {f"{state['view']}-{panel.name}": figure_payload(open_view.draw(panel)) for panel in figures}
    figures = {name: figure[0] for name, figure in figures.items() if figure}
    try:
        person.page.wait_for_function(f"(figures) => !({UNPAINTED})(figures)", arg=figures)
    except TimeoutError:
        raise AssertionError(f"{person.page.evaluate(UNPAINTED, figures)} are not painted as {state} says") from None
    if state["view"] == "overview":
        diagram = open_view.draw(next(panel for panel in FULL[0].panels if panel.kind == "model_map"))
        expected_names = [make_accessible_name(component.hover_text, component.label) for component in diagram.parts]
        person.page.wait_for_function(
            f"(written) => `${{({LABELS_AND_TEXTS})()[0]}}` === `${{written}}`", arg=expected_names
        )
        assert person.page.evaluate(LABELS_AND_TEXTS)[1] == [word.text for word in diagram.sheets[0].labels]
    if state["view"] == "attention":
        pattern = open_view.trace[f"blocks.{state['layer']}.attn.pattern"][state["head"]]
        np.testing.assert_allclose(person.page.evaluate(LARGE_PATTERN), pattern, atol=1e-6)
