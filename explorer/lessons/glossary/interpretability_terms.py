"""Glossary entries on methods of interpretation: attribution, ablation, and the comparison of two runs."""

from collections.abc import Callable

import numpy as np

from explorer.analysis.direct_logit_attribution import direct_logit_attribution
from explorer.analysis.intervention_effects import ablation_effects
from explorer.analysis.logit_lens import lens_summaries
from explorer.analysis.next_token import kl_divergence, next_token_ranking
from explorer.analysis.run_difference import head_distances, next_token_probabilities
from explorer.explain.notation import format_number, quote_token
from explorer.lessons.glossary.glossary_entry import GlossaryEntry, GlossaryExampleContext
from explorer.tracing.comparison import Comparison
from explorer.translations import N_, _


def with_comparable_runs(
    describe: Callable[[GlossaryExampleContext, Comparison], str],
) -> Callable[[GlossaryExampleContext], str]:
    """Return an example function that calls `describe` if there are two comparable runs, or else says why not."""

    def example(context: GlossaryExampleContext) -> str:
        if context.comparison is None:
            return _("Here is one run alone.")
        if not context.comparison.has_aligned_tokens:
            return _("Here no token of B stands for one of A.")
        return describe(context, context.comparison)

    return example


def probability_difference_example(context: GlossaryExampleContext, comparison: Comparison) -> str:
    probabilities_a, probabilities_b = next_token_probabilities(comparison, context.selection.query)
    token_id = int(probabilities_a.argmax())
    return _(
        "After {token} the probability of {likeliest} is {a} in A and {b} in B, so A − B is {less}.",
        token=quote_token(context.token),
        likeliest=quote_token(context.trace.vocabulary[token_id]),
        a=format_number(probabilities_a[token_id]),
        b=format_number(probabilities_b[token_id]),
        less=format_number(probabilities_a[token_id] - probabilities_b[token_id]),
    )


def alignment_example(context: GlossaryExampleContext, comparison: Comparison) -> str:
    partners = comparison.alignment.partners
    return _(
        "Here {count} of the {tokens} tokens of A have one.",
        count=len(partners) - partners.count(None),
        tokens=len(partners),
    )


def edit_script_example(context: GlossaryExampleContext, comparison: Comparison) -> str:
    tokens_a, tokens_b = (run.tokens for run in comparison.runs)
    alignment = comparison.alignment
    pairs = [(tokens_a[i], tokens_b[p]) for i, p in enumerate(alignment.partners) if p is not None]
    return _(
        "Here {kept} tokens are kept, {replaced} replaced, {deleted} of A deleted and {inserted} of B inserted.",
        kept=sum(a == b for a, b in pairs),
        replaced=sum(a != b for a, b in pairs),
        deleted=alignment.partners.count(None),
        inserted=alignment.inverse.count(None),
    )


def kl_divergence_example(context: GlossaryExampleContext, comparison: Comparison) -> str:
    probabilities_a, probabilities_b = next_token_probabilities(comparison, context.selection.query)
    if np.isnan(probabilities_b).any():
        return _("Here the models have different tokens, and there is none.")
    return _(
        "After {token} it is {there} bits from A to B and {back} bits from B to A.",
        token=quote_token(context.token),
        there=format_number(kl_divergence(probabilities_a, probabilities_b)),
        back=format_number(kl_divergence(probabilities_b, probabilities_a)),
    )


def head_distance_example(context: GlossaryExampleContext, comparison: Comparison) -> str:
    shapes = {(run.config.num_layers, run.config.num_heads) for run in comparison.runs}
    if len(shapes) > 1:
        return _("Here the models have different heads.")
    values = head_distances(comparison)
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    return _(
        "Here it is largest, {distance}, for layer {layer} head {head}.",
        distance=format_number(values[layer, head]),
        layer=layer,
        head=head,
    )


def patching_example(context: GlossaryExampleContext, comparison: Comparison) -> str:
    (tokens_a, tokens_b), partners = (run.tokens for run in comparison.runs), comparison.alignment.partners
    partner = partners[context.selection.query]
    return _(
        "On the tab Patching {clean} is clean and {corrupted} corrupted. Tokens of A that differ in B: {count} of "
        "{tokens}. Beside {token} stands {partner}.",
        clean="B" if context.selection.option("clean_run") == "b" else "A",
        corrupted="A" if context.selection.option("clean_run") == "b" else "B",
        tokens=len(partners),
        count=sum(p is None or tokens_a[i] != tokens_b[p] for i, p in enumerate(partners)),
        partner=_("nothing") if partner is None else quote_token(tokens_b[partner]),
        token=quote_token(context.token),
    )


