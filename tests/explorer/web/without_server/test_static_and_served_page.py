"""A student's session on the static page and on the served page: both show the same numbers."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page as BrowserPage

from explorer.tracing.model_library import ModelLibrary
from explorer.web.page import Page
from tests.exhaustive import exhaustive

from .test_static_page import SETTLED, WAIT_UNTIL_CACHED, find_difference, open_url, sites, wait_until_settled  # noqa: F401

pytestmark = pytest.mark.slow
# All visible numbers: the state, texts around the figures, every drawn figure with its badge, and the derivation
# of the clicked number.
READ_PAGE = """() => {
  const text = (selector) => document.querySelector(selector)?.textContent ?? "", { view } = window.explorer.state;
  const list = (values) => Array.isArray(values) || ArrayBuffer.isView(values) ? Array.from(values, (value) =>
    Array.isArray(value) || ArrayBuffer.isView(value) ? list(value) : value) : values ?? null;
  const plots = [...document.querySelectorAll(`#${view}-tab .plot`)];
  const drawn = plots.filter((plot) => plot.clientWidth && plot._fullData);
  const mark = (widget) => [widget.querySelector(".evidence-mark")].map(({ dataset, title }) => [dataset.state, title]);
  const figures = Object.fromEntries(drawn.map((plot) => [plot.closest("[data-widget]").id, [plot.ariaLabel,
    mark(plot.closest("[data-widget]")),
    plot._fullData.map(({ x, y, z, text, hovertext }) => [x, y, z, text, hovertext].map(list))]]));
  const fields = ["checkpoint", "prompt", "generated", "query", "layer", "head", "neuron", "edits", "temperature",
    "open"];
  return JSON.stringify({
    view,
    state: fields.map((name) => window.explorer.state[name] ?? ""), figures,
    texts: ["#next-token tbody", "#next-token-words", "#story", "#changes .changes",
      "#changes .effect", "#guess output", `#${view}-words`, `#${view}-formula pre`, "#lesson .told",
      "#walk .walk:not([hidden])", ".inspection:not([hidden])"].map(text),
    chips: [...document.querySelectorAll("#strip .chip")].map((chip) => chip.textContent),
  });
}"""

# No visible figure waits for an answer; figures covered by a lesson may wait
IS_UP_TO_DATE = """() => [...document.querySelectorAll("#view .stale, #view[aria-busy=true]")]
  .every((part) => !part.clientWidth)"""


def run_text(page: BrowserPage):
    page.fill("#prompt textarea", "The owl told the mouse a secret")
    page.press("#prompt textarea", "Enter")
    page.wait_for_function("window.explorer.state.prompt.length === 7")


def ablate_head(page: BrowserPage):
    page.click("#attention-what-ifs .fold")
    for more in page.locator("#attention-what-ifs .more-changes:visible").all():
        more.click()
    page.fill("#attention-what-ifs input[type=range] >> nth=0", "0")
    page.wait_for_function("window.explorer.state.edits === 'blocks.4.attn.z.4*scale*0'")


def reload(page: BrowserPage):
    page.reload()
    page.wait_for_function(SETTLED)


def remove_intervention(page: BrowserPage):
    page.click("#changes button")
    page.wait_for_function("window.explorer.state.edits === ''")


def generate(page: BrowserPage):
    page.click("#generate")
    page.wait_for_function("window.explorer.state.generated.length === 9")


def end_text(page: BrowserPage):
    page.fill("#prompt textarea", "They lived happily ever after.")
    page.press("#prompt textarea", "Enter")
    page.wait_for_function("window.explorer.state.prompt.length === 6")
    page.click("#generate")
    page.locator("#story .ended", has_text="The model ended the text after 1 token.").wait_for()
    assert page.locator("#story .generated .sign").get_attribute("data-sign") == "■ end of text"


def inspect_cell(page: BrowserPage):
    page.focus("#attention-pattern .plot")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('.inspection:not([hidden])')?.textContent.includes('softmax')")


def step(page: BrowserPage):
    page.click("#step")
    page.wait_for_function("window.explorer.state.generated.length === 1")


def select(**change: Any) -> Callable[[BrowserPage], Any]:
    return lambda page: page.evaluate("(change) => window.explorer.select(change)", change)


def open_tab(name: str) -> Callable[[BrowserPage], Any]:
    return lambda page: page.click(f"[data-view={name}]")


def open_lesson(page: BrowserPage):
    page.click("#lessons .open")
    page.locator("#lessons .one", has_text="who looks at whom").click()
    page.locator("#lesson h2", has_text="One token looks back").wait_for()


def go_step_by_step(page: BrowserPage):
    page.emulate_media(reduced_motion="reduce")
    page.click("#attention-walk .walks")
    page.locator("#walk .walk:not([hidden])").wait_for()
    page.keyboard.press("Space")


ACTIONS = {
    "guesses": lambda page: page.click(".choices button >> nth=1"),
    "opens what a head takes": select(open="cell", layer=4, head=4, key=7),
    "closes it": select(open=""),
    "writes a token": step,
    "turns to the numbers": lambda page: page.click("[data-mode=numbers]"),
    "generates": generate,
    "sees the model end a text": end_text,
    "runs another text": run_text,
    "looks at all heads": open_tab("attention"),
    "chooses one": select(layer=4, head=4, query=5, key=2, neuron=11),
    "asks how its weight is worked out": inspect_cell,
    "ablates the head": ablate_head,
    "sees what that does to the prediction": open_tab("prediction"),
    "reloads the page": reload,
    "takes it back": remove_intervention,
    "looks at the neurons": open_tab("feed_forward"),
    "chooses another": select(layer=3, neuron=11),
    "follows the stream": open_tab("residual"),
    "rotates": open_tab("positions"),
    "reads the tokens": open_tab("tokens"),
    "learns": open_lesson,
    "goes on": lambda page: page.click("#lesson .next"),
    "replies": lambda page: page.click("#lesson .option >> nth=1"),
    "leaves": lambda page: page.click("#lesson .leave"),
    "looks at attention again": open_tab("attention"),
    "goes through it step by step": go_step_by_step,
    "closes that": lambda page: page.keyboard.press("Escape"),
    "goes back": open_tab("tokens"),
    "asks the twin": lambda page: page.select_option("#picker select", "llama-fables-gpt"),
}
NUM_FIGURES = {  # with folded figures folded, and with all
    "": {"attention": 1, "prediction": 1},
    "all": {"attention": 5, "prediction": 7, "feed_forward": 6, "residual": 8, "positions": 5, "tokens": 4},
}


@pytest.fixture(scope="module")
def app_address() -> Iterator[str]:
    """URL of the app."""
    blocks = Page(ModelLibrary("cpu"), "llama-fables").launch(prevent_thread_lock=True, quiet=True)
    yield blocks.local_url
    blocks.close(verbose=False)


@pytest.mark.parametrize(
    "last, unfolded",
    [
        pytest.param("takes it back", "", id="takes it back"),
        exhaustive(pytest.param("asks the twin", "all", id="asks the twin")),
    ],
)
def test_static_and_served_page_show_same_numbers(open_url, sites, app_address, last, unfolded):  # noqa: F811
    address = sites["course/explorer/docs/try/"]
    pages = [open_url(f"{url}?max_new_tokens=8&unfolded={unfolded}") for url in (address, app_address)]
    num_figures: dict[str, int] = {}
    for thing, act in ACTIONS.items():
        seen = []
        for page in pages:
            act(page)
            wait_until_settled(page)
            page.wait_for_function(IS_UP_TO_DATE)
            seen.append(json.loads(page.evaluate(READ_PAGE), parse_int=float))
        seen[1]["figures"] = {name: seen[1]["figures"].get(name) for name in seen[0]["figures"]}  # others need Python
        assert not find_difference(*seen, thing)
        num_figures[seen[0]["view"]] = len(seen[0]["figures"])
        if thing == last:
            break
    expected = {"overview": 0} | NUM_FIGURES[unfolded]
    assert num_figures == {view: expected[view] for view in num_figures}
    page = pages[0]
    page.evaluate(WAIT_UNTIL_CACHED)
    page.context.set_offline(True)
    page.click("#step")
    page.wait_for_function("window.explorer.state.generated.length === 1")
    page.context.set_offline(False)
