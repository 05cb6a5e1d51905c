"""A conversation in the page of a chat model."""

import re

import pytest
from playwright.sync_api import expect

import explorer
from explorer.tracing.model_library import ModelLibrary
from explorer.web.page import Page
from tests.chat_model import START, write_chat_model

MESSAGES = [
    {"role": "system", "content": "You are a fox."},
    {"role": "user", "content": "Where is the moon?"},
    {"role": "assistant", "content": "In the lake."},
    {"role": "user", "content": "<b>Why</b>?"},
]


@pytest.fixture(scope="module")
def chat_model(checkpoints, tmp_path_factory):
    """Folder of a chat model, and the URL of an app that opened it."""
    folder, library = write_chat_model(tmp_path_factory.mktemp("chat") / "fox-chat"), ModelLibrary("cpu")
    blocks = Page(library, library.catalog.open(folder)).launch(prevent_thread_lock=True, quiet=True)
    yield folder, blocks.local_url
    blocks.close(verbose=False)


def test_chat_turns_match_api_and_tokens_show_their_role(open_new_page, chat_model):
    folder, address = chat_model
    person = open_new_page(address).open(text="the fox", max_new_tokens=4, temperature=0)
    form, strip = person.page.locator("#chat form"), person.strip
    person.page.get_by_role("button", name="Chat", exact=True).click()
    expect(person.prompt).to_be_hidden()
    expect(form.get_by_label("user")).to_have_value("the fox")
    for index, message in enumerate(MESSAGES):
        if index > 1:
            form.get_by_role("button", name="Add a turn").click()
        form.locator("textarea").nth(index).fill(message["content"])
    form.locator("textarea").last.press("Enter")

    ids = explorer.load(folder).token_ids(messages=MESSAGES)[0]
    expect(person.chips).to_have_count(len(ids))
    assert person.evaluate("page.state.prompt") == list(ids)
    for role in ("system", "user", "assistant"):
        texts = "".join(message["content"] for message in MESSAGES if message["role"] == role)
        assert "".join(strip.locator(f"[data-role={role}]").all_text_contents()).replace("·", " ") == texts
        expect(strip.locator(f"[data-role={role}]").first).to_have_attribute("title", re.compile(f", {role}, "))
    expect(strip.locator("[data-role=template]").first).to_have_text(START)
    expect(person.page.locator("#strip .roles")).to_have_text("systemuserassistantwritten by the chat template")

    person.page.locator("#generate").click()
    expect(form.locator(".reply")).to_be_visible()
    person.wait_until_idle()
    form.get_by_role("button", name="Add a turn").click()
    expect(form.locator("textarea")).to_have_count(6)
    generated = person.page.locator("#story .generated").text_content()
    assert form.locator("textarea").nth(4).input_value() == re.sub(r"(\\x[0-9a-f]{2})+", "\ufffd", generated)

    person.page.reload()
    expect(form.locator("textarea")).to_have_count(4)
    expect(form.locator("textarea").nth(3)).to_have_value(MESSAGES[3]["content"])
    person.page.get_by_role("button", name="Text", exact=True).click()
    person.run("the owl")
    expect(strip.locator("[data-role]")).to_have_count(0)
    person.page.go_back()
    expect(form.locator("textarea").nth(1)).to_have_value(MESSAGES[1]["content"])


def test_other_models_have_no_chat_switch(person):
    expect(person.page.locator("#chat-place")).to_be_hidden()
    expect(person.page.locator("#strip .roles")).to_be_hidden()
