"""URL of the page, which has the page's whole visible state."""

import csv

import pytest
from playwright.sync_api import expect

from explorer.web.actions.page_actions import FIRST_PROMPT
from explorer.web.browser_api.python_script import python_script

from .pixels import capture_visible_run

HOSTILE_SELECTIONS = [
    ({"layer": 99999, "head": 99999, "query": 99999, "key": 99999}, {"layer": 1, "head": 1}),
    ({"layer": -1, "head": 0.5, "query": "abc", "key": "1e3"}, {"layer": 0, "head": 0}),
    ({"layer": "9" * 5000, "dim": "٣", "tap": "__proto__", "view": "<b>"}, {"layer": 0, "dim": 0}),
    ({"temperature": "nan", "top_k": "-inf", "max_new_tokens": "1e999", "seed": "0x10"}, {"max_new_tokens": 512}),
]
HOSTILE_RUNS = [
    {"prompt": "1.2.x"},
    {"prompt": ".".join(["7"] * 5000)},
    {"prompt": "1.2", "generated": "-1"},
    {"checkpoint": "truncated-weights"},
    {"checkpoint": "<img src=x onerror=alert(1)>"},
    {"layer": 99999, "head": -1, "query": "abc", "prompt": "1.2.x", "checkpoint": "../../etc"},
]


def test_reload_restores_everything(person):
    person.run("The owl asked the moon")
    person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips.last).to_contain_class("generated")
    person.chooser("layer").select_option("1")
    person.chooser("head").select_option("1")
    person.chips.nth(4).click()
    person.chooser("key").select_option("2")
    person.set("temperature", 0.35)
    person.set("top-k", 7)
    person.tab("Positions")
    person.expect_selected(view="positions", layer=1, head=1, query=4, key=2, temperature=0.35, top_k=7)
    strip, story, query = person.strip.text_content(), person.story.text_content(), person.url
    person.page.reload()
    expect(person.wait_until_idle().chooser("key")).to_have_value("2")
    expect(person.strip).to_have_text(strip)
    expect(person.story).to_have_text(story)
    expect(person.prompt).to_have_value("The owl asked the moon")
    expect(person.chips.last).to_contain_class("generated")
    expect(person.chips.nth(4)).to_have_attribute("aria-selected", "true")
    expect(person.page.get_by_role("tab", name="Positions")).to_have_attribute("aria-selected", "true")
    for field, value in {"layer": "1", "head": "1", "query": "4"}.items():
        expect(person.chooser(field)).to_have_value(value)
    expect(person.slider("temperature")).to_have_value("0.35")
    expect(person.slider("top-k")).to_have_value("7")
    expect(person.page.locator("#positions-clocks .main-svg").first).to_be_visible()
    assert person.url == query


@pytest.mark.exhaustive
def test_text_is_kept_if_model_is_unknown(open_new_page):
    person = open_new_page().open(checkpoint="nope", text="The lake is still", view="tokens", temperature=0.3)
    expect(person.strip).to_have_text("The lake is still")
    expect(person.picker).to_have_value("tiny")
    expect(person.warning).to_contain_text("the first model is shown instead")
    person.expect_selected(view="tokens", temperature=0.3, checkpoint="tiny")


def test_unknown_view_shows_warning(open_new_page):
    person = open_new_page().open(view="nowhere")
    expect(person.warning).to_contain_text("There is no tab")
    person.expect_selected(view="overview")


def test_link_can_be_copied(open_page):
    person = open_page(unfolded="")
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.chips.nth(3).click()
    menu = person.page.locator("#copy summary")
    person.copy("Copy link")
    expect(menu).to_have_text("Copied")
    expect(menu).to_have_attribute("aria-live", "polite")
    person.expect_selected(query=3)
    assert person.page.evaluate("navigator.clipboard.readText()") == person.page.url
    assert set(person.url) <= {"view", "depth", "checkpoint", "prompt", "query", "key", "layer", "head", "neuron"}
    expect(menu).to_have_text("Share")


