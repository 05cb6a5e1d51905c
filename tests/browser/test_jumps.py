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

from .drawn_map import accessible_name

# The tab that each kind of parts opens.
TABS = {"token": "tokens", "position": "positions", "rotation": "positions", "head": "attention", "o_proj": "attention"}
TABS |= {"feed_forward": "feed_forward", "norm": "residual", "addition": "residual", "lm_head": "prediction"}
COMPONENTS = """(map) => [...map.querySelectorAll(".part")].map((part, item) => {
  const label = part.getAttribute("aria-label"), [, kind] = part.classList;
  const number = (name) => Number(label.match(`^(?:layer \\\\d+ )?${name} (\\\\d+)`)?.[1] ?? -1);
  return { item, kind, layer: number("layer"), head: number("head") };
})"""
WRITTEN = """() => {
  const all = (what) => [...document.querySelectorAll(`#overview-map ${what}`)];
  const labels = all(".part").map((part) => part.getAttribute("aria-label"));
  return [labels, all(".words text").map((word) => word.textContent)];
}"""
# Figures last painted with other data, or out of sight; without those that are computed on request. Plotly adds
# decoded arrays to its input, and texts of cells are not part of that input.
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
def test_every_tab_paints_what_the_map_chose(visitor):
    person = visitor(view="overview", layer=0, head=0)
    opening, overview = PageStateBuilder(RunService(ModelLibrary("cpu"))), person.page.locator("#overview-map .map")
    for view in FULL:  # all have been drawn with another selection
        visit(person, opening, view)
    visit(person, opening, FULL[0])
    components = [
        component | {"view": TABS[component["kind"]]}
        for component in overview.evaluate(COMPONENTS)
        if component["kind"] in TABS
    ]
    components = list({component["view"]: component for component in components}.values())  # the last that opens each
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
        expect_painted(person, opening)
        visit(person, opening, FULL[1 + i % (len(FULL) - 1)])  # from a part to every tab
        visit(person, opening, FULL[0])


def visit(person, opening, view):
    person.tab(view.title)
    person.wait_until("page.state.view === given", view.name)
    expect_painted(person, opening)


def expect_painted(person, opening):
    """Wait until every figure of the open tab is painted with the data of the page's state."""
    state = person.state
    open_view = make_open_view(opening.runs, PageState.parse(state))
    figures = [panel for panel in open_view.panels(newly=True) if panel.kind == "figure" and open_view.has(panel)]
    figures = {f"{state['view']}-{panel.name}": figure_payload(open_view.draw(panel)) for panel in figures}
    figures = {name: figure[0] for name, figure in figures.items() if figure}
    try:
        person.page.wait_for_function(f"(figures) => !({UNPAINTED})(figures)", arg=figures)
    except TimeoutError:
        raise AssertionError(f"{person.page.evaluate(UNPAINTED, figures)} are not painted as {state} says") from None
    if state["view"] == "overview":
        diagram = open_view.draw(next(panel for panel in FULL[0].panels if panel.kind == "model_map"))
        expected_names = [accessible_name(component.hover_text, component.label) for component in diagram.parts]
        person.page.wait_for_function(f"(written) => `${{({WRITTEN})()[0]}}` === `${{written}}`", arg=expected_names)
        assert person.page.evaluate(WRITTEN)[1] == [word.text for word in diagram.sheets[0].labels]
    if state["view"] == "attention":
        pattern = open_view.trace[f"blocks.{state['layer']}.attn.pattern"][state["head"]]
        np.testing.assert_allclose(person.page.evaluate(LARGE_PATTERN), pattern, atol=1e-6)
