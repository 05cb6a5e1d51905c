"""Text of every kind is shown exactly as typed and never executed."""

import re

import pytest
from playwright.sync_api import expect

from model.config import window_start
from model.tokenizer import END_OF_TEXT

WHOLE_CHARACTERS = (
    "<img src=x onerror=alert(1)>",
    "</span><script>alert(1)</script>",
    "${7*7} ${value}",
    "{{7*7}} {{{value}}} {{#if value}}",
    f"a {END_OF_TEXT} b",
    "<b>x</b> &lt; &amp; %{x} $x^2$",
    "  two  three   \t\n\n end ",
    "a\x00b\x01\x07\x1b[31m\x7fz",
    "# x *y* `z` [a](javascript:alert(1))",
)
PARTS_OF_CHARACTERS = (
    "A 👨‍👩‍👧‍👦 and 🏳️‍🌈",
    "Z̴̙͎a̷̟͠l̵͖͋g̸͉̈́o é ế",
    "שלום עולם, hello",
    "مرحبا بالعالم",
    "abc\u202edef\u202c\u2066ghi\u2069\u200b\ufeff",
    "a\u2028b\u2029c\x85d\xa0e",
    "𝒳\U0010ffff\ufffe",
)
TICKS = "plot => [...plot.querySelectorAll('.ytick text')].map(tick => tick.textContent)"
VISIBLE_CHARS = {" ": "·", "\n": "↵", "\t": "→", "\x7f": "␡"} | {
    chr(c): chr(0x2400 + c) for c in range(32) if c not in (9, 10)
}


HTML_ELEMENTS = "img, script, iframe, b, a"


@pytest.mark.exhaustive
def test_text_is_shown_as_typed(person):
    for text in (*WHOLE_CHARACTERS, *PARTS_OF_CHARACTERS):
        elements = person.page.locator(HTML_ELEMENTS).count()
        person.run(text)
        assert person.prompt.input_value() == text
        assert person.story.text_content() == text
        tokens = person.chips.all_text_contents()
        assert END_OF_TEXT not in tokens
        if text in WHOLE_CHARACTERS:
            assert "".join(tokens) == text
            expect(person.pattern).to_have_attribute("aria-label", re.compile(f"{len(tokens)} queries"))
            ticks = "".join(person.pattern.evaluate(TICKS)).replace("\u2068", "").replace("\u2069", "")
            assert ticks == "".join(VISIBLE_CHARS.get(c, c) for c in text)
        assert person.page.locator(HTML_ELEMENTS).count() == elements, text


@pytest.mark.exhaustive
def test_carriage_return_and_lone_surrogate_in_url(open_new_page):
    person = open_new_page().open(text="a\r\nb")
    assert person.strip.text_content() == "a\r\nb"
    person.page.goto(f"{person.address}?text=a%ED%A0%80b")
    expect(person.chips.first).to_have_text("a")
    person.run("The fox")


@pytest.mark.exhaustive
def test_lone_surrogate_is_replaced(person):
    person.prompt.evaluate("box => { box.value = 'a\\ud800b'; box.dispatchEvent(new Event('input')); }")
    with person.wait_for_redraw(person.strip):
        person.page.get_by_role("button", name="Run").click()
    assert person.story.text_content() == "a\ufffdb"


@pytest.mark.exhaustive
def test_hundred_kilobytes_are_truncated_with_warning(person, tiny_tokenizer):
    text = "the moon " * 11_500
    ids = tiny_tokenizer.encode(text)
    person.run(text)
    expect(person.warning).to_contain_text(f"{len(ids):,} tokens")
    start = window_start(len(ids), 64)
    expect(person.strip.locator(".earlier")).to_contain_text(f"{start:,} earlier tokens")
    assert "".join(person.chips.all_text_contents()) == tiny_tokenizer.decode(ids[start:])
    person.run("The fox")
    expect(person.strip).to_have_text("The fox")
