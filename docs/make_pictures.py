"""Make the figures of the documents: `python docs/make_pictures.py [NAME …]`, with the app running.

Needs the requirements of the tests and a Chromium. `own-module` needs an app that was started with --module, so it is
made only if named.
"""

import argparse
import shutil
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
WAIT_MS = 9_000  # long computations come in pieces


class Shot(NamedTuple):
    """A picture of the page.

    Attributes:
        query: of the URL.
        size: of the window.
        scheme: light or dark.
        key: pressed before.
        element: that is shown; None for all that the window shows.
    """

    query: str
    size: tuple[int, int] = (1440, 900)
    scheme: str = "light"
    key: str | None = None
    element: str | None = None


CELL = "view=overview&open=cell&layer=4&head=4&query=12&key=7"
WORD = "text=The wugly bird sat in a tree. A cat looked at the wugly"
OTHER_WORD = "b.text=The wugly fish sat in a tree. A cat looked at the wugly"
TRAINING = "view=training&checkpoint=llama-fables-snapshots/step-002048"
SHOTS = {
    "story": Shot("view=overview&depth=story"),
    "question": Shot(""),
    "whole-model-cell": Shot(CELL),
    "attention": Shot("view=attention"),
    "positions": Shot("view=positions"),
    "feed-forward": Shot("view=feed_forward"),
    "logit-lens": Shot("view=prediction", (1366, 768)),
    "formula": Shot("view=attention&depth=formula"),
    "change": Shot("view=experiments&edits=blocks.4.attn.z.4*zero"),
    "made-up-word": Shot(f"view=experiments&{WORD}"),
    "patching": Shot("view=patching"),
    "compare": Shot(f"view=compare&{WORD}&{OTHER_WORD}"),
    "training": Shot(TRAINING),
    "lesson": Shot("lesson=who-looks-at-whom&step=3"),
    "presenting": Shot("view=prediction", (1366, 768), key="p"),
    "own-module": Shot("view=own_module"),
    "phone": Shot("view=overview", (390, 844)),
    "projector-dark": Shot("view=overview", (1024, 768), "dark"),
    "small-cell": Shot(CELL, (1280, 900), element="#overview-whole"),
    "small-heads": Shot("view=experiments", element="#experiments-heads"),
    "small-patching": Shot("view=patching", element="#patching-positions_denoise"),
    "small-training": Shot(f"{TRAINING}&{WORD}", element="#training-text"),
}


def make_picture(browser: Browser, url: str, name: str):
    """Write `pictures/NAME.png`."""
    shot = SHOTS[name]
    width, height = shot.size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=shot.scheme)
    page.goto(f"{url.rstrip('/')}/?{shot.query}")
    page.wait_for_function("window.explorer?.state.checkpoint", timeout=60_000)
    page.evaluate("window.explorer.settled()")
    if shot.key:
        page.keyboard.press(shot.key)
    page.wait_for_timeout(WAIT_MS)
    (page.locator(shot.element) if shot.element else page).screenshot(path=PICTURES / f"{name}.png")
    page.close()


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"figures to make (default: all): {', '.join(SHOTS)}")
    parser.add_argument("--url", default="http://127.0.0.1:7860", help="URL of the app (default: %(default)s)")
    options = parser.parse_args()
    executable = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for name in options.names or SHOTS.keys() - {"own-module"}:
            make_picture(browser, options.url, name)
        browser.close()


if __name__ == "__main__":
    main()
