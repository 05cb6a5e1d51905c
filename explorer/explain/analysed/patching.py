"""How the effect of a value put from one run into another comes about."""

import numpy as np

from explorer.analysis.patching import effects, metric_of
from explorer.analysis.rounding import Check
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import as_text
from explorer.explain.source import Source
from explorer.explain.working import Input, Working
from explorer.language import _
from explorer.state.interventions import Intervention
from explorer.tracing.effect_scale import effect
from explorer.tracing.patching_question import METRICS, PatchingQuestion
from explorer.tracing.trace import Trace

SYMBOLS = {
    "denoise": "(m(patched) − m(corrupted)) / (m(clean) − m(corrupted))",
    "noise": "(m(patched) − m(clean)) / (m(clean) − m(corrupted))",
}


def effect_of(
    question: PatchingQuestion,
    runs: tuple[Trace, Trace],
    edit: Intervention,
    measured: np.ndarray,
    metric: str,
    direction: str,
) -> Derivation | None:
    """Of one node: from an ordinary run that takes the value, and the captured logits of the clean and corrupted run;
    None where clean and corrupted run measure the same, so that there is no effect.

    Args:
        runs: captured without changes, the clean one first.
        measured: (M,) what the map has of the node.
    """
    row, last = METRICS.index(metric), len(question.clean) - 1
    clean, corrupted = (metric_of(run["logits"][last], question.answer, question.wrong)[row] for run in runs)
    patched = question.changed(direction, edit)[row]
    again = float(effect(np.array(patched), clean, corrupted, direction))
    drawn = float(effects(question, measured[:, None], metric, direction)[0])
    if not np.isfinite(drawn):
        return None
    numbers = {
        "patched": number(patched),
        "clean": number(clean),
        "corrupted": number(corrupted),
        "effect": number(again),
    }
    taken = numbers["corrupted" if direction == "denoise" else "clean"]
    size = len(runs[0].vocabulary)
    working = Working(
        SYMBOLS[direction],
        lambda: (
            f"({numbers['patched']} − {taken}) / ({numbers['clean']} − {numbers['corrupted']}) = {numbers['effect']}"
        ),
        again,
        (
            Input(_("logits of a run with {edit}, at [{query}]", edit=edit, query=last), (), (size,)),
            Input(_("logits of the clean run, at [{query}]", query=last), (), (size,)),
            Input(_("logits of the corrupted run, at [{query}]", query=last), (), (size,)),
        ),
    )
    told = _(
        "{edit}, m = {metric}: clean {clean}, corrupted {corrupted}, patched {patched}",
        edit=edit.words(runs[0].config, as_text(runs[0])),
        metric=metric_words(metric),
        **numbers,
    )
    source = Source("explorer/tracing/effect_scale.py", "return changes / (clean - corrupted)")
    return Derivation(_("effect"), told, drawn, working, source)


def metric_words(metric: str) -> str:
    return {
        "logit_difference": _("logit of the answer − logit of the wrong answer"),
        "log_probability": _("ln of the answer’s probability"),
        "probability": _("the answer’s probability"),
    }[metric]


def as_captured(question: PatchingQuestion, runs: tuple[Trace, Trace]) -> Check:
    """What clean and corrupted run measured, held against the captured logits."""
    last = len(question.clean) - 1
    captured = [metric_of(run["logits"][last], question.answer, question.wrong) for run in runs]
    return Check.of(runs[0].dtype, question.unpatched, np.array(captured), _size(runs, last))


def run_as_changed(
    question: PatchingQuestion, runs: tuple[Trace, Trace], edit: Intervention, measured: np.ndarray, direction: str
) -> Check:
    """What the map has of a node, (M,), held against an ordinary run that takes the value."""
    again = question.changed(direction, edit)
    return Check.of(runs[0].dtype, measured, again, _size(runs, len(question.clean) - 1))


def _size(runs: tuple[Trace, Trace], last: int) -> float:
    return 2 * max(1.0, *(float(np.abs(run["logits"][last]).max()) for run in runs))
