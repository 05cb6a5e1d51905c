"""What a person waits for, in headless Chromium on the bundled model: `python -m tests.benchmarks.browser`."""

import argparse
import statistics
import time

from playwright.sync_api import Page, sync_playwright

from explorer.views import FULL
from tests.benchmarks.served import served
from tests.browser.chromium import FLAGS, executable
from tests.browser.person import LOAD_MODULES, WITH_MODULES

PATTERN = "#attention-pattern .plot"
WORDS = ("Once", "upon", "a", "time", "there", "was", "a", "fox", "who", "lived", "near", "the", "lake", "and", "slept")

# Resolves with the milliseconds from the event to the frame after the last drawing of what must be drawn: the element
# `drawn`, or else every figure then in sight.
UNTIL_PAINTED = """([event, drawn]) => new Promise((resolve, reject) => {
  const figures = () => [...document.querySelectorAll(".plot, .distribution")];
  const count = (plot) => +(plot.dataset.draws || 0), before = new Map();
  const inSight = (plot) => {
    const box = plot.getBoundingClientRect();
    return box.height && box.top < innerHeight && box.bottom > 0;
  };
  for (const plot of figures()) before.set(plot, count(plot));
  let started;
  document.addEventListener(event, () => {
    started = performance.now();
    observer.observe(document.body, { attributes: true, attributeFilter: ["data-draws"], subtree: true });
  }, { capture: true, once: true });
  const observer = new MutationObserver(look);
  function look() {
    const wanted = drawn ? [document.querySelector(drawn)] : figures().filter(inSight);
    if (!wanted.length || wanted.some((plot) => count(plot) <= (before.get(plot) || 0))) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - started)));
  }
  setTimeout(() => reject(new Error("not all was drawn within 10 seconds")), 10000);
})"""
FRAMES_WITH_NEWS = """() => {
  window.frames_with_news = [];
  const chips = () => document.querySelectorAll("#strip .chip").length;
  let shown = chips();
  (function look(now) {
    if (chips() !== shown) [shown] = [chips(), window.frames_with_news.push(now)];
    requestAnimationFrame(look);
  })();
}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    started = time.monotonic()
    with served() as (url, _process):
        print(f"python app.py -> first page served: {time.monotonic() - started:.1f} s")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable(playwright), args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{url}?view=attention")
            page.wait_for_selector("#attention-pattern .plot[data-draws]")
            tell("prompt submitted -> attention painted", prompts(page, options.rounds, options.tokens))
            tell("click on a token -> attention painted", clicks(page, options.rounds, options.tokens, PATTERN))
            tell("click on a token -> all figures in sight", clicks(page, options.rounds, options.tokens, ""))
            tell("two runs: A, B or A - B chosen -> attention painted", switches(page, url, options.rounds))
            tell("two runs: a what-if's slider moved -> all figures in sight", sliders(page, options.rounds))
            tell("another training step -> attention painted", steps(page, url, options.rounds, options.tokens))
            page.goto(f"{url}?view=attention")
            page.wait_for_selector("#attention-pattern .plot[data-draws]")
            prompts(page, 1, options.tokens)
            page.evaluate(FRAMES_WITH_NEWS)
            first, *others = [streaming(page, seed) for seed in range(4)]
            rate = statistics.median(others)
            print(f"Generate, 60 tokens: {rate:.1f} painted updates a second, {first:.1f} for the first time")
            for tokens in (options.tokens, 4 * options.tokens):
                page.get_by_role("tab", name="Attention", exact=True).click()
                prompts(page, 1, tokens)
                page.wait_for_timeout(2000)
                shown = [view.title for view in FULL if page.get_by_role("tab", name=view.title, exact=True).count()]
                for title in shown:  # some ask for a second run, or for the steps of a training
                    tell(f"{tokens} tokens: tab {title}", tab_switches(page, title, options.rounds // 4))
            browser.close()


def prompts(page: Page, rounds: int, num_tokens: int) -> list[float]:
    """Milliseconds a prompt, each a different text of about the same number of tokens."""
    waits = []
    for turn in range(rounds):
        words = [WORDS[(turn + i) % len(WORDS)] for i in range(num_tokens)]
        page.fill("#prompt textarea", " ".join(words))
        waits.append(wait(page, "keydown", PATTERN, lambda: page.press("#prompt textarea", "Enter")))
    return waits


def clicks(page: Page, rounds: int, num_tokens: int, drawn: str) -> list[float]:
    """Milliseconds a click on a chip of the token strip."""
    waits = []
    for turn in range(rounds):
        chip = page.locator(f"#strip [data-position='{(turn * 7) % (num_tokens // 2)}']")
        waits.append(wait(page, "click", drawn, chip.click))
        page.wait_for_timeout(300)  # what is drawn out of sight
    return waits


def switches(page: Page, url: str, rounds: int) -> list[float]:
    """Milliseconds from a click on the switch between two runs of 64 words, of two models."""
    text = "+".join(WORDS[i % len(WORDS)] for i in range(64))
    page.goto(f"{url}?view=attention&text={text}&b.checkpoint=llama-fables-gpt")
    page.wait_for_selector("#attention-pattern .plot[data-draws]")
    page.wait_for_selector("#runs .switch")
    page.wait_for_timeout(3000)
    waits = []
    for turn in range(rounds):
        name = ("B", "A − B", "A")[turn % 3]
        one = page.locator("#runs .switch").get_by_role("button", name=name, exact=True)
        waits.append(wait(page, "click", PATTERN, one.click))
        page.wait_for_timeout(700)
    return waits


def sliders(page: Page, rounds: int) -> list[float]:
    """Milliseconds from a move of a head's slider, of the same two runs, to all that is then in sight."""
    page.get_by_role("tab", name="Experiments", exact=True).click()
    slider = page.locator("#experiments-what-ifs input[type=range]").first
    slider.scroll_into_view_if_needed()
    page.wait_for_timeout(4000)
    waits = []
    for turn in range(rounds):
        value = 0.05 * (turn + 1)
        move = f"input => {{ input.value = {value}; input.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
        waits.append(wait(page, "input", "", lambda move=move: slider.evaluate(move)))
        page.wait_for_timeout(1200)
    return waits


