"""Glossary entries on attention and positions."""

import numpy as np

from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.analysis.kv_cache import megabytes_stored
from explorer.analysis.token_contributions import attention_rollout
from explorer.architecture.attention import first_visible_key, layers_without_rope
from explorer.explain.notation import format_number, join_names, quote_token
from explorer.lessons.glossary.entry import Entry, GlossaryContext
from explorer.lessons.glossary.layers import layers_example
from explorer.translations import N_, _, translate


def attention_example(context: GlossaryContext) -> str:
    selection = context.selection
    weights = context.trace[f"blocks.{selection.layer}.attn.pattern"][selection.head, selection.query]
    return _(
        "In layer {layer} head {head} {token} looks most at {key}, with weight {weight}.",
        layer=selection.layer,
        head=selection.head,
        token=quote_token(context.token),
        key=quote_token(context.trace.tokens[int(weights.argmax())]),
        weight=format_number(weights.max()),
    )


def score_example(context: GlossaryContext) -> str:
    selection = context.selection
    value = context.trace[f"blocks.{selection.layer}.attn.scores"][selection.head, selection.query, selection.key]
    return _(
        "In layer {layer} head {head} that of {query} and {key} is {score}.",
        layer=selection.layer,
        head=selection.head,
        query=quote_token(context.token),
        key=quote_token(context.trace.tokens[selection.key]),
        score=format_number(value),
    )


def value_norm_example(context: GlossaryContext) -> str:
    selection = context.selection
    values = context.trace.head_value(f"blocks.{selection.layer}.attn.v", selection.head)
    return _(
        "In layer {layer} head {head} the value of {key} has length {length}.",
        layer=selection.layer,
        head=selection.head,
        key=quote_token(context.trace.tokens[selection.key]),
        length=format_number(np.linalg.norm(values[selection.key])),
    )


def mask_example(context: GlossaryContext) -> str:
    later = len(context.trace) - 1 - context.selection.query
    return _("After {token} come {later} tokens, which it does not see.", token=quote_token(context.token), later=later)


def softmax_example(context: GlossaryContext) -> str:
    return _(
        "A row of attention at {token} is one of {keys} scores, the prediction one of {logits:,} logits.",
        token=quote_token(context.token),
        keys=context.selection.query
        + 1
        - first_visible_key(context.trace.config, context.selection.layer, context.selection.query),
        logits=context.trace.config.vocab_size,
    )


def softcap_example(context: GlossaryContext) -> str:
    scores, logits = context.trace.config.score_cap, context.trace.config.logit_cap
    if not scores and not logits:
        return _("This model has none.")
    caps = {_("scores"): scores, _("logits"): logits}
    capped = join_names(_("{what} (c = {cap:g})", what=what, cap=cap) for what, cap in caps.items() if cap)
    return _("This model has one of {which}.", which=capped)


def rope_example(context: GlossaryContext) -> str:
    config = context.trace.config
    if config.position != "rope":
        return _("This model turns nothing.")
    pairs, theta, still = config.num_rotary_dims // 2, config.rope_theta, layers_without_rope(config)
    if config.local_rope_theta:
        return _(
            "Here {pairs} pairs a head turn, with θ = {theta:g}, and with θ = {local:g} where queries see a window.",
            pairs=pairs,
            theta=theta,
            local=config.local_rope_theta,
        )
    if still:
        return _(
            "Here {pairs} pairs a head turn, with θ = {theta:g}, in all layers but {layers}.",
            pairs=pairs,
            theta=theta,
            layers=join_names(map(str, still)),
        )
    return _("Here {pairs} pairs a head turn, with θ = {theta:g}.", pairs=pairs, theta=theta)


def induction_example(context: GlossaryContext) -> str:
    scores = head_scores(context.trace, "induction")
    if np.isnan(scores).all():
        return _("No token of this run repeats so that it could be seen.")
    layer, head = np.unravel_index(np.nanargmax(scores), scores.shape)
    return _(
        "Layer {layer} head {head} does it most here: its score is {score}.",
        layer=layer,
        head=head,
        score=format_number(scores[layer, head]),
    )


