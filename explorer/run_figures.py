"""The page's figures of one or two runs by view and panel, and runs as HTML, for Python and notebooks."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from explorer.analysis.next_token import next_token_distribution, surprisal
from explorer.errors import UserError
from explorer.explain.notation import format_number
from explorer.state.selection import OWN_FIELDS, Selection, registered_fields, resolve_tab
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import VIEW_BY_NAME
from explorer.views import graph_objects as go
from explorer.views.selection import complete_selection
from explorer.views.style import figure, shorten_token
from explorer.views.two_run_figures import FigurePlaceholder
from explorer.views.view import PAGE_KINDS, HeadHeatmaps, Panel, View
from explorer.web.browser_api.open_view import OpenView

NUM_NEXT_TOKENS = 5  # that a run's HTML lists


def nearest_names(name: object, names: Collection[str]) -> str:
    """Return the names nearest to a wrong one, or all if none is near, as text."""
    return ", ".join(difflib.get_close_matches(str(name), names, n=3, cutoff=0.4) or sorted(names))


def figure_names(run: Trace | Comparison) -> dict[str, tuple[str, ...]]:
    """Return the names of the figures that can be drawn of a run: view -> its panels, the default one first."""
    names = {}
    for view in VIEW_BY_NAME.values():
        open_view = make_open_view(run, view, {})
        panels = [panel for panel in view.panels if panel.kind not in PAGE_KINDS and open_view.has(panel)]
        if panels:
            names[view.name] = tuple(panel.name for panel in sorted(panels, key=lambda panel: panel.kind != "figure"))
    return names


def draw_figure(run: Trace | Comparison, view: str, panel: str | None = None, **selection: Any) -> go.Figure:
    """Draw a figure of the page.

    Args:
        run: the run; or two, each figure of which shows A − B, or as `shown` says "a" or "b".
        view: name of a tab, as in the page's URL.
        panel: name of one of its figures; None: the first that Plotly draws.
        selection: fields of the page's URL, such as layer and head; the others are what the page would choose: the
            last token, the head with the largest effect on the next token's logit and that layer's strongest neuron.

    Raises:
        UserError: there is no such view, panel or field, or the run has no such figure.
    """
    view = find_view(view)
    open_view = make_open_view(run, view, selection)
    content = open_view.draw(find_panel(open_view, panel))
    if isinstance(content, FigurePlaceholder):
        raise UserError(content.message)
    return draw_head_grid(content) if isinstance(content, HeadHeatmaps) else content


def find_view(name: str) -> View:
    """Return the view of that name or former name; UserError, with the nearest names, if there is none."""
    if not (current_name := resolve_tab(name)):
        raise UserError(f"there is no view {name!r}; the nearest are {nearest_names(name, VIEW_BY_NAME)}")
    return VIEW_BY_NAME[current_name]


def find_panel(open_view: OpenView, name: str | None) -> Panel:
    """Return a panel of an open view by its name, or its first that Plotly draws.

    Raises:
        UserError: there is none of that name, or none for these runs.
    """
    view = open_view.view
    panels = {panel.name: panel for panel in view.panels}
    if name is not None and name not in panels:
        raise UserError(f"{view.name!r} has no panel {name!r}; the nearest are {nearest_names(name, panels)}")
    available = [panel for panel in view.panels if open_view.has(panel)]
    selected = available if name is None else [panel for panel in available if panel.name == name]
    drawable = [panel for panel in selected if panel.kind not in PAGE_KINDS]
    if selected and not drawable:
        raise UserError(f"the page's scripts draw {view.name!r}: open it with model.page(run, view={view.name!r})")
    if not drawable:
        others = ", ".join(panel.name for panel in available)
        reason = f"these runs have only its panels {others}" if others else open_view.description
        if open_view.comparison is None and any(panel.compared_run for panel in view.panels):
            reason = f"it compares two runs, run.compare(other).figure({view.name!r}); {reason}"
        raise UserError(f"{view.name!r} has no figure {name or ''!r} here: {reason}")
    return next((panel for panel in drawable if panel.kind == "figure"), drawable[0])


def make_open_view(run: Trace | Comparison, view: View, fields: dict[str, Any]) -> OpenView:
    """Return a view of one or two runs at a selection; UserError for a field or a value that does not exist."""
    has_other = isinstance(run, Comparison)
    trace = run.trace if has_other else run
    default_fields = {"shown": "difference"} if has_other and not view.is_comparison else {}
    selection = select_with_defaults(trace, {"view": view.name} | default_fields | fields)
    comparison = run if has_other else Comparison.with_unchanged(trace) if trace.baseline else None
    return OpenView(view, trace, selection, comparison=comparison, has_other=has_other)


def select_with_defaults(trace: Trace, fields: dict[str, Any]) -> Selection:
    """Return the selection with some fields as given and the others as the page would choose them.

    Raises:
        UserError: there is no such field, or the run has no such element.
    """
    names = [*(name for name in OWN_FIELDS if name != "view"), *(field.name for field in registered_fields())]
    for name in fields.keys() - {"view", *names}:
        raise UserError(f"there is no field {name!r} to select; the nearest are {nearest_names(name, names)}")
    fields = {name: int(value) if isinstance(value, np.integer) else value for name, value in fields.items()}
    defaults = Selection().as_dict()
    for name, value in fields.items():
        if type(value) is not type(defaults[name]):
            raise UserError(f"{name} is a value such as {defaults[name]!r}, got {value!r}")
    selection = complete_selection(trace, fields)
    existing = selection.as_dict()
    for name, value in fields.items():
        if value != existing[name]:
            raise UserError(f"this run has no {name}={value!r}; the nearest is {existing[name]!r}")
    return selection


def draw_head_grid(grid: HeadHeatmaps) -> go.Figure:
    """Draw a grid of small heatmaps as one heatmap: a row of squares for each layer, a column for each head."""
    values = np.asarray(grid.values)  # (L, H, T, T)
    layers, heads, tokens, _keys = values.shape
    padded = np.pad(values, [(0, 0), (0, 0), (0, 1), (0, 1)], constant_values=np.nan)  # gaps between squares
    z = padded.transpose(0, 2, 1, 3).reshape(layers * (tokens + 1), heads * (tokens + 1))

    def ticks(count: int, title: str) -> dict[str, Any]:
        centres = [index * (tokens + 1) + (tokens - 1) / 2 for index in range(count)]
        return {"tickvals": centres, "ticktext": [*map(str, range(count))], "showgrid": False, "title": {"text": title}}

    bounds = (-1, 1) if grid.signed else (0, 1)
    heatmap = go.Heatmap(z=z, zmin=bounds[0], zmax=bounds[1], hoverongaps=False)
    y = ticks(layers, "layer") | {"autorange": "reversed", "scaleanchor": "x"}
    return figure(heatmap, alt=grid.alt, xaxis=ticks(heads, "head"), yaxis=y)


def run_html(trace: Trace) -> str:
    """Return a run as HTML: its tokens shaded by surprisal, its interventions and the likeliest next tokens."""
    bits = np.nan_to_num(surprisal(trace)) if "logits" in trace else np.zeros(len(trace))  # the first has none
    spans = "".join(
        f'<span title="{index}: {format_number(value)} bits" style="background:rgba(84,80,176,{shade:.2f})">'
        f"{escape(shorten_token(token, max_chars=40))}</span>"
        for index, (token, value, shade) in enumerate(zip(trace.tokens, bits, np.minimum(bits, 16) / 24, strict=True))
    )
    edits = "".join(f"<br><code>{escape(str(intervention))}</code>" for intervention in trace.edits)
    rows = ""
    if "logits" in trace:
        prediction = next_token_distribution(trace, len(trace) - 1)
        rows = "".join(
            f"<tr><td>{escape(shorten_token(trace.vocabulary[i], max_chars=40))}</td>"
            f"<td>{prediction.plain[i]:.1%}</td></tr>"
            for i in prediction.top(NUM_NEXT_TOKENS)
        )
    return f"<div><code>{spans}</code>{edits}<table>{rows}</table></div>"


@dataclass(frozen=True, eq=False)
class RunComparison(Comparison):
    """Two runs, A and B, with their tokens aligned; see `figure` and `show`."""

    @property
    def figures(self) -> dict[str, tuple[str, ...]]:
        """Names of the figures of both runs: view -> panels."""
        return figure_names(self)

    def figure(self, view: str = "compare", panel: str | None = None, **selection: Any) -> go.Figure:
        """Draw a figure of both runs; of a view of one run A − B, or as `shown` says "a" or "b".

        Args and Raises: as `ModelRun.figure`.
        """
        return draw_figure(self, view, panel, **selection)

    def show(self) -> None:
        """Show how far the residual streams of A and B are apart, at each token and layer."""
        self.figure().show()

    def __str__(self) -> str:
        view = VIEW_BY_NAME["compare"]
        return view.formula(self, select_with_defaults(self.trace, {"view": view.name}))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{self.figure()._repr_html_()}"
