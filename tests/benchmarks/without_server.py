"""The page without a server, in headless Chromium: `python -m tests.benchmarks.without_server`.

From a static server on this machine that compresses text, as static hosts do: the bytes of the first visit, the seconds
until the page has drawn its first view on the first and on a second visit, from a prompt's Run to the drawn view, per
generated token, and the longest task of the page's own thread meanwhile. A token's time is the model's: the page shows
18 a second, so that they can be read. Times are the least of several tries.
"""

import contextlib
import functools
import gzip
import statistics
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from explorer.web.static_page import ROOT
from tests.browser.chromium import FLAGS, find_executable

TRIES = 3
TEXT_SUFFIXES = (".html", ".js", ".css", ".json", ".tiktoken")
IS_SETTLED = "window.explorer && window.explorer.state.checkpoint && window.explorer.settled().then(() => true)"
WAIT_UNTIL_CACHED = """async () => {
  const cache = await caches.open("transformerlm-explorer"), isPlotly = ({ url }) => url.endsWith("plotly.js");
  while (!(await cache.keys()).some(isPlotly)) await new Promise((resolve) => setTimeout(resolve, 100));
}"""
WATCH_TASKS = """window.tasks = [];
new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) window.tasks.push(duration); })
  .observe({ type: "longtask", buffered: true });"""
# The milliseconds from navigation until the view is drawn, without its verification marks
WATCH_DRAWN = """new MutationObserver((changes) => {
  const isView = ({ target }) => target.closest?.("#view") && !target.closest(".evidence-mark");
  if (changes.some(isView)) window.drawn = performance.now();
}).observe(document, { subtree: true, childList: true, attributeFilter: ["data-draws"] });"""
# The milliseconds from Run until the last figure is drawn, and until its numbers are verified
RUN = """async (text) => {
  document.querySelector("#prompt textarea").value = text;
  const start = performance.now();
  let drawn = start;
  const watch = new MutationObserver(() => { drawn = performance.now(); });
  watch.observe(document.querySelector("#view"), { subtree: true, attributeFilter: ["data-draws"] });
  document.querySelector("#run").click();
  await window.explorer.settled();
  watch.disconnect();
  return [drawn - start, performance.now() - start];
}"""
GENERATE = """async () => {
  document.querySelector("#generate").click();
  const before = window.explorer.state.generated.length;
  while (window.explorer.state.generated.length < before + 60) await new Promise(requestAnimationFrame);
  await window.explorer.settled();
}"""
COMPUTE = """async ([url, numTokens]) => {
  const { callWorker } = await import(new URL(url, document.baseURI)), { checkpoint, prompt } = window.explorer.state;
  const filters = { temperature: 0.8, top_k: 40, top_p: 1, min_p: 0, repetition_penalty: 1, seed: 0, num_dropped: 0 };
  const settings = { ...filters, max_new_tokens: numTokens }, long = Array.from({ length: 256 }, (_none, i) => 100 + i);
  const start = performance.now();
  if (numTokens) await callWorker("generate", { checkpoint, ids: prompt, edits: [], settings });
  else await callWorker("prediction", { run: { checkpoint, ids: long, edits: [] }, position: 255 });
  return performance.now() - start;
}"""
MODEL = "../../explorer/web/without_server/actions.js"
PROMPT = "Once upon a time there was a fox who wanted the moon."  # 13 tokens
VIEWS = ("overview", "attention", "prediction", "feed_forward")


class CompressingFiles(SimpleHTTPRequestHandler):
    """A static server that compresses text, and counts the bytes sent."""

    sent = 0

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.send_error(404)
        if self.headers.get("If-Modified-Since") == self.date_time_string(path.stat().st_mtime):
            self.send_response(304)
            return self.end_headers()
        content, is_text = path.read_bytes(), path.suffix in TEXT_SUFFIXES
        content = gzip.compress(content, 6) if is_text else content
        type(self).sent += len(content)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path.name))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        if is_text:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # the page was closed
            self.wfile.write(content)

    def log_message(self, *_args):
        pass