def head_score_example(context: GlossaryContext) -> str:
    selection = context.selection
    scores = head_scores(context.trace, selection.option("head_score"), selection.first_token == "hidden")
    value = scores[selection.layer, selection.head]
    if np.isnan(value):
        return _("No token of this run repeats so that it could be seen.")
    return _(
        "That of layer {layer} head {head} is {score} here: how much it {does}.",
        layer=selection.layer,
        head=selection.head,
        score=format_number(value),
        does=translate(HEAD_SCORES[selection.option("head_score")].description),
    )


def rollout_example(context: GlossaryContext) -> str:
    shares = attention_rollout(context.trace, context.selection.query)
    return _(
        "So followed, {share} of what ends at {token} began at {origin}.",
        share=format_number(shares.max()),
        token=quote_token(context.token),
        origin=quote_token(context.trace.tokens[int(shares.argmax())]),
    )


def kv_cache_example(context: GlossaryContext) -> str:
    size = megabytes_stored(context.trace.config, len(context.trace))
    return _(
        "For the {tokens} tokens here it takes {size} MB.", tokens=len(context.trace), size=format_number(float(size))
    )


def output_projection_example(context: GlossaryContext) -> str:
    config = context.trace.config
    joined = config.num_heads * config.d_head
    return _("Here from {joined} numbers, of all heads, to {model}.", joined=joined, model=config.d_model)


ENTRIES = (
    Entry(
        (N_("attention"),),
        N_("the part of a layer in which every token looks back and fetches something from the tokens before it"),
        attention_example,
    ),
    Entry(
        (N_("head"), N_("heads")),
        N_("one of the parts of attention that look side by side, each with weights of its own"),
        layers_example,
    ),
    Entry(
        (N_("query"), N_("queries")), N_("the token that looks, and the vector that it looks with"), attention_example
    ),
    Entry(
        (N_("key"), N_("keys")), N_("a token that is looked at, and the vector that it is found by"), attention_example
    ),
    Entry(
        (N_("keys and values"), N_("key, value")),
        N_("two vectors of every token: by its key it is found, and its value is what is then fetched from it"),
        value_norm_example,
    ),
    Entry((N_("score"), N_("scores")), N_("q·k / √d, how well a query matches a key"), score_example),
    Entry(
        (N_("head score"), N_("head scores")),
        N_("how far a head does one thing, from 0 to 1, as looking at the token before"),
        head_score_example,
    ),
    Entry(
        (N_("mask"), N_("masked"), N_("causal")),
        N_("no token looks at later ones: their scores are left out of the softmax"),
        mask_example,
    ),
    Entry((N_("softmax"),), N_("makes shares of numbers that sum to 1: e^x over the sum of all e^x"), softmax_example),
    Entry(
        (N_("cap"), N_("capped")),
        N_("keeps numbers between −c and c by c · tanh(x / c), which is about x where x is small"),
        softcap_example,
    ),
    Entry(
        (N_("attention pattern"), N_("pattern"), N_("patterns")),
        N_("the softmax over each row of scores: how much every query takes from every key"),
        attention_example,
    ),
    Entry(
        ("RoPE", N_("rotary"), N_("rotation")),
        N_("how some models know distances: q and k are turned, pair by pair, by angles that grow with the position"),
        rope_example,
    ),
    Entry(
        (N_("sinusoidal"),),
        N_("positions as waves of several lengths that are added to the embedding"),
        lambda look: (
            _("This model has them.") if look.trace.config.position == "sinusoidal" else _("This model has none.")
        ),
    ),
    Entry(
        (N_("induction"),),
        N_("looking at what followed the same token last time, so that it can be copied"),
        induction_example,
    ),
    Entry(
        (N_("rollout"),),
        N_("following attention back through all layers, as if it alone carried what a token knows"),
        rollout_example,
    ),
    Entry(
        ("o_proj", "W_O"),
        N_("the table that turns what all heads of a layer fetched into what is added"),
        output_projection_example,
    ),
    Entry((N_("KV cache"),), N_("keys and values of earlier tokens, kept instead of computed again"), kv_cache_example),
)
