"""Panels, and the kinds of models that they apply to: the pairs that tests are parametrised over."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.views import VIEWS
from explorer.views.view import Panel, View
from tests.sample_models import CORE, STYLES, capture_edited_style, capture_style
from tests.subtest_loops import subtest_groups

PANELS = {f"{view.name}-{panel.name}": (view, panel) for view in VIEWS for panel in view.panels}
JOB_PANELS = {  # panels computed by jobs, on request
    *(f"patching-{name}_{way}" for name in ("positions", "heads") for way in ("denoise", "noise")),
    *("patching-agreement", "patching-agreement_positions", "patching-paths", "patching-neurons"),
    "prediction-by_token",  # integrated gradients and knock-out
    "directions-examples",
}


def subject(panel: Panel | View, trace: Trace) -> Trace | Comparison:
    """Return the argument of a panel's or view's functions: the run, or its comparison with the unmodified run."""
    is_comparison = panel.is_comparison if isinstance(panel, View) else panel.compared_run
    return Comparison.with_unchanged(trace) if is_comparison and trace.baseline else trace


def shows(name: str, trace: Trace) -> bool:
    """Return whether the panel applies to the run."""
    view, panel = PANELS[name]
    return view.is_applicable(trace) and panel.is_applicable(trace) and bool(trace.baseline or not panel.compared_run)


def capture_panel_run(name: str, style: str, length: int = 12) -> Trace:
    """Return a style's run for a panel: one with interventions if the panel compares."""
    return (capture_edited_style if PANELS[name][1].compared_run else capture_style)(style, length)


def capture_first_applicable_run(name: str, length: int = 12) -> Trace:
    """Return the run of the first style that the panel applies to."""
    return next(run for run in (capture_panel_run(name, style, length) for style in STYLES) if shows(name, run))


def each_panel_and_style(
    lengths: Iterable[int] = (12,),
    run: Callable[[str, str], Trace] = capture_panel_run,
    condition: Callable[[View, Panel], bool] = lambda view, panel: True,
    every: int = 1,
) -> Callable:
    """Run a test with each (name, style, length) where the panel applies to the style; each style is one test.

    The core suite has each panel once, at the middle length: with the styles of the bundled checkpoints in turn if
    both apply, else with the first that does. Exhaustive are the other styles, every one or every nth, another for
    the next panel, each with one of the lengths in turn.
    """
    lengths = list(lengths)
    core, others = ({style: [] for style in STYLES} for _ in range(2))
    for index, (name, pair) in enumerate(PANELS.items()):
        styles = [style for style in STYLES if condition(*pair) and shows(name, run(name, style))]
        bundled = [style for style in CORE if style in styles]
        candidates = bundled or styles[:1]
        core_style = candidates[index % len(candidates)] if candidates else None
        for style_index, style in enumerate(styles):
            if style == core_style:
                core[style].append({"name": name, "style": style, "length": lengths[len(lengths) // 2]})
            elif (style_index + index) % every == 0:
                length = lengths[(style_index // every + index) % len(lengths)]
                others[style].append({"name": name, "style": style, "length": length})
    return subtest_groups(core, others)


class _ReadRecorder(Mapping):
    """Captured values that record which of them are read."""

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


def read_values(name: str, trace: Trace, selection: Selection) -> tuple[set[str], set[str]]:
    """Draw a panel; return the names of the captured values read, of the run and of its baseline."""
    values, unchanged = _ReadRecorder(trace.values), _ReadRecorder(trace.baseline.values if trace.baseline else {})
    baseline = trace.baseline and replace(trace.baseline, values=unchanged)
    panel = PANELS[name][1]
    panel.draw(subject(panel, replace(trace, values=values, baseline=baseline)), selection)
    return values.read, unchanged.read
