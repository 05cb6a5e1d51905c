"""The page without a server, in headless Chromium: `python -m tests.benchmarks.without_server`.

From a static server on this machine that compresses text, as static hosts do: the bytes of the first visit, the seconds
until the page has drawn its first view on the first and on a second visit, from a prompt's Run to the drawn view, per
generated token, and the longest task of the page's own thread meanwhile. Times are the least of several tries.
"""

import functools
import gzip
import statistics
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from explorer.web.static_page import ROOT
from tests.browser.chromium import FLAGS, executable

TRIES = 3
TEXT = (".html", ".js", ".css", ".json", ".tiktoken")
SETTLED = "window.explorer && window.explorer.state.checkpoint && window.explorer.settled().then(() => true)"
KEPT = """async () => {
  const cache = await caches.open("transformerlm-explorer"), isPlotly = ({ url }) => url.endsWith("plotly.js");
  while (!(await cache.keys()).some(isPlotly)) await new Promise((resolve) => setTimeout(resolve, 100));
}"""
WATCH_TASKS = """window.tasks = [];
new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) window.tasks.push(duration); })
  .observe({ type: "longtask", buffered: true });"""
RUN = """async (text) => {
  document.querySelector("#prompt textarea").value = text;
  const start = performance.now();
  document.querySelector("#run").click();
  await window.explorer.settled();
  return performance.now() - start;
}"""
GENERATE = """async () => {
  const start = performance.now(), before = window.explorer.state.generated.length;
  document.querySelector("#generate").click();
  while (window.explorer.state.generated.length < before + 60) await new Promise(requestAnimationFrame);
  return (performance.now() - start) / 60;
}"""
PROMPT = "Once upon a time there was a fox who wanted the moon."  # 13 tokens
VIEWS = ("overview", "attention", "prediction", "feed_forward")


class CompressingFiles(SimpleHTTPRequestHandler):
    """A static server that compresses text, and counts what it sends."""

    sent = 0

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.send_error(404)
        content, is_text = path.read_bytes(), path.suffix in TEXT
        content = gzip.compress(content, 6) if is_text else content
        type(self).sent += len(content)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path.name))
        self.send_header("Content-Length", str(len(content)))
        if is_text:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args):
        pass


def open_page(browser: Browser, url: str) -> tuple[Page, float]:
    """Open the page in a profile of its own; return it with the milliseconds until its first view was drawn."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(WATCH_TASKS)
    return page, visit(page, url)


def visit(page: Page, url: str) -> float:
    page.goto(url)
    page.wait_for_function(SETTLED)
    return page.evaluate("performance.now()")


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(CompressingFiles, directory=ROOT))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/docs/try/?depth=numbers&view="
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(playwright), args=FLAGS)
        page, _ms = open_page(browser, f"{url}overview")
        page.evaluate(KEPT)
        print(f"first visit: {CompressingFiles.sent / 1e6:.2f} MB, plotly.js for later views among them")
        firsts = [open_page(browser, f"{url}overview")[1] for _try in range(TRIES)]
        seconds = [visit(page, f"{url}overview") for _try in range(TRIES)]
        print(f"usable: {min(firsts):.0f} ms on the first visit, {min(seconds):.0f} ms on the second")
        for view in VIEWS:
            visit(page, f"{url}{view}")
            runs = [page.evaluate(RUN, text) for text in (PROMPT, f"{PROMPT} ") * 2]
            print(f"{view}: {min(runs):.0f} ms from Run to drawn, median {statistics.median(runs):.0f}")
        visit(page, f"{url}overview")
        page.evaluate("window.tasks.length = 0")
        print(f"generate: {page.evaluate(GENERATE):.1f} ms a token")
        print(f"longest task of the page meanwhile: {max(page.evaluate('window.tasks'), default=0):.0f} ms")
        heap = page.context.new_cdp_session(page).send("Runtime.getHeapUsage")["usedSize"]
        workers = page.workers
        print(f"heap of the page: {heap / 1e6:.0f} MB; {len(workers)} worker with the model beside it")
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
