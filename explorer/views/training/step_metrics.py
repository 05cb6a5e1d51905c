"""Metrics of the current text at every checkpoint of the training."""

from typing import Any

import numpy as np

from explorer.analysis.heads import HEAD_SCORES, chance_head_scores, head_scores
from explorer.analysis.next_token import NATS_PER_BIT, mean_text_loss
from explorer.explain.clicked_point import ClickedPoint, get_item
from explorer.explain.derivation import Derivation
from explorer.explain.derived.attention import head_score
from explorer.explain.derived.prediction import text_loss
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views import graph_objects as go
from explorer.views.chance_text import NO_REPEATED_TOKEN, chance_hover
from explorer.views.style import ATTENTION, RESIDUAL, SELECTED, figure
from explorer.views.training.step_axis import (
    click_checkpoints,
    mark_current_step,
    runs_by_step,
    step_axis,
    step_axis_positions,
)

MAX_NAMED = 4  # heads that are named beside their lines
MIN_LABEL_GAP = 0.06  # of the axis of scores, between two names


def text_loss_curve(trace: Trace) -> go.Figure:
    """Draw the loss of the run's own text at every step."""
    runs = runs_by_step(trace)
    steps, values = list(runs), np.array([mean_text_loss(run) for run in runs.values()])
    has_loss = len(trace) > 1
    line = go.Scatter(
        x=step_axis_positions(steps),
        y=values,
        mode="lines+markers",
        line={"color": RESIDUAL, "width": 2},
        marker={"size": 7},
        text=[_("step {step:,}", step=step) for step in steps],
        hovertext=[format_number(value / NATS_PER_BIT) for value in values],
        customdata=click_checkpoints(trace, steps),
        hovertemplate=_("%{text}<br>%{y:.4g} nats a token = %{hovertext} bits<extra></extra>"),
    )
    alt = _("A single token has no loss: nothing precedes it.")
    if has_loss:
        alt = _(
            "Loss of this text at {count} steps of training: {first} nats a token at the first, {last} at the last.",
            count=len(steps),
            first=format_number(values[0]),
            last=format_number(values[-1]),
        )
    fig = figure(
        [line] if has_loss else [],
        alt=alt,
        xaxis=step_axis(steps),
        yaxis={"title": {"text": _("loss of this text, nats a token")}, "rangemode": "tozero"},
        hovermode="closest",
        hoverdistance=-1,
        showlegend=False,
    )
    return mark_current_step(fig, trace, steps)


