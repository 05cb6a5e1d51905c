"""Colours, the Plotly template of each theme, and axes of tokens, positions and stages."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from explorer.analysis.residual import ResidualStage
from explorer.explain.notation import END_OF_TEXT_TOKENS, escape_token
from explorer.translations import _, current_locale
from explorer.views import graph_objects as go

# One colour a component, and one for what is selected. Most are Okabe & Ito's, told apart by colour-blind eyes; the
# feed-forward's is neither that of what adds to an answer nor that of what takes, and 3:1 on both themes.
ATTENTION, FEED_FORWARD, EMBEDDING, NORM, RESIDUAL = "#0072B2", "#B052C0", "#009E73", "#CC79A7", "#888888"
ORANGE = "#E69F00"  # of one of several lines or bars that stand for no component
QUERY, KEY, VALUE = (
    "#2F7FD1",
    "#C2661A",
    "#2E9E6B",
)  # q, k and v, wherever they are drawn or written; 3:1 on both themes
SELECTED = "#D81B60"

# The first of each comes with Gradio, so that the page looks and fits the same everywhere
SANS_FONTS = ("IBM Plex Sans", "system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO_FONTS = ("IBM Plex Mono", "ui-monospace", "SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")
SANS, MONO = ", ".join(SANS_FONTS), ", ".join(MONO_FONTS)

TOKEN_AXIS_KEY = "of_tokens"  # of an axis, until `figure` takes it out: whether it counts tokens


@dataclass(frozen=True)
class Theme:
    """Colours of the page and of every figure on it.

    Scales begin at the background colour; diverging scales have it in the middle.
    """

    background: str
    surface: str  # of boxes and of what is pointed at
    text: str
    subdued: str  # text that may be passed over, legible all the same
    faint: str
    accent: str
    selected_text: str  # SELECTED, as letters
    right: str  # of replies, and of marks that hold
    wrong: str
    adds: str  # what adds to a logit or is larger, and what takes
    takes: str
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]


LIGHT = Theme(
    background="#ffffff",
    surface="#f5f7fa",
    text="#1f2430",
    subdued="#566074",
    faint="#e3e6ec",
    accent="#5450b0",
    selected_text="#c2185b",
    right="#17683a",
    wrong="#8a1c00",
    adds="#0072B2",
    takes="#D55E00",
    sequential=("#ffffff", "#c9cdf0", "#8d90d8", "#5450b0", "#241a6b"),
    diverging=("#b34700", "#f5a55f", "#ffffff", "#6aaed6", "#08519c"),
)
DARK = Theme(
    background="#11141b",
    surface="#1c212b",
    text="#e4e7ee",
    subdued="#a3adbe",
    faint="#2a2f3a",
    accent="#cfa54f",
    selected_text="#ff7aa8",
    right="#7fd6a0",
    wrong="#ffc9ab",
    adds="#56B4E9",
    takes="#F08A4B",
    sequential=("#11141b", "#4a3d2a", "#8a6d35", "#cfa54f", "#ffe9a8"),
    diverging=("#ffb870", "#a85a1e", "#11141b", "#2f6ea3", "#7cc4ff"),
)


def css_colours() -> str:
    """Return the CSS variables of the colours in each theme."""

    def rule(selector: str, theme: Theme) -> str:
        return (
            f"{selector} {{ --accent: {theme.accent}; --selected: {SELECTED}; "
            f"--selected-text: {theme.selected_text}; --right: {theme.right}; --wrong: {theme.wrong}; "
            f"--adds: {theme.adds}; --takes: {theme.takes}; "
            f"--attention: {ATTENTION}; --feed-forward: {FEED_FORWARD}; "
            f"--query: {QUERY}; --key: {KEY}; --value: {VALUE}; --orange: {ORANGE}; "
            f"--embedding: {EMBEDDING}; --norm: {NORM}; --residual: {RESIDUAL}; }}\n"
        )

    return rule(":root", LIGHT) + rule(".dark", DARK)


# At the figure’s edge, as a place beside the cells can be that of a former size. The space after its numbers keeps the
# title beside them from touching them.
COLORBAR = {
    "thickness": 10,
    "xref": "container",
    "x": 1,
    "xanchor": "right",
    "xpad": 2,
    "ypad": 0,
    "outlinewidth": 0,
    "tickfont": {"size": 11},
    "ticksuffix": "\u2003",
}


@cache
def plotly_template(theme: Theme) -> dict[str, Any]:
    """Return the theme as a Plotly template: a sequential scale for values ≥ 0, a diverging one for signed values."""

    def scale(colors: Sequence[str]) -> list[list]:
        return [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]

    axis = {
        "gridcolor": theme.faint,
        "linecolor": theme.faint,
        "zerolinecolor": theme.faint,
        "tickcolor": theme.faint,
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
            "bargap": 0.3,
            "barcornerradius": 3,
            "colorscale": {
                "sequential": scale(theme.sequential),
                "sequentialminus": scale(theme.diverging[:3]),
                "diverging": scale(theme.diverging),
            },
            "hoverlabel": {"font": {"family": MONO, "size": 12}, "align": "left"},
            "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "xanchor": "right", "x": 1.0},
            "xaxis": axis | {"autotickangles": [0, -90]},  # level where they fit, and never aslant
            "yaxis": axis | {"ticklabeloverflow": "allow"},  # they have room; plotly need not measure each to know
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": theme.subdued, "activecolor": theme.text},
            "dragmode": False,
        },
        "data": {"heatmap": [{"colorbar": COLORBAR}]},
    }


def figure(traces: go.Trace | Sequence[go.Trace], alt: str, **layout) -> go.Figure:
    """Return a figure in the house style.

    Its `meta` says which of its axes count tokens, as Plotly's axes accept no settings of our own.

    Args:
        alt: what it shows, in a sentence, for screen readers.
    """
    axes = {name: dict(layout[name]) for name in ("xaxis", "yaxis") if name in layout}
    token_letters = [name[0] for name, axis in axes.items() if axis.pop(TOKEN_AXIS_KEY, False)]
    return go.Figure(
        traces, {"meta": {"alt": alt, "of_tokens": token_letters}, **layout, **axes}, plotly_template(LIGHT)
    )


def note_above(text: Any) -> list[dict]:
    """Return the annotations of a figure with a sentence above it, on the left."""
    corner = {"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 6}
    return [{"text": text, "showarrow": False, "align": "left", "font": {"size": 12}, **corner}]


def annotate_empty(fig: go.Figure, text: str) -> go.Figure:
    """Write a text in the middle of an empty figure; return the figure."""
    lines = "<br>".join(textwrap.wrap(text, 34))
    return fig.add_annotation(text=lines, xref="paper", yref="paper", x=0.5, y=0.6, showarrow=False)


def head_map_axes() -> dict[str, dict]:
    """Return the axes of a heatmap with a row for each layer, from the top, and a column for each head."""
    return {
        "xaxis": {"title": {"text": _("head")}, "dtick": 1, "showgrid": False},
        "yaxis": {"title": {"text": _("layer")}, "dtick": 1, "showgrid": False, "autorange": "reversed"},
    }


def row_band(row: float, width: float = 1, **line: Any) -> dict[str, Any]:
    """Return the shape of a band around a row, over the whole width."""
    corners = {"x0": 0, "x1": 1, "xref": "x domain", "y0": row - 0.5, "y1": row + 0.5, "yref": "y"}
    return {"type": "rect", **corners, "line": {"color": SELECTED, "width": width, **line}}


def column_band(column: float, width: float = 1) -> dict[str, Any]:
    """Return the shape of a band around a column, over the whole height."""
    corners = {"x0": column - 0.5, "x1": column + 0.5, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "rect", **corners, "line": {"color": SELECTED, "width": width}}


def row_line(row: float, **line: Any) -> dict[str, Any]:
    """Return the shape of a line at a row, over the whole width."""
    ends = {"x0": 0, "x1": 1, "xref": "x domain", "y0": row, "y1": row, "yref": "y"}
    return {"type": "line", **ends, "line": {"color": RESIDUAL, "width": 1, **line}}


def column_line(column: float, width: float = 1) -> dict[str, Any]:
    """Return the shape of a line at a column, over the whole height."""
    ends = {"x0": column, "x1": column, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "line", **ends, "line": {"color": SELECTED, "width": width}}


def cell_frame(row: int, column: int) -> dict[str, Any]:
    """Return the shape of a frame around a cell."""
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", **corners, "line": {"color": SELECTED, "width": 3}}


def column_frame(column: int, rows: int) -> dict[str, Any]:
    """Return the shape of a frame around a column of a heatmap with so many rows."""
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": -0.5, "y1": rows - 0.5}
    return {"type": "rect", **corners, "line": {"color": SELECTED, "width": 2}}


def shorten_token(token: str, max_chars: int = 14) -> str:
    """Return a token as plain text, at most `max_chars` characters, with visible marks for whitespace and the like.

    Isolating the text direction keeps right-to-left letters from reordering the text around them.
    """
    text = escape_token(token)
    if len(text) > max_chars:
        text = text[: max_chars - 1] + "…"
    return f"\u2068{text}\u2069"


def label(token: str, max_chars: int = 14) -> str:
    """Return a shortened token as Plotly text, escaped because Plotly reads a few HTML tags and entities."""
    return _label(token, max_chars, current_locale() if token in END_OF_TEXT_TOKENS else "")


@lru_cache(1 << 14)  # an answer asks for hundreds, most of them again and again
def _label(token: str, max_chars: int, locale: str) -> str:
    return html.escape(shorten_token(token, max_chars), quote=False)


def position_labels(tokens: Sequence[str]) -> list[str]:
    """Return a unique axis category for each token: its position and its text."""
    return [f"{i} {label(token)}" for i, token in enumerate(tokens)]


def token_axis(tokens: Sequence[str], title: str = "", max_labels: int = 48, visible: range | None = None) -> dict:
    """Return the settings of an axis whose values are `positions(tokens)`.

    At most `max_labels` of the `visible` positions, all if None, have a label.
    """
    labels = position_labels(tokens)
    visible = visible or range(len(tokens))
    labelled = visible[:: -(-len(visible) // max_labels)]
    return {
        TOKEN_AXIS_KEY: True,
        "type": "category",
        "categoryorder": "array",
        "categoryarray": labels,
        "tickvals": [labels[i] for i in labelled],
        "ticktext": [label(tokens[i]) for i in labelled],
        "tickfont": {"family": MONO, "size": 11},
        "title": {"text": title},
        "showgrid": False,
    }


def numbered_axis(tokens: Sequence[str], title: str, visible: Sequence[int]) -> dict:
    """Return the settings of an axis whose values are the `visible` positions, as numbers.

    A heatmap of some tokens with texts in its cells needs it: along categories Plotly moves the values of cells
    to their categories, and leaves the texts, of cells and hover boxes, where they are among all categories.
    """
    return {
        TOKEN_AXIS_KEY: True,
        "tickvals": list(visible),
        "ticktext": [label(tokens[i]) for i in visible],
        "tickfont": {"family": MONO, "size": 11},
        "title": {"text": title},
        "showgrid": False,
    }


def window_around(position: int, count: int, total: int) -> range:
    """Return `count` of `total` positions, as centred on a position as possible; all if `count` is 0."""
    count = min(count or total, total)
    first = max(0, min(position - count // 2, total - count))
    return range(first, first + count)


def click_layers(stages: Sequence[ResidualStage], columns: int) -> np.ndarray:
    """Return the layer that a click on each cell of a heatmap of stages selects, (S, columns)."""
    return np.repeat([[stage.layer] for stage in stages], columns, axis=1)


def stage_axis(stages: Sequence[ResidualStage], max_labels: int = 40) -> dict:
    """Return the settings of an axis of stages, the embedding first, with at most about `max_labels` labels."""
    names = [stage.name for stage in stages]
    return {
        "type": "category",
        "tickvals": names[:: -(-len(names) // max_labels)],
        "title": {"text": _("stage: after layer and sublayer")},
        "showgrid": False,
        "autorange": "reversed",
    }


def named_axis(names: Sequence[str], title: str = "", **settings: Any) -> dict[str, Any]:
    """Return the settings of an axis with a name for each bar or row, from 0 on."""
    ticks = {"tickvals": np.arange(len(names)), "ticktext": names}
    return {"title": {"text": title}, **ticks, "showgrid": False, **settings}


def sublayer_axis(names: Sequence[str]) -> dict[str, Any]:
    """Return the settings of an axis of bars, one for each sublayer, with a legend of their colours."""
    return named_axis(names, _("layer and sublayer<br>(blue: attention adds, purple: feed-forward adds)"))
