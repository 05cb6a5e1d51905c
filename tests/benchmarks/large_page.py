"""Waiting times of a user with a model of GPT-2 small's size: `python -m tests.benchmarks.large_page`.

Random weights in a temporary folder, a prompt of 256 tokens, and in every tab clicks on tokens until all figures in
sight are painted. Then a prompt of 1,024: one head's whole pattern, from when its bytes are there to the frame that
shows it.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

from explorer.views import FULL
from tests.benchmarks.app_server import serve_app
from tests.benchmarks.browser import print_times, time_clicks
from tests.benchmarks.large import write_byte_tokenizer
from tests.browser.chromium import FLAGS, find_executable
from tests.hugging_face import transformers

LONG_PROMPT_TOKENS = 1024
FULL_TABS = [view.name for view in FULL]
TABS = *FULL_TABS[: FULL_TABS.index("experiments")], "directions"  # tabs for one run without interventions
# True after the self-check of the model, which uses both cores until then.
IS_COMPARED = "() => /agrees|differs/.test(document.querySelector('#open-model')?.textContent)"
# Records when the first response with the pattern has arrived, before it is parsed as JSON.
FIRST_BYTES = """() => {
  const fetched = window.fetch;
  window.fetch = async (...asked) => {
    const response = await fetched(...asked), read = response.text.bind(response);
    response.text = async () => {
      const text = await read();
      if (text.includes('"attention-pattern"')) window.bytes_at ??= performance.now();
      return text;
    };
    response.json = async () => JSON.parse(await response.text());
    return response;
  };
}"""
# Resolves with the milliseconds from that time to the second frame after the pattern is drawn.
PAINTED_AFTER_BYTES = """(drawn) => new Promise((resolve) => {
  const plot = document.querySelector(drawn), before = +plot.dataset.draws;
  const observer = new MutationObserver(() => {
    if (+plot.dataset.draws <= before) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - window.bytes_at)));
  });
  observer.observe(plot, { attributes: true, attributeFilter: ["data-draws"] });
})"""


def write_model(folder: Path):
    """Write the model in the format of transformers, and a byte tokenizer."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(bos_token_id=None, eos_token_id=None)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    write_byte_tokenizer(folder)


def wait_until_compared(page: Page, url: str):
    page.goto(f"{url}?view=tokens")
    page.wait_for_function(IS_COMPARED, timeout=120000)


def measure_tabs(page: Page, url: str, rounds: int, num_tokens: int, tabs: list[str]):
    text = ("Once upon a time there was a fox who wanted the moon. " * 20)[:num_tokens]
    for view in FULL:
        if view.name not in tabs:
            continue
        page.goto(f"{url}?view={view.name}&text={text.replace(' ', '+')}")
        page.wait_for_selector(f"#strip [data-position='{num_tokens // 2}']", timeout=30000)
        page.wait_for_timeout(4000)
        if not page.get_by_role("tab", name=view.title, exact=True).count():
            continue
        print_times(
            f"{num_tokens} tokens, {view.name}: click on a token -> figures in sight",
            time_clicks(page, rounds, num_tokens, ""),
        )


def measure_pattern(page: Page, url: str, rounds: int):
    text = ("Once upon a time there was a fox who wanted the moon. " * 20)[:LONG_PROMPT_TOKENS]
    page.goto(f"{url}?view=attention&text={text.replace(' ', '+')}&window=0")
    page.wait_for_selector("#attention-pattern .plot[data-draws]", timeout=60000)
    page.wait_for_timeout(5000)
    page.evaluate(FIRST_BYTES)
    waits = []
    for round_index in range(rounds):
        waiting = f"({PAINTED_AFTER_BYTES})('#attention-pattern .plot')"
        page.evaluate(f"() => {{ window.bytes_at = undefined; window.painted = {waiting}; }}")
        page.locator("#attention-choosers select").nth(1).select_option(index=1 + round_index % 10)
        waits.append(page.evaluate("window.painted"))
        page.wait_for_timeout(1500)
    cells = page.evaluate("document.querySelector('#attention-pattern .plot').outerHTML.length")
    print_times(f"one head's pattern at {LONG_PROMPT_TOKENS} tokens, bytes -> painted", waits)
    print(json.dumps({"median": statistics.median(waits), "element": cells}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", help="folder to write to and keep, or the folder of an earlier run")
    parser.add_argument("--tabs", nargs="*", default=TABS)
    parser.add_argument("--no-paint", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="large-page-") as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "tokenizer.json").exists():
            write_model(folder)
        with serve_app([f"checkpoint={folder}"]) as (url, _process), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            wait_until_compared(page, url)
            measure_tabs(page, url, options.rounds, 256, options.tabs)
            if not options.no_paint:
                measure_pattern(page, url, options.rounds)
            browser.close()


if __name__ == "__main__":
    main()
