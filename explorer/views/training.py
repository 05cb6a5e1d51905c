"""Training view: the model's metrics over its training."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from explorer.analysis.head_scores import HEAD_SCORES, chance_head_scores, head_score, head_scores
from explorer.analysis.next_token import NATS_PER_BIT, mean_text_loss, text_loss
from explorer.explain.derivation import ClickedPoint, Derivation, get_item
from explorer.explain.notation import format_number
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.tracing.training_history import TrainingHistory, log2_step
from explorer.translations import N_, _, ngettext, translate
from explorer.views import graph_objects as go
from explorer.views.labels import NO_REPEATED_TOKEN, chance_hover
from explorer.views.selection import HEAD_SCORE_FIELD
from explorer.views.style import ATTENTION, ORANGE, RESIDUAL, SELECTED, column_line, figure, row_line
from explorer.views.two_run_figures import NoDifferenceError, share_scale, subtract_figures
from explorer.views.verification import (
    Verification,
    check_values,
    expand_tap_templates,
    input_error_text,
    make_unverified,
)
from explorer.views.view import Panel, TwoRunRenderer, View

MAX_TICKS = 7


def runs_by_step(trace: Trace) -> dict[int, Trace]:
    """Return the run of the same tokens at every checkpoint of the training, by step; empty without checkpoints."""
    return {step: run for step, (_lm, run) in trace.at_training_steps().items()}


def step_axis_positions(steps: Sequence[float]) -> np.ndarray:
    """Return the coordinates of steps on the logarithmic axis; step 0, which has no logarithm, is at 1/2."""
    return np.maximum(np.asarray(steps, float), 0.5)


def step_axis(
    steps: Sequence[float], title: str = "", right_margin: float = 0.0, preferred: Collection[int] = ()
) -> dict[str, Any]:
    """Return the settings of a logarithmic axis of steps.

    Args:
        right_margin: right of the last one, as a fraction of the axis.
        preferred: steps that are labelled instead, if enough of them are on the axis.
    """
    first, last = (
        math.log10(position) for position in (step_axis_positions(steps).min(), step_axis_positions(steps).max())
    )
    margin = 0.03 * (last - first) or 0.1
    ticks = tick_steps([step for step in preferred if min(steps) <= step <= max(steps)])
    ticks = ticks if len(ticks) > 2 else tick_steps(steps)
    return {
        "type": "log",
        "range": [first - margin, last + margin + right_margin * (last - first)],
        "tickvals": step_axis_positions(ticks).tolist(),
        "ticktext": [f"{step:,.0f}" for step in ticks],
        "title": {"text": title or _("training step")},
    }


def tick_steps(steps: Sequence[float]) -> list[float]:
    """Return the steps to label in ascending order, thinned backwards from the last one."""
    ordered = sorted(set(steps), key=log2_step, reverse=True)
    if not ordered:
        return []
    min_gap = max(0.7, (log2_step(ordered[0]) - log2_step(ordered[-1])) / MAX_TICKS)
    ticks = ordered[:1]
    for step in ordered[1:]:
        if log2_step(ticks[-1]) - log2_step(step) >= min_gap - 1e-9:
            ticks.append(step)
    if ticks[-1] != ordered[-1]:  # the first step has priority over its neighbour
        ticks[-1 if len(ticks) > 1 and log2_step(ticks[-1]) - log2_step(ordered[-1]) < min_gap else len(ticks) :] = (
            ordered[-1:]
        )
    return ticks[::-1]


def mark_current_step(fig: go.Figure, trace: Trace, steps: Sequence[float]) -> go.Figure:
    """Return the figure with a line at the current step, if it is on the axis."""
    step = trace.training.step
    if step is not None and min(steps) <= step <= max(steps):
        fig.add_shape(**column_line(float(step_axis_positions([step])[0]), width=2))
    return fig


def click_checkpoints(trace: Trace, steps: Sequence[float]) -> list[str] | None:
    """Return the checkpoint that a click on each point opens; None if the model has none."""
    training = trace.training
    return [training.nearest(step) for step in steps] if training.snapshots else None


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
    for head_index in line_draw_order(values.shape[1:], (layer, head)):
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
                text=[""] * (len(steps) - 1) + [f" {i}.{j}"] if head_index in labelled_heads else None,
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
        shapes=[row_line(even, dash="dash")],
    )
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


def line_draw_order(shape: tuple[int, int], chosen_head: tuple[int, int]) -> list[tuple[int, int]]:
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
    layer, head = get_item(line_draw_order(shape, (selection.layer, selection.head)), point.coordinate("curve"))
    _lm, run = _model_and_run(trace, point)
    return head_score(run, selection.option("head_score"), selection.first_token == "hidden", layer, head)


CHANCE_DIFFERS = N_("Whether a score is more than chance is another question in each run: look at A and B in turn.")


# name in training.jsonl -> what it is called, and its colour
LOSSES = {
    "train_loss": (N_("on training text (mean)"), RESIDUAL),
    "validation_loss": (N_("on text held out"), ORANGE),
}
COPYING = {
    "previous_token_score": (N_("best previous-token head"), ATTENTION),
    "induction_score": (N_("best induction head"), ORANGE),
}


def has_any_metric(trace: Trace, names: dict) -> bool:
    """Return whether the training log has any of these metrics."""
    return trace.training is not None and any(name in trace.training.record for name in names)


def logged_loss_curves(trace: Trace) -> go.Figure:
    """Draw the loss against the step, on training text and on held-out text."""
    return _curves(trace, LOSSES, _("loss, nats a token"))


def logged_copying_curves(trace: Trace) -> go.Figure:
    """Draw the best head's previous-token and induction score against the step."""
    return _curves(trace, COPYING, _("head score"), range=[-0.02, 1.02])


