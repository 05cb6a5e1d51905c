"""Words about two runs beside each other."""

from collections.abc import Callable

import numpy as np

from explorer.analysis.divergence import kl_divergence
from explorer.analysis.parting import head_distance, next_tokens
from explorer.explain.notation import number, quoted
from explorer.language import N_, _
from explorer.lessons.glossary.entry import Entry, Look
from explorer.tracing.comparison import Comparison


def of_both(told: Callable[[Look, Comparison], str]) -> Callable[[Look], str]:
    """What is told where there are two runs that can be compared."""

    def here(look: Look) -> str:
        if look.comparison is None:
            return _("Here is one run alone.")
        if not look.comparison.comparable:
            return _("Here no token of B stands for one of A.")
        return told(look, look.comparison)

    return here


def less(look: Look, comparison: Comparison) -> str:
    mine, theirs = next_tokens(comparison, look.selection.query)
    token_id = int(mine.argmax())
    return _(
        "After {token} the probability of {likeliest} is {a} in A and {b} in B, so A − B is {less}.",
        token=quoted(look.token),
        likeliest=quoted(look.trace.vocabulary[token_id]),
        a=number(mine[token_id]),
        b=number(theirs[token_id]),
        less=number(mine[token_id] - theirs[token_id]),
    )


def partners(look: Look, comparison: Comparison) -> str:
    found = comparison.alignment.partners
    return _(
        "Here {count} of the {tokens} tokens of A have one.",
        count=len(found) - found.count(None),
        tokens=len(found),
    )


def script(look: Look, comparison: Comparison) -> str:
    mine, theirs = (run.tokens for run in comparison.runs)
    alignment = comparison.alignment
    pairs = [(mine[i], theirs[p]) for i, p in enumerate(alignment.partners) if p is not None]
    return _(
        "Here {kept} tokens are kept, {replaced} replaced, {deleted} of A deleted and {inserted} of B inserted.",
        kept=sum(a == b for a, b in pairs),
        replaced=sum(a != b for a, b in pairs),
        deleted=alignment.partners.count(None),
        inserted=alignment.back.count(None),
    )


def divergence(look: Look, comparison: Comparison) -> str:
    mine, theirs = next_tokens(comparison, look.selection.query)
    if np.isnan(theirs).any():
        return _("Here the models have different tokens, and there is none.")
    return _(
        "After {token} it is {there} bits from A to B and {back} bits from B to A.",
        token=quoted(look.token),
        there=number(kl_divergence(mine, theirs)),
        back=number(kl_divergence(theirs, mine)),
    )


def distance(look: Look, comparison: Comparison) -> str:
    shapes = {(run.config.num_layers, run.config.num_heads) for run in comparison.runs}
    if len(shapes) > 1:
        return _("Here the models have different heads.")
    values = head_distance(comparison)
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    return _(
        "Here it is largest, {distance}, for layer {layer} head {head}.",
        distance=number(values[layer, head]),
        layer=layer,
        head=head,
    )


def sides(look: Look, comparison: Comparison) -> str:
    (mine, theirs), partners = (run.tokens for run in comparison.runs), comparison.alignment.partners
    here = partners[look.selection.query]
    return _(
        "On the tab Patching {clean} is clean and {corrupted} corrupted. Of the {tokens} tokens of A {count} are "
        "others in B, where {partner} stands beside {token}.",
        clean="B" if look.selection.clean_run == "b" else "A",
        corrupted="A" if look.selection.clean_run == "b" else "B",
        tokens=len(partners),
        count=sum(p is None or mine[i] != theirs[p] for i, p in enumerate(partners)),
        partner=_("nothing") if here is None else quoted(theirs[here]),
        token=quoted(look.token),
    )


ENTRIES = (
    Entry(
        ("A − B",),
        N_("what a number is in the run A less what it is in the run B, at tokens that stand beside each other"),
        of_both(less),
    ),
    Entry(
        (N_("partner"), N_("partners")),
        N_("the token of the other run that stands beside a token when two runs are compared"),
        of_both(partners),
    ),
    Entry(
        (N_("edit script"),),
        N_("the way to make one row of tokens of another with as few insertions, deletions and replacements as can be"),
        of_both(script),
    ),
    Entry(
        (N_("divergence"), "KL", N_("KL divergence")),
        N_(
            "how many bits more it takes to write down what one set of probabilities draws with a code made for the "
            "other (after Kullback and Leibler): 0 for the same, and another number each way"
        ),
        of_both(divergence),
    ),
    Entry(
        (N_("Jensen-Shannon distance"),),
        N_(
            "how far apart two sets of probabilities are, 0 for the same to 1 where they share nothing; of a head the "
            "mean over the queries of both runs"
        ),
        of_both(distance),
    ),
    Entry(
        (N_("patching"), N_("patched"), N_("patch")),
        N_("putting a value of one run into another run, to see what that changes"),
        of_both(sides),
    ),
    Entry((N_("clean"),), N_("of two prompts in patching the one with the answer that is looked for"), of_both(sides)),
    Entry(
        (N_("corrupted"),),
        N_("of two prompts in patching the one that differs from the clean one in what decides the answer"),
        of_both(sides),
    ),
    Entry(
        (N_("denoising"),),
        N_("putting values of the clean run into the corrupted one: what suffices for the answer"),
        of_both(sides),
    ),
    Entry(
        (N_("noising"),),
        N_("putting values of the corrupted run into the clean one: what the answer needs"),
        of_both(sides),
    ),
)