def steps(page: Page, url: str, rounds: int, num_tokens: int) -> list[float]:
    """Milliseconds from a key on the slider of training steps, each time with another text, so that no step of it was
    captured before."""
    page.goto(f"{url}?view=attention&checkpoint=llama-fables-snapshots/step-000064")
    page.wait_for_selector("#series input")
    page.wait_for_timeout(4000)  # the other steps are loaded
    waits = []
    for turn in range(rounds):
        if turn % 5 == 0:
            prompts(page, 1, num_tokens)
            page.wait_for_timeout(2000)
        page.locator("#series input").focus()
        key = ("ArrowRight", "ArrowLeft")[turn // 5 % 2]
        waits.append(wait(page, "keydown", PATTERN, lambda key=key: page.keyboard.press(key)))
        page.wait_for_timeout(700)
    return waits


def streaming(page: Page, seed: int) -> float:
    """Frames a second that show another number of tokens, from the first new one to the last."""
    page.get_by_role("button", name="Run").click()
    page.wait_for_function("!document.querySelector('#strip .generated')")
    page.evaluate(f"({LOAD_MODULES})()")
    page.evaluate(WITH_MODULES % f"page.tune({{ seed: {seed} }})")
    page.wait_for_timeout(1500)
    page.evaluate("() => { window.frames_with_news = []; }")
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function(
        "window.frames_with_news.length && performance.now() - window.frames_with_news.at(-1) > 1500"
    )
    times = page.evaluate("window.frames_with_news")
    return (len(times) - 1) / (times[-1] - times[0]) * 1000


def tab_switches(page: Page, title: str, rounds: int) -> list[float]:
    """Milliseconds from a click on the tab to all figures in sight, each time of another token, so that no answer
    is kept; the first round also builds its widgets."""
    waits = []
    for turn in range(rounds):
        other = "Tokens" if title != "Tokens" else "Attention"
        page.get_by_role("tab", name=other, exact=True).click()
        page.locator("#strip .chip").nth(turn + len(title)).click()
        page.wait_for_timeout(1500)
        waits.append(wait(page, "click", "", page.get_by_role("tab", name=title, exact=True).click))
    return waits


def wait(page: Page, event: str, drawn: str, act) -> float:
    """Milliseconds from the event that `act` causes to the frame that shows what is to be drawn."""
    page.evaluate(f"() => {{ window.painted = ({UNTIL_PAINTED})(['{event}', '{drawn}']); }}")
    act()
    return page.evaluate("window.painted")


def tell(what: str, milliseconds: list[float]):
    ordered = sorted(milliseconds)
    p95 = ordered[int(0.95 * (len(ordered) - 1))]
    print(f"{what}: p50 {statistics.median(ordered):.0f} ms, p95 {p95:.0f} ms, {len(ordered)} times")


if __name__ == "__main__":
    main()
