"""Pictures of patching as the browser shows them, and what must be seen in them."""

from dataclasses import dataclass

import numpy as np
import pytest

from explorer.explain.point import Point
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views.patching import VIEW
from tests.drawn import Picture, picture_of

PANEL = {panel.name: panel for panel in VIEW.panels}
BY_POSITION = ("positions_denoise", "positions_noise", "estimate_positions")
BY_HEAD = ("heads_denoise", "heads_noise", "estimate", "paths")
CHOSEN = {"layer": 1, "head": 2, "query": 11, "key": 9, "receiver": "q"}
INTO = {"denoise": "clean into corrupted", "noise": "corrupted into clean"}


@dataclass(frozen=True)
class Two:
    """A comparison, and which values are to be seen in it."""

    runs: Comparison
    lm: object

    def picture(self, name: str, **chosen) -> Picture:
        return picture_of(PANEL[name], PANEL[name].draw(self.runs, self.selection(**chosen)))

    def selection(self, **chosen) -> Selection:
        return Selection(**CHOSEN | chosen).within(self.runs.trace)

    def expected(self, of, clean_run: str = "b", metric: str = "logit_difference", **asked) -> np.ndarray:
        """By the functions that programs call."""
        a, b = self.runs.trace, self.runs.other
        clean, corrupted = (a, b) if clean_run == "a" else (b, a)
        answer = int(clean["logits"][-1].argmax())
        wrong = next(int(i) for i in np.argsort(-corrupted["logits"][-1], kind="stable") if i != answer)
        return of(self.lm, clean.token_ids, corrupted.token_ids, answer, wrong, metric=metric, **asked)


def near(value: float):
    """Equal but for rounding: small models’ runs differ by little, of which effects are shares."""
    return pytest.approx(value, rel=2e-3, abs=2e-3)


def shown(picture: Picture) -> np.ndarray:
    (heatmap,) = picture.parts
    return np.array(heatmap["z"], dtype=float)


def point_of(p) -> Point:
    return Point(x=p.x, y=p.y, curve=p.part, item=p.item)
