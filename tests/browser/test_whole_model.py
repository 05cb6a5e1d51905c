"""Whole-model figure as the browser draws it: curves, levels that open in place, pointer, keyboard and sizes."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from explorer.explain.notation import format_percent
from explorer.state.selection import Selection
from explorer.views.overview.whole_model import draw_whole_model
from tests.exhaustive import every_nth_in_core

from .person import Person
from .pixels import WAIT_FOR_ANIMATIONS, capture_visible_run

TELEPHONE, LAPTOP = {"width": 390, "height": 844}, {"width": 1366, "height": 768}
SCREENS_AND_LEVELS = [
    pytest.param(viewport, level, id=f"{name}-{level}")
    for name, viewport in (("desk", None), ("laptop", LAPTOP), ("telephone", TELEPHONE))
    for level in ("", "block", "head", "cell")
]
RUN = {"checkpoint": "gpt-twin", "text": "The fox asked the moon", "layer": 1, "head": 2, "query": 5, "key": 3}
CURVES = """(figure) => [...figure.querySelectorAll(".curve")].map((curve) => {
  const { strokeWidth, stroke } = getComputedStyle(curve);
  return [curve.dataset.head, +curve.dataset.key, parseFloat(strokeWidth), curve.classList[1], stroke];
})"""
# Pairs of texts that overlap, and texts outside of the drawing.
OVERLAPS = """(figure) => {
  const frame = figure.querySelector("svg").getBoundingClientRect();
  const texts = [...figure.querySelectorAll("svg text")].filter((text) => text.textContent.trim())
    .map((text) => [text.textContent, text.getBoundingClientRect()]);
  const meet = (a, b) => a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 2 && b.bottom > a.top + 2;
  const pairs = texts.flatMap(([one, a], i) =>
    texts.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => [one, other]));
  const isOutside = ({ left, right, bottom }) =>
    left < frame.left - 1 || right > frame.right + 1 || bottom > frame.bottom + 1;
  return [...pairs, ...texts.filter(([, box]) => isOutside(box)).map(([text]) => [text, "outside"])];
}"""
# Opacity of the curve that the sentence names, and of the others
OPACITIES = """(figure) => [".curve:has(+ .named)", ".curve:not(:has(+ .named))"].map((curves) =>
  [...figure.querySelectorAll(curves)].map((curve) => {
    const { opacity, strokeOpacity } = getComputedStyle(curve);
    return opacity * strokeOpacity;
  }))"""
# Within each block: curves that start lower, but end further right, and so cross
CROSSINGS = """(figure) => {
  const curves = [...figure.querySelectorAll(".curve")].map((curve) => {
    const [start, end] = [0, curve.getTotalLength()].map((length) => curve.getPointAtLength(length));
    return { layer: curve.dataset.head.split(".")[0], start: start.y, end: end.x };
  });
  return curves.flatMap((one) => curves.filter((other) =>
    other !== one && other.layer === one.layer && other.start >= one.start && other.end >= one.end));
}"""
FOCUSED = "document.activeElement.getAttribute('aria-label')"


def open_figure(visit, viewport=None, **fields) -> tuple[Person, Locator]:
    person = visit("overview", **({"viewport": viewport} if viewport else {}), **RUN | fields)
    figure = person.page.locator("#overview-whole .whole")
    expect(figure.locator(".drawing")).to_have_attribute("data-draws", re.compile(r"\d"))
    person.wait_until_idle()
    return person, figure


# Colours in the legend, and colours of curves by their labels
COLOURS = """(figure) => [
  Object.fromEntries([...figure.querySelectorAll(".sum .summand")].map((one) =>
    [one.textContent, getComputedStyle(one.querySelector("i")).backgroundColor])),
  Object.fromEntries([...figure.querySelectorAll(".curve:is(.adds, .takes)")].map((curve) =>
    [curve.item.label.split(": ").pop(), getComputedStyle(curve).stroke])),
]"""


def expect_path(figure: Locator, path: str):
    expect(figure.locator(".path")).to_have_attribute("data-path", path)


def get_open_level(person: Person) -> str:
    return person.state.get("open", "")


def test_curve_named_in_sentence_is_ringed_and_on_top(open_page):
    person, figure = open_figure(open_page, text="The fox asked the owl, and the owl said nothing.")
    assert figure.locator(".curve.adds").count() > 1
    words = person.page.locator("#overview-words").text_content()
    layer, head, token = re.search(r"look back that adds most: layer (\d+) head (\d+) at “(.+)” \(", words).groups()
    top = figure.locator(".curve:has(+ .named:last-child)")
    assert top.get_attribute("data-head") == f"{layer}.{head}"
    key = person.chips.nth(int(top.get_attribute("data-key"))).text_content()
    assert key.replace(" ", "·") == token
    assert re.search(r"weight .+, norm .+", read_curve_label(figure))
    (named,), others = map(set, figure.evaluate(OPACITIES))
    assert named == 1 > max(others)
    person.page.locator("[data-mode=story]").click()
    person.wait_until_idle()
    assert re.search(r"looks at .+ \(.+%\): for the answer", read_curve_label(figure))  # the story has no logits
    expect(figure.locator(".sum .summand:not(.less)")).to_have_count(5)
    expect(figure.locator(".sum .less")).to_be_visible(visible=figure.locator(".ffn.less").count() > 0)
    legend, curves = figure.evaluate(COLOURS)
    assert {"for the answer", "against the answer"} <= curves.keys() and curves.items() <= legend.items()


def read_curve_label(figure: Locator) -> str:
    """Return the label of the ringed curve."""
    return figure.locator(".curve:has(+ .named)").evaluate("(curve) => curve.item.label")


def test_curve_widths_show_norms(open_page):
    person, figure = open_figure(open_page)
    state = person.state
    selection = Selection().replace(**{name: state[name] for name in ("layer", "head", "query", "key", "target")})
    expected = draw_whole_model(capture_visible_run(person), selection)
    figure.evaluate(WAIT_FOR_ANIMATIONS)  # the colours of an earlier state fade
    rendered = figure.evaluate(CURVES)
    assert len(rendered) == len(expected.curves) > 5
    assert figure.evaluate(CROSSINGS) == []
    curves = {(f"{layer}.{head}", key): numbers for layer, head, key, *numbers in expected.curves}
    widest = max(width for _head, _key, width, *_colour in rendered)
    colours = {True: set(), False: set()}
    for head, key, width, *colour in rendered:
        norm, effect, _weight = curves[head, key]
        assert width == pytest.approx(max(0.75, widest * norm / expected.largest_norm), abs=0.02)
        if abs(effect) > 0.05 * expected.largest_effect:
            colours[effect > 0].add(tuple(colour))
    (adds, blue), (takes, red) = *colours[True], *colours[False]
    assert (adds, takes) == ("adds", "takes") and blue != red
    terms = [float(text.replace("−", "-")) for text in figure.locator(".summand b").all_text_contents()]
    assert sum(terms[:-1]) == pytest.approx(terms[-1], abs=0.005 * len(terms))


def test_levels_open_down_to_products_and_path_leads_back(open_page):
    person, figure = open_figure(open_page)
    figure.get_by_role("button", name=re.compile("^Layer 2,")).click(position={"x": 30, "y": 12})
    expect_path(figure, "Model › Layer 2")
    expect(figure.locator(".pattern")).to_have_count(4)
    expect(figure.locator(".sum")).to_contain_text("a darker cell takes more of its attention")
    pointed = figure.get_by_role("button", name=re.compile(r"^layer 2 head 3:"))
    pointed.hover()
    strokes = (frame.locator(".shape").first for frame in (figure.locator(".pattern.here"), pointed))
    chosen, other = (shape.evaluate("(shape) => getComputedStyle(shape).stroke") for shape in strokes)
    assert chosen != other  # the hovered frame differs from the selected one
    pointed.click()
    expect_path(figure, "Model › Layer 2 › Attention › head 3")
    size = len(person.state["prompt"])
    expect(figure.locator(".cell")).to_have_count(size * (size + 1) // 2)
    cell = figure.locator(".cell.here")
    assert re.match(r"(.*) looks at \1:", figure.locator(".cell").first.get_attribute("aria-label"))
    label = cell.get_attribute("aria-label")
    cell.click()
    expect(figure.locator(".step").first).to_be_visible()
    assert get_open_level(person) == "cell" and person.state["head"] == 3
    query, key = re.match(r"(.*) looks at (.*):", label).groups()
    expect_path(figure, f"Model › Layer 2 › Attention › head 3 › “{query}” → “{key}”")
    person.wait_until_idle()
    expect(person.page.locator("#overview-words")).to_contain_text("Layer 2 head 3")
    switch_head_off_and_on(person, figure, "blocks.2.attn.z.3*zero")
    person.page.get_by_role("button", name="Step", exact=True).click()  # the selection is ahead of the drawing
    person.expect_selected(query=size)
    person.wait_until_idle()
    figure.get_by_role("button", name="Step by step").click()
    expect(person.page.locator("#walk h2")).to_contain_text("Attention of head 3 in layer 2")
    person.page.keyboard.press("Escape")
    figure.locator(".path").get_by_role("button", name="Layer 2").click()
    expect(figure.locator(".pattern")).to_have_count(4)
    person.page.keyboard.press("Escape")
    expect_path(figure, "Model")
    assert get_open_level(person) == ""


def test_opened_part_keeps_its_sentence_and_path_in_sight_on_a_telephone(open_page):
    """Opened far down in the drawing; a head whose effect has no room has its colour."""
    person, figure = open_figure(open_page, TELEPHONE, depth="story")
    words, path = person.page.locator("#overview-words"), figure.locator(".path")
    first, unit = figure.locator(".block .title").first, figure.get_by_text("layer", exact=True)
    for width, title, count in ((300, "0", 1), (TELEPHONE["width"], "Layer 0", 0)):
        person.page.set_viewport_size(TELEPHONE | {"width": width})
        expect(first).to_have_text(title)
        expect(unit).to_have_count(count)  # what the numbers above the columns count
    figure.locator(".sum").evaluate(
        "sum => scrollBy({ top: sum.getBoundingClientRect().top - 200, behavior: 'instant' })"
    )
    expect(words).not_to_be_in_viewport()
    figure.locator(".block").nth(2).dispatch_event("click")
    expect(path).to_be_in_viewport(ratio=1)
    person.wait_until_idle()
    top = "words => words.contains(document.elementFromPoint(30, words.getBoundingClientRect().top + 4))"
    assert words.evaluate(top)  # not behind the tabs
    expect(figure.locator(".pattern text:is(.adds, .takes)").first).to_be_visible()
    assert figure.evaluate(OVERLAPS) == []
    figure.locator(".item.feed-forward").click()  # its tab is none of the story's
    expect(figure.locator(".readout")).to_have_text(re.compile(r"^feed-forward of layer \d: .+ on each token alone$"))
    person.expect_selected(view="overview", depth="story")
    person.page.evaluate("explorer.select({ view: 'feed_forward' })")
    person.expect_selected(view="feed_forward", depth="numbers")
    person.page.go_back()
    person.expect_selected(view="overview", depth="story")


def test_story_shows_effect_of_ablated_head_once(open_page):
    person, figure = open_figure(open_page, depth="story", open="head", layer=2, head=3)
    changes, answer = person.page.locator("#changes"), person.page.locator("#answer")
    top = answer.bounding_box()["y"]
    figure.get_by_role("button", name="Switch this head off").click()
    expect(figure.locator(".switch .off")).to_have_text("3")
    note = figure.locator(".acts .switched-off > span")
    expect(note).to_have_text(re.compile(r"^Layer 2 head 3 is off: “.+” [\d.]+% → [\d.]+% before temperature$"))
    person.wait_until_idle()
    expect(changes).to_be_hidden()
    assert person.page.evaluate("scrollY") == 0 and answer.bounding_box()["y"] == top
    person.tab("2 · Who looks at whom")
    token = re.search("“(.+)”", note.text_content())[1]
    chance = re.compile(f"^The chance that “{re.escape(token)}” is picked: [\\d.]+% before, [\\d.]+% now")
    expect(changes.locator(".effect")).to_have_text(chance)
    expect(changes).not_to_contain_text("temperature")
    expect(person.page.locator("#guess output")).to_have_text(
        re.compile("with these settings. Layer 2 head 3 is off.$")
    )


def switch_head_off_and_on(person: Person, figure: Locator, ablation: str):
    """Switch the open head off, check the displayed effect on the answer, and switch it on again."""
    chances = "cells => cells.map((cell) => cell.dataset.percent)"
    first, numbers = person.prediction.locator(".text").first, person.prediction.locator("tbody .number")
    token, before = first.text_content().strip(), numbers.evaluate_all(chances)[0]
    button = figure.get_by_role("button", name="Switch this head off")
    box = button.bounding_box()
    button.click()
    effect = person.page.locator("#changes .effect")
    expect(effect).to_contain_text("Probability of")
    person.wait_until_idle()
    assert person.state["edits"] == ablation
    on_again = figure.locator(".acts").get_by_role("button", name="Put it back")
    assert on_again.bounding_box()["y"] == pytest.approx(box["y"], abs=2)
    texts = [text.strip() for text in person.prediction.locator(".text").all_text_contents()]
    after = dict(zip(texts, numbers.evaluate_all(chances), strict=True))
    expect(effect).to_contain_text(re.compile(f"Probability of “·?{re.escape(token)}” before temperature: "))
    expect(effect).to_contain_text(f"After temperature and filters: {before} → {after[token]}.")
    layer, head = re.findall(r"\d+", ablation)
    expect(figure.locator(".acts .switched-off > span")).to_have_text(
        f"Layer {layer} head {head} is off: {before} → {after[token]} after temperature and filters"
    )
    chip = person.page.locator("#changes button", has_text=f"layer {layer} head {head}: off")
    expect(person.page.locator("#changes")).to_contain_text("Everything is computed without it.")
    expect(chip).to_be_visible()
    on_again.click()
    expect(effect).to_be_hidden()
    expect(button).to_be_visible()


def test_curve_opens_its_cell_and_token_its_curves(open_page):
    person, figure = open_figure(open_page)
    curve = figure.locator(".curve").last
    head, key = curve.get_attribute("data-head"), curve.get_attribute("data-key")
    curve.dispatch_event("click")
    expect(figure.locator(".step").first).to_be_visible()
    state = person.state
    assert (state["open"], f"{state['layer']}.{state['head']}", state["key"]) == ("cell", head, int(key))
    expect(figure.locator("svg .item:focus")).to_have_class(re.compile("cell"))
    person.page.mouse.click(*get_answer_centre(figure))  # nothing to click here: no focus ring around the drawing
    assert person.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "none"
    figure.locator(".path").get_by_role("button", name=re.compile("^head")).click()
    figure.get_by_role("button", name=re.compile("^token 4:")).click()
    person.wait_until_idle()
    assert person.state["query"] == 4
    assert get_open_level(person) == "head"
    person.page.get_by_role("tab", name="Whole model").click()
    expect_path(figure, "Model")
    expect(figure.locator(".token.chosen")).to_have_attribute("aria-label", re.compile("^token 4:"))
    assert {key for _head, key, *_rest in figure.evaluate(CURVES)} <= set(range(4))


def get_answer_centre(figure: Locator) -> tuple[float, float]:
    box = figure.locator(".answer").first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_attention_weight_is_same_at_every_level(open_page):
    person, figure = open_figure(open_page, open="head", query=5)
    weights = capture_visible_run(person)["blocks.1.attn.pattern"][2]
    cells = figure.locator(".cell").evaluate_all("(cells) => cells.map(({ item }) => [item.name, item.label])")
    assert len(cells) == len(weights) * (len(weights) + 1) / 2
    for name, label in cells:
        query, key = map(int, name.removeprefix("cell:").split("."))
        assert label.endswith(
            f": {format_percent(float(weights[query, key])).replace('over ', '>').replace('less than ', '<')}"
        )


def test_keyboard_reaches_every_level_from_one_tab_stop(open_page):
    person, figure = open_figure(open_page, key=0)
    page, stops = person.page, figure.locator("svg [tabindex='0']")
    expect(stops).to_have_count(1)
    figure.get_by_role("button", name=re.compile("^token 5:")).focus()

    def press(key: str, focused: str):
        page.keyboard.press(key)
        expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile(focused))

    press("ArrowUp", "^token 4:")
    press("ArrowDown", "^token 5:")
    figure.get_by_role("button", name=re.compile("^Layer 0,")).focus()
    press("ArrowRight", "^Layer 1,")
    press("Enter", r"^layer 1 head 2:")
    press("ArrowRight", r"^layer 1 head ")
    press("Enter", " looks at ")
    expect(figure.locator(".path")).to_contain_text("head")
    marked = figure.locator(".cell.here").get_attribute("aria-label")  # the strongest, not the key chosen before
    expect(page.locator(":focus")).to_have_attribute("aria-label", marked)
    press("ArrowUp", " looks at ")
    focused = page.evaluate(FOCUSED)
    press("Enter", re.escape(focused))
    expect(figure.locator(".step").first).to_be_visible()
    expect(stops).to_have_count(1)
    press("Escape", re.escape(focused))
    press("Escape", r"^layer 1 head ")
    press("Escape", "^Layer 1,")
    expect_path(figure, "Model")


@pytest.mark.parametrize(("viewport", "level"), every_nth_in_core(3, SCREENS_AND_LEVELS))
def test_labels_never_overlap_in_any_size(open_page, viewport, level):
    person, figure = open_figure(
        open_page, viewport, open=level, text="The fox asked the owl, and the owl said nothing."
    )
    expect(
        figure.locator({"": ".curve", "block": ".pattern", "head": ".cell", "cell": ".step"}[level]).first
    ).to_be_attached()
    person.wait_until_idle()
    expect(figure.locator(".drawing[data-moving]")).to_have_count(0)
    assert figure.evaluate(OVERLAPS) == []
    assert person.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    box = figure.locator("svg").bounding_box()
    assert figure.locator(".answer").first.text_content()  # at every level
    assert "…" not in "".join(figure.locator(".step").all_text_contents())
    if viewport is TELEPHONE:
        assert person.page.locator("#overview-whole").bounding_box()["y"] <= 200
    else:
        assert box["height"] >= 340
    if viewport is TELEPHONE and not level:  # the answer is beside the last column
        answer, last = (figure.locator(part).last.bounding_box() for part in (".answer:not(.share)", ".block .shape"))
        assert answer["x"] >= last["x"] + last["width"] and answer["x"] + answer["width"] <= viewport["width"]


def test_answer_is_hidden_while_user_guesses(open_page):
    person, figure = open_figure(open_page)
    person.page.evaluate("document.body.classList.add('guessing')")
    for text in (figure.locator("text.answer").first, figure.locator("text.guess").first):
        expect(text).to_have_css("visibility", "hidden")
    expect(figure.locator(".block[aria-label*='best guess']")).to_have_count(0)
    signs = figure.locator(".curve.strongest").evaluate_all(
        "(all) => all.map((curve) => getComputedStyle(curve).getPropertyValue('--sign'))"
    )
    assert 0 < len(signs) <= figure.locator(".block").count() and len(set(signs)) == 1  # a quiet line from each layer
    expect(figure.locator(".curve:not(.strongest)").first).to_have_css("opacity", "0")
    expect(person.wait_until_idle().page.locator(".drawing[data-moving]")).to_have_count(0)
    covered = figure.bounding_box()
    person.page.evaluate("document.body.classList.remove('guessing')")
    expect(figure.locator("text.answer").first).to_have_css("visibility", "visible")
    assert figure.bounding_box() == covered


def test_flow_animation_plays_after_run_and_any_key_ends_it(open_page):
    person, figure = open_figure(open_page, depth="numbers")
    svg = figure.locator("svg")
    expect(svg).to_be_visible()
    expect(svg).not_to_have_class(re.compile("flowing"))
    person.prompt.fill("The owl asked the fox.")
    person.page.locator("#run").click()
    expect(svg).to_have_class(re.compile("flowing"))
    person.page.keyboard.press("Shift")
    expect(svg).not_to_have_class(re.compile("flowing"))
    person.wait_until_idle().page.evaluate(WATCH_MOTION)
    person.prompt.fill("The owl asked the dog something")
    person.page.locator("#run").click()
    assert person.wait_until_idle().page.evaluate("window.moved") == 0, (
        "equally many tokens are drawn without animation"
    )


WATCH_MOTION = """() => {
  window.moved = 0;
  const drawing = document.querySelector("#overview-whole .drawing");
  new MutationObserver(() => window.moved++).observe(drawing, { attributeFilter: ["data-moving"] });
}"""


def test_figure_is_accessible(open_page):
    person, figure = open_figure(open_page, open="block")
    expect(figure.locator("svg")).to_have_attribute("aria-label", re.compile(r"^The model at .*blocks.*\.$"))
    results = Axe().run(person.page, context="#overview-whole")
    serious = [
        violation for violation in results.response["violations"] if violation["impact"] in ("serious", "critical")
    ]
    assert [(violation["id"], violation["nodes"][0]["html"][:120]) for violation in serious] == []
