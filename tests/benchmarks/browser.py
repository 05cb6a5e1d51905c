"""Waiting times of a user, in headless Chromium on the bundled model: `python -m tests.benchmarks.browser`."""

import argparse
import statistics
import time

from playwright.sync_api import Page, sync_playwright

from explorer.views import FULL
from tests.benchmarks.app_server import serve_app
from tests.browser.chromium import FLAGS, find_executable
from tests.browser.person import LOAD_MODULES, WITH_MODULES

PATTERN = "#attention-pattern .plot"
WORDS = ("Once", "upon", "a", "time", "there", "was", "a", "fox", "who", "lived", "near", "the", "lake", "and", "slept")

# Resolves with the milliseconds from the event to the frame after the last expected drawing: of the element
# `drawn`, or of every figure in sight.
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
    with serve_app() as (url, _process):
        print(f"python app.py -> first page served: {time.monotonic() - started:.1f} s")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{url}?view=attention")
            page.wait_for_selector("#attention-pattern .plot[data-draws]")
            print_times("prompt submitted -> attention painted", time_prompts(page, options.rounds, options.tokens))
            print_times(
                "click on a token -> attention painted", time_clicks(page, options.rounds, options.tokens, PATTERN)
            )
            print_times(
                "click on a token -> all figures in sight", time_clicks(page, options.rounds, options.tokens, "")
            )
            print_times("two runs: A, B or A - B chosen -> attention painted", time_switches(page, url, options.rounds))
            print_times(
                "two runs: a what-if's slider moved -> all figures in sight", time_sliders(page, options.rounds)
            )
            print_times(
                "another training step -> attention painted",
                time_training_steps(page, url, options.rounds, options.tokens),
            )
            page.goto(f"{url}?view=attention")
            page.wait_for_selector("#attention-pattern .plot[data-draws]")
            time_prompts(page, 1, options.tokens)
            page.evaluate(FRAMES_WITH_NEWS)
            first, *others = [measure_frame_rate(page, seed) for seed in range(4)]
            rate = statistics.median(others)
            print(f"Generate, 60 tokens: {rate:.1f} painted updates a second, {first:.1f} for the first time")
            for tokens in (options.tokens, 4 * options.tokens):
                page.get_by_role("tab", name="Attention", exact=True).click()
                time_prompts(page, 1, tokens)
                page.wait_for_timeout(2000)
                titles = [view.title for view in FULL if page.get_by_role("tab", name=view.title, exact=True).count()]
                for title in titles:  # some tabs need a second run or training steps
                    print_times(f"{tokens} tokens: tab {title}", time_tab_switches(page, title, options.rounds // 4))
            browser.close()


def time_prompts(page: Page, rounds: int, num_tokens: int) -> list[float]:
    """Return milliseconds per prompt, each a different text of about the same number of tokens."""
    waits = []
    for round_index in range(rounds):
        words = [WORDS[(round_index + i) % len(WORDS)] for i in range(num_tokens)]
        page.fill("#prompt textarea", " ".join(words))
        waits.append(time_until_painted(page, "keydown", PATTERN, lambda: page.press("#prompt textarea", "Enter")))
    return waits


def time_clicks(page: Page, rounds: int, num_tokens: int, selector: str) -> list[float]:
    """Return milliseconds per click on a chip of the token strip."""
    waits = []
    for round_index in range(rounds):
        chip = page.locator(f"#strip [data-position='{(round_index * 7) % (num_tokens // 2)}']")
        waits.append(time_until_painted(page, "click", selector, chip.click))
        page.wait_for_timeout(300)  # figures out of sight are drawn meanwhile
    return waits


def time_switches(page: Page, url: str, rounds: int) -> list[float]:
    """Return milliseconds from a click on the switch between two runs of 64 words, of two models, to the figure."""
    text = "+".join(WORDS[i % len(WORDS)] for i in range(64))
    page.goto(f"{url}?view=attention&text={text}&b.checkpoint=llama-fables-gpt")
    page.wait_for_selector("#attention-pattern .plot[data-draws]")
    page.wait_for_selector("#runs .switch")
    page.wait_for_timeout(3000)
    waits = []
    for round_index in range(rounds):
        name = ("B", "A − B", "A")[round_index % 3]
        button = page.locator("#runs .switch").get_by_role("button", name=name, exact=True)
        waits.append(time_until_painted(page, "click", PATTERN, button.click))
        page.wait_for_timeout(700)
    return waits


def time_sliders(page: Page, rounds: int) -> list[float]:
    """Return milliseconds from a move of a head's slider, with the same two runs, to all figures in sight."""
    page.get_by_role("tab", name="Experiments", exact=True).click()
    slider = page.locator("#experiments-what-ifs input[type=range]").first
    slider.scroll_into_view_if_needed()
    page.wait_for_timeout(4000)
    waits = []
    for round_index in range(rounds):
        value = 0.05 * (round_index + 1)
        move = f"input => {{ input.value = {value}; input.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
        waits.append(time_until_painted(page, "input", "", lambda move=move: slider.evaluate(move)))
        page.wait_for_timeout(1200)
    return waits


def time_training_steps(page: Page, url: str, rounds: int, num_tokens: int) -> list[float]:
    """Return milliseconds from a key on the slider of training steps to the figure.

    Each round of keys has another text, so that no step's run is cached.
    """
    page.goto(f"{url}?view=attention&checkpoint=llama-fables-snapshots/step-000064")
    page.wait_for_selector("#series input")
    page.wait_for_timeout(4000)  # the other steps are loaded meanwhile
    waits = []
    for round_index in range(rounds):
        if round_index % 5 == 0:
            time_prompts(page, 1, num_tokens)
            page.wait_for_timeout(2000)
        page.locator("#series input").focus()
        key = ("ArrowRight", "ArrowLeft")[round_index // 5 % 2]
        waits.append(time_until_painted(page, "keydown", PATTERN, lambda key=key: page.keyboard.press(key)))
        page.wait_for_timeout(700)
    return waits


def measure_frame_rate(page: Page, seed: int) -> float:
    """Return the frames per second that show new tokens, between the first and the last of them."""
    page.get_by_role("button", name="Run").click()
    page.wait_for_function("!document.querySelector('#strip .generated')")
    page.evaluate(f"({LOAD_MODULES})()")
    page.evaluate(WITH_MODULES % f"page.changeSettings({{ seed: {seed} }})")
    page.wait_for_timeout(1500)
    page.evaluate("() => { window.frames_with_news = []; }")
    page.locator("#generate").click()
    page.wait_for_function(
        "window.frames_with_news.length && performance.now() - window.frames_with_news.at(-1) > 1500"
    )
    frame_times = page.evaluate("window.frames_with_news")
    return (len(frame_times) - 1) / (frame_times[-1] - frame_times[0]) * 1000


def time_tab_switches(page: Page, title: str, rounds: int) -> list[float]:
    """Return milliseconds from a click on a tab to all figures in sight.

    The selected token differs each time, so that no answer is cached; the first round also builds the tab's widgets.
    """
    waits = []
    for round_index in range(rounds):
        other_tab = "Tokens" if title != "Tokens" else "Attention"
        page.get_by_role("tab", name=other_tab, exact=True).click()
        page.locator("#strip .chip").nth(round_index + len(title)).click()
        page.wait_for_timeout(1500)
        waits.append(time_until_painted(page, "click", "", page.get_by_role("tab", name=title, exact=True).click))
    return waits


def time_until_painted(page: Page, event: str, selector: str, act) -> float:
    """Return milliseconds from the event that `act` causes to the frame that shows the figures of `selector`."""
    page.evaluate(f"() => {{ window.painted = ({UNTIL_PAINTED})(['{event}', '{selector}']); }}")
    act()
    return page.evaluate("window.painted")


def print_times(label: str, milliseconds: list[float]):
    ordered = sorted(milliseconds)
    p95 = ordered[int(0.95 * (len(ordered) - 1))]
    print(f"{label}: p50 {statistics.median(ordered):.0f} ms, p95 {p95:.0f} ms, {len(ordered)} times")


if __name__ == "__main__":
    main()
