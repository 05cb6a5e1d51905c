"""Glossary entries on methods of interpretation: attribution, ablation, and the comparison of two runs."""

from collections.abc import Callable

import numpy as np

from explorer.lessons.glossary.glossary_entry import GlossaryEntry, GlossaryExampleContext
from explorer.translations import N_

PATCHING_EXAMPLE = N_(
    "On the tab Patching {clean} is clean and {corrupted} corrupted. Tokens of A that differ in B: {unlike_b} of "
    "{tokens}. Beside {token} stands {partner}."
)


def if_comparable(
    example: str | Callable[[GlossaryExampleContext], str],
) -> Callable[[GlossaryExampleContext], str]:
    """Return a function that chooses the example if there are two comparable runs, or else says why not."""

    def choose(context: GlossaryExampleContext) -> str:
        if context.comparison is None:
            return N_("Here is one run alone.")
        if not context.comparison.has_aligned_tokens:
            return N_("Here no token of B stands for one of A.")
        return example if isinstance(example, str) else example(context)

    return choose


def choose_kl_divergence_example(context: GlossaryExampleContext) -> str:
    if np.isnan(context.probabilities[1]).any():
        return N_("Here the models have different tokens, and there is none.")
    return N_("After {token} it is {there} bits from A to B and {back} bits from B to A.")


def choose_head_distance_example(context: GlossaryExampleContext) -> str:
    shape_a, shape_b = ((run.config.num_layers, run.config.num_heads) for run in context.comparison.runs)
    if shape_a != shape_b:
        return N_("Here the models have different heads.")
    return N_("Here it is largest, {distance}, for layer {distant_layer} head {distant_head}.")


COMPARISON = (
    GlossaryEntry(
        ("A − B",),
        N_("what a number is in the run A less what it is in the run B, at tokens that stand beside each other"),
        if_comparable(
            N_(
                "After {token} the probability of {best} is {probability_a} in A and {probability_b} in B, "
                "so A − B is {probability_difference}."
            )
        ),
    ),
    GlossaryEntry(
        (N_("partner"), N_("partners")),
        N_("the token of the other run that stands beside a token when two runs are compared"),
        if_comparable(N_("Here {aligned} of the {tokens} tokens of A have one.")),
    ),
    GlossaryEntry(
        (N_("edit script"),),
        N_("the way to make one row of tokens of another with as few insertions, deletions and replacements as can be"),
        if_comparable(
            N_("Here {kept} tokens are kept, {replaced} replaced, {deleted} of A deleted and {inserted} of B inserted.")
        ),
    ),
    GlossaryEntry(
        (N_("divergence"), "KL", N_("KL divergence")),
        N_(
            "how many bits more it takes to write down what one set of probabilities draws with a code made for the "
            "other (after Kullback and Leibler): 0 for the same, and another number each way"
        ),
        if_comparable(choose_kl_divergence_example),
    ),
    GlossaryEntry(
        (N_("Jensen-Shannon distance"),),
        N_(
            "how far apart two sets of probabilities are, 0 for the same to 1 where they share nothing; of a head the "
            "mean over the queries of both runs"
        ),
        if_comparable(choose_head_distance_example),
    ),
    GlossaryEntry(
        (N_("patching"), N_("patched"), N_("patch")),
        N_("putting a value of one run into another run, to see what that changes"),
        if_comparable(PATCHING_EXAMPLE),
    ),
    GlossaryEntry(
        (N_("clean"),),
        N_("of two prompts in patching the one with the answer that is looked for"),
        if_comparable(PATCHING_EXAMPLE),
    ),
    GlossaryEntry(
        (N_("corrupted"),),
        N_("of two prompts in patching the one that differs from the clean one in what decides the answer"),
        if_comparable(PATCHING_EXAMPLE),
    ),
    GlossaryEntry(
        (N_("denoising"),),
        N_("putting values of the clean run into the corrupted one: what suffices for the answer"),
        if_comparable(PATCHING_EXAMPLE),
    ),
    GlossaryEntry(
        (N_("noising"),),
        N_("putting values of the corrupted run into the clean one: what the answer needs"),
        if_comparable(PATCHING_EXAMPLE),
    ),
)


ATTRIBUTION = (
    GlossaryEntry(
        (N_("logit lens"),),
        N_("what the model would say if it stopped at some depth"),
        N_("After {token} the embedding alone would say {first_guess}, the whole model says {last_guess}."),
    ),
    GlossaryEntry(
        (N_("direct logit attribution"), N_("attribution")),
        N_("a logit taken apart into what each part of the model added to it"),
        N_(
            "To the logit of {best} here, {logit}, all heads add {heads_add} and all feed-forwards {feed_forwards_add}."
        ),
    ),
    GlossaryEntry(
        (N_("gradient"), N_("gradients")),
        N_("how fast a number grows with each of the numbers that it is worked out from"),
        N_("A logit after {token} has {gradients:,} at the embeddings, {d_model} for each token up to there."),
    ),
    GlossaryEntry(
        (N_("knock-out"),),
        N_("hiding a token from all later ones, in all heads, to see what becomes of a prediction"),
        N_("Before {token} stand {position} tokens that can be hidden."),
    ),
    GlossaryEntry(
        (N_("ablation"), N_("ablated"), N_("ablate")),
        N_("running the model without a part, to see what becomes of the prediction"),
        N_("Without layer {layer} head {head} the log₂ probability of {best} changes by {ablation_effect} bits."),
    ),
)
