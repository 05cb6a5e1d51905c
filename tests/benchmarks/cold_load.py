"""First page load, in headless Chromium on the bundled model: `python -m tests.benchmarks.cold_load`.

Each time, a new browser with an empty cache opens the page of a running app. With a telephone's
screen, but not a telephone's processor or connection.
"""

import argparse
import os
import statistics

from playwright.sync_api import Playwright, sync_playwright

from tests.benchmarks.app_server import serve_app
from tests.browser.chromium import FLAGS, find_executable

SCREENS = {"desktop": {"width": 1440, "height": 900}, "telephone": {"width": 390, "height": 844}}
# page -> query of its URL, and selector of its first figure
PAGES = {"Simple": ("", "#overview-whole [data-draws]"), "Full": ("?view=overview", "#overview-whole [data-draws]")}
# A promise of the milliseconds from the navigation to the second frame after the figure is visible.
UNTIL_PAINTED = """window.painted = new Promise((resolve) => {
  const next = requestAnimationFrame;
  (function look() {
    if (!document.querySelector("%s")?.checkVisibility()) return next(look);
    next(() => next(() => resolve(performance.now())));
  })();
});"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with serve_app() as (url, _process):
        with sync_playwright() as playwright:
            for name, (query, figure) in PAGES.items():
                for screen, size in SCREENS.items():
                    visits = [visit(playwright, f"{url}{query}", figure, size) for _ in range(rounds)]
                    print_times(f"{name}, {screen}", *zip(*visits, strict=True))
        print(
            "load of the machine over the last minute, five and fifteen:", *(f"{load:.1f}" for load in os.getloadavg())
        )


def visit(playwright: Playwright, url: str, figure: str, size: dict[str, int]) -> tuple[float, int, int]:
    """Return the milliseconds until a figure is painted, and the bytes and number of responses until then."""
    browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=FLAGS)
    page = browser.new_page(viewport=size)
    received = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda answer: received.append(answer["encodedDataLength"]))
    page.add_init_script(UNTIL_PAINTED % figure)
    page.goto(url, wait_until="commit")
    milliseconds = page.evaluate("window.painted")
    result = milliseconds, sum(received), len(received)
    browser.close()
    return result


def print_times(label: str, milliseconds: tuple[float, ...], received: tuple[int, ...], answers: tuple[int, ...]):
    seconds = [time / 1000 for time in milliseconds]
    megabytes, count = statistics.median(received) / 1e6, statistics.median(answers)
    print(
        f"{label}: opened -> first figure painted {statistics.median(seconds):.2f} s,"
        f" {min(seconds):.2f} to {max(seconds):.2f}, {len(seconds)} times; {megabytes:.2f} MB in {count:.0f} answers"
    )


if __name__ == "__main__":
    main()
