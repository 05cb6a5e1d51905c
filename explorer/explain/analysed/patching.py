"""How the effect of a value put from one run into another comes about."""

import numpy as np

from explorer.analysis.patching import effects, metric_of
from explorer.analysis.rounding import Check
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import as_text, at
from explorer.explain.source import Source
from explorer.explain.working import Input, Working
from explorer.language import _
from explorer.state.interventions import Intervention, parse_edit
from explorer.tracing.effect_scale import effect, share_of_difference
from explorer.tracing.patching_question import BY_POSITION, METRICS, PatchingQuestion, Receiver
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
    row = METRICS.index(metric)
    ends = tuple(len(prompt) - 1 for prompt in (question.clean, question.corrupted))
    last = ends[direction == "denoise"]
    clean, corrupted = (found[row] for found in _captured(question, runs))
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
            Input(_("logits of the clean run, at [{query}]", query=ends[0]), (), (size,)),
            Input(_("logits of the corrupted run, at [{query}]", query=ends[1]), (), (size,)),
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


def estimate_of(
    question: PatchingQuestion,
    runs: tuple[Trace, Trace],
    part: str,
    node: tuple[int, int],
    metric: str,
    direction: str,
) -> Derivation | None:
    """Of one node, (layer, place): what its numbers differ by times how fast the metric grows with each; None where
    there is no effect to share out."""
    drawn = float(question.estimate(direction, part, metric)[node])
    if not np.isfinite(drawn):
        return None
    clean, corrupted = (found[METRICS.index(metric)] for found in _captured(question, runs))
    step, slope = question.summed(direction, part, metric, *node)
    change = float(step @ slope)
    again = float(share_of_difference(np.array(change), clean, corrupted))
    of_pattern, shape = part in ("attn.q", "attn.k"), step.shape
    working = Working(
        _("Σ (x of the pattern that follows − x) ∂m/∂x / (m(clean) − m(corrupted))")
        if of_pattern
        else _("Σ (x of the other run − x) ∂m/∂x / (m(clean) − m(corrupted))"),
        lambda: f"{number(change)} / ({number(clean)} − {number(corrupted)}) = {number(again)}",
        again,
        (
            Input(_("differences of the values"), (), shape),
            Input(_("gradient of m at the values"), (), shape),
        ),
    )
    layer, column = node
    if part in BY_POSITION:
        value = parse_edit(f"blocks.{layer}.{part}*patch").named()
        value = _("{value}, {token}", value=value, token=at(runs[0], column))
    else:
        value = parse_edit(f"blocks.{layer}.{part}.{column}*patch").named()
    told = _("{value}, m = {metric}", value=value, metric=metric_words(metric))
    source = Source("explorer/tracing/patching/attribution_patching.py", "changes = torch.stack([(step * slope)")
    return Derivation(_("estimated effect"), told, drawn, working, source)


def path_of(
    question: PatchingQuestion,
    runs: tuple[Trace, Trace],
    receiver: Receiver,
    node: tuple[int, int],
    metric: str,
    direction: str,
) -> Derivation | None:
    """Of what one head, (layer, head), sends the receiver: from a run of its own; None where there is no effect."""
    row = METRICS.index(metric)
    drawn = float(effects(question, question.paths(direction, receiver), metric, direction)[node])
    if not np.isfinite(drawn):
        return None
    clean, corrupted = (found[row] for found in _captured(question, runs))
    patched = float(question.path(direction, receiver, *node)[row])
    again = float(effect(np.array(patched), clean, corrupted, direction))
    size = len(runs[0].vocabulary)
    taken = corrupted if direction == "denoise" else clean
    working = Working(
        SYMBOLS[direction],
        lambda: f"({number(patched)} − {number(taken)}) / ({number(clean)} − {number(corrupted)}) = {number(again)}",
        again,
        (
            Input(_("logits once the receiver alone has read what the head sends"), (), (size,)),
            Input(_("logits of the clean run, at [{query}]", query=len(question.clean) - 1), (), (size,)),
            Input(_("logits of the corrupted run, at [{query}]", query=len(question.corrupted) - 1), (), (size,)),
        ),
    )
    told = _(
        "direct path of head {head} of layer {layer}, m = {metric}",
        head=node[1],
        layer=node[0],
        metric=metric_words(metric),
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
    return Check.of(runs[0].dtype, question.unpatched, _captured(question, runs), _size(question, runs))


def run_as_changed(
    question: PatchingQuestion, runs: tuple[Trace, Trace], edit: Intervention, measured: np.ndarray, direction: str
) -> Check:
    """What the map has of a node, (M,), held against an ordinary run that takes the value."""
    again = question.changed(direction, edit)
    return Check.of(runs[0].dtype, measured, again, _size(question, runs))


def _captured(question: PatchingQuestion, runs: tuple[Trace, Trace]) -> np.ndarray:
    """(2, M) every metric of the clean and of the corrupted run."""
    return np.array([metric_of(each, question.answer, question.wrong) for each in last_logits(question, runs)])


def last_logits(question: PatchingQuestion, runs: tuple[Trace, Trace]) -> tuple[np.ndarray, np.ndarray]:
    """(V,) captured after the end of the clean prompt, and of the corrupted one."""
    prompts = question.clean, question.corrupted
    return tuple(run.logits.at(len(prompt) - 1) for run, prompt in zip(runs, prompts, strict=True))


def _size(question: PatchingQuestion, runs: tuple[Trace, Trace]) -> float:
    return 2 * max(1.0, *(float(np.abs(each).max()) for each in last_logits(question, runs)))
