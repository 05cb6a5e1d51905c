import math
import re
import unicodedata
from pathlib import Path

import numpy as np
import plotly.graph_objects
import pytest

from explorer.explain.notation import escape_token, format_contribution, format_number, quote_token
from explorer.views import graph_objects as go
from explorer.views.style import (
    DARK,
    KEY,
    LIGHT,
    QUERY,
    SELECTED,
    VALUE,
    css_colours,
    figure,
    label,
    plotly_template,
    position_labels,
    token_axis,
    window_around,
)
from tests.subtest_loops import subtest_each

ROOT = Path(__file__).parents[3]
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
FSI, PDI = "\u2068", "\u2069"  # Unicode isolates: a label's direction does not affect its surroundings


def luminance(color: str) -> float:
    """Return the relative luminance, 0 to 1 (WCAG 2.2)."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(color: str, other_color: str) -> float:
    """Return the contrast ratio, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((luminance(color), luminance(other_color)))
    return (light + 0.05) / (dark + 0.05)


@THEMES
def test_right_is_greenish_and_wrong_is_reddish(theme):
    for colour, is_greenish in ((theme.right, True), (theme.wrong, False)):
        red, green = (int(colour[i : i + 2], 16) for i in (1, 3))
        assert (green > red) is is_greenish
        assert contrast(colour, theme.background) >= 4.5


@subtest_each(
    "token, shown",
    [
        ("fox", "fox"),
        ("", "∅"),
        (" a fox", "·a·fox"),
        ("\n\t", "↵→"),
        ("\x00\x1b\x7f", "␀␛␡"),
        ("\u00a0\u2028\u3000", "⟨00A0⟩⟨2028⟩⟨3000⟩"),
        ("\u202e\u2068\u2069\u200b\ufeff", "⟨202E⟩⟨2068⟩⟨2069⟩⟨200B⟩⟨FEFF⟩"),
        ("\x85\ud800", "⟨0085⟩⟨D800⟩"),
        ("\ue000", "⟨E000⟩"),
        ("é🌙שלום", "é🌙שלום"),
        ("\\xc3", "\\xc3"),
    ],
)
def test_invisible_characters_are_escaped(token, shown):
    assert escape_token(token) == shown
    assert quote_token(token) == f"“{shown}”"


def test_no_character_is_invisible():
    """No escaped character hides, reorders or breaks the text around it."""
    for code in (*range(0x11000), *range(0xE0000, 0xE0200), 0x10FFFF):
        escaped = escape_token(chr(code))
        assert escaped
        assert not {unicodedata.category(c) for c in escaped} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}, hex(code)


@subtest_each(
    "token, written",
    [
        ("fox", "fox"),
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("&lt;", "&amp;lt;"),
        ("<br>", "&lt;br&gt;"),
        ("'\"", "'\""),
        ("a" * 14, "a" * 14),
        ("a" * 15, "a" * 13 + "…"),
        ("<" * 20, "&lt;" * 13 + "…"),  # cut before it is escaped: no half of an entity
        (f"{PDI}\u202e", "⟨2069⟩⟨202E⟩"),
        ("", "∅"),
    ],
)
def test_label_escapes_markup(token, written):
    assert label(token) == FSI + written + PDI


def test_label_has_a_maximum_length():
    assert label(" everything", max_chars=5) == f"{FSI}·eve…{PDI}"


def test_position_labels_are_unique():
    tick_texts = position_labels(["the", "the", "a" * 30, "a" * 40])
    assert len(set(tick_texts)) == 4
    assert tick_texts[1] == f"1 {label('the')}"


@subtest_each("tokens, step", [(1, 1), (48, 1), (49, 2), (96, 2), (97, 3), (256, 6)])
def test_token_axis_has_at_most_48_labels(tokens, step):
    axis = token_axis([f"t{i}" for i in range(tokens)], "key")
    assert len(axis["categoryarray"]) == tokens
    assert list(axis["tickvals"]) == axis["categoryarray"][::step]
    assert list(axis["ticktext"]) == [label(f"t{i}") for i in range(0, tokens, step)]
    assert len(axis["tickvals"]) <= 48


def test_token_axis_is_valid_for_plotly():
    token_figure = figure([], alt="", xaxis=token_axis(["a", "1", "<b>"], "key", max_labels=2), yaxis={})
    layout = token_figure.layout
    assert layout.meta["of_tokens"] == ["x"]
    assert layout.xaxis.type == "category"
    assert layout.xaxis.title.text == "key"


