"""One selection, which can be changed anywhere and is followed everywhere."""

import re

import pytest
from playwright.sync_api import expect

from explorer.lessons.example_prompts import EXAMPLES

OPEN_AND_CHOOSE = """(async ([view, layer]) => {
  document.querySelector(`[role=tab][data-view=${view}]`).click();
  while (page.state.view !== view) await new Promise((done) => setTimeout(done));
  actions.select({ layer, head: layer });
})(given)"""
SHAPES = "plot => plot._fullLayout.shapes.filter(s => s.type === 'rect').map(s => [s.x0, s.x1, s.y0, s.y1])"


@pytest.mark.exhaustive
def test_thumbnail_click_selects_head(person):
    with person.wait_for_redraw(person.pattern):
        person.grid.locator("[data-layer='1'][data-head='1']").click(position={"x": 20, "y": 30})
    expect(person.chooser("layer")).to_have_value("1")
    expect(person.chooser("head")).to_have_value("1")
    expect(person.pattern).to_have_attribute("aria-label", re.compile("layer 1 head 1"))
    person.expect_selected(layer=1, head=1)


@pytest.mark.exhaustive
def test_thumbnail_of_selected_head_sets_query_and_key(person):
    before, tokens = person.state, person.chips.count()
    thumbnail = person.grid.locator("[data-layer='0'][data-head='1']")
    thumbnail.click(position={"x": 10, "y": 30})
    person.expect_selected(layer=0, head=1, query=before["query"], key=before["key"])
    thumbnail.click(position={"x": 10, "y": 30})
    state = person.state
    assert 0 <= state["key"] < state["query"] < tokens - 1


def test_pattern_cell_sets_query_and_key(person):
    with person.wait_for_redraw(person.pattern):
        person.click_cell(person.pattern, x=2, y=5)
    expect(person.chooser("query")).to_have_value("5")
    expect(person.chooser("key")).to_have_value("2")
    expect(person.chips.nth(5)).to_have_attribute("aria-selected", "true")
    expect(person.chips.nth(2)).to_contain_class("key")
    person.expect_selected(query=5, key=2)
    assert [1.5, 2.5, 4.5, 5.5] in person.pattern.evaluate(SHAPES)


LONGEST_BARS = "({ _fullData: [{ y }] }) => [...y.keys()].sort((a, b) => y[b] - y[a]).slice(0, 2)"


@pytest.mark.exhaustive
def test_bar_of_query_row_sets_key(person):
    row = person.page.locator("#attention-row .plot")
    with person.wait_for_redraw(row):
        person.chips.nth(9).click()
    first, second = row.evaluate(LONGEST_BARS)  # other bars may be as low as a pixel
    for key in (first, second, second):  # the selected one is a separate bar, which is clickable too
        weight = row.evaluate("(plot, key) => plot._fullData[0].y[key]", key)
        person.click_cell(row, x=key, y=weight / 2)
        person.expect_selected(query=9, key=key)


def test_token_becomes_query_of_all_views(person):
    with person.wait_for_redraw(person.pattern, person.prediction):
        person.chips.nth(3).click()
    person.expect_selected(query=3)
    expect(person.page.locator("#next-token-words")).to_contain_text("position 3")
    for title in ("Positions", "Activations"):
        person.tab(title)
        expect(person.chooser("query")).to_have_value("3")
    expect(person.chips.nth(3)).to_have_attribute("aria-selected", "true")


@pytest.mark.exhaustive
def test_lists_select_layer_head_and_tap(open_page):
    person = open_page(layer=0, head=0)
    with person.wait_for_redraw(person.pattern):
        person.chooser("layer").select_option("1")
        person.chooser("head").select_option("1")
    small = person.grid.locator("[data-layer='1'][data-head='1']")
    expect(small).to_have_attribute("aria-pressed", "true")
    person.tab("Activations")
    heatmap = person.page.locator("#activations-heatmap .plot")
    with person.wait_for_redraw(heatmap):
        person.chooser("tap").select_option("blocks.1.attn.scores")
    expect(heatmap).to_have_attribute("aria-label", re.compile("blocks.1.attn.scores"))
    person.expect_selected(layer=1, head=1, tap="blocks.1.attn.scores")


def test_tabs_draw_same_selection(open_page):
    person = open_page(unfolded="positions-clocks~positions-angles")
    person.click_cell(person.pattern, x=1, y=6)
    person.expect_selected(query=6, key=1)
    for title, panels in (
        ("Positions", ("positions-clocks", "positions-angles")),
        ("Activations", ("activations-heatmap",)),
    ):
        person.tab(title)
        for panel in panels:
            plot = person.page.locator(f"#{panel} .plot")
            expect(plot).to_be_visible()
            expect(plot.locator(".main-svg").first).to_be_visible()
        expect(person.chooser("query")).to_have_value("6")
        person.expect_selected(view=title.lower(), query=6, key=1)


@pytest.mark.exhaustive
def test_hidden_tab_can_be_opened(open_page):
    person = open_page("attention", viewport={"width": 390, "height": 844})
    person.tab("Residual stream")
    expect(person.page.locator("#residual-lengths .plot")).to_have_attribute("data-draws", re.compile(r"\d"))
    person.expect_selected(view="residual")
    person.tab("Tokens")
    expect(person.page.locator("#tokens-vector .plot")).to_have_attribute("data-draws", re.compile(r"\d"))
    person.expect_selected(view="tokens")


