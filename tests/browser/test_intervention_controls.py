"""Intervention controls act on the selected component, at all positions or at the selected one only."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from .person import CELL, Person

LOOK = {"text": "Once upon a time", "layer": 1, "head": 1, "query": 3, "key": 1, "neuron": 2}


def find_control(person: Person, label: str) -> Locator:
    person.unfold_changes()
    return person.page.locator(".what-ifs label:visible", has_text=label).locator("input:not([type=number])")


def expect_interventions(person: Person, *texts: str):
    person.page.wait_for_function(
        "texts => (new URL(location.href).searchParams.get('edits') || '') === texts", arg="~".join(texts)
    )


@pytest.mark.exhaustive
def test_edge_is_blocked_in_head_layer_or_all_layers(open_page):
    person = open_page("attention", **LOOK)
    person.unfold_changes()
    edge = person.page.locator(".what-ifs label:visible", has_text="from looking at")
    expect(edge.locator("select")).to_have_count(2)
    masked, dropped = edge.locator("select").all()
    masked.select_option("in head 1 of layer 1")
    expect_interventions(person, "blocks.1.attn.pattern.1@3*mask*1")
    dropped.select_option("in all heads of layer 1")
    expect_interventions(person, "blocks.1.attn.pattern.1@3*mask*1", "blocks.1.attn.pattern@3*drop*1")
    masked.select_option("in all heads of all layers")  # replaces the narrower one
    expect_interventions(person, "blocks.1.attn.pattern@3*drop*1", "blocks.*.attn.pattern@3*mask*1")
    dropped.select_option("off")
    expect_interventions(person, "blocks.*.attn.pattern@3*mask*1")
    person.page.reload()
    person.unfold_changes()
    expect(masked).to_have_value("3")
    dropped.select_option("in head 1 of layer 1")
    expect_interventions(person, "blocks.*.attn.pattern@3*mask*1", "blocks.1.attn.pattern.1@3*drop*1")
    person.page.locator("#changes button", has_text="with all heads of every layer").click()
    expect_interventions(person, "blocks.1.attn.pattern.1@3*drop*1")  # the other one stays
    expect(masked).to_have_value("0")
    masked.select_option("in all heads of layer 1")
    person.page.locator("#changes button", has_text="take all back").click()
    expect_interventions(person, "")
    expect(dropped).to_be_hidden()  # removed together with the last intervention of that kind
    person.unfold_changes()
    expect(dropped).to_have_value("0")


@pytest.mark.exhaustive
def test_controls_act_on_selected_token_only_if_requested(open_page):
    person = open_page("experiments", **LOOK)
    mean, only = find_control(person, "by its mean over the prompt"), find_control(person, "only at the chosen token")
    mean.check()
    expect_interventions(person, "blocks.1.attn.z.1*mean")
    only.check()
    expect(mean).not_to_be_checked()
    mean.check()
    expect_interventions(person, "blocks.1.attn.z.1*mean", "blocks.1.attn.z.1@3*mean")
    only.uncheck()
    expect(mean).to_be_checked()
    mean.uncheck()
    expect_interventions(person, "blocks.1.attn.z.1@3*mean")


@pytest.mark.exhaustive
def test_norm_interventions_replace_each_other(open_page):
    person = open_page("residual", **LOOK)
    as_layer_norm = find_control(person, "attn_norm of layer 1 as a LayerNorm")
    as_layer_norm.check()
    expect_interventions(person, "blocks.1.attn_norm*norm*layernorm")
    find_control(person, "attn_norm of layer 1 off").check()
    expect_interventions(person, "blocks.1.attn_norm*norm*none")
    expect(as_layer_norm).not_to_be_checked()


@pytest.mark.exhaustive
def test_link_with_intervention_at_token_sets_controls(open_new_page):
    person = open_new_page().open("experiments", **LOOK, edits="blocks.1.attn.z.1@3*scale*0.5")
    expect(find_control(person, "only at the chosen token")).to_be_checked()
    slider = find_control(person, "Scale head 1 of layer 1 by")
    expect(slider).to_have_value("0.5")
    number = person.page.get_by_role("spinbutton", name="Scale head 1 of layer 1 by")
    expect(number).to_have_value("0.5")
    number.fill("0.33")
    number.press("Enter")
    expect_interventions(person, "blocks.1.attn.z.1@3*scale*0.33")
    number.fill("7")  # above the slider's maximum
    number.press("Enter")
    expect_interventions(person, "blocks.1.attn.z.1@3*scale*2")
    expect(slider).to_have_value("2")
    number.fill("1")
    number.press("Enter")
    expect_interventions(person, "")


@pytest.mark.exhaustive
def test_shift_click_ablates_another_head_and_shows_interaction(open_page):
    person = open_page("experiments", text="Then Zorb", query=1, layer=0, head=0)
    cells = person.page.locator("#experiments-heads .plot")
    together = person.page.locator("#experiments-together_probability")
    expect(cells).to_have_attribute("data-draws", re.compile(r"\d"))
    expect(together).to_be_hidden()

    def shift_click(layer: int, head: int):
        cells.scroll_into_view_if_needed()
        x, y = cells.evaluate(CELL, [head, layer])
        person.page.keyboard.down("Shift")
        person.page.mouse.click(x, y)
        person.page.keyboard.up("Shift")

    shift_click(1, 1)
    expect_interventions(person, "blocks.1.attn.z.1*zero")
    shift_click(0, 1)
    expect_interventions(person, "blocks.1.attn.z.1*zero", "blocks.0.attn.z.1*zero")
    expect(together.locator("[data-draws]")).to_be_visible()
    expect(together.locator(".ytick")).to_have_count(5)  # two interventions, their sum, both, and the difference
    shift_click(1, 1)
    expect_interventions(person, "blocks.0.attn.z.1*zero")
    cells.focus()
    person.page.keyboard.press("+")  # at the selected head
    expect_interventions(person, "blocks.0.attn.z.1*zero", "blocks.0.attn.z.0*zero")


@pytest.mark.exhaustive
def test_redundant_components_are_ablated_together_by_click(open_page):
    person = open_page("overview", text="Once upon a time", query=3)
    person.page.get_by_role("button", name="Which parts stand in for one another?").click()
    pair = person.page.locator("#stand-ins .clauses a").nth(1)
    expect(pair).to_contain_text("one by one")
    edits = parse_qs(urlsplit(pair.get_attribute("href")).query)["edits"][0]
    assert edits.count("*zero") == 2
    pair.click()
    expect_interventions(person, edits)
    person.expect_selected(view="experiments")
    expect(person.page.locator("#experiments-together_probability .plot")).to_be_in_viewport()


@pytest.mark.exhaustive
def test_focused_control_follows_removed_intervention(open_page):
    person = open_page("attention", **LOOK)
    scale = find_control(person, "Scale head 1 of layer 1 by")
    scale.first.focus()
    scale.first.fill("0.5")
    expect_interventions(person, "blocks.1.attn.z.1*scale*0.5")
    person.evaluate("actions.setInterventions([])")
    expect_interventions(person, "")
    expect(scale.first).to_be_focused()
    expect(scale.first).to_have_value("1")


# Layer and head -> the mark painted on its thumbnail.
WRITTEN_MARKS = """(buttons) => Object.fromEntries(buttons.map((button) =>
  [`${button.dataset.layer}.${button.dataset.head}`, getComputedStyle(button, "::after").content]))"""


def test_head_switch_comes_first_and_interventions_replace(open_page):
    person = open_page("experiments", **LOOK)
    page, labels = person.page, person.page.locator("#experiments-what-ifs label:visible")
    page.locator("#experiments-what-ifs .fold").click()
    expect(labels).to_have_text(["Switch head 1 of layer 1 off (ablate to 0)", "only at the chosen token"])
    box = labels.first.bounding_box()
    labels.first.locator("input").check()
    expect_interventions(person, "blocks.1.attn.z.1*zero")
    expect(page.locator("#changes [data-edit]")).to_have_count(1)
    expect(page.locator("#changes .effect")).to_contain_text("→")
    assert labels.first.bounding_box() == box and page.evaluate("scrollY") == 0  # the list appears below it
    find_control(person, "Replace head 1 of layer 1 by its mean").check()  # behind the button for more interventions
    expect_interventions(person, "blocks.1.attn.z.1*mean")
    expect(person.warning).to_contain_text(
        "Replaced “layer 1 head 1: off” by “layer 1 head 1: mean”. One part has one change at a time."
    )
    expect(labels.first.locator("input")).not_to_be_checked()
    factor = page.get_by_role("spinbutton", name="Scale head 1 of layer 1 by")
    expect(factor).to_have_value("")  # it is not as it was
    expect(labels.filter(has=factor)).not_to_contain_text("as it is")
    assert labels.count() > 10
    height, window = (
        page.locator("#experiments-what-ifs .what-ifs").bounding_box()["height"],
        page.viewport_size["height"],
    )
    assert 0.4 * window < height < 0.55 * window  # the list is long
    person.tab("Attention")
    person.wait_until_idle()
    expect(person.warning).to_have_count(0)  # it belonged to the earlier view
    marks = page.locator("#attention-heads button[data-layer]").evaluate_all(WRITTEN_MARKS)
    assert marks == {"0.0": "none", "0.1": "none", "1.0": "none", "1.1": '"mean"'}
    stages = person.page.locator("[data-shows=stages]")
    stages.scroll_into_view_if_needed()
    stages.evaluate("stages => { stages.click(); stages.click(); }")  # closed and opened
    expect(person.prediction.locator("th.token").first).to_be_in_viewport(ratio=1)
    expect(page.locator("#attention-what-ifs .more-changes")).to_have_attribute(
        "aria-expanded", "true"
    )  # state of the earlier tab


def test_intervention_shows_original_values_and_links_to_effect(open_page):
    person = open_page("attention", edits="blocks.1.attn.z.1*zero")
    expect(person.page.locator("#next-token th.before")).to_be_visible()
    expect(person.page.locator("#next-token td.before").first).not_to_have_text("")
    person.page.locator("#changes").get_by_text("what it did").click()
    person.expect_selected(view="experiments")
    person.page.locator("#changes button").click()
    expect(person.page.locator("#next-token .before")).to_have_count(0)
