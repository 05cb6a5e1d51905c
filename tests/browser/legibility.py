"""Checks that presented content is legible and accessible: large text, no overflow, no axe violations."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SMALLEST_TEXT = """() => {
  const sizes = [];
  for (const root of document.querySelectorAll(".presented, #stage .stage, #lesson .lesson, #walk .walk")) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode, parent = text.parentElement, range = document.createRange();
      range.selectNodeContents(text);
      const box = range.getBoundingClientRect();
      if (!text.textContent.trim() || !box.width || box.top > innerHeight) continue;
      if (!parent.checkVisibility({ visibilityProperty: true })) continue;
      let size = parseFloat(getComputedStyle(parent).fontSize);
      if (parent.ownerSVGElement) size *= Math.hypot(parent.getScreenCTM().a, parent.getScreenCTM().b);
      else for (let at = parent; at; at = at.parentElement) {
        const style = getComputedStyle(at);
        const { a, b } = new DOMMatrix(style.transform);
        size *= (parseFloat(style.zoom) || 1) * Math.hypot(a, b);
      }
      sizes.push([size, text.textContent]);
    }
  }
  return sizes.sort(([a], [b]) => a - b)[0];
}"""
OVERFLOWING_BOXES = """() =>
[...document.querySelectorAll(".presented, .presented .html-container, #lesson .told, #walk .drawing")]
  .filter((box) => box.checkVisibility({ visibilityProperty: true }))
  .map((box) => [box.className, box.scrollHeight - box.clientHeight, box.scrollWidth - box.clientWidth])
  .filter(([, down, right]) => down > 2 || right > 2)"""
SCROLLING_BOXES = """() => [...document.querySelectorAll(".presented div, .presented textarea")]
  .filter((box) => box.checkVisibility({ visibilityProperty: true }) && box.clientWidth)
  .filter((box) => getComputedStyle(box).overflow !== "visible")
  .map((box) => [box.className, box.scrollHeight - box.clientHeight, box.scrollWidth - box.clientWidth])
  .filter(([, down, right]) => down > 2 || right > 2)"""
OFF_SCREEN_TEXTS = """() =>
[...document.querySelectorAll(".presented, .presented .main-svg text, #lesson .told svg text")]
  .filter((drawn) => drawn.checkVisibility({ visibilityProperty: true }))
  .map((drawn) => [drawn.textContent.slice(0, 40), drawn.getBoundingClientRect()])
  .filter(([, { left, right }]) => left < -1 || right > innerWidth + 1)
  .map(([text]) => text)"""
TWO_FRAMES = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
# No visible figure waits to be drawn.
ALL_DRAWN = "[...document.querySelectorAll('[data-old-since]')].every((block) => !block.checkVisibility())"
BEAMER = {"width": 1024, "height": 768}


def wait_until_idle(page: Page):
    page.wait_for_function(ALL_DRAWN)
    page.evaluate(TWO_FRAMES)  # a resized figure is redrawn in the next frame


def assert_legible(page: Page):
    """Assert that all text on the screen is large enough, and that nothing overflows the screen."""
    wait_until_idle(page)
    size, text = page.evaluate(SMALLEST_TEXT)
    assert size >= 19.9, text
    below = page.evaluate(OVERFLOWING_BOXES)
    assert below == [], f"{below} at {page.evaluate('location.search')[-60:]}"


def assert_fits(page: Page):
    """Assert that no presented content scrolls in its own box or is off the screen."""
    assert (page.evaluate(SCROLLING_BOXES), page.evaluate(OFF_SCREEN_TEXTS)) == ([], []), page.evaluate(
        "location.search"
    )[-60:]


def assert_accessible(page: Page, selector: str):
    """Assert that axe finds no accessibility violations in an element."""
    violations = Axe().run(page, [[selector]]).response["violations"]
    assert not [(violation["id"], violation["nodes"][0]["html"]) for violation in violations]
