"""No layout shift while a view loads, `settled` waits for every figure, and the first figure is large on a desktop."""

from itertools import product

import pytest

from tests.exhaustive import every_nth_in_core

# Cumulative Layout Shift (web vitals): without shifts within half a second of a click or key.
WATCH_SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""
SETTLED = """async () => {
  await explorer.settled();
  const figures = [...document.querySelectorAll("#view :is(.plot, .grid)")];
  return figures.filter((figure) => figure.checkVisibility()).map((figure) => figure.dataset.draws ?? "not drawn");
}"""
FIRST_FIGURE = """() => {
  const plots = [...document.querySelectorAll("#view .main-svg")].map((svg) => svg.getBoundingClientRect());
  return plots.filter(({ height }) => height).map(({ top, height }) => [top, height])[0];
}"""
VIEWS = ["attention", "prediction", "residual", "positions", "experiments", "kv_cache", "training", "directions"]
MAX_SHIFT = {1440: 0.05, 390: 0.08}  # by page width; Gradio's loading indicator causes 0.02 of it, 0.04 if narrow

CASES = [pytest.param(view, width) for view, width in product(VIEWS, MAX_SHIFT)]


@pytest.mark.parametrize(("view", "width"), every_nth_in_core(3, CASES))
def test_view_loads_completely_without_layout_shift(open_new_page, address, view, width):
    page = open_new_page(viewport={"width": width, "height": 900}).page
    page.add_init_script(WATCH_SHIFTS)
    checkpoint = "&checkpoint=fables/step-000004" if view == "training" else ""  # others have no steps to show
    page.goto(f"{address}?view={view}&depth=numbers{checkpoint}")
    page.wait_for_function("window.explorer?.state.checkpoint")
    draws = page.evaluate(SETTLED)
    assert draws and all(draw.isdigit() for draw in draws), draws
    assert page.evaluate("window.shift") < MAX_SHIFT[width]
    if width == 1440:
        top, height = page.evaluate(FIRST_FIGURE)
        assert top <= 230 and height >= 400
        page.set_viewport_size({"width": 1366, "height": 768})
        page.wait_for_timeout(500)  # time to be redrawn
        assert page.evaluate(FIRST_FIGURE)[1] >= 340
