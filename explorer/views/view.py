"""What a view is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from explorer.explain.notation import listed
from explorer.language import _
from explorer.state.interventions import Recipe
from explorer.state.selection import Selection
from explorer.state.settings import GenerationSettings
from explorer.tracing.trace import Trace
from explorer.views.checks import Inspect, Marking
from explorer.views.two_runs.pair import Pair
from explorer.views.what_if import WhatIf
from model.config import ModelConfig


@dataclass(frozen=True)
class SmallMultiples:
    """Many small square pictures of values in [0, 1]: one a layer and head.

    Attributes:
        values: (L, H, T, T); row = query, column = key.
        alt: what they show, in a sentence.
        signed: whether the values are in [-1, 1] instead.
    """

    values: np.ndarray
    alt: str
    signed: bool = False


@dataclass(frozen=True)
class Panel:
    """One picture of a view: a pure function of the run and the selection. Its title and `no_inspection` are looked up
    when they are said.

    Attributes:
        name: unique within its view.
        title: what it shows, in a line.
        draw: (trace, selection) -> `go.Figure`, `SmallMultiples` for a head grid, or `Diagram` for a map of the model.
        kind: which of them `draw` returns.
        needs: values it draws besides those its view needs; where one was not captured it has no place.
        compares: with what it compares the run, if it does: a changed one with what it would be "unchanged", or any
            with the "other" that somebody chose, and else with that. `draw`, `mark` and `inspect` then get a
            `Comparison` in the trace's place; where there is none it has no place.
        alone: selection -> why two runs' pictures have no difference, in a sentence; "" where they have.
        pair: what can be made of two runs' pictures, where they are no figures or grids of heads.
        where: of which runs it has a place, besides.
        to_steps: whether points' "customdata" are names of checkpoints of the model's training, which a click goes to.
        once: whether the picture is the same whatever is selected, so that it is drawn once a run.
        selects: what a click on a point selects: the point's "x", "y" or "customdata" -> a field of `Selection`, or
            several for a "customdata" of as many values; with "view" among them another tab opens. Parts of the map say
            it themselves.
        mark: (trace, selection) -> whether the captured values that it shows or is worked out from, all of them, are
            what their own inputs give.
        inspect: (trace, selection, clicked point) -> how the number there comes about, or the two numbers that a point
            stands for; None where there is no number, NoSuchPoint where the picture has no such point.
        no_inspection: why a click has no number to explain, where `inspect` is None.
        height: of the picture, pixels.
        min_width: of the picture, pixels; on a narrower screen it scrolls sideways, but for a map of the model, which
            turns on a telephone.
        width: share of the row it takes on a wide screen.
    """

    name: str
    title: str
    draw: Callable[[Trace, Selection], Any]
    kind: Literal["figure", "head_grid", "model_map"] = "figure"
    needs: tuple[str, ...] = ()
    compares: Literal["", "unchanged", "other"] = ""
    alone: Callable[[Selection], str] = lambda selection: ""
    pair: Pair | None = None
    where: Callable[[Trace], bool] = lambda trace: True
    to_steps: bool = False
    once: bool = False
    selects: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    mark: Marking | None = None
    inspect: Inspect | None = None
    no_inspection: str = ""
    height: int = 360
    min_width: int = 0
    width: Literal["whole", "half"] = "whole"

    def applies_to(self, trace: Trace) -> bool:
        return all(trace.has(name) for name in self.needs) and self.where(trace)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Which coordinates of a clicked point are positions of tokens."""
        return tuple(axis for axis, field in self.selects.items() if axis in ("x", "y") and field in ("query", "key"))


@dataclass(frozen=True)
class View:
    """A tab: a question about the model and the pictures that answer it. Its title and words are looked up when they
    are said.

    Attributes:
        name: in the URL.
        title: on the tab.
        words: two sentences that say in plain words what is seen and what to do with it.
        formula: (trace, selection) -> the computation, with this run's own numbers in it; lines of plain text.
        needs: values it draws, with * for any layer; where one was not captured the view shows `otherwise` instead.
        otherwise: config -> why the view has nothing to show of such a model, and what that does instead.
        panels: top to bottom.
        controls: fields of the selection that get a chooser.
        what_ifs: what of the run can be changed here.
        needs_one_of: more such values, of which one suffices.
        where: of which runs it has something to show, besides.
        compares: whether its formula is about two runs, a `Comparison` in the trace's place.
        written: (trace, selection, settings of the generation panel) -> what is written on; "" for nothing.
        recipe: (trace, selection) -> which direction in the stream it is about, where lists of prompts can be written
            to make one of.
        in_full: (trace, selection) -> of a step of the simple page, where the full one goes further: in words, and as
            a change of the selection.
    """

    name: str
    title: str
    words: str
    formula: Callable[[Trace, Selection], str]
    needs: tuple[str, ...]
    otherwise: Callable[[ModelConfig], str]
    panels: tuple[Panel, ...]
    controls: tuple[str, ...] = ()
    what_ifs: tuple[WhatIf, ...] = ()
    needs_one_of: tuple[str, ...] = ()
    where: Callable[[Trace], bool] = lambda trace: True
    compares: bool = False
    written: Callable[[Trace, Selection, GenerationSettings], str] | None = None
    recipe: Callable[[Trace, Selection], Recipe] | None = None
    in_full: Callable[[Trace, Selection], tuple[str, dict[str, Any]]] | None = None

    def applies_to(self, trace: Trace) -> bool:
        return not self.lacks(trace) and self.where(trace)

    def lacks(self, trace: Trace) -> tuple[str, ...]:
        """Which of the values that it needs are not there."""
        has_one = not self.needs_one_of or any(trace.has(name) for name in self.needs_one_of)
        return (*(name for name in self.needs if not trace.has(name)), *(() if has_one else self.needs_one_of))

    def why_not(self, trace: Trace) -> str:
        """Of a run that it does not apply to, why; of a module of another build, which values were not taken of it."""
        if trace.has_weights:
            return self.otherwise(trace.config)
        names = listed(self.lacks(trace)) or _("every stage of the stream")
        return _("This needs what was not taken from the module: {names}.", names=names)
