"""What the model makes of the present text at every step that it was kept at."""

from typing import Any

import numpy as np

from explorer.analysis.chance import chance
from explorer.analysis.heads import HEAD_SCORES, SCORE_NAMES, head_scores
from explorer.analysis.training import NATS_A_BIT, loss_of_text
from explorer.explain.analysed.heads import head_score
from explorer.explain.analysed.training import text_loss
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.point import Point, nth
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views import graph_objects as go
from explorer.views.chance_words import WHY_NONE, told
from explorer.views.style import ATTENTION, RESIDUAL, SELECTED, figure
from explorer.views.training.steps import leading_to, places, runs_by_step, step_axis, with_present_step

MOST_NAMED = 4  # heads that are named beside their lines
APART = 0.06  # of the axis of scores, between two names


def text_losses(trace: Trace) -> go.Figure:
    """The loss of the run's own text at every step."""
    runs = runs_by_step(trace)
    steps, values = list(runs), np.array([loss_of_text(run) for run in runs.values()])
    known = len(trace) > 1
    line = go.Scatter(
        x=places(steps),
        y=values,
        mode="lines+markers",
        line={"color": RESIDUAL, "width": 2},
        marker={"size": 7},
        text=[_("step {step:,}", step=step) for step in steps],
        hovertext=[number(value / NATS_A_BIT) for value in values],
        customdata=leading_to(trace, steps),
        hovertemplate=_("%{text}<br>%{y:.4g} nats a token = %{hovertext} bits<extra></extra>"),
    )
    alt = _("A single token has no loss: nothing precedes it.")
    if known:
        alt = _(
            "Loss of this text at {count} steps of training: {first} nats a token at the first, {last} at the last.",
            count=len(steps),
            first=number(values[0]),
            last=number(values[-1]),
        )
    fig = figure(
        [line] if known else [],
        alt=alt,
        xaxis=step_axis(steps),
        yaxis={"title": {"text": _("loss of this text, nats a token")}, "rangemode": "tozero"},
        hovermode="closest",
        hoverdistance=-1,
        showlegend=False,
    )
    return with_present_step(fig, trace, steps)


def scores(trace: Trace, name: str, hide_first: bool, layer: int, head: int) -> go.Figure:
    """One of `HEAD_SCORES` of every head at every step, a line a head; the chosen head's stands out.

    Dots of scores that are no more than chance would give are hollow.
    """
    runs = runs_by_step(trace)
    steps, values = list(runs), np.stack([head_scores(run, name, hide_first) for run in runs.values()])  # (S, L, H)
    by_chance = [chance(run, name, hide_first) for run in runs.values()]
    called = look_up(SCORE_NAMES[name])
    yaxis = {"title": {"text": _("head score: {score}", score=called)}, "range": [-0.02, 1.05]}
    if by_chance[0] is None:
        fig = figure(
            [], _("No {score} score: {why}.", score=called, why=look_up(WHY_NONE)), xaxis=step_axis(steps), yaxis=yaxis
        )
        where = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        fig.add_annotation(text=look_up(WHY_NONE), showarrow=False, **where)
        return with_present_step(fig, trace, steps)
    exceeds = np.stack([c.is_exceeded(v) for c, v in zip(by_chance, values, strict=True)])
    hovers = [told(c, more) for c, more in zip(by_chance, exceeds, strict=True)]  # (S, L, H)
    named_steps = [_("step {step:,}", step=step) for step in steps]
    named, largest = _named(values), np.unravel_index(values.argmax(), values.shape)
    lines = []
    for each in in_order(values.shape[1:], (layer, head)):
        i, j = each
        chosen = each == (layer, head)
        shown = chosen or each in named
        lines.append(
            go.Scatter(
                x=places(steps),
                y=values[:, i, j],
                mode="lines+markers+text" if shown else "lines+markers",
                line={"color": SELECTED if chosen else ATTENTION, "width": 3 if chosen else 1.5},
                opacity=1 if shown else 0.3,
                marker={
                    "size": 8 if chosen else 6,
                    "symbol": ["circle" if more else "circle-open" for more in exceeds[:, i, j]],
                },
                text=[""] * (len(steps) - 1) + [f" L{i} H{j}"] if each in named else None,
                textposition="middle right",
                textfont={"size": 11},
                cliponaxis=False,
                hovertext=[f"{step}<br>{hover[i][j]}" for step, hover in zip(named_steps, hovers, strict=True)],
                customdata=leading_to(trace, steps),
                hovertemplate=_(
                    "layer {layer} head {head}<br>score %{{y:.3f}}<br>%{{hovertext}}<extra></extra>", layer=i, head=j
                ),
            )
        )
    even = float(by_chance[0].even.mean())
    fig = figure(
        lines,
        alt=_(
            "The {score} score of {heads} heads on this text at {count} steps of training: how much each {does}. The "
            "largest is {most}, layer {layer} head {head} at step {step:,}. Attention spread evenly would have "
            "{even}.",
            score=called,
            heads=values[0].size,
            count=len(steps),
            does=look_up(HEAD_SCORES[name]),
            most=number(values[largest]),
            layer=largest[1],
            head=largest[2],
            step=steps[largest[0]],
            even=number(even),
        ),
        xaxis=step_axis(steps, _yardstick(even, by_chance[0].within is not None), room=0.08),
        yaxis=yaxis,
        hovermode="closest",
        hoverdistance=-1,
        showlegend=False,
    )
    fig.add_hline(even, line={"color": RESIDUAL, "width": 1, "dash": "dash"})
    return with_present_step(fig, trace, steps)


def _yardstick(even: float, has_chance: bool) -> str:
    said = _("training step<br>dashed: attention spread evenly would have {even} on this text", even=number(even))
    return _("{said};<br>hollow dots: no more than by chance", said=said) if has_chance else said


def _named(values: np.ndarray) -> list[tuple[int, int]]:
    """(layer, head) of the lines that end highest, as far as their names have room beside one another."""
    found: list[tuple[int, int]] = []
    for place in np.argsort(-values[-1], axis=None)[: 3 * MOST_NAMED]:
        each = tuple(int(i) for i in np.unravel_index(place, values.shape[1:]))
        if all(abs(values[-1][each] - values[-1][other]) >= APART for other in found):
            found.append(each)
    return found[:MOST_NAMED]


def in_order(shape: tuple[int, int], chosen: tuple[int, int]) -> list[tuple[int, int]]:
    """(layer, head) of every line, the chosen head's last, and so above all others."""
    others = [(i, j) for i in range(shape[0]) for j in range(shape[1]) if (i, j) != chosen]
    return [*others, chosen]


def _at(trace: Trace, point: Point) -> tuple[Any, Trace]:
    """The model at the step of a dot, to be held as long as its run is looked into, and that run."""
    return nth(list(trace.at_steps().values()), point.of("item"))


def inspect_text_loss(trace: Trace, selection: Selection, point: Point) -> Derivation | None:
    """Of a dot the loss at its step."""
    _lm, run = _at(trace, point)
    return text_loss(run)


def inspect_score(trace: Trace, selection: Selection, point: Point) -> Derivation | None:
    """Of a dot the score of its head at its step."""
    shape = trace.config.num_layers, trace.config.num_heads
    layer, head = nth(in_order(shape, (selection.layer, selection.head)), point.of("curve"))
    _lm, run = _at(trace, point)
    return head_score(run, selection.head_score, selection.first_token == "hidden", layer, head)


CURVES = N_("Whether a score is more than chance is another question in each run: look at A and B in turn.")
