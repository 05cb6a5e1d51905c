"""Make the figures of the documents: `python docs/make_pictures.py [NAME …]`, with the app running.

Needs the requirements of the tests and a Chromium. `own-module` needs an app that was started with --module, so it is
made only if named.
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
DESKTOP, LAPTOP, PROJECTOR, PHONE = (1440, 900), (1366, 768), (1024, 768), (390, 844)
MADE_UP_WORD = "text=The wugly bird sat in a tree. A cat looked at the wugly"
OTHER_WORD = "b.text=The wugly fish sat in a tree. A cat looked at the wugly"
# name -> URL query, window, colour scheme, and the key that is pressed before the picture
SHOTS = {
    "story": ("view=overview&depth=story", DESKTOP, "light", None),
    "question": ("", DESKTOP, "light", None),
    "whole-model-cell": ("view=overview&open=cell&layer=4&head=4&query=12&key=7", DESKTOP, "light", None),
    "attention": ("view=attention", DESKTOP, "light", None),
    "positions": ("view=positions", DESKTOP, "light", None),
    "feed-forward": ("view=feed_forward", DESKTOP, "light", None),
    "logit-lens": ("view=prediction", LAPTOP, "light", None),
    "formula": ("view=attention&depth=formula", DESKTOP, "light", None),
    "change": ("view=experiments&edits=blocks.4.attn.z.4*zero", DESKTOP, "light", None),
    "made-up-word": (f"view=experiments&{MADE_UP_WORD}", DESKTOP, "light", None),
    "patching": ("view=patching", DESKTOP, "light", None),
    "compare": (f"view=compare&{MADE_UP_WORD}&{OTHER_WORD}", DESKTOP, "light", None),
    "training": ("view=training&checkpoint=llama-fables-snapshots/step-002048", DESKTOP, "light", None),
    "lesson": ("lesson=who-looks-at-whom&step=3", DESKTOP, "light", None),
    "presenting": ("view=prediction", LAPTOP, "light", "p"),
    "own-module": ("view=own_module", DESKTOP, "light", None),
    "phone": ("view=overview", PHONE, "light", None),
    "projector-dark": ("view=overview", PROJECTOR, "dark", None),
}


def make_picture(browser: Browser, url: str, name: str):
    """Write `pictures/NAME.png`."""
    query, (width, height), scheme, key = SHOTS[name]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(f"{url}/?{query}")
    page.wait_for_function("window.explorer?.state.checkpoint", timeout=60_000)
    if key:
        page.evaluate("window.explorer.settled()")
        page.keyboard.press(key)
    page.wait_for_timeout(10_000 if name in ("patching", "compare") else 3_000)  # jobs come in pieces
    page.evaluate("window.explorer.settled()")
    page.screenshot(path=PICTURES / f"{name}.png")
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
