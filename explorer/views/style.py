"""How things look: colours, the plotly template of each theme, and axes of tokens."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from explorer.explain.notation import visible
from explorer.views import graph_objects as go

# One colour a component (Okabe & Ito's palette, told apart by colour-blind eyes), and one for what is selected.
ATTENTION, FEED_FORWARD, EMBEDDING, NORM, RESIDUAL = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#888888"
SELECTED = "#D81B60"

SANS_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO_FONTS = ("ui-monospace", "SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")
SANS, MONO = ", ".join(SANS_FONTS), ", ".join(MONO_FONTS)

OF_TOKENS = "of_tokens"  # of an axis, until `figure` takes it out: whether it counts tokens


@dataclass(frozen=True)
class Theme:
    """Colours of the page and of every figure on it; scales begin (or, signed, have their middle) at the background."""

    background: str
    surface: str  # of boxes and of what is pointed at
    raised: str  # of buttons
    text: str
    subdued: str  # text that may be passed over, legible all the same
    faint: str
    accent: str
    selected_text: str  # SELECTED, as letters
    right: str  # of replies, and of marks that hold
    wrong: str
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]


LIGHT = Theme(
    background="#ffffff",
    surface="#f5f7fa",
    raised="#e3e8f0",
    text="#1f2430",
    subdued="#566074",
    faint="#e3e6ec",
    accent="#5450b0",
    selected_text="#c2185b",
    right="#17683a",
    wrong="#8a1c00",
    sequential=("#ffffff", "#c9cdf0", "#8d90d8", "#5450b0", "#241a6b"),
    diverging=("#08519c", "#6aaed6", "#ffffff", "#f5a55f", "#b34700"),
)
DARK = Theme(
    background="#11141b",
    surface="#1c212b",
    raised="#39424f",
    text="#e4e7ee",
    subdued="#a3adbe",
    faint="#2a2f3a",
    accent="#cfa54f",
    selected_text="#ff7aa8",
    right="#7fd6a0",
    wrong="#ffc9ab",
    sequential=("#11141b", "#4a3d2a", "#8a6d35", "#cfa54f", "#ffe9a8"),
    diverging=("#7cc4ff", "#2f6ea3", "#11141b", "#a85a1e", "#ffb870"),
)


def css_colours() -> str:
    """The colours that the page's style sheets name, in each theme."""

    def rule(selector: str, theme: Theme) -> str:
        return (
            f"{selector} {{ --accent: {theme.accent}; --selected: {SELECTED}; "
            f"--selected-text: {theme.selected_text}; --right: {theme.right}; --wrong: {theme.wrong}; "
            f"--attention: {ATTENTION}; --feed-forward: {FEED_FORWARD}; "
            f"--embedding: {EMBEDDING}; --norm: {NORM}; --residual: {RESIDUAL}; }}\n"
        )

    return rule(":root", LIGHT) + rule(".dark", DARK)


@cache
def template(theme: Theme) -> dict[str, Any]:
    """The theme as a plotly template; heatmaps of values from 0 up take its sequential scale, signed ones the other."""

    def scale(colors: Sequence[str]) -> list[list]:
        return [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]

    axis = {
        "gridcolor": theme.faint,
        "linecolor": theme.faint,
        "zerolinecolor": theme.faint,
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 12}},
        "tickfont": {"size": 11},
    }
    return {
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": SANS, "size": 13, "color": theme.text},
            "title": {"font": {"size": 14}, "x": 0, "xref": "paper", "xanchor": "left"},
            "colorway": [theme.accent],  # of bars and lines that stand for no component
            "colorscale": {
                "sequential": scale(theme.sequential),
                "sequentialminus": scale(theme.diverging[:3]),
                "diverging": scale(theme.diverging),
            },
            "hoverlabel": {"font": {"family": MONO, "size": 12}, "align": "left"},
            "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "xanchor": "right", "x": 1.0},
            "xaxis": axis,
            "yaxis": axis | {"ticklabeloverflow": "allow"},  # they have room; plotly need not measure each to know
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.faint, "activecolor": theme.text},
            "dragmode": False,
        },
        "data": {"heatmap": [{"colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"size": 11}}}]},
    }


def figure(traces: go.Trace | Sequence[go.Trace], alt: str, **layout) -> go.Figure:
    """A figure in the house style. `alt` says in a sentence what it shows, for those who cannot see it.

    Which of its axes count tokens stands in its `meta`, as Plotly's axes hold nothing of ours.
    """
    axes = {name: dict(layout[name]) for name in ("xaxis", "yaxis") if name in layout}
    of_tokens = [name[0] for name, axis in axes.items() if axis.pop(OF_TOKENS, False)]
    return go.Figure(traces, {"meta": {"alt": alt, "of_tokens": of_tokens}, **layout, **axes}, template(LIGHT))


def shortened(token: str, longest: int = 14) -> str:
    """A token as plain text: marks for what cannot be seen, cut to `longest` characters. Isolating the direction keeps
    right-to-left letters from turning the text around them."""
    shown = visible(token)
    if len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return f"\u2068{shown}\u2069"


@lru_cache(1 << 14)  # an answer asks for hundreds, most of them again and again
def label(token: str, longest: int = 14) -> str:
    """The same as plotly text, of which nothing is read as markup: plotly reads a few HTML tags and entities."""
    return html.escape(shortened(token, longest), quote=False)


def positions(tokens: Sequence[str]) -> list[str]:
    """The places on an axis of tokens: their positions and texts, all different even where tokens repeat."""
    return [f"{i} {label(token)}" for i, token in enumerate(tokens)]


def token_axis(tokens: Sequence[str], title: str, most: int = 48, shown: range | None = None) -> dict:
    """Settings of an axis whose values are `positions(tokens)`.

    Of the positions `shown`, all if None, at most `most` are written.
    """
    places = positions(tokens)
    shown = shown or range(len(tokens))
    written = shown[:: -(-len(shown) // most)]
    return {
        OF_TOKENS: True,
        "type": "category",
        "categoryorder": "array",
        "categoryarray": places,
        "tickvals": [places[i] for i in written],
        "ticktext": [label(tokens[i]) for i in written],
        "tickfont": {"family": MONO, "size": 11},
        "title": {"text": title},
        "showgrid": False,
    }


def numbered_axis(tokens: Sequence[str], title: str, shown: range) -> dict:
    """Settings of an axis whose values are the positions `shown`, as numbers.

    A heatmap of some tokens with texts in its cells needs it: along categories plotly moves the values of cells to
    theirs, and leaves the texts, of cells and under the pointer, where they stand among all categories.
    """
    return {
        OF_TOKENS: True,
        "tickvals": list(shown),
        "ticktext": [label(tokens[i]) for i in shown],
        "tickfont": {"family": MONO, "size": 11},
        "tickangle": -60,
        "title": {"text": title},
        "showgrid": False,
    }


def around(position: int, count: int, total: int) -> range:
    """The `count` places of `total` around a position, which is in their middle as far as can be; 0 stands for all."""
    count = min(count or total, total)
    first = max(0, min(position - count // 2, total - count))
    return range(first, first + count)
