"""Static page without a server, served as plain files: its contents match Python's, and it contacts no other host."""

import functools
import json
import os
import re
import shutil
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gradio
import numpy as np
import pytest
from playwright.sync_api import ConsoleMessage, sync_playwright
from playwright.sync_api import Page as BrowserPage

from explorer.errors import PointNotFoundError
from explorer.lessons.glossary import ENTRY_BY_NAME
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.translations import ENGLISH, LANGUAGES, translate, use_locale
from explorer.views import VIEW_BY_NAME
from explorer.web.assets import font_paths, write_plotly
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.shared_constants import HEADING, MARK, element_id
from explorer.web.static_page import PLOTLY, ROOT, TARGET, drawn_part, is_run_in_browser, page_files, read_config
from model import generate, load_checkpoint
from tests.browser import chromium
from tests.exhaustive import exhaustive, first_in_core
from tests.subtest_loops import subtest_each

pytestmark = pytest.mark.slow
TIMEOUT_MS = 60_000
SETTLED = "window.explorer && window.explorer.state.checkpoint && window.explorer.settled().then(() => true)"
# Contents that depend on where the model runs, or that need Python
EXCLUDED_CONTENTS = {
    "view",
    "facts",
    "advice",
    "chat",
    "overview-what-ifs",
    "version",
    "picker",
    "series",
    "why-token",
    "why-token-question",
    "stand-ins",
    "branches",
}
RUNS_IN_JAVASCRIPT = "This is the model in Python. Here, JavaScript computes the same."
SERVED = ("docs/try", "explorer/web", "checkpoints")  # the folders of the repository that the page reads


def test_static_files_are_up_to_date():
    advice = "run python -m explorer.web.static_page"
    fonts = {Path(path).name: Path(gradio.__file__).parent / "templates/frontend" / path for path in font_paths()}
    paths = [path for path in TARGET.iterdir() if path.name not in {PLOTLY, *fonts}]
    assert {path.name: path.read_text(encoding="utf-8") for path in paths} == page_files(), advice
    assert all((TARGET / name).read_bytes() == path.read_bytes() for name, path in fonts.items()), advice


@pytest.mark.parametrize("change", [{"ffn": "gelu"}, {"num_kv_heads": 2}, {"position": "learned"}, {"qk_norm": True}])
def test_models_that_the_page_cannot_run_are_refused(change):
    config = read_config("llama-fables-gpt")
    assert is_run_in_browser(config) and not is_run_in_browser(replace(config, **change))


def test_plotly_version_matches_served_page(tmp_path):
    write_plotly(tmp_path)
    served, ours = ((folder / PLOTLY).read_text(encoding="utf-8") for folder in (tmp_path, TARGET))
    assert served.splitlines()[1].split()[-1] == ours.splitlines()[1].split()[-1]


class QuietRequestHandler(SimpleHTTPRequestHandler):
    """Plain static file server that logs no requests."""

    def log_message(self, *_args):
        pass


def serve(folder: Path) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietRequestHandler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def sites(tmp_path_factory) -> Iterator[dict[str, str]]:
    """URLs of the page: at the root of a host, and below a path of another host."""
    above = tmp_path_factory.mktemp("site")
    (above / "course").mkdir()
    (above / "course" / "explorer").symlink_to(ROOT)
    servers = {"docs/try/": serve(ROOT), "course/explorer/docs/try/": serve(above)}
    yield {path: f"http://127.0.0.1:{server.server_port}/{path}" for path, server in servers.items()}
    for server in servers.values():
        server.shutdown()


Opener = Callable[..., BrowserPage]


def is_complaint(message: ConsoleMessage) -> bool:
    """Return whether a message is an error or a warning, except late use of a preloaded file (busy machines)."""
    is_early = "was preloaded using link preload but not used within" in message.text
    return message.type in ("error", "warning") and not is_early


