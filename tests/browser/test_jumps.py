"""From every part of the map to its tab and others: what is painted there is what the selection says."""

import numpy as np
import pytest
from playwright.sync_api import TimeoutError, expect

from explorer.state.page_state import PageState
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.views import VIEWS
from explorer.web.endpoints import packed
from explorer.web.open_view import open_view_of
from explorer.web.opening import Opening

# The parts of the map that open another tab: its name, and where on the map they are; once for every layer and head.
PARTS = """plot => {
  const { xaxis, yaxis } = plot._fullLayout, found = {};
  for (const { type, customdata, x, y, base } of plot._fullData)
    for (let i = 0; i < (customdata?.length ?? 0); i++) {
      const [view, layer, head] = customdata[i], middle = type === "bar" ? (base?.[i] ?? 0) + y[i] / 2 : y[i];
      if (view !== "overview")
        found[[view, layer, head]] = { view, x: xaxis._offset + xaxis.c2p(x[i]), y: yaxis._offset + yaxis.c2p(middle) };
    }
  return Object.values(found);
}"""
# Pictures that were last painted with other data, or are out of sight. Plotly adds what it decodes to what it is given.
UNPAINTED = """(pictures) => Object.entries(pictures).filter(([id, data]) => {
  const plot = document.querySelector(`#${id} .plot`), given = (name, value) => (name[0] === "_" ? undefined : value);
  return !plot?.clientWidth || JSON.stringify(plot.data, given) !== JSON.stringify(JSON.parse(data));
}).map(([id]) => id).join()"""
LARGE_PATTERN = """() => Array.from(
  document.querySelector("#attention-pattern .plot")._fullData[0].z, (row) => Array.from(row, (weight) => weight || 0)
)"""


@pytest.mark.exhaustive
def test_every_tab_paints_what_the_map_chose(newcomer):
    person = newcomer().open(view="overview", layer=0, head=0)
    opening, overview = Opening(Runs(Library("cpu"))), person.page.locator("#overview-map .plot")
    for view in VIEWS:  # all have been drawn with another selection
        visit(person, opening, view)
    visit(person, opening, VIEWS[0])
    parts = overview.evaluate(PARTS)
    assert {part["view"] for part in parts} >= {"tokens", "attention", "feed_forward", "residual", "prediction"}
    for i, part in enumerate(parts):
        overview.click(position={"x": part["x"], "y": part["y"]})
        person.wait_until("page.state.view === given", part["view"])
        tab = person.page.locator(f"[role=tab][data-tab-id={part['view']}]")
        expect(tab).to_have_attribute("aria-selected", "true")
        expect_painted(person, opening)
        for view in (*VIEWS[1 + i % 4 :: 4], VIEWS[0]):  # from four parts to every tab
            visit(person, opening, view)


def visit(person, opening, view):
    person.tab(view.title)
    person.wait_until("page.state.view === given", view.name)
    expect_painted(person, opening)


def expect_painted(person, opening):
    """In time, every picture of the open tab has been painted with the data of the page's state."""
    state = person.state
    open_view = open_view_of(opening.runs, PageState.parse(state))
    figures = [panel for panel in open_view.panels(newly=True) if panel.kind == "figure" and open_view.has(panel)]
    pictures = {f"{state['view']}-{panel.name}": packed(open_view.draw(panel)) for panel in figures}
    pictures = {name: picture[0] for name, picture in pictures.items() if picture}
    try:
        person.page.wait_for_function(f"(pictures) => !({UNPAINTED})(pictures)", arg=pictures)
    except TimeoutError:
        raise AssertionError(f"{person.page.evaluate(UNPAINTED, pictures)} are not painted as {state} says") from None
    if state["view"] == "attention":
        pattern = open_view.trace[f"blocks.{state['layer']}.attn.pattern"][state["head"]]
        np.testing.assert_allclose(person.page.evaluate(LARGE_PATTERN), pattern, atol=1e-6)
