"""The browser that tests and benchmarks open the page in."""

import shutil
from pathlib import Path

from playwright.sync_api import Playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")  # the first starts fastest
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable(playwright: Playwright) -> str:
    """The path of the system's Chromium, or of Playwright's own; FileNotFoundError where there is neither."""
    found = next(filter(None, map(shutil.which, NAMES)), playwright.chromium.executable_path)
    if not Path(found).exists():
        raise FileNotFoundError(f"needs a browser: apt-get install {NAMES[0]}, or playwright install chromium")
    return found