def test_last_used_figure_is_copied_as_python_and_csv(open_page, state_builder):
    person = open_page(text='the owl\'s "moon" and')
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.copy("Copy as Python")  # no figure was used: the chosen head's, not the grid to choose it in
    expect(person.warning).to_contain_text("who looks at whom")
    assert 'run.figure("attention", "pattern"' in person.page.evaluate("navigator.clipboard.readText()")
    person.wait_until_idle().page.locator("#attention-row h2").click()
    title = person.wait_until_idle().page.locator("#attention-row h2").inner_text()
    held = []
    person.page.route("**/python_script", lambda route: held.append(route))
    person.copy("Copy as Python")
    expect(person.warning).to_contain_text("Python for this figure is being written")  # before the answer
    held[0].continue_()
    person.page.unroute("**/python_script")
    expect(person.warning).to_contain_text(f"Python for the figure “{title}” is copied.")
    script = person.page.evaluate("navigator.clipboard.readText()")
    assert script == python_script(state_builder.runs, state_builder.state_from_query(person.state), "attention-row")
    assert 'run.figure("attention", "row"' in script
    person.page.locator("#attention-pattern h2").click()
    with person.page.expect_download() as download:
        person.copy("as CSV")
    expect(person.warning).to_contain_text("The numbers of the figure")
    names, *rows = csv.reader(download.value.path().read_text(encoding="utf-8").splitlines())
    assert names == ["query_position", "query_token", "key_position", "key_token", "weight"]
    layer, head = (person.state[name] for name in ("layer", "head"))
    assert download.value.suggested_filename == f"tiny-attention-pattern-L{layer}H{head}.csv"
    weights = capture_visible_run(person)[f"blocks.{layer}.attn.pattern"][head]
    pairs = [(query, key) for query in range(len(weights)) for key in range(query + 1)]  # none for what is masked
    assert [(int(query), int(key)) for query, _query_token, key, _key_token, _weight in rows] == pairs
    for pair, row in zip(pairs, rows, strict=True):
        assert float(row[4]) == pytest.approx(weights[pair], abs=1e-6) and row[1] and row[3]
    person.tab("Feed-forward")
    person.wait_until_idle().page.locator("#feed_forward-strongest h2").click()
    with person.page.expect_download() as download:
        person.copy("as CSV")
    rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    hidden = capture_visible_run(person)[f"blocks.{layer}.ffn.hidden"][person.state["query"]]
    neurons, values = zip(*(list(row.values())[-2:] for row in rows), strict=True)
    assert {float(value) for value in values} & {float(hidden[int(neuron)]) for neuron in neurons}


@pytest.mark.exhaustive
def test_hostile_selection_is_clamped(open_new_page):
    person = open_new_page()
    for query, selection in HOSTILE_SELECTIONS:
        person.open(**query)
        expect(person.strip).to_have_text(FIRST_PROMPT)
        state = person.state
        assert {name: state[name] for name in selection} == selection
        assert 0 <= state["temperature"] <= 2 and 0 <= state["key"] <= state["query"] < person.chips.count()
        expect(person.page.locator("#view .main-svg:visible").first).to_be_visible()
    person.run("The fox")
    expect(person.strip).to_have_text("The fox")


@pytest.mark.exhaustive
def test_hostile_run_shows_warning_and_first_example(open_new_page):
    person = open_new_page()
    for query in HOSTILE_RUNS:
        person.open(view="overview", **query)
        expect(person.warning.first).to_be_visible()
        expect(person.strip).to_have_text(FIRST_PROMPT)
        expect(person.page.locator("#view .main-svg:visible").first).to_be_visible()
        expect(person.picker).to_have_value("tiny")
        assert person.page.locator("img[src=x]").count() == 0
    person.run("The fox")
    expect(person.strip).to_have_text("The fox")