COMPARISON = (
    GlossaryEntry(
        ("A − B",),
        N_("what a number is in the run A less what it is in the run B, at tokens that stand beside each other"),
        with_comparable_runs(probability_difference_example),
    ),
    GlossaryEntry(
        (N_("partner"), N_("partners")),
        N_("the token of the other run that stands beside a token when two runs are compared"),
        with_comparable_runs(alignment_example),
    ),
    GlossaryEntry(
        (N_("edit script"),),
        N_("the way to make one row of tokens of another with as few insertions, deletions and replacements as can be"),
        with_comparable_runs(edit_script_example),
    ),
    GlossaryEntry(
        (N_("divergence"), "KL", N_("KL divergence")),
        N_(
            "how many bits more it takes to write down what one set of probabilities draws with a code made for the "
            "other (after Kullback and Leibler): 0 for the same, and another number each way"
        ),
        with_comparable_runs(kl_divergence_example),
    ),
    GlossaryEntry(
        (N_("Jensen-Shannon distance"),),
        N_(
            "how far apart two sets of probabilities are, 0 for the same to 1 where they share nothing; of a head the "
            "mean over the queries of both runs"
        ),
        with_comparable_runs(head_distance_example),
    ),
    GlossaryEntry(
        (N_("patching"), N_("patched"), N_("patch")),
        N_("putting a value of one run into another run, to see what that changes"),
        with_comparable_runs(patching_example),
    ),
    GlossaryEntry(
        (N_("clean"),),
        N_("of two prompts in patching the one with the answer that is looked for"),
        with_comparable_runs(patching_example),
    ),
    GlossaryEntry(
        (N_("corrupted"),),
        N_("of two prompts in patching the one that differs from the clean one in what decides the answer"),
        with_comparable_runs(patching_example),
    ),
    GlossaryEntry(
        (N_("denoising"),),
        N_("putting values of the clean run into the corrupted one: what suffices for the answer"),
        with_comparable_runs(patching_example),
    ),
    GlossaryEntry(
        (N_("noising"),),
        N_("putting values of the corrupted run into the clean one: what the answer needs"),
        with_comparable_runs(patching_example),
    ),
)


def logit_lens_example(context: GlossaryExampleContext) -> str:
    read = lens_summaries(context.trace, range(context.selection.query, context.selection.query + 1))
    return _(
        "After {token} the embedding alone would say {first}, the whole model says {last}.",
        token=quote_token(context.token),
        first=quote_token(context.trace.vocabulary[read.top[0, 0, 0]]),
        last=quote_token(context.trace.vocabulary[read.top[-1, 0, 0]]),
    )


def attribution_example(context: GlossaryExampleContext) -> str:
    token_id = int(next_token_ranking(context.trace, context.selection.query)[0])
    contributions = direct_logit_attribution(context.trace, context.selection.query, token_id)
    return _(
        "To the logit of {token} here, {logit}, all heads add {heads} and all feed-forwards {feed_forward}.",
        token=quote_token(context.trace.vocabulary[token_id]),
        logit=format_number(contributions.logit),
        heads=format_number(contributions.heads.sum() + contributions.biases.sum()),
        feed_forward=format_number(contributions.feed_forward.sum()),
    )


def ablation_example(context: GlossaryExampleContext) -> str:
    token_id = int(next_token_ranking(context.trace, context.selection.query)[0])
    without = ablation_effects(context.trace, context.selection.query, token_id)
    bits = without.heads[context.selection.layer, context.selection.head]
    return _(
        "Without layer {layer} head {head} the log₂ probability of {token} changes by {bits} bits.",
        layer=context.selection.layer,
        head=context.selection.head,
        token=quote_token(context.trace.vocabulary[token_id]),
        bits=format_number(bits),
    )


def gradients_example(context: GlossaryExampleContext) -> str:
    count = (context.selection.query + 1) * context.trace.config.d_model
    return _(
        "A logit after {token} has {count:,} at the embeddings, {dimensions} for each token up to there.",
        token=quote_token(context.token),
        count=count,
        dimensions=context.trace.config.d_model,
    )


def attention_knockout_example(context: GlossaryExampleContext) -> str:
    return _(
        "Before {token} stand {count} tokens that can be hidden.",
        token=quote_token(context.token),
        count=context.selection.query,
    )


ATTRIBUTION = (
    GlossaryEntry((N_("logit lens"),), N_("what the model would say if it stopped at some depth"), logit_lens_example),
    GlossaryEntry(
        (N_("direct logit attribution"), N_("attribution")),
        N_("a logit taken apart into what each part of the model added to it"),
        attribution_example,
    ),
    GlossaryEntry(
        (N_("gradient"), N_("gradients")),
        N_("how fast a number grows with each of the numbers that it is worked out from"),
        gradients_example,
    ),
    GlossaryEntry(
        (N_("knock-out"),),
        N_("hiding a token from all later ones, in all heads, to see what becomes of a prediction"),
        attention_knockout_example,
    ),
    GlossaryEntry(
        (N_("ablation"), N_("ablated"), N_("ablate")),
        N_("running the model without a part, to see what becomes of the prediction"),
        ablation_example,
    ),
)
