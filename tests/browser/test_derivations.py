"""Derivations of clicked numbers that are not cells."""

import re

import pytest
from playwright.sync_api import expect


@pytest.mark.exhaustive
def test_shift_click_on_overview_bar_shows_derivation(open_page):
    person = open_page(view="overview")
    block = person.page.locator("#overview-sum")
    block.scroll_into_view_if_needed()
    expect(block.locator("[data-draws]")).to_have_attribute("data-draws", re.compile(r"\d"))
    box = block.locator(".barlayer .point path").first.bounding_box()
    person.page.keyboard.down("Shift")
    person.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    person.page.keyboard.up("Shift")
    expect(person.page.locator(f'[data-of="{block.get_attribute("id")}"]')).to_contain_text(
        re.compile(r"what the token’s embedding adds = [\s\S]*recomputed")
    )
    assert person.state["view"] == "overview"


@pytest.mark.exhaustive
def test_clicked_bar_shows_derivation(open_page):
    person = open_page(view="prediction")
    block = person.page.locator("#prediction-parts")
    block.scroll_into_view_if_needed()
    expect(block.locator(".plot")).to_have_attribute("data-draws", re.compile(r"\d"))
    box = block.locator(".barlayer .point path").first.bounding_box()
    person.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(person.page.locator(f'[data-of="{block.get_attribute("id")}"]')).to_contain_text(
        "what the token’s embedding adds = "
    )


@pytest.mark.exhaustive
def test_clicked_clock_hand_shows_both_derivations(open_page):
    person = open_page(view="positions", depth="code", layer=0, head=1)
    block = person.page.locator("#positions-clocks")
    block.scroll_into_view_if_needed()
    expect(block.locator(".plot")).to_have_attribute("data-draws", re.compile(r"\d"))
    box = block.locator(".scatterlayer .points path").last.bounding_box()
    person.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(person.page.locator(f'[data-of="{block.get_attribute("id")}"]')).to_contain_text(
        re.compile(r"attn\.[qk](_rot)?\[[\s\S]*attn\.[qk](_rot)?\[")
    )
