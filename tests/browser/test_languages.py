"""Page in the user's language: static texts, Python's answers and the scripts' messages."""

import re

import pytest
from playwright.sync_api import expect

from explorer.translations import translate, use_locale
from explorer.views import FULL, STORY_VIEWS

from .conftest import ARGUMENTS, executable

# All visible and read-aloud texts, without tokens and formulas (in monospace), generated text, and the footer, which is
# Gradio's and follows the browser's language.
READ = """() => {
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
    r"TransformerLM Explorer|English|llama-fables|LayerNorm|RMSNorm|RMS|RoPE|SwiGLU|SiLU|ReLU|PCA|logit|"
    r"softmax|top-[kp]|min-p|log₂|cpu|Ctrl K|\b\w+_\w+(\.\w+)*|[\u2068“][^\u2069”]*[\u2069”]"
)


def english(read: list[str]) -> list[str]:
    """Return the texts with two English words in a row, or with one where there is nothing else."""
    plain = [NAMES.sub("", text) for text in read]
    return [text for text in plain if re.search(ENGLISH_AMONG if CHINESE.search(text) else ENGLISH_ALONE, text)]


ENGLISH_ALONE, ENGLISH_AMONG = "[A-Za-z]{3}", "[A-Za-z]{2,} [A-Za-z]{2,}"


@pytest.mark.parametrize(
    "views", [pytest.param(FULL, marks=pytest.mark.exhaustive), STORY_VIEWS], ids=["full", "simple"]
)
def test_every_tab_is_read_in_chinese(newcomer, views):
    person = newcomer().open(view=views[0].name, lang="zh-CN")
    expect(person.page.locator("html")).to_have_attribute("lang", "zh-CN")
    for view in views:
        with use_locale("zh-CN"):
            person.visit(view.name, translate(view.title))
        read = person.page.evaluate(READ)
        assert len([text for text in read if CHINESE.search(text)]) > 20, view.name
        assert english(read) == [], view.name


@pytest.mark.exhaustive
def test_nothing_is_chinese_on_an_english_page_in_a_chinese_browser(newcomer, playwright):
    browser = playwright.chromium.launch(executable_path=executable(playwright), args=ARGUMENTS)
    person = newcomer(profile=browser.new_context(locale="zh-CN")).open(view="attention", lang="en").at_rest()
    read = person.page.evaluate(READ)
    browser.close()
    assert len(read) > 20 and [text for text in read if CHINESE.search(text)] == []


def test_the_browsers_language_is_the_pages(newcomer, playwright):
    browser = playwright.chromium.launch(executable_path=executable(playwright), args=ARGUMENTS)
    person = newcomer(profile=browser.new_context(locale="zh-CN")).open()
    expect(person.page.get_by_role("tab", name="注意力")).to_be_visible()
    person.open_menu("#page-menu").get_by_label("语言").select_option("en")
    expect(person.page.get_by_role("tab", name="Attention", exact=True)).to_be_visible()
    assert person.url["lang"] == "en" and person.url["view"] == "attention"
    browser.close()


def test_a_chosen_language_is_remembered_and_no_copied_link_forces_it(newcomer):
    person = newcomer().open()
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.open_menu("#page-menu").get_by_label("language").select_option("zh-CN")
    expect(person.page.locator("html")).to_have_attribute("lang", "zh-CN")
    person.at_rest().copy("复制链接")
    person.wait_until("page.state.view", None)  # the page came anew
    person.expect_selected(view="attention")
    assert "lang=" in person.page.url and "lang=" not in person.page.evaluate("navigator.clipboard.readText()")
    person.open()
    expect(person.page.locator("html")).to_have_attribute("lang", "zh-CN")
    person.open(lang="en")
    expect(person.page.locator("html")).to_have_attribute("lang", "en")


@pytest.mark.exhaustive
def test_warnings_and_what_scripts_say_are_in_chinese(newcomer):
    person = newcomer().open(lang="zh-CN")
    person.prompt.fill("")
    person.prompt.press("Enter")
    expect(person.warning.last).to_contain_text("提示词")
    expect(person.warning.get_by_role("button", name="关闭", exact=True)).to_be_visible()
    assert english(person.page.evaluate(READ)) == []
    person.choose_model("wrong-config")
    expect(person.warning.last).to_contain_text("按其配置应为 (300, 48)")
    person.run("The cat ")
    expect(person.page.get_by_role("button", name=re.compile("提示词："))).to_be_visible()