def head_score_lines(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> go.Figure:
    """Draw one of `HEAD_SCORES` at every step, a line for each head; the chosen head's is highlighted.

    Scores that do not exceed chance have hollow dots.
    """
    runs = runs_by_step(trace)
    steps, values = list(runs), np.stack([head_scores(run, name, hide_first) for run in runs.values()])  # (S, L, H)
    baselines = [chance_head_scores(run, name, hide_first) for run in runs.values()]
    score_name = translate(HEAD_SCORES[name].label)
    yaxis = {"title": {"text": _("head score: {score}", score=score_name)}, "range": [-0.02, 1.05]}
    if baselines[0] is None:
        fig = figure(
            [],
            _("No {score} score: {why}.", score=score_name, why=translate(NO_REPEATED_TOKEN)),
            xaxis=step_axis(steps),
            yaxis=yaxis,
        )
        centre = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        fig.add_annotation(text=translate(NO_REPEATED_TOKEN), showarrow=False, **centre)
        return mark_current_step(fig, trace, steps)
    exceeds = np.stack([c.is_exceeded(v) for c, v in zip(baselines, values, strict=True)])
    hovers = [chance_hover(c, more) for c, more in zip(baselines, exceeds, strict=True)]  # (S, L, H)
    named_steps = [_("step {step:,}", step=step) for step in steps]
    labelled_heads, largest = _labelled_heads(values), np.unravel_index(values.argmax(), values.shape)
    lines = []
    for head_index in draw_order(values.shape[1:], (layer, head)):
        i, j = head_index
        is_chosen = head_index == (layer, head)
        is_prominent = is_chosen or head_index in labelled_heads
        lines.append(
            go.Scatter(
                x=step_axis_positions(steps),
                y=values[:, i, j],
                mode="lines+markers+text" if is_prominent else "lines+markers",
                line={"color": SELECTED if is_chosen else ATTENTION, "width": 3 if is_chosen else 1.5},
                opacity=1 if is_prominent else 0.3,
                marker={
                    "size": 8 if is_chosen else 6,
                    "symbol": ["circle" if more else "circle-open" for more in exceeds[:, i, j]],
                },
                text=[""] * (len(steps) - 1) + [f" L{i} H{j}"] if head_index in labelled_heads else None,
                textposition="middle right",
                textfont={"size": 11},
                cliponaxis=False,
                hovertext=[f"{step}<br>{hover[i][j]}" for step, hover in zip(named_steps, hovers, strict=True)],
                customdata=click_checkpoints(trace, steps),
                hovertemplate=_(
                    "layer {layer} head {head}<br>score %{{y:.3f}}<br>%{{hovertext}}<extra></extra>", layer=i, head=j
                ),
            )
        )
    even = float(baselines[0].uniform_scores.mean())
    fig = figure(
        lines,
        alt=_(
            "The {score} score of {heads} heads on this text at {count} steps of training: how much each {does}. The "
            "largest is {most}, layer {layer} head {head} at step {step:,}. Attention spread evenly would have "
            "{even}.",
            score=score_name,
            heads=values[0].size,
            count=len(steps),
            does=translate(HEAD_SCORES[name].description),
            most=format_number(values[largest]),
            layer=largest[1],
            head=largest[2],
            step=steps[largest[0]],
            even=format_number(even),
        ),
        xaxis=step_axis(steps, _chance_text(even, baselines[0].quantiles is not None), right_margin=0.08),
        yaxis=yaxis,
        hovermode="closest",
        hoverdistance=-1,
        showlegend=False,
    )
    fig.add_hline(even, line={"color": RESIDUAL, "width": 1, "dash": "dash"})
    return mark_current_step(fig, trace, steps)


def _chance_text(uniform_score: float, has_chance: bool) -> str:
    text = _(
        "training step<br>dashed: attention spread evenly would have {even} on this text",
        even=format_number(uniform_score),
    )
    return _("{said};<br>hollow dots: no more than by chance", said=text) if has_chance else text


def _labelled_heads(values: np.ndarray) -> list[tuple[int, int]]:
    """Return (layer, head) of the lines that end highest and whose labels do not overlap."""
    labelled: list[tuple[int, int]] = []
    for flat_index in np.argsort(-values[-1], axis=None)[: 3 * MAX_NAMED]:
        head_index = tuple(int(i) for i in np.unravel_index(flat_index, values.shape[1:]))
        if all(abs(values[-1][head_index] - values[-1][other]) >= MIN_LABEL_GAP for other in labelled):
            labelled.append(head_index)
    return labelled[:MAX_NAMED]


def draw_order(shape: tuple[int, int], chosen_head: tuple[int, int]) -> list[tuple[int, int]]:
    """Return (layer, head) of every line, the chosen head last so that it is drawn on top."""
    others = [(i, j) for i in range(shape[0]) for j in range(shape[1]) if (i, j) != chosen_head]
    return [*others, chosen_head]


def _model_and_run(trace: Trace, point: ClickedPoint) -> tuple[Any, Trace]:
    """Return the model at a dot's step, to be kept alive while the run is in use, and that run."""
    return get_item(list(trace.at_training_steps().values()), point.coordinate("item"))


def inspect_text_loss(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive the loss at a dot's step."""
    _lm, run = _model_and_run(trace, point)
    return text_loss(run)


def inspect_head_score(trace: Trace, selection: Selection, point: ClickedPoint) -> Derivation | None:
    """Derive a head's score at a dot's step."""
    shape = trace.config.num_layers, trace.config.num_heads
    layer, head = get_item(draw_order(shape, (selection.layer, selection.head)), point.coordinate("curve"))
    _lm, run = _model_and_run(trace, point)
    return head_score(run, selection.option("head_score"), selection.first_token == "hidden", layer, head)


CHANCE_DIFFERS = N_("Whether a score is more than chance is another question in each run: look at A and B in turn.")