@pytest.fixture(scope="module")
def open_url(sites) -> Iterator[Opener]:  # fixtures in this order: pages close before the servers of the sites
    """Function that opens a page at a URL; the test fails if the page logs errors or requests another host."""
    complaints = []
    with sync_playwright() as playwright:
        try:
            path = chromium.find_executable(playwright)
        except FileNotFoundError as missing:
            pytest.skip(str(missing))
        browser = playwright.chromium.launch(executable_path=path, args=chromium.FLAGS)

        def open_page(url: str, is_whole: bool = True, **options) -> BrowserPage:
            page = browser.new_context(viewport={"width": 1440, "height": 900}, **options).new_page()
            page.set_default_timeout(TIMEOUT_MS)
            host = url.split("/")[2]
            page.on("request", lambda request: host in request.url or complaints.append(f"asks {request.url}"))
            if is_whole:
                page.on("console", lambda m: is_complaint(m) and complaints.append(f"{m.text} {m.location}"))
                page.on("pageerror", lambda error: complaints.append(error.stack))
                page.on("response", lambda r: r.status < 400 or complaints.append(f"{r.status} {r.url}"))
            page.goto(url)
            if is_whole:
                page.wait_for_function(SETTLED)
            return page

        yield open_page
        browser.close()
    assert not complaints


@pytest.fixture(scope="module")
def endpoints() -> BrowserEndpoints:
    return BrowserEndpoints(RunService(ModelLibrary("cpu")))


STORY = {"depth": "story"}
ALL_FIGURES = {"unfolded": "all"}
LONG = "Once upon a time there was a little girl named Mia. She had a red ball. One day, Mia went to the park with " * 2
STATES = {
    "first": {},
    "story": STORY | {"guess": "she", "text": LONG},  # the look is at a repeated word
    "twin": {"checkpoint": "llama-fables-gpt", "target": 3, "rival": 1, "seed": 9},
    "snapshot": {"checkpoint": "llama-fables-snapshots/step-000512", "query": 5, "key": 2},
    "greedy": {"temperature": 0, "find": "fo"},
    "all settings": {"temperature": 1.3, "top_k": 0, "top_p": 0.85, "min_p": 0.03, "repetition_penalty": 1.4},
    "block": {"open": "block", "layer": 2, "depth": "code"},
    "head": {"open": "head", "layer": 4, "head": 4},
    "cell": {"open": "cell", "layer": 1, "head": 3, "query": 9, "key": 7},
    "cell of the twin": {"open": "cell", "layer": 5, "head": 0, "key": 7, "checkpoint": "llama-fables-gpt"},
    "ablated": {"edits": "blocks.4.attn.z.4*zero~blocks.2.ffn.hidden.7*zero", "target": 2},
    "long": {"text": LONG},
    "odd": {"text": "e\u0301 🌙 שלום\n\n\tx<b>"},
    "attention": ALL_FIGURES | {"view": "attention", "layer": 2, "head": 1, "key": 3},
    "attention of the twin": ALL_FIGURES | {"view": "attention", "checkpoint": "llama-fables-gpt", "pattern": "moved"},
    "attention in a window": ALL_FIGURES
    | {"view": "attention", "text": LONG, "window": 16, "pattern": "without_first"},
    "mean attention": ALL_FIGURES
    | {"view": "attention", "pattern": "chosen_mean", "heads": "0.1~3.2", "query": 9}
    | {"depth": "code"},
    "prediction": ALL_FIGURES | {"view": "prediction", "rival": 2},
    "prediction of the twin": ALL_FIGURES | {"view": "prediction", "checkpoint": "llama-fables-gpt", "lens": "rank"},
    "prediction, later": ALL_FIGURES | {"view": "prediction", "text": LONG, "lens": "entropy", "query": 37},
    "prediction without a head": ALL_FIGURES
    | {"view": "prediction", "edits": "blocks.4.attn.z.4*zero", "lens": "target", "target": 3},
    "residual": ALL_FIGURES | {"view": "residual", "layer": 3},
    "residual of the twin": ALL_FIGURES
    | {"view": "residual", "checkpoint": "llama-fables-gpt", "query": 4, "depth": "code"},
    "feed-forward": ALL_FIGURES | {"view": "feed_forward", "layer": 5, "neuron": 7},
    "feed-forward of the twin": ALL_FIGURES | {"view": "feed_forward", "checkpoint": "llama-fables-gpt", "neuron": 99},
    "a neuron less": ALL_FIGURES
    | {"view": "feed_forward", "layer": 2, "neuron": 7, "edits": "blocks.2.ffn.hidden.7@12*scale*0.5"},
    "a neuron less, in formulas": ALL_FIGURES
    | {
        "view": "feed_forward",
        "layer": 2,
        "neuron": 7,
        "query": 4,
        "depth": "formula",
        "edits": "blocks.2.ffn.hidden.7*zero",
    },
    "positions": ALL_FIGURES | {"view": "positions", "layer": 1, "head": 3, "query": 9, "key": 7},
    "positions of the twin": ALL_FIGURES | {"view": "positions", "checkpoint": "llama-fables-gpt"},
    "tokens": ALL_FIGURES | {"view": "tokens", "query": 7, "dim": 5},
    "tokens of the twin": ALL_FIGURES | {"view": "tokens", "checkpoint": "llama-fables-gpt", "dim": 300},
    "odd tokens": ALL_FIGURES | {"view": "tokens", "text": "e\u0301 🌙 שלום\n\n\tx<b>", "query": 3},
    "folded, of a switched-off head": {"view": "attention", "layer": 4, "head": 1, "edits": "blocks.4.attn.z.1*zero"},
    "folded positions": {"view": "positions"},
    "written": STORY | {"num_written": 5, "query": 15},
    "written without a head": STORY | {"num_written": 5, "query": 15, "edits": "blocks.4.attn.z.4*zero"},
}