@pytest.mark.exhaustive
def test_late_answer_undoes_no_later_selection(person):
    for turn in range(4):
        view, layer = ("positions", "attention")[turn % 2], turn // 2 % 2
        person.evaluate(OPEN_AND_CHOOSE, [view, layer])
        with person.wait_for_redraw(person.prediction):
            person.set("temperature", (turn + 1) / 10)
        plot = person.page.locator(
            {"positions": "#positions-clocks .plot", "attention": "#attention-pattern .plot"}[view]
        )
        person.wait_until_idle()  # all older answers have arrived by now
        expect(plot).to_have_attribute("aria-label", re.compile(f"layer {layer} head {layer}"))


@pytest.mark.exhaustive
def test_activation_cell_selects_token_and_dimension(person):
    person.tab("Activations")
    heatmap = person.page.locator("#activations-heatmap .plot")
    expect(heatmap.locator(".main-svg").first).to_be_visible()
    person.click_cell(heatmap, x=17, y=4)
    person.expect_selected(query=4, dim=17)
    expect(person.chips.nth(4)).to_have_attribute("aria-selected", "true")


def test_example_runs_on_click(person):
    for name, text in list(EXAMPLES.items())[-2:]:
        person.page.get_by_text("Examples", exact=True).click()
        with person.wait_for_redraw(person.strip, person.prediction):
            person.page.get_by_role("button", name=name, exact=True).click()
        expect(person.strip).to_have_text(text)
        expect(person.prompt).to_have_value(text)


@pytest.mark.exhaustive
def test_map_component_opens_its_tab(open_page):
    person = open_page(view="overview", layer=0, head=0)
    overview = person.page.locator("#overview-map .map")
    expect(overview).to_have_attribute("data-draws", re.compile(r"\d"))
    overview.get_by_role("button", name="layer 1 head 1, ").click()
    expect(person.page.get_by_role("tab", name="Attention")).to_have_attribute("aria-selected", "true")
    expect(person.pattern).to_have_attribute("data-draws", re.compile(r"\d"))
    person.expect_selected(view="attention", layer=1, head=1)
    expect(person.grid.locator("[data-layer='1'][data-head='1']")).to_have_attribute("aria-pressed", "true")


@pytest.mark.exhaustive
def test_token_shading_follows_choice(person):
    chip = person.chips.nth(2)
    expect(chip).to_have_attribute("title", re.compile("surprisal"))
    frames = {"[aria-selected=true]": "query: solid frame", ".key:not([aria-selected=true])": "key: dashed frame"}
    for selector, name in frames.items():
        expect(person.strip.locator(f".chip{selector}")).to_have_attribute("title", re.compile(name))
    person.strip.locator("xpath=..").locator("select").select_option("rank")
    expect(chip).to_have_attribute("title", re.compile("rank"))
    person.expect_selected(shade="rank")
    person.page.reload()
    expect(chip).to_have_attribute("title", re.compile("rank"))


@pytest.mark.exhaustive
def test_intervention_is_shown_and_can_be_removed(person):
    person.tab("Positions")
    clocks, changes = person.page.locator("#positions-clocks .plot"), person.page.locator("#changes")
    expect(clocks).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(changes.get_by_role("button")).to_have_count(0)
    titles = person.chips.evaluate_all("chips => chips.map((chip) => chip.title).join()")
    person.unfold_changes()
    with person.wait_for_redraw(clocks, person.prediction):
        person.page.get_by_role("checkbox", name="rotation off").check()
    expect(changes.get_by_role("button")).to_have_text("rotation off ✕")
    expect(person.page.locator("#positions-pattern_change .plot")).to_be_visible()
    assert person.chips.evaluate_all("chips => chips.map((chip) => chip.title).join()") != titles
    person.wait_until_idle().page.reload()  # an interrupted answer would be reported
    person.unfold_changes()
    expect(person.page.get_by_role("checkbox", name="rotation off")).to_be_checked()
    changes.get_by_role("button").click()
    expect(changes.get_by_role("button")).to_have_count(0)
    expect(person.page.get_by_role("checkbox", name="rotation off")).not_to_be_checked()


@pytest.mark.exhaustive
def test_several_heads_are_shown_together(person):
    for layer, head in ((0, 1), (1, 0)):
        person.grid.locator(f"[data-layer='{layer}'][data-head='{head}']").click(modifiers=["Shift"])
    expect(person.pattern).to_have_attribute("aria-label", re.compile("layer 0 head 1, layer 1 head 0"))
    assert person.evaluate("[page.state.heads, page.state.pattern]") == ["0.1~1.0", "chosen_mean"]
    expect(person.grid.locator(".among")).to_have_count(2)
    person.grid.locator("[data-layer='0'][data-head='1']").click(modifiers=["Shift"])
    person.expect_selected(heads="1.0")


@pytest.mark.exhaustive
def test_every_figure_follows_selected_neuron(person):
    person.tab("Feed-forward")
    tokens = person.page.locator("#feed_forward-tokens .plot")
    expect(tokens).to_have_attribute("data-draws", re.compile(r"\d"))
    person.chooser("neuron").select_option("7")
    expect(tokens).to_have_attribute("aria-label", re.compile("euron 7"))
    expect(person.page.locator("#feed_forward-formula")).to_contain_text("neuron 7")
    expect(person.page.locator("#feed_forward-promoted .plot")).to_have_attribute("aria-label", re.compile("euron 7"))