def open_page(browser: Browser, url: str) -> tuple[Page, float]:
    """Open the page in a new profile; return it with the milliseconds until its first view was drawn."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(WATCH_TASKS)
    page.add_init_script(WATCH_DRAWN)
    return page, visit(page, url)


def visit(page: Page, url: str) -> float:
    page.goto(url)
    page.wait_for_function(IS_SETTLED)
    return page.evaluate("window.drawn")


def long_tasks(page: Page) -> str:
    """Describe the long tasks of the page's main thread."""
    tasks = page.evaluate("window.tasks")
    return f"{len(tasks)} tasks over 50 ms, the longest {max(tasks, default=0):.0f}"


def page_memory(playwright: Playwright, url: str) -> float:
    """Return the resident MB of a page's process, minus those of a blank page (Linux)."""
    browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=FLAGS)
    devtools, sizes = browser.new_browser_cdp_session(), []
    page = browser.new_page()
    for address in ("about:blank", url):
        page.goto(address)
        if address == url:
            page.wait_for_function(IS_SETTLED)
        processes = devtools.send("SystemInfo.getProcessInfo")["processInfo"]
        statuses = [Path(f"/proc/{one['id']}/status").read_text() for one in processes if one["type"] == "renderer"]
        sizes.append(max(int(status.split("VmRSS:")[1].split()[0]) for status in statuses))
    browser.close()
    return (sizes[1] - sizes[0]) / 1000


def first_visit_size(playwright: Playwright, url: str) -> int:
    """Return the bytes that a first visit fetches, until everything is cached.

    In a profile on disk, as visitors have one: a private window's cache takes no file above some 6 MB, and may ask for
    the model twice, as the page and as its service worker.
    """
    CompressingFiles.sent = 0
    with tempfile.TemporaryDirectory() as profile:
        options = {"executable_path": find_executable(playwright), "args": FLAGS}
        context = playwright.chromium.launch_persistent_context(profile, **options)
        page = context.new_page()
        visit(page, url)
        page.evaluate(WAIT_UNTIL_CACHED)
        context.close()
    return CompressingFiles.sent


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(CompressingFiles, directory=ROOT))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/docs/try/?depth=numbers&view="
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=FLAGS)
        size = first_visit_size(playwright, f"{url}overview") / 1e6
        print(f"first visit: {size:.2f} MB, plotly.js for later views among them")
        page, _ms = open_page(browser, f"{url}overview")
        page.evaluate(WAIT_UNTIL_CACHED)
        firsts = [open_page(browser, f"{url}overview")[1] for _try in range(TRIES)]
        seconds = [visit(page, f"{url}overview") for _try in range(TRIES)]
        print(f"usable: {min(firsts):.0f} ms on the first visit, {min(seconds):.0f} ms on the second")
        for view in VIEWS:
            visit(page, f"{url}{view}")
            page.evaluate("window.tasks.length = 0")
            runs = [page.evaluate(RUN, text) for text in (PROMPT, f"{PROMPT} ") * 2]
            figure_ms, mark_ms = zip(*runs, strict=True)
            times = f"{min(figure_ms):.0f} ms from Run to drawn, median {statistics.median(figure_ms):.0f}"
            print(f"{view}: {times}, to marked {min(mark_ms):.0f}; {long_tasks(page)}")
        visit(page, f"{url}overview")
        print(f"load: {long_tasks(page)}")
        page.evaluate("window.tasks.length = 0")
        page.evaluate(GENERATE)
        print(f"generate: {long_tasks(page)}")
        tokens = [page.evaluate(COMPUTE, [MODEL, 60]) / 60 for _try in range(TRIES)]
        at_once = page.evaluate(COMPUTE, [MODEL, 0])
        print(f"the model: {min(tokens):.1f} ms a token, {at_once:.0f} ms for 256 tokens at once")
        browser.close()
        print("memory of the page and its worker, beyond a blank page's:", end=" ")
        print(
            ", ".join(f"{view} {page_memory(playwright, f'{url}{view}'):.0f} MB" for view in ("overview", "attention"))
        )
    server.shutdown()


if __name__ == "__main__":
    main()
