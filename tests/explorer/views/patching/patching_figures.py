"""Figures of patching as the browser receives them, and their expected values."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch

from explorer.explain.derivation import ClickedPoint
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from explorer.views.patching import VIEW
from tests.rendered_figures import RenderedFigure, render_panel
from tests.sample_models import capture_style, models, tokenizer

PANEL = {panel.name: panel for panel in VIEW.panels}
BY_POSITION = ("positions_denoise", "positions_noise", "estimate_positions")
BY_HEAD = ("heads_denoise", "heads_noise", "estimate", "paths")
CHOSEN = {"layer": 1, "head": 2, "query": 11, "key": 9, "receiver": "q"}
INTO = {"denoise": "clean into corrupted", "noise": "corrupted into clean"}


@dataclass(frozen=True)
class PatchingCase:
    """Two runs to compare and their model, with figures and expected effects of the patching view."""

    runs: Comparison
    lm: object

    def figure(self, name: str, **chosen) -> RenderedFigure:
        return render_panel(PANEL[name], PANEL[name].draw(self.runs, self.selection(**chosen)))

    def selection(self, **chosen) -> Selection:
        return Selection().replace(**CHOSEN | chosen).clamp_to_trace(self.runs.trace)

    def expected(self, patching, clean_run: str = "a", metric: str = "logit_difference", **options) -> np.ndarray:
        """Return the effects that the public patching functions compute."""
        a, b = self.runs.trace, self.runs.other
        clean, corrupted = (a, b) if clean_run == "a" else (b, a)
        answer, wrong = proposed_answers(clean["logits"][-1], corrupted["logits"][-1])
        return patching(self.lm, clean.token_ids, corrupted.token_ids, answer, wrong, metric=metric, **options)


def proposed_answers(clean: np.ndarray, corrupted: np.ndarray) -> tuple[int, int]:
    """Return both runs' likeliest tokens, or the tokens whose probability differs most if these are the same."""
    likeliest = int(clean.argmax()), int(corrupted.argmax())
    if likeliest[0] != likeliest[1]:
        return likeliest
    p_clean, p_corrupted = (torch.tensor(logits).double().softmax(-1) for logits in (clean, corrupted))
    return int((p_clean - p_corrupted).argmax()), int((p_corrupted - p_clean).argmax())


@cache
def make_patching_case(style: str) -> PatchingCase:
    """Return two prompts of equal length in a style's model, which differ in one token."""
    trace, lm = capture_style(style), models()[style]
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    return PatchingCase(Comparison.from_traces(trace, capture(lm, ids, tokenizer=tokenizer())), lm)


def approx_effect(value: float):
    """Return an approximate value: effects are shares of small differences between small models' runs."""
    return pytest.approx(value, rel=2e-3, abs=2e-3)


def cell_values(figure: RenderedFigure) -> np.ndarray:
    (heatmap,) = figure.parts
    return np.array(heatmap["z"], dtype=float)


def clicked_point(p) -> ClickedPoint:
    return ClickedPoint(x=p.x, y=p.y, curve=p.group, item=p.item)
