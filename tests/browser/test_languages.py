"""Page in the user's language: static texts, Python's answers and the scripts' messages."""

import re

import pytest
from playwright.sync_api import expect

from explorer.translations import translate, use_locale
from explorer.views import FULL, STORY_VIEWS

from .conftest import BROWSER_ARGS, find_executable

# All visible and read-aloud texts, without tokens and formulas (in monospace), generated text, and the footer, which
# is Gradio's and follows the browser's language.
READ_TEXTS = """() => {
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }), found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, box = node.parentElement;
    if (!isSeen(box) || box.closest("script, style, #prompt, #story, #runs .about, option, footer")) continue;
    if (getComputedStyle(box).fontFamily.includes("mono")) continue;
    found.push(node.textContent.trim());
  }
  for (const name of ["aria-label", "aria-description", "aria-valuetext", "title", "data-title", "placeholder", "alt"])
    for (const element of document.querySelectorAll(`[${name}]`))
      if (isSeen(element) && !element.closest("footer, #runs .about")) found.push(element.getAttribute(name));
  return found.filter(Boolean);
}"""
CHINESE = re.compile("[\u4e00-\u9fff]")
NAMES = re.compile(
    r"TransformerLM Explorer|English|llama-fables|\btiny\b|LayerNorm|RMSNorm|RMS|RoPE|SwiGLU|SiLU|ReLU|PCA|logit|"
    r"softmax|top-[kp]|min-p|log₂|cpu|Ctrl K|\b\w+_\w+(\.\w+)*|[\u2068“][^\u2069”]*[\u2069”]"
)


def find_english_texts(read: list[str]) -> list[str]:
    """Return the texts with two English words in a row, or with one if there is no Chinese."""
    plain = [NAMES.sub("", text) for text in read]
    return [text for text in plain if re.search(ENGLISH_AMONG if CHINESE.search(text) else ENGLISH_ALONE, text)]


ENGLISH_ALONE, ENGLISH_AMONG = "[A-Za-z]{3}", "[A-Za-z]{2,} [A-Za-z]{2,}"


@pytest.mark.parametrize(
    "views", [pytest.param(FULL, marks=pytest.mark.exhaustive), STORY_VIEWS], ids=["full", "simple"]
)
def test_every_tab_is_in_chinese(open_new_page, views):
    person = open_new_page().open(view=views[0].name, lang="zh-CN")
    expect(person.page.locator("html")).to_have_attribute("lang", "zh-CN")
    for view in views:
        with use_locale("zh-CN"):
            person.visit(view.name, translate(view.title))
        read = person.page.evaluate(READ_TEXTS)
        assert len([text for text in read if CHINESE.search(text)]) > 20, view.name
        assert find_english_texts(read) == [], view.name


@pytest.mark.exhaustive
def test_english_page_in_chinese_browser_has_no_chinese(open_new_page, playwright):
    browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=BROWSER_ARGS)
    person = (
        open_new_page(profile=browser.new_context(locale="zh-CN")).open(view="attention", lang="en").wait_until_idle()
    )
    read = person.page.evaluate(READ_TEXTS)
    browser.close()
    assert len(read) > 20 and [text for text in read if CHINESE.search(text)] == []


def test_page_follows_browser_language(open_new_page, playwright):
    browser = playwright.chromium.launch(executable_path=find_executable(playwright), args=BROWSER_ARGS)
    person = open_new_page(profile=browser.new_context(locale="zh-CN")).open()
    expect(person.page.get_by_role("tab", name="注意力")).to_be_visible()
    person.open_menu("#page-menu").get_by_label("语言").select_option("en")
    expect(person.page.get_by_role("tab", name="Attention", exact=True)).to_be_visible()
    assert person.url["lang"] == "en" and person.url["view"] == "attention"
    browser.close()


def test_chosen_language_is_remembered_but_not_in_copied_links(open_new_page):
    person = open_new_page().open()
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    text = person.prompt.input_value()
    person.run("The owl asked")
    person.open_menu("#page-menu").get_by_label("language").select_option("zh-CN")
    expect(person.page.locator("html")).to_have_attribute("lang", "zh-CN")
    person.wait_until_idle().page.locator("#undo").click()  # the earlier text can be brought back as before
    expect(person.prompt).to_have_value(text)
    assert person.wait_until_idle().state["lang"] == "zh-CN"
    person.copy("复制链接")
    person.wait_until("page.state.view", None)  # the page was reloaded
    person.expect_selected(view="attention")
    assert "lang=" in person.page.url and "lang=" not in person.page.evaluate("navigator.clipboard.readText()")
    person.open()
    expect(person.page.locator("html")).to_have_attribute("lang", "zh-CN")
    person.open(lang="en")
    expect(person.page.locator("html")).to_have_attribute("lang", "en")


@pytest.mark.exhaustive
def test_warnings_and_script_messages_are_in_chinese(open_new_page):
    person = open_new_page().open(lang="zh-CN")
    person.prompt.fill("")
    person.prompt.press("Enter")
    expect(person.warning.last).to_contain_text("提示词")
    expect(person.warning.get_by_role("button", name="关闭", exact=True)).to_be_visible()
    assert find_english_texts(person.page.evaluate(READ_TEXTS)) == []
    person.choose_model("wrong-config")
    expect(person.warning.last).to_contain_text("按其配置应为 (300, 48)")
    person.run("The cat ")
    expect(person.page.get_by_role("button", name=re.compile("提示词："))).to_be_visible()