def _curves(trace: Trace, names: dict, measure: str, **yaxis) -> go.Figure:
    record = trace.training.record
    steps, logged_names = record["step"], [name for name in names if name in record]
    lines = [
        go.Scatter(
            x=step_axis_positions(steps),
            y=record[name],
            name=translate(names[name][0]),
            mode="lines+markers",
            marker={"size": 5},
            line={"color": names[name][1], "width": 2},
            text=[_("step {step:,}", step=int(step)) for step in steps],
            customdata=click_checkpoints(trace, steps),
            hovertemplate=_("{what}<br>%{{text}}<br>%{{y:.4g}}<extra></extra>", what=translate(names[name][0])),
        )
        for name in logged_names
    ]
    fig = figure(
        lines,
        alt=_(
            "{measure} by training step, {first:,.0f} to {last:,.0f}: {curves}.",
            measure=measure,
            first=steps[0],
            last=steps[-1],
            curves="; ".join(_curve_alt(translate(names[name][0]), record[name]) for name in logged_names),
        ),
        xaxis=step_axis(steps, preferred=trace.training.snapshots),
        yaxis={"title": {"text": measure}, **yaxis},
        hovermode="closest",
        hoverdistance=-1,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
    )
    return mark_current_step(fig, trace, steps)


def _curve_alt(name: str, values: np.ndarray) -> str:
    finite = values[np.isfinite(values)]
    return _("{name} {first} to {last}", name=name, first=format_number(finite[0]), last=format_number(finite[-1]))


UNKNOWN = N_(
    "This model came without a record of its training (training.jsonl) and without earlier steps, so its training "
    "cannot be shown."
)


def describe_checkpoint(trace: Trace, selection: Selection) -> str:
    """Return the checkpoint's training step, losses and settings as text."""
    training = trace.training
    has_history = training is not None and bool(training.snapshots or training.record)
    lines = [_checkpoint_text(training), *_log_texts(training)] if has_history else [translate(UNKNOWN)]
    return "\n".join([*lines, _text_loss_text(trace)])


def training_sentence(trace: Trace, selection: Selection) -> str:
    """Return the loss of the run's own text, beside that of even guesses."""
    step = trace.training.step if trace.training else None
    if len(trace) < 2:
        loss = _("A single token has no loss: nothing precedes it.")
    else:
        loss = translate(
            TEXT_LOSS if step is None else TEXT_LOSS_AT_STEP,
            step=step,
            loss=format_number(mean_text_loss(trace)),
            even=format_number(math.log(trace.config.vocab_size)),
        )
    return f"{loss} {translate(NEXT_STEP)}"


NEXT_STEP = N_("Training lowers the loss.")


TEXT_LOSS = N_("This text’s loss is {loss} nats a token; even guesses: {even}.")
TEXT_LOSS_AT_STEP = N_("After step {step:,} this text’s loss is {loss} nats a token; even guesses: {even}.")


def _text_loss_text(trace: Trace) -> str:
    count, loss = len(trace) - 1, mean_text_loss(trace)
    if not count:
        return _("this text: tokens that something precedes = {count}, and so no loss", count=count)
    return ngettext(
        "this text: loss = mean of −ln p over {count} token = {nats} nats = {bits} bits",
        "this text: loss = mean of −ln p over {count} tokens = {nats} nats = {bits} bits",
        count,
        nats=format_number(loss),
        bits=format_number(loss / NATS_PER_BIT),
    )


def _checkpoint_text(training: TrainingHistory) -> str:
    if not training.snapshots:
        return _("{model} has no other saved training steps", model=training.model)
    steps = list(training.snapshots)
    fields = {"model": training.model, "count": len(steps), "first": steps[0], "last": steps[-1]}
    if training.step is None:
        return _("{model} was kept at {count} steps of its training, {first:,} to {last:,}, and at its end", **fields)
    return _(
        "{model} after step {step:,}, one of {count} that it was kept at, {first:,} to {last:,}",
        step=training.step,
        **fields,
    )