@subtest_each(
    "value, text",
    [
        (0, "0"),
        (-0.0, "0"),
        (1, "1.00"),
        (-1.234, "−1.23"),
        (9.999, "10.0"),
        (0.9996, "1.00"),
        (0.09999, "0.100"),
        (99.96, "100"),
        (999.6, "1000"),
        (1234.5, "1234"),
        (9999.6, "1.00e+04"),
        (12345, "1.23e+04"),
        (0.001, "0.00100"),
        (0.00012345, "0.000123"),
        (0.000012345, "1.23e−05"),
        (-1e-30, "−1.00e−30"),
        (math.inf, "inf"),
        (-math.inf, "−inf"),
        (math.nan, "nan"),
        (np.float32(0.5), "0.500"),
        (np.int64(7), "7.00"),
    ],
)
def test_numbers_have_three_digits_and_a_true_minus(value, text):
    assert format_number(value) == text


@subtest_each(
    "value, text",
    [(0.5, "+0.50"), (-2.5, "−2.50"), (0.0, "0.00"), (-0.001, "0.00"), (0.004, "0.00"), (-0.006, "−0.01")],
)
def test_contributions_have_a_sign_unless_zero(value, text):
    assert format_contribution(value) == text


@THEMES
def test_colour_scales_contain_background(theme):
    assert theme.sequential[0] == theme.background
    assert theme.diverging[len(theme.diverging) // 2] == theme.background


@THEMES
def test_contrast_grows_along_colour_scales(theme):
    steps = [contrast(color, theme.background) for color in theme.sequential]
    assert steps == sorted(steps)
    signed = [contrast(color, theme.background) for color in theme.diverging]
    assert signed[:3] == sorted(signed[:3], reverse=True)
    assert signed[2:] == sorted(signed[2:])


@THEMES
def test_positive_contributions_are_blue(theme):
    """The whole model's figure uses the page's colours for added and subtracted values."""
    for color in (theme.adds, theme.diverging[-1]):
        assert int(color[5:], 16) > int(color[1:3], 16), color
    for color in (theme.takes, theme.diverging[0]):
        assert int(color[1:3], 16) > int(color[5:], 16), color
    assert all(f"{name}: {getattr(theme, name)};" in css_colours() for name in ("adds", "takes"))
    styles = (path.read_text("utf-8") for path in (ROOT / "explorer/web").rglob("*.css"))
    assert not any(re.search(r"--(adds|takes):", style) for style in styles)


@THEMES
def test_text_and_accents_have_enough_contrast(theme):
    assert contrast(theme.text, theme.background) >= 7
    assert contrast(theme.accent, theme.background) >= 3
    assert contrast(SELECTED, theme.background) >= 3


@THEMES
def test_template_uses_theme_colours(theme):
    layout = plotly.graph_objects.layout.Template(plotly_template(theme)).layout
    assert layout.font.color == theme.text
    assert layout.xaxis.gridcolor == layout.yaxis.gridcolor == theme.faint
    scales = layout.colorscale
    assert [color for _, color in scales.sequential] == list(theme.sequential)
    assert [color for _, color in scales.diverging] == list(theme.diverging)
    for scale in (scales.sequential, scales.diverging, scales.sequentialminus):
        assert (scale[0][0], scale[-1][0]) == (0, 1)


@THEMES
def test_negative_scale_ends_at_background(theme):
    scale = plotly_template(theme)["layout"]["colorscale"]["sequentialminus"]
    assert [color for _, color in scale] == list(theme.diverging[:3])


def test_figure_has_alt_text_and_template(plotly_template_enabled):
    fig = figure(go.Bar(y=[1]), alt="One bar.", bargap=0.5)
    assert fig.layout.meta["alt"] == "One bar."
    assert fig.layout.bargap == 0.5
    assert fig.to_dict()["layout"]["template"]["layout"]["font"]["color"] == LIGHT.text
    assert LIGHT.text in fig.to_html(include_plotlyjs=False)


@subtest_each(
    "position, count, total, expected",
    [
        (5, 0, 10, range(10)),
        (5, 99, 10, range(10)),
        (5, 4, 10, range(3, 7)),
        (0, 4, 10, range(4)),
        (9, 4, 10, range(6, 10)),
        (0, 1, 1, range(1)),
    ],
)
def test_window_around_a_position(position, count, total, expected):
    assert window_around(position, count, total) == expected


@THEMES
def test_q_k_v_tints_are_visible_in_both_themes(theme):
    assert len({QUERY, KEY, VALUE}) == 3
    for name, tint in (("query", QUERY), ("key", KEY), ("value", VALUE)):
        assert f"--{name}: {tint};" in css_colours()
        assert contrast(tint, theme.background) >= 3
    styles = "".join(path.read_text("utf-8") for path in (ROOT / "explorer" / "web").rglob("*.css"))
    assert all(f"var(--{name})" in styles for name in ("query", "key", "value"))
