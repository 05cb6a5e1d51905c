"""Gradio's configuration of the page in the user's language."""

from explorer.translations import use_locale


def texts(config: dict) -> list[str]:
    values = (c["props"].get(name) for c in config["components"] for name in ("label", "info", "placeholder", "value"))
    return [text for text in values if isinstance(text, str) and any(letter.isalpha() for letter in text)]


def test_words_are_the_visitors_and_all_else_is_the_same(page):
    english = page.blocks.config
    with use_locale("zh-CN"):
        chinese = page.blocks.config
    assert (english["language"], chinese["language"]) == ("en", "zh-CN")
    assert [c["id"] for c in english["components"]] == [c["id"] for c in chinese["components"]]
    assert [c["type"] for c in english["components"]] == [c["type"] for c in chinese["components"]]
    assert english["dependencies"] == chinese["dependencies"]
    for english_component, chinese_component in zip(english["components"], chinese["components"], strict=True):
        assert english_component["props"].get("elem_id") == chinese_component["props"].get("elem_id")
    assert "Generate" in texts(english) and "Generate" not in texts(chinese) and "生成" in texts(chinese)
    buttons = [c["props"]["value"] for c in chinese["components"] if c["type"] == "button"]
    assert len(buttons) > 10 and not [text for text in buttons if text.isascii()]
