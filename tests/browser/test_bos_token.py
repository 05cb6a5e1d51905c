"""The BOS token that a model expects at the start of every text."""

import pytest
from playwright.sync_api import expect


@pytest.mark.exhaustive
def test_user_can_omit_bos_token(open_page):
    person = open_page(checkpoint="stories260K", text="Once upon a time")
    chips, begun = person.page.locator("#strip .chip"), person.page.get_by_label("begins with <s>")
    expect(chips).to_have_text(["<s>", " Once", " upon", " a", " time"])
    expect(begun).to_be_checked()
    begun.click()
    expect(chips).to_have_text([" Once", " upon", " a", " time"])
    expect(begun).not_to_be_checked()
    person.run("Once there was")
    expect(chips).to_have_text([" Once", " there", " was"])
    person.page.reload()
    expect(chips).to_have_text([" Once", " there", " was"])
    expect(begun).not_to_be_checked()
    person.choose_model("tiny")
    expect(begun).to_be_hidden()
