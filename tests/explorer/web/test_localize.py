"""Texts of Gradio's components in the user's language."""

import re

import gradio as gr
import pytest

from explorer.web.layout import PageLayout
from explorer.web.page import TEXT_PROPS, ComponentTextsByLanguage

SAME = {"top-k", "top-p", "min-p"}  # the same in every language


@pytest.fixture
def components(page) -> list[gr.blocks.Block]:
    """The components that are updated."""
    (event,) = [fn for fn in page.blocks.fns.values() if fn.fn and page.layout.prompt in fn.outputs]
    return event.outputs


@pytest.fixture
def localization(page) -> ComponentTextsByLanguage:
    return ComponentTextsByLanguage(lambda: PageLayout(page.library.catalog))


@pytest.fixture
def chinese(components, localization) -> list[tuple[str, str, str, str]]:
    """Id, property, English and Chinese of every text; the Chinese is "" if none is sent."""
    updates = localization.updates({"lang": "zh-CN"})
    return [
        (component.elem_id or "", name, getattr(component, name), update.get(name, ""))
        for component, update in zip(components, updates, strict=True)
        for name in TEXT_PROPS
        if isinstance(getattr(component, name, None), str) and getattr(component, name)
    ]


def test_every_text_is_translated(chinese):
    words = [(re.sub("<[^>]*>", "", english), text) for _id, _name, english, text in chinese]
    untranslated = {english for english, text in words if not re.search("[\u4e00-\u9fff]", text)}
    assert {text for text in untranslated if any(map(str.isalpha, text))} == SAME
    assert ("generate", "value", "Generate", "生成") in chinese


def test_markup_differs_in_texts_only(chinese):
    fixed = r'<\w+|\b(?:id|class|data-widget|data-module)="[^"]*"'
    markup = [(english, text) for _id, name, english, text in chinese if name == "value" and "<" in english and text]
    assert len(markup) > 5
    for english, text in markup:
        assert re.findall(fixed, text) == re.findall(fixed, english)


def test_values_set_by_user_are_unchanged(page, components, localization):
    updates = localization.updates({"lang": "zh-CN"})
    with_text = {id(component): update for component, update in zip(components, updates, strict=True)}
    for component in (page.layout.prompt, page.layout.stop_strings, page.layout.temperature, page.layout.seed):
        assert "value" not in with_text[id(component)]
    assert page.layout.state not in components and page.layout.update not in components


@pytest.mark.parametrize("language", ["en", "", "xx", "en-GB"])
def test_english_page_is_unchanged(localization, language):
    assert all(update == gr.update() for update in localization.updates({"lang": language}))