def make_state(page: BrowserPage, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the page's state with changes, which may include another text."""
    state = page.evaluate("({ ...window.explorer.state, depth: 'numbers' })") | changes
    lm, tokenizer = load_checkpoint(state["checkpoint"])
    if text := state.pop("text", None):
        state["prompt"] = tokenizer.encode(text)
        state |= {"query": len(state["prompt"]) - 1, "key": 0}
    count = state.pop("num_written", 0)
    settings = {"temperature": state["temperature"], "top_k": state["top_k"], "seed": state["seed"]}
    steps = generate(lm, state["prompt"], max_new_tokens=count, **settings)
    return state | {"generated": [step.token_id for step in steps]}


@pytest.fixture(scope="module")
def first_page(open_url, sites) -> BrowserPage:
    return open_url(f"{sites['docs/try/']}?depth=numbers&view=overview")


ASK = """async (state) => {
  const url = new URL("../../explorer/web/without_server/answers.js", document.baseURI), all = {};
  const { stateContents } = await import(url);
  for await (const contents of stateContents("show", state)) Object.assign(all, contents);
  return JSON.stringify(all);
}"""
ERROR = re.compile(r"(off by|largest error) [^ ;\n]+")  # rounding errors, which depend on the implementation
NUMBER = re.compile(r"[−+-]?\d[\d,]*(?:\.\d+)?(?:e[−+-]\d+)?")


def find_difference(ours: Any, pythons: Any, path: str = "") -> str:
    """Return where two contents differ by more than one unit of the last digit shown; "" if nowhere."""
    if isinstance(pythons, dict) and isinstance(ours, dict):
        if ours.keys() != pythons.keys():
            return f"{path}: {sorted(ours)} is not {sorted(pythons)}"
        return next(filter(None, (find_difference(ours[k], pythons[k], f"{path}.{k}") for k in pythons)), "")
    if isinstance(pythons, list) and isinstance(ours, list) and len(ours) == len(pythons):
        pairs = enumerate(zip(ours, pythons, strict=True))
        return next(filter(None, (find_difference(one, other, f"{path}[{i}]") for i, (one, other) in pairs)), "")
    if isinstance(pythons, float) and isinstance(ours, int | float):
        return "" if abs(ours - pythons) <= max(2e-4, 1e-4 * abs(pythons)) else f"{path}: {ours} is not {pythons}"
    if isinstance(pythons, str) and isinstance(ours, str):
        ours, pythons = ERROR.sub("", ours), ERROR.sub("", pythons)
        if ours != pythons and not have_near_numbers(ours, pythons):
            return f"{path}: {ours!r} is not {pythons!r}"
        return ""
    return "" if ours == pythons else f"{path}: {ours!r} is not {pythons!r}"


def have_near_numbers(one: str, other: str) -> bool:
    """Return whether two texts differ only by one unit of the last of three digits."""
    if NUMBER.split(one) != NUMBER.split(other):
        return False
    numbers = ([float(n.replace("−", "-").replace(",", "")) for n in NUMBER.findall(text)] for text in (one, other))
    return all(abs(a - b) <= max(0.0101 * abs(b), 0.0101) for a, b in zip(*numbers, strict=True))


def keep_common(ours: dict[str, Any], pythons: dict[str, Any], key: str):
    """Remove those of Python's lists or sliders that the page lacks."""
    if key.endswith("choosers"):
        fields = {choice["field"] for choice in ours[key]["choices"]}
        pythons[key]["choices"] = [choice for choice in pythons[key]["choices"] if choice["field"] in fields]
    elif key in ours:
        texts = {control["edit"] for control in ours[key]}
        pythons[key] = [control for control in pythons[key] if control["edit"] in texts]


def unpack(content: Any) -> Any:
    """Return a content with a figure's data and layout, and a grid's pixels, as numbers."""
    if isinstance(content, list) and len(content) == 2 and all(isinstance(part, str) for part in content):
        return [unpack_arrays(json.loads(part)) for part in content]
    if isinstance(content, dict) and "block" in content:
        return content | {"data": [[float(byte) / 255 for byte in b64decode(text)] for text in content["data"]]}
    return content


def unpack_arrays(part: Any) -> Any:
    """Return Plotly's JSON with lists for encoded arrays, floats for all numbers, and None for non-finite ones."""
    if isinstance(part, dict) and "bdata" in part:
        numbers = np.frombuffer(b64decode(part["bdata"]), part["dtype"])
        return unpack_arrays(
            numbers.reshape([int(n) for n in part.get("shape", str(len(numbers))).split(",")]).tolist()
        )
    if isinstance(part, dict):
        return {name: unpack_arrays(value) for name, value in part.items() if value not in (None, [])}
    if isinstance(part, list):
        return [unpack_arrays(value) for value in part]
    if isinstance(part, float) and not np.isfinite(part):
        return None
    return float(part) if isinstance(part, int) and not isinstance(part, bool) else part


def find_differences_from_python(page: BrowserPage, endpoints: BrowserEndpoints, state: dict[str, Any]) -> list[str]:
    """Return where the page's contents for a state differ from Python's."""
    view, ours = state["view"], json.loads(page.evaluate(ASK, state))
    stages = [endpoints.answer("show", state, stage)["contents"] for stage in (0, 1, 2)]
    pythons = json.loads(json.dumps(stages[0] | stages[1] | stages[2]))
    assert {"next-token", "strip", "guess", f"{view}-words", f"{view}-formula", f"{view}-choosers"} <= ours.keys()
    panels = {element_id(view, panel.name) for panel in drawn_part(VIEW_BY_NAME[view]).panels}
    assert panels <= ours.keys()
    all_figures = {element_id(view, panel.name) for panel in VIEW_BY_NAME[view].panels}
    panels, all_figures = (
        {*ids, *(figure + part for figure in ids for part in (MARK, HEADING))} for ids in (panels, all_figures)
    )
    unnamed = f"overview-whole{HEADING}"  # its title has no names
    missing = {*EXCLUDED_CONTENTS, "runs", "open-model", unnamed, *all_figures - panels}
    assert ours.keys() | missing >= pythons.keys()
    for name in ("choosers", "what-ifs"):  # those that the page has
        keep_common(ours, pythons, f"{view}-{name}")
    if code := pythons.get(f"{view}-code"):
        sizes, *rest = code.split("\n", 1)
        pythons[f"{view}-code"] = "\n".join([sizes, translate(RUNS_IN_JAVASCRIPT), *rest])
    common = sorted(ours.keys() & pythons.keys() - missing)
    differences = [find_difference(*map(unpack, (ours[key], pythons[key])), key) for key in common]
    return list(filter(None, differences))


INSPECT = """async ([state, points]) => {
  const url = new URL("../../explorer/web/without_server/answers.js", document.baseURI);
  const { deriveText } = await import(url);
  const texts = [];
  for (const [figure, point] of points) texts.push(await deriveText(state, { figure, point }));
  return texts;
}"""
DERIVED = [name for name, state in STATES.items() if "unfolded" in state]
FIRST_OF_VIEWS = {STATES[name]["view"]: name for name in reversed(DERIVED)}.values()
MAX_ROWS = 8  # of heatmaps with a different number in each row


def make_figure_points(contents: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield some points of each figure, as a click reports them: element id and coordinates."""
    for key, figure in contents.items():
        if isinstance(figure, list) and len(figure) == 2:
            for curve, trace in enumerate(unpack(figure)[0]):
                yield from ((key, point | {"curve": curve}) for point in make_trace_points(trace))


def make_trace_points(trace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    def place(axis: str, index: int) -> float:
        values = trace.get(axis, range(index + 1))
        return float(values[index]) if isinstance(values[index], int | float) else index

    if trace.get("type") == "heatmap":
        rows, columns = len(trace["z"]), len(trace["z"][0])
        in_each_row = {(row, 5 * row % columns) for row in range(rows)} if rows <= MAX_ROWS else set()
        for row, column in {(0, 0), (rows - 1, columns // 2), (rows // 2, columns - 1), (rows - 1, 0)} | in_each_row:
            yield {"x": place("x", column), "y": place("y", row), "item": None}
    elif trace.get("hoverinfo") != "skip":
        for item in {0, len(trace["y"]) // 2, len(trace["y"]) - 1}:
            if None not in (trace["y"][item], trace.get("x", trace["y"])[item]):
                yield {"x": place("x", item), "y": place("y", item), "item": item}


@subtest_each("depth", first_in_core(["code", "numbers"]), per_case=6)
@subtest_each("name", [name if name in FIRST_OF_VIEWS else exhaustive(name) for name in DERIVED])
def test_derivations_match_python(first_page, endpoints, name, depth):
    state = make_state(first_page, STATES[name]) | {"depth": depth}
    panels = {element_id(state["view"], panel.name) for panel in drawn_part(VIEW_BY_NAME[state["view"]]).panels}
    contents = {k: v for stage in (0, 1) for k, v in endpoints.answer("show", state, stage)["contents"].items()}
    points = list(make_figure_points({key: content for key, content in contents.items() if key in panels}))
    texts = first_page.evaluate(INSPECT, [state, points])
    for (figure, point), ours in zip(points, texts, strict=True):
        try:
            pythons = endpoints.inspect(state, figure, point)
        except PointNotFoundError:
            pythons = ""
        pythons = re.sub(r"\nexplorer/\S+\.py:\d+  .*", "", pythons)  # analyses have no line of code on this page
        assert not find_difference(ours, pythons, f"{figure} {point}")
    assert sum(map(bool, texts)) > len(points) / 2


@subtest_each("name", STATES, per_case=7)
def test_page_contents_match_python(first_page, endpoints, name):
    assert not find_differences_from_python(first_page, endpoints, make_state(first_page, STATES[name]))


@pytest.mark.parametrize("language", first_in_core([tag for tag in LANGUAGES if tag != ENGLISH]))
def test_page_contents_match_python_in_other_languages(open_url, sites, endpoints, language):
    page = open_url(f"{sites['docs/try/']}?lang={language}&depth=numbers&view=overview")
    with use_locale(language):
        for name in ("story", "attention", "prediction, later", "feed-forward", "positions of the twin", "tokens"):
            assert not find_differences_from_python(page, endpoints, make_state(page, STATES[name]))
        assert page.text_content("#run") == translate("Run")
        term = page.locator("#next-token-words .term[data-term=entropy]").text_content()
        assert term.casefold() == translate("entropy").casefold()
        assert translate(ENTRY_BY_NAME["logit"].meaning) in page.text_content("#glossary .first")
    assert page.evaluate("document.documentElement.lang") == language


def wait_until_settled(page: BrowserPage):
    page.evaluate("window.explorer.settled()")


@pytest.mark.parametrize("path", first_in_core(["course/explorer/docs/try/", "docs/try/"]))
def test_student_session_works(open_url, sites, path):
    page, (lm, tokenizer) = open_url(f"{sites[path]}?max_new_tokens=12"), load_checkpoint("llama-fables")

    def state(name: str) -> Any:
        return page.evaluate("(name) => window.explorer.state[name]", name)

    page.click(".choices button >> nth=0")  # a guess, which reveals the answer
    wait_until_settled(page)
    assert re.search(r"^Right: |is number \d+ on its list", page.inner_text("#guess output"))
    page.click("#step")
    page.wait_for_function("window.explorer.state.generated.length === 1")
    page.click("[data-mode=numbers]")
    wait_until_settled(page)
    assert state("depth") == "numbers"
    page.click("#generate")
    page.wait_for_function("window.explorer.state.generated.length === 13")
    wait_until_settled(page)
    prompt = tokenizer.encode("Once upon a time there was a fox who wanted the moon.")
    expected = generate(lm, prompt, max_new_tokens=13, temperature=1.0, seed=0)
    assert state("generated") == [step.token_id for step in expected]
    assert page.get_attribute("#undo", "data-unit") == "12 tokens"
    page.click("#undo")
    page.wait_for_function("window.explorer.state.generated.length === 1")
    wait_until_settled(page)  # the table is that of the shorter text
    token = int(page.get_attribute("#next-token tbody tr:nth-child(4)", "data-token"))
    page.locator("#next-token tbody tr:nth-child(4) .take").dispatch_event("click")
    page.wait_for_function("window.explorer.state.generated.length === 2")
    assert state("generated")[-1] == token
    page.fill("#temperature input >> nth=0", "0")
    wait_until_settled(page)
    assert "largest" in page.text_content("#next-token thead")
    page.fill("#prompt textarea", "The dog")
    page.press("#prompt textarea", "Enter")
    page.wait_for_function("window.explorer.state.prompt.length === 2")
    wait_until_settled(page)
    assert state("prompt") == tokenizer.encode("The dog")
    page.select_option("#picker select", "llama-fables-gpt")
    page.wait_for_function("window.explorer.state.checkpoint === 'llama-fables-gpt'")
    wait_until_settled(page)
    assert "LayerNorm" in page.text_content("#facts")
    page.evaluate("window.explorer.select({ open: 'head', layer: 2, head: 1 })")
    wait_until_settled(page)
    assert "Layer 2 head 1" in page.inner_text("#overview-words")
    page.evaluate("window.explorer.select({ view: 'experiments' })")
    page.locator("#experiments-words", has_text="needs Python").wait_for()
    page.click("[data-view=overview]")
    wait_until_settled(page)
    page.click("[data-view=attention]")
    page.locator("#attention-pattern .plot[data-draws]").wait_for()
    page.go_back()
    wait_until_settled(page)
    assert state("view") == "overview"
    page.reload()
    page.wait_for_function(SETTLED)
    assert (state("checkpoint"), state("prompt")) == ("llama-fables-gpt", tokenizer.encode("The dog"))


# Resolves once everything that the page and its worker fetched is cached for offline use
WAIT_UNTIL_CACHED = """async () => {
  const { callWorker } = await import(new URL("../../explorer/web/without_server/actions.js", document.baseURI));
  const cache = await caches.open("transformerlm-explorer"), page = location.href.split(/[?#]/)[0];
  for (;;) {
    const fetched = performance.getEntriesByType("resource").map(({ name }) => name);
    const all = [page, ...fetched, ...await callWorker("fetchedFiles", null)];
    const urls = all.filter((url) => url.startsWith(location.origin));
    const kept = (await cache.keys()).map(({ url }) => url);
    const isWhole = ["model.safetensors", "lessons.en.js"].every((end) => urls.some((url) => url.endsWith(end)));
    if (isWhole && urls.every((url) => kept.includes(url))) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}"""


def test_page_works_offline_after_first_visit(open_url, sites):
    address = sites["course/explorer/docs/try/"]
    page = open_url(address)
    page.evaluate(WAIT_UNTIL_CACHED)
    page.context.set_offline(True)
    page.goto(f"{address}?depth=numbers&view=overview")
    page.wait_for_function(SETTLED)
    page.fill("#prompt textarea", "the fox asked the owl")
    page.click("#run")
    wait_until_settled(page)
    lm, tokenizer = load_checkpoint("llama-fables")
    ids = tokenizer.encode("the fox asked the owl")
    (step,) = generate(lm, ids, max_new_tokens=1, temperature=0)
    assert tokenizer.token_text(step.token_id).strip() in page.locator("#next-token tbody tr").first.text_content()
    page.click("#lessons .open")
    page.locator("#lessons .one").first.wait_for()
    page.context.set_offline(False)


@pytest.fixture
def copied_site(tmp_path) -> Iterator[tuple[Path, str]]:
    """The folder of a copy of the files that the page reads, to be damaged, and the copy's URL."""
    for name in SERVED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*snapshots*", "__pycache__"))
    server = serve(tmp_path)
    yield tmp_path, f"http://127.0.0.1:{server.server_port}/docs/try/"
    server.shutdown()


@pytest.mark.parametrize("is_missing, words", [(True, "cannot be loaded"), (False, "is damaged")])
def test_unreadable_model_is_reported(open_url, copied_site, is_missing, words):
    folder, url = copied_site
    weights = folder / "checkpoints" / "llama-fables" / "model.safetensors"
    if is_missing:
        weights.unlink()
    else:
        weights.write_bytes(weights.read_bytes()[:9999])
    page = open_url(url, is_whole=False)
    page.wait_for_function("(words) => document.querySelector('#problem')?.innerText.includes(words)", arg=words)
    page.context.close()  # before its server


# Resolves once the cached page has a title
WAIT_UNTIL_RENEWED = """async (title) => {
  const cache = await caches.open("transformerlm-explorer"), page = location.href.split(/[?#]/)[0];
  const isThere = async () => (await (await cache.match(page)).text()).includes(title);
  while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 100));
}"""


def test_new_version_appears_at_second_visit(open_url, copied_site):
    folder, url = copied_site
    page = open_url(url)
    page.evaluate(WAIT_UNTIL_CACHED)
    index = folder / "docs" / "try" / "index.html"
    old, new = "<title>TransformerLM Explorer</title>", "<title>The new version</title>"
    assert old in index.read_text(encoding="utf-8")
    index.write_text(index.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    os.utime(index, (index.stat().st_mtime + 5,) * 2)  # HTTP dates have whole seconds
    page.reload()
    page.wait_for_function(SETTLED)
    assert page.title() == "TransformerLM Explorer"
    page.evaluate(WAIT_UNTIL_RENEWED, new)
    page.reload()
    assert page.title() == "The new version"
    page.wait_for_function(SETTLED)
    page.context.close()  # before its server


def test_badge_warns_of_wrong_number(open_url, copied_site):
    folder, url = copied_site
    model = folder / "explorer" / "web" / "static" / "in_browser" / "transformer_lm.js"
    code, scale = model.read_text(encoding="utf-8"), "/ Math.sqrt(dHead)"
    assert code.count(scale) == 1
    model.write_text(code.replace(scale, "/ dHead"), encoding="utf-8")
    page = open_url(f"{url}?view=attention&depth=numbers&unfolded=all")
    wait_until_settled(page)
    marks = {
        name: page.locator(f"#attention-{name} .evidence-mark").get_attribute("data-state")
        for name in ("heads", "pattern", "stages")
    }
    assert marks == {"heads": "recomputed", "pattern": "recomputed", "stages": "off"}  # softmax of the captured scores
    page.context.close()  # before its server
