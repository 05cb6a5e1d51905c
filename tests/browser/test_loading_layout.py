"""While a view loads nothing that is seen moves, and `settled` waits for every figure."""

import pytest

# As the web's cumulative layout shift: without what moves within half a second of a click or key.
WATCH_SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""
SETTLED = """async () => {
  await explorer.settled();
  const figures = [...document.querySelectorAll("#view :is(.plot, .grid)")];
  return figures.filter((figure) => figure.checkVisibility()).map((figure) => figure.dataset.draws ?? "not drawn");
}"""
VIEWS = ["positions", "residual", "prediction", "experiments", "kv_cache"]


@pytest.mark.parametrize(("width", "max_shift"), [(1440, 0.05), (390, 0.08)])
def test_a_view_is_drawn_whole_and_stays_where_it_is(newcomer, address, width, max_shift):
    """Gradio’s own loading sign has 0.02 of the shift, 0.04 on a telephone."""
    for view in VIEWS:
        page = newcomer(viewport={"width": width, "height": 900}).page
        page.add_init_script(WATCH_SHIFTS)
        page.goto(f"{address}?view={view}&depth=numbers")
        page.wait_for_function("window.explorer?.state.checkpoint")
        draws = page.evaluate(SETTLED)
        assert draws and all(draw.isdigit() for draw in draws), (view, draws)
        assert page.evaluate("window.shift") < max_shift, view
