"""Patching: which values carry the answer from one prompt to another."""

from explorer.explain.analysed.patching import metric_words
from explorer.explain.notation import number
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.tracing.effect_scale import LEAST_DIFFERENCE
from explorer.tracing.patching_question import METRICS
from explorer.views.patching import evidence
from explorer.views.patching.effect_map import nothing_to_explain
from explorer.views.patching.estimates import beside_exact, estimated_map
from explorer.views.patching.exact import exact_map
from explorer.views.patching.neurons import strongest_neurons
from explorer.views.patching.paths import path_map, receiver_of, receiver_words
from explorer.views.patching.two_prompts import ONE_PROMPT, TwoPrompts, two_prompts
from explorer.views.two_runs.difference import Incomparable
from explorer.views.view import Panel, View


def formula(runs: Comparison, selection: Selection) -> str:
    """Which run is which, what is measured, and what it comes to in both."""
    try:
        two = two_prompts(runs, selection)
    except Incomparable as incomparable:
        return str(incomparable)
    clean, corrupted = two.question.unpatched[:, METRICS.index(selection.metric)]
    roles = (
        _("clean: B, corrupted: A, both without their changes")
        if two.clean_is == "b"
        else _("clean: A, corrupted: B, both without their changes")
    )
    measured = _(
        "m = {metric}, after the last token; answer {answer}, wrong answer {wrong}: m(clean) = {clean}, m(corrupted) = "
        "{corrupted}",
        metric=metric_words(selection.metric),
        answer=two.word(two.question.answer),
        wrong=two.word(two.question.wrong),
        clean=number(clean),
        corrupted=number(corrupted),
    )
    none = nothing_to_explain() if abs(clean - corrupted) < LEAST_DIFFERENCE else ""
    hides = _("what lowers a small probability can hardly be seen in it") if selection.metric == "probability" else ""
    paths = _(
        "direct paths to {receiver}: what all other heads and every feed-forward write stays as it was, frozen; norms "
        "are computed anew",
        receiver=receiver_words(receiver_of(two, selection)),
    )
    beside = unequal(two)
    return "\n".join(filter(None, (roles, beside, measured, none, hides, look_up(EFFECTS), paths)))


def unequal(two: TwoPrompts) -> str:
    """What goes over where the prompts do not stand position by position; "" where they do."""
    if two.question.by_position:
        return ""
    return _(
        "the clean prompt has {clean} tokens and the corrupted one {corrupted}: values go over between tokens that "
        "stand beside each other in the strips above; {lone} of the clean prompt have no partner and are not patched",
        clean=len(two.question.clean),
        corrupted=len(two.question.corrupted),
        lone=len(two.lone),
    )


EFFECTS = N_(
    "denoising (m(patched) − m(corrupted)) / (m(clean) − m(corrupted))\n"
    "noising (m(patched) − m(clean)) / (m(clean) − m(corrupted))"
)


BY_POSITION = {"x": "key", "y": "layer"}  # the query stays at the answer
BY_HEAD = {"x": "head", "y": "layer"}

VIEW = View(
    name="patching",
    title=N_("Patching"),
    words=N_(
        "Which values carry the answer? Of two prompts with different answers, each value of one run is put alone into "
        "the other, and it is measured how far that takes the answer along: denoising finds what suffices, noising "
        "what is needed. Click a cell of the maps of effects or estimates, and the run takes that value: all tabs show "
        "what follows. Paths are measured only."
    ),
    formula=formula,
    compares=True,
    alone=ONE_PROMPT,
    of_two_prompts=True,
    needs=("blocks.*.attn.z", "blocks.*.ffn.hidden", "blocks.*.resid_pre", "logits"),
    otherwise=lambda config: _("Too little was captured of this model to put values of another run into it."),
    controls=(
        *("clean_run", "answer", "wrong", "metric", "patch_position", "patch_head", "patch_direction", "receiver"),
        *("layer", "head"),
    ),
    panels=(
        *(
            Panel(
                name=f"positions_{direction}",
                title=title,
                draw=lambda runs, s, d=direction: exact_map(runs, s, s.patch_position, d),
                compares="other",
                selects=BY_POSITION,
                mark=lambda runs, s, d=direction: evidence.mark_of_map(runs, s, s.patch_position, d),
                inspect=lambda runs, s, point, d=direction: evidence.inspect(runs, s, s.patch_position, d, point),
                width="half",
            )
            for direction, title in (
                ("denoise", N_("Denoising, by layer and position: what suffices for the answer")),
                ("noise", N_("Noising, by layer and position: what the answer needs")),
            )
        ),
        *(
            Panel(
                name=f"heads_{direction}",
                title=title,
                draw=lambda runs, s, d=direction: exact_map(runs, s, s.patch_head, d),
                compares="other",
                selects=BY_HEAD,
                mark=lambda runs, s, d=direction: evidence.mark_of_map(runs, s, s.patch_head, d),
                inspect=lambda runs, s, point, d=direction: evidence.inspect(runs, s, s.patch_head, d, point),
                width="half",
            )
            for direction, title in (
                ("denoise", N_("Denoising, by layer and head, at all positions at once")),
                ("noise", N_("Noising, by layer and head, at all positions at once")),
            )
        ),
        Panel(
            name="estimate",
            title=N_("Attribution patching: the same map by head, estimated by gradients"),
            draw=lambda runs, s: estimated_map(runs, s, s.patch_head),
            inspect=lambda runs, s, point: evidence.inspect_estimate(runs, s, s.patch_head, point),
            compares="other",
            selects=BY_HEAD,
            mark=lambda runs, s: evidence.mark(runs, s, None, s.patch_direction),
            width="half",
        ),
        Panel(
            name="agreement",
            title=N_("How good the estimate is, head by head"),
            draw=lambda runs, s: beside_exact(runs, s, s.patch_head),
            inspect=lambda runs, s, point: evidence.inspect_beside(runs, s, s.patch_head, point),
            compares="other",
            mark=lambda runs, s: evidence.mark_of_map(runs, s, s.patch_head, s.patch_direction),
            width="half",
        ),
        Panel(
            name="estimate_positions",
            title=N_("Attribution patching: the same map by position, estimated by gradients"),
            draw=lambda runs, s: estimated_map(runs, s, s.patch_position),
            inspect=lambda runs, s, point: evidence.inspect_estimate(runs, s, s.patch_position, point),
            compares="other",
            selects=BY_POSITION,
            mark=lambda runs, s: evidence.mark(runs, s, None, s.patch_direction),
            width="half",
        ),
        Panel(
            name="agreement_positions",
            title=N_("How good the estimate is, position by position"),
            draw=lambda runs, s: beside_exact(runs, s, s.patch_position),
            inspect=lambda runs, s, point: evidence.inspect_beside(runs, s, s.patch_position, point),
            compares="other",
            mark=lambda runs, s: evidence.mark_of_map(runs, s, s.patch_position, s.patch_direction),
            width="half",
        ),
        Panel(
            name="paths",
            title=N_("Path patching: what each head sends the receiver directly, all else frozen"),
            draw=path_map,
            compares="other",
            selects=BY_HEAD,
            mark=lambda runs, s: evidence.mark(runs, s, None, s.patch_direction),
            inspect=evidence.inspect_path,
            width="half",
        ),
        Panel(
            name="neurons",
            title=N_("The 20 neurons of the chosen layer with the largest effects"),
            draw=strongest_neurons,
            compares="other",
            selects={"customdata": "neuron"},
            mark=evidence.mark_of_neurons,
            inspect=evidence.inspect_neuron,
            width="half",
        ),
    ),
)
