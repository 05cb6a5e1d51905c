"""A run, somebody who looks at it, and what they must see: worked out by the model's own modules and by formulas."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import VIEWS
from explorer.views.style import positions
from explorer.views.view import Panel, View
from model.transformer_lm import TransformerLM
from tests.drawn import Map, Picture, Point, picture_of, tells
from tests.panels import subject

PRE_NORM = ("rope", "gpt", "grouped")  # kinds of small models whose last stream goes through a final norm


@dataclass(frozen=True)
class Look:
    """A run, and where in it somebody looks: no two numbers are the same, so that none can stand for another."""

    trace: Trace
    lm: TransformerLM
    selection: Selection

    def has(self, view: str, name: str) -> bool:
        """Whether the panel has a place in this run."""
        panels = [panel for panel in view_of(view).panels if panel.name == name]
        return view_of(view).applies_to(self.trace) and any(panel.applies_to(self.trace) for panel in panels)

    def picture(self, view: str, name: str) -> Picture | Map:
        panel = panel_of(view, name)
        return picture_of(panel, panel.draw(subject(panel, self.trace), self.selection))

    def weight(self, name: str) -> np.ndarray:
        return self.lm.state_dict()[name].double().numpy()

    @property
    def stream(self) -> np.ndarray:
        """(2 L + 1, T, D): the residual stream of a pre-norm model, from the embedding on, after every sublayer."""
        places = [f"blocks.{i}.resid_{end}" for i in range(self.trace.config.num_layers) for end in ("mid", "post")]
        return np.stack([self.trace[name] for name in ("blocks.0.resid_pre", *places)]).astype(float)

    def predicted(self, stream: np.ndarray) -> np.ndarray:
        """Probabilities (..., V) that a pre-norm model reads off a stream (..., D)."""
        vectors: Tensor = self.lm.final_norm(torch.tensor(stream, dtype=torch.float32))
        return torch.softmax(self.lm.lm_head(vectors).double(), -1).numpy()

    @property
    def explained(self) -> tuple[int, int]:
        """The tokens of the chosen ranks."""
        order = np.argsort(-self.trace["logits"][self.selection.query], kind="stable")
        return int(order[self.selection.target - 1]), int(order[self.selection.rival - 1])

    def added(self, vectors: np.ndarray, to: np.ndarray | None = None) -> np.ndarray:
        """What parts (..., D) of the last stream at the query add to the lead of the explained token over its rival.

        Args:
            to: rows of the unembedding (V, D), to add to logits (..., V) instead.
        """
        config, whole = self.trace.config, self.stream[-1, self.selection.query]
        if config.norm == "layernorm":
            vectors, whole = (x - x.mean(-1, keepdims=True) for x in (vectors, whole))
        divisor = np.sqrt((whole**2).mean() + config.norm_eps)
        if to is None:
            token, rival = (self.weight("lm_head.weight")[i] for i in self.explained)
            to = token - rival
        return vectors / divisor * self.weight("final_norm.weight") @ to.T

    def head_outputs(self, layer: int) -> np.ndarray:
        """(H, D): what each head writes at the query."""
        z = self.trace[f"blocks.{layer}.attn.z"][:, self.selection.query].astype(float)  # (H, d)
        columns = np.split(self.weight(f"blocks.{layer}.attn.o_proj.weight"), len(z), axis=1)  # H of (D, d)
        return np.stack([part @ own for part, own in zip(columns, z, strict=True)])


def view_of(name: str) -> View:
    return next(view for view in VIEWS if view.name == name)


def panel_of(view: str, name: str) -> Panel:
    return next(panel for panel in view_of(view).panels if panel.name == name)


class Seen(NamedTuple):
    """What a bar or dot shows, what is said of it, and what a click on it selects."""

    value: float
    words: str
    click: dict[str, int] | None = None


Parts = list[list[Seen]]


def at_tokens(look: Look, what: str, values: Iterable[float], field: str | None) -> list[Seen]:
    places = positions(look.trace.tokens)
    return [Seen(v, f"{what} {places[i]}", {field: i} if field else {}) for i, v in enumerate(values)]


def check(points: list[Point], expected: Parts):
    """All that answers the pointer shows, says and selects what it is to."""
    of_parts = [[p for p in points if p.part == part] for part in dict.fromkeys(p.part for p in points)]
    assert list(map(len, of_parts)) == list(map(len, expected))
    for p, seen in (
        (p, seen) for part, bars in zip(of_parts, expected, strict=True) for p, seen in zip(part, bars, strict=True)
    ):
        assert p.value == pytest.approx(seen.value, rel=1e-3, abs=1e-4)
        assert html.unescape(seen.words) in p.told, p.told
        assert tells(p.told.replace("takes ", "−"), p.value), (p.told, p.value)
        if seen.click is not None:
            assert p.change == seen.click
