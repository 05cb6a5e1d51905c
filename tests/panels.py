"""Which panels there are, and which kinds of models have what they show: the pairs that tests are parametrised over."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import VIEWS
from explorer.views.view import Panel, View
from tests.specimens import CORE, STYLES, edited_trace_of, trace_of

PANELS = {f"{view.name}-{panel.name}": (view, panel) for view in VIEWS for panel in view.panels}
JOBS = {  # what waits until it is asked for, as it takes longer than a click
    *(f"patching-{name}_{way}" for name in ("positions", "heads") for way in ("denoise", "noise")),
    *("patching-agreement", "patching-agreement_positions", "patching-paths", "patching-neurons"),
    "prediction-by_token",  # integrated gradients, and what hiding a token does
    "directions-examples",
}

every_panel = pytest.mark.parametrize("name", PANELS)


def subject(panel: Panel | View, trace: Trace) -> Trace | Comparison:
    """What the functions of a panel or a view are about: the run, or its comparison with the unchanged one."""
    return Comparison.with_unchanged(trace) if panel.compares and trace.baseline else trace


def shows(name: str, trace: Trace) -> bool:
    """Whether the panel has something to show of the run."""
    view, panel = PANELS[name]
    return view.applies_to(trace) and panel.applies_to(trace) and bool(trace.baseline or not panel.compares)


def run_of(name: str, style: str, length: int = 12) -> Trace:
    """The run that a panel is looked at in: a changed one if it compares."""
    return (edited_trace_of if PANELS[name][1].compares else trace_of)(style, length)


def fitting_run(name: str, length: int = 12) -> Trace:
    """The run of the first style that has what the panel shows."""
    return next(run for run in (run_of(name, style, length) for style in STYLES) if shows(name, run))


def each_panel_and_style(
    lengths: Iterable[int] = (12,),
    run: Callable[[str, str], Trace] = run_of,
    where: Callable[[View, Panel], bool] = lambda view, panel: True,
    every: int = 1,
) -> pytest.MarkDecorator:
    """Parametrise over (name, style, length) where the style has what the panel shows.

    In the core suite is each panel once, at the middle length: of the styles of the bundled checkpoints in turn, where
    both fit it, and else of the first that does. Exhaustive are the other styles, every one or every so many, another
    each time, and of those of the bundled checkpoints the other lengths.
    """
    lengths, cases = list(lengths), []
    middle = lengths[len(lengths) // 2]
    for place, (name, pair) in enumerate(PANELS.items()):
        styles = [style for style in STYLES if where(*pair) and shows(name, run(name, style))]
        bundled = [style for style in CORE if style in styles]
        several = bundled or styles[:1]
        core = several[place % len(several)] if several else None
        for nth, style in enumerate(styles):
            if style not in several and (nth + place) % every:
                continue
            for length in lengths if style in bundled else [middle]:
                marks = () if (style, length) == (core, middle) else pytest.mark.exhaustive
                cases.append(pytest.param(name, style, length, marks=marks, id=f"{name}-{style}-{length}"))
    return pytest.mark.parametrize(("name", "style", "length"), cases)


class _Read(Mapping):
    """Captured values that note which of them are read."""

    def __init__(self, values: Mapping[str, np.ndarray]):
        self.values_, self.read = values, set()

    def __getitem__(self, name: str) -> np.ndarray:
        value = self.values_[name]
        self.read.add(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self.values_

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def drawn_from(name: str, trace: Trace, selection: Selection) -> tuple[set[str], set[str]]:
    """The captured values that a picture is drawn from, of the run and of its baseline."""
    values, unchanged = _Read(trace.values), _Read(trace.baseline.values if trace.baseline else {})
    baseline = trace.baseline and replace(trace.baseline, values=unchanged)
    panel = PANELS[name][1]
    panel.draw(subject(panel, replace(trace, values=values, baseline=baseline)), selection)
    return values.read, unchanged.read
