"""Run, selection and expected values of a panel, computed by the model's own modules and by formulas."""

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
from explorer.views.style import position_labels
from explorer.views.view import Panel, View
from model.transformer_lm import TransformerLM
from tests.panels import subject
from tests.rendered_figures import Point, RenderedFigure, RenderedMap, contains_number, render_panel

PRE_NORM = ("rope", "gpt", "grouped")  # styles with a final norm after the last block


@dataclass(frozen=True)
class Case:
    """Run and a selection in it. All numbers of the selection differ, so that mix-ups are detected."""

    trace: Trace
    lm: TransformerLM
    selection: Selection

    def has(self, view: str, name: str) -> bool:
        """Return whether the panel applies to this run."""
        panels = [panel for panel in get_view(view).panels if panel.name == name]
        return get_view(view).is_applicable(self.trace) and any(panel.is_applicable(self.trace) for panel in panels)

    def figure(self, view: str, name: str) -> RenderedFigure | RenderedMap:
        panel = get_panel(view, name)
        return render_panel(panel, panel.draw(subject(panel, self.trace), self.selection))

    def weight(self, name: str) -> np.ndarray:
        return self.lm.state_dict()[name].double().numpy()

    @property
    def stream(self) -> np.ndarray:
        """Residual stream of a pre-norm model (2 L + 1, T, D): the embedding, then after every sublayer."""
        names = [f"blocks.{i}.resid_{end}" for i in range(self.trace.config.num_layers) for end in ("mid", "post")]
        return np.stack([self.trace[name] for name in ("blocks.0.resid_pre", *names)]).astype(float)

    def stream_probabilities(self, stream: np.ndarray) -> np.ndarray:
        """Return the probabilities (..., V) that a pre-norm model computes from a stream (..., D)."""
        vectors: Tensor = self.lm.final_norm(torch.tensor(stream, dtype=torch.float32))
        return torch.softmax(self.lm.lm_head(vectors).double(), -1).numpy()

    @property
    def target_and_contrast(self) -> tuple[int, int]:
        """Target and contrast token ids at the selected ranks."""
        order = np.argsort(-self.trace["logits"][self.selection.query], kind="stable")
        return int(order[self.selection.target - 1]), int(order[self.selection.rival - 1])

    def logit_contributions(self, vectors: np.ndarray, unembedding_rows: np.ndarray | None = None) -> np.ndarray:
        """Return what vectors (..., D) of the last stream at the query add to the target's logit minus the contrast's.

        Args:
            unembedding_rows: rows of the unembedding (V, D): return contributions to their logits (..., V) instead.
        """
        config, residual = self.trace.config, self.stream[-1, self.selection.query]
        if config.norm == "layernorm":
            vectors, residual = (x - x.mean(-1, keepdims=True) for x in (vectors, residual))
        divisor = np.sqrt((residual**2).mean() + config.norm_eps)
        if unembedding_rows is None:
            token, contrast = (self.weight("lm_head.weight")[i] for i in self.target_and_contrast)
            unembedding_rows = token - contrast
        return vectors / divisor * self.weight("final_norm.weight") @ unembedding_rows.T

    def head_outputs(self, layer: int) -> np.ndarray:
        """Return what each head writes at the query, (H, D)."""
        z = self.trace[f"blocks.{layer}.attn.z"][:, self.selection.query].astype(float)  # (H, d)
        columns = np.split(self.weight(f"blocks.{layer}.attn.o_proj.weight"), len(z), axis=1)  # H of (D, d)
        return np.stack([head_columns @ head_z for head_columns, head_z in zip(columns, z, strict=True)])


def get_view(name: str) -> View:
    return next(view for view in VIEWS if view.name == name)


def get_panel(view: str, name: str) -> Panel:
    return next(panel for panel in get_view(view).panels if panel.name == name)


class ExpectedPoint(NamedTuple):
    """Expected bar or dot: its value, part of its hover text, and the selection of a click (None: unchecked)."""

    value: float
    text: str
    click: dict[str, int] | None = None


ExpectedPoints = list[list[ExpectedPoint]]


def points_at_tokens(case: Case, label: str, values: Iterable[float], field: str | None) -> list[ExpectedPoint]:
    labels = position_labels(case.trace.tokens)
    return [ExpectedPoint(v, f"{label} {labels[i]}", {field: i} if field else {}) for i, v in enumerate(values)]


def check_points(points: list[Point], expected: ExpectedPoints):
    """Assert that all points have the expected values, hover texts and clicks."""
    groups = [[p for p in points if p.group == group] for group in dict.fromkeys(p.group for p in points)]
    assert list(map(len, groups)) == list(map(len, expected))
    for p, expected_point in (
        (p, expected_point)
        for group, bars in zip(groups, expected, strict=True)
        for p, expected_point in zip(group, bars, strict=True)
    ):
        assert p.value == pytest.approx(expected_point.value, rel=1e-3, abs=1e-4)
        assert html.unescape(expected_point.text) in p.hover_text, p.hover_text
        assert contains_number(p.hover_text.replace("takes ", "−"), p.value), (p.hover_text, p.value)
        if expected_point.click is not None:
            assert p.change == expected_point.click
