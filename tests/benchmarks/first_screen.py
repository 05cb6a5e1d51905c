"""The first screen of every view, in headless Chromium on the bundled model: `python -m tests.benchmarks.first_screen`.

For each view at two sizes: where its first figure begins and ends, whether the sliders are in sight, the words and
controls above the figure, the presses of Tab to it, and the layout shift while the page loaded. Then the same of a
telephone's screen, the layout shift when the depth changes (which a click would exempt, so a script changes it), the
time from a slider's move to the bars', and the sizes of type and looks of buttons in use.
"""

import statistics

from playwright.sync_api import Page, sync_playwright

from explorer.views import FULL
from tests.benchmarks.app_server import serve_app
from tests.browser.chromium import FLAGS, find_executable

SIZES = {"1440": (1440, 900), "1366": (1366, 768), "390": (390, 844)}
MAX_TABS = 80
WATCH_SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
})
  .observe({ type: "layout-shift", buffered: true });"""
MEASURE = """() => {
  const seen = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect();
  const isLarge = (box) => box && box.width >= 200 && box.height >= 120 && box.top > 0;
  const figures = [...document.querySelectorAll("#view :is(.js-plotly-plot, .grid, svg)")]
    .map(seen).filter(isLarge).sort((a, b) => a.top - b.top);
  if (!figures.length) return null;
  const [{ top, bottom, left, right }] = figures;
  const isAbove = (box) => box && box.width > 0 && box.height > 0 && box.bottom <= top;
  const isToken = (element) => element.closest("#strip, #strip-b");
  const all = [...document.querySelectorAll("button, select, input, textarea, summary")];
  const controls = all.filter((element) => !isToken(element)).map(seen).filter(isAbove);
  let words = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walker.nextNode()) {
    if (walker.currentNode.parentElement.closest("#strip, #strip-b, script, style, option, select")) continue;
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect(), element = walker.currentNode.parentElement;
    if (isAbove(box) && box.left < right && element.checkVisibility({ visibilityProperty: true }))
      words += walker.currentNode.textContent.trim().split(/\\s+/).filter(Boolean).length;
  }
  const isInSight = (id) => {
    const box = document.querySelector(id).getBoundingClientRect();
    return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
  };
  return {
    top: Math.round(top), bottom: Math.round(bottom), controls: controls.length, words,
    sliders: isInSight("#temperature") && isInSight("#top_k"), shift: window.shift,
  };
}"""
MOVE_SLIDER = """(value) => new Promise((resolve) => {
  const bar = document.querySelector("#next-token tbody .bars b");
  const box = document.querySelector("#temperature input[type=range]");
  const start = performance.now();
  new MutationObserver((_changes, observer) => {
    observer.disconnect();
    const moved = performance.now() - start;
    requestAnimationFrame(() => requestAnimationFrame(() => resolve([moved, performance.now() - start])));
  }).observe(bar, { attributes: true });
  box.value = value;
  box.dispatchEvent(new Event("input", { bubbles: true }));
})"""
IS_AT_FIGURE = """() => Boolean(document.activeElement.closest("#view .panels"))"""
LOOKS = """() => {
  const sizes = new Set(), buttons = new Set();
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    if ([...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && !element.closest("svg"))
      sizes.add(`${style.fontSize} ${style.fontFamily.split(",")[0]}`);
    // tokens and heads have the colours of values
    if (element.matches("button:not(:disabled, [aria-pressed=true], footer *, .chip, .head)"))
      buttons.add([style.backgroundColor, style.borderTopStyle, style.borderTopLeftRadius, style.fontWeight].join());
  }
  return [sizes.size, buttons.size];
}"""


def open_page(page: Page, address: str, query: str):
    """Open a page and wait until it is completely drawn."""
    page.goto(f"{address}?{query}")
    page.wait_for_function("window.explorer?.state.checkpoint")
    page.evaluate("window.explorer.settled()")


def count_tabs(page: Page) -> int:
    """Return the presses of Tab from the top of the page to the first figure."""
    page.evaluate("document.activeElement.blur()")
    for count in range(1, MAX_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(IS_AT_FIGURE):
            return count
    return MAX_TABS


def main():
    with serve_app() as (address, _process), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=FLAGS)
        print("size  view          top  end  controls  words  Tab  sliders in sight  layout shift")
        for size, (width, height) in SIZES.items():
            for view in FULL:
                page = browser.new_page(viewport={"width": width, "height": height})
                page.add_init_script(WATCH_SHIFTS)
                open_page(page, address, f"view={view.name}&depth=numbers")
                found = page.evaluate(MEASURE)
                if not found:
                    print(f"{size:>4}  {view.name:<13} no figure")
                else:
                    print(
                        f"{size:>4}  {view.name:<13} {found['top']:>3}  {found['bottom']:>3}  {found['controls']:>8}  "
                        f"{found['words']:>5}  {count_tabs(page):>3}  {found['sliders']!s:>16}  {found['shift']:.3f}"
                    )
                page.close()
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(WATCH_SHIFTS)
        open_page(page, address, "view=overview&depth=story")
        for depth in ("numbers", "formula", "code", "formula", "numbers", "story", "numbers"):
            before = page.evaluate("window.shift")
            page.evaluate(f"document.querySelector('[data-mode={depth}]').click()")
            page.evaluate("window.explorer.settled()")
            page.wait_for_timeout(500)
            print(f"to {depth}: layout shift {page.evaluate('window.shift') - before:.3f}")
        page.hover("#temperature input")  # fetches the logits
        page.wait_for_timeout(1000)
        times = [page.evaluate(MOVE_SLIDER, 0.5 + 0.05 * i) for i in range(20)]
        moved, painted = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"a slider's move: the bars' {moved:.0f} ms later, painted after {painted:.0f} ms")
        print("pairs of type size and family, looks of buttons:", *page.evaluate(LOOKS))
        browser.close()


if __name__ == "__main__":
    main()