def _log_texts(training: TrainingHistory) -> list[str]:
    """Return the training log's entries at the current step, or the last ones."""
    record = training.record
    if not record:
        return [_("no record of its training came with it (training.jsonl)")]
    step = training.step if training.step is not None else int(record["step"][-1])
    (rows,) = np.nonzero(record["step"] == step)
    if not len(rows):
        first, last = (int(record["step"][end]) for end in (0, -1))
        template = _("the training log has no entry for step {step:,}; its entries go from {first:,} to {last:,}")
        return [template.format(step=step, first=first, last=last)]
    row = {name: values[rows[-1]] for name, values in record.items()}
    entries = [
        translate(text, value=format_number(row[name]))
        for name, text in LOG_ENTRIES
        if math.isfinite(row.get(name, math.nan))
    ]
    if not entries:
        return []
    template = N_("written down after step {step:,}: {numbers}")
    if training.step is None:
        template = N_("written down last, after step {step:,}: {numbers}")
    return [translate(template, step=step, numbers=", ".join(entries))]


LOG_ENTRIES = (
    ("validation_loss", N_("loss on text held out = {value} nats a token")),
    ("bits_per_byte", N_("bits a byte = {value}")),
    ("train_loss", N_("loss on training text = {value}")),
    ("learning_rate", N_("learning rate = {value}")),
)


def subtract_curves(first: go.Figure, second: go.Figure, comparison: Comparison, title: str) -> go.Figure:
    """Return the figure of A − B of curves over training, see `subtract_figures`.

    Raises:
        NoDifferenceError: the curves are the same, as for two steps of one training.
    """
    difference = subtract_figures(first, second, comparison, title)
    if not any(np.nan_to_num(line["y"]).any() for line in difference.traces_and_layout[0]):
        raise NoDifferenceError(_("A and B lie on the same curve: choose A to see it."))
    return difference


CURVES = TwoRunRenderer(share_scale, subtract_curves)
LOG_NOT_VERIFIED = make_unverified(N_("read from the training log (training.jsonl); these numbers are not checked"))

FROM_FILE = N_("this number was logged in training, on text that is not here")


def verify_every_step(*templates: str):
    """Return a verifier of an analysis of captured values at all steps of training: all are recomputed."""

    def verify(trace: Trace, selection: Selection) -> Verification:
        checks = {}
        for step, (_lm, run) in trace.at_training_steps().items():
            step_checks = check_values(run, expand_tap_templates(templates, run, selection))
            checks |= {_("{name} at step {step:,}", name=name, step=step): check for name, check in step_checks.items()}
        details = _(
            "{values} at each of {count} steps", values=", ".join(templates), count=len(trace.at_training_steps())
        )
        return Verification.from_checks(checks, input_error_text(checks), details, trace)

    return verify


def has_checkpoints(trace: Trace) -> bool:
    """Return whether the model has checkpoints from its training."""
    return trace.training is not None and bool(trace.training.snapshots)


VIEW = View(
    name="training",
    title=N_("Training"),
    group="further",
    order=140,
    reads_other_files=True,
    fields=(HEAD_SCORE_FIELD,),
    description=N_("Training makes the next token likelier step by step: the loss falls, heads learn where to look."),
    sentence=training_sentence,
    formula=describe_checkpoint,
    required_taps=("blocks.*.attn.pattern", "logits"),
    unavailable_message=lambda config: _("Too little was captured of this model to follow its training."),
    panels=(
        Panel(
            name="loss",
            title=N_("Loss, as training wrote it down"),
            draw=lambda trace, selection: logged_loss_curves(trace),
            two_run_renderer=CURVES,
            condition=lambda trace: has_any_metric(trace, LOSSES),
            click_opens_checkpoint=True,
            is_selection_independent=True,
            verify=LOG_NOT_VERIFIED,
            no_inspection=FROM_FILE,
            height=300,
            width="half",
        ),
        Panel(
            name="text",
            title=N_("Loss of this text at every step that was kept"),
            draw=lambda trace, selection: text_loss_curve(trace),
            two_run_renderer=CURVES,
            condition=has_checkpoints,
            click_opens_checkpoint=True,
            is_selection_independent=True,
            verify=verify_every_step("logits"),
            inspect=inspect_text_loss,
            height=300,
            width="half",
        ),
        Panel(
            name="scores",
            title=N_("Each head’s score by step"),
            chooser="head_score",
            draw=lambda trace, s: head_score_lines(
                trace, s.option("head_score"), s.first_token == "hidden", s.layer, s.head
            ),
            no_difference_reason=CHANCE_DIFFERS,
            condition=has_checkpoints,
            click_opens_checkpoint=True,
            verify=verify_every_step("blocks.*.attn.pattern"),
            inspect=inspect_head_score,
            height=380,
            width="half",
        ),
        Panel(
            name="copying",
            title=N_("Its best copying heads, measured in training"),
            draw=lambda trace, selection: logged_copying_curves(trace),
            two_run_renderer=CURVES,
            condition=lambda trace: has_any_metric(trace, COPYING),
            click_opens_checkpoint=True,
            is_selection_independent=True,
            verify=LOG_NOT_VERIFIED,
            no_inspection=FROM_FILE,
            height=380,
            width="half",
        ),
    ),
)
