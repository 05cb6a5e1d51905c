"""Words about attention, and how it knows positions."""

import numpy as np

from explorer.analysis.heads import HEAD_SCORES, head_scores
from explorer.analysis.kv_cache import megabytes_stored
from explorer.analysis.rollout import rollout
from explorer.architecture.attention import first_visible, still_layers
from explorer.explain.notation import listed, number, quoted
from explorer.language import N_, _, look_up
from explorer.lessons.glossary.entry import Entry, Look
from explorer.lessons.glossary.of_layers import layers


def attention(look: Look) -> str:
    selection = look.selection
    weights = look.trace[f"blocks.{selection.layer}.attn.pattern"][selection.head, selection.query]
    return _(
        "In layer {layer} head {head} {token} looks most at {key}, with weight {weight}.",
        layer=selection.layer,
        head=selection.head,
        token=quoted(look.token),
        key=quoted(look.trace.tokens[int(weights.argmax())]),
        weight=number(weights.max()),
    )


def score(look: Look) -> str:
    selection = look.selection
    value = look.trace[f"blocks.{selection.layer}.attn.scores"][selection.head, selection.query, selection.key]
    return _(
        "In layer {layer} head {head} that of {query} and {key} is {score}.",
        layer=selection.layer,
        head=selection.head,
        query=quoted(look.token),
        key=quoted(look.trace.tokens[selection.key]),
        score=number(value),
    )


def fetched(look: Look) -> str:
    selection = look.selection
    values = look.trace.of_head(f"blocks.{selection.layer}.attn.v", selection.head)
    return _(
        "In layer {layer} head {head} the value of {key} has length {length}.",
        layer=selection.layer,
        head=selection.head,
        key=quoted(look.trace.tokens[selection.key]),
        length=number(np.linalg.norm(values[selection.key])),
    )


def mask(look: Look) -> str:
    later = len(look.trace) - 1 - look.selection.query
    return _("After {token} come {later} tokens, which it does not see.", token=quoted(look.token), later=later)


def softmax(look: Look) -> str:
    return _(
        "A row of attention at {token} is one of {keys} scores, the prediction one of {logits:,} logits.",
        token=quoted(look.token),
        keys=look.selection.query + 1 - first_visible(look.trace.config, look.selection.layer, look.selection.query),
        logits=look.trace.config.vocab_size,
    )


def caps(look: Look) -> str:
    scores, logits = look.trace.config.score_cap, look.trace.config.logit_cap
    if not scores and not logits:
        return _("This model has none.")
    said = {_("scores"): scores, _("logits"): logits}
    which = listed(_("{what} (c = {cap:g})", what=what, cap=cap) for what, cap in said.items() if cap)
    return _("This model has one of {which}.", which=which)


def rotation(look: Look) -> str:
    config = look.trace.config
    if config.position != "rope":
        return _("This model turns nothing.")
    pairs, theta, still = config.turned_dims // 2, config.rope_theta, still_layers(config)
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
            layers=listed(map(str, still)),
        )
    return _("Here {pairs} pairs a head turn, with θ = {theta:g}.", pairs=pairs, theta=theta)


def induction(look: Look) -> str:
    scores = head_scores(look.trace, "induction")
    if np.isnan(scores).all():
        return _("No token of this run repeats so that it could be seen.")
    layer, head = np.unravel_index(np.nanargmax(scores), scores.shape)
    return _(
        "Layer {layer} head {head} does it most here: its score is {score}.",
        layer=layer,
        head=head,
        score=number(scores[layer, head]),
    )


def of_head(look: Look) -> str:
    selection = look.selection
    scores = head_scores(look.trace, selection.head_score, selection.first_token == "hidden")
    value = scores[selection.layer, selection.head]
    if np.isnan(value):
        return _("No token of this run repeats so that it could be seen.")
    return _(
        "That of layer {layer} head {head} is {score} here: how much it {does}.",
        layer=selection.layer,
        head=selection.head,
        score=number(value),
        does=look_up(HEAD_SCORES[selection.head_score]),
    )


def followed(look: Look) -> str:
    shares = rollout(look.trace, look.selection.query)
    return _(
        "So followed, {share} of what ends at {token} began at {origin}.",
        share=number(shares.max()),
        token=quoted(look.token),
        origin=quoted(look.trace.tokens[int(shares.argmax())]),
    )


def cache(look: Look) -> str:
    size = megabytes_stored(look.trace.config, len(look.trace))
    return _("For the {tokens} tokens here it takes {size} MB.", tokens=len(look.trace), size=number(float(size)))


def output_size(look: Look) -> str:
    config = look.trace.config
    joined = config.num_heads * config.d_head
    return _("Here from {joined} numbers, of all heads, to {model}.", joined=joined, model=config.d_model)


ENTRIES = (
    Entry(
        (N_("attention"),),
        N_("the part of a layer in which every token looks back and fetches something from the tokens before it"),
        attention,
    ),
    Entry(
        (N_("head"), N_("heads")),
        N_("one of the parts of attention that look side by side, each with weights of its own"),
        layers,
    ),
    Entry((N_("query"), N_("queries")), N_("the token that looks, and the vector that it looks with"), attention),
    Entry((N_("key"), N_("keys")), N_("a token that is looked at, and the vector that it is found by"), attention),
    Entry(
        (N_("keys and values"), N_("key, value")),
        N_("two vectors of every token: by its key it is found, and its value is what is then fetched from it"),
        fetched,
    ),
    Entry((N_("score"), N_("scores")), N_("q·k / √d, how well a query matches a key"), score),
    Entry(
        (N_("head score"), N_("head scores")),
        N_("how far a head does one thing, from 0 to 1, as looking at the token before"),
        of_head,
    ),
    Entry(
        (N_("mask"), N_("masked"), N_("causal")),
        N_("no token looks at later ones: their scores are left out of the softmax"),
        mask,
    ),
    Entry((N_("softmax"),), N_("makes shares of numbers that sum to 1: e^x over the sum of all e^x"), softmax),
    Entry(
        (N_("cap"), N_("capped")),
        N_("keeps numbers between −c and c by c · tanh(x / c), which is about x where x is small"),
        caps,
    ),
    Entry(
        (N_("attention pattern"), N_("pattern"), N_("patterns")),
        N_("the softmax over each row of scores: how much every query takes from every key"),
        attention,
    ),
    Entry(
        ("RoPE", N_("rotary"), N_("rotation")),
        N_("how some models know distances: q and k are turned, pair by pair, by angles that grow with the position"),
        rotation,
    ),
    Entry(
        (N_("sinusoidal"),),
        N_("positions as waves of several lengths that are added to the embedding"),
        lambda look: (
            _("This model has them.") if look.trace.config.position == "sinusoidal" else _("This model has none.")
        ),
    ),
    Entry(
        (N_("induction"),), N_("looking at what followed the same token last time, so that it can be copied"), induction
    ),
    Entry(
        (N_("rollout"),),
        N_("following attention back through all layers, as if it alone carried what a token knows"),
        followed,
    ),
    Entry(
        ("o_proj", "W_O"), N_("the table that turns what all heads of a layer fetched into what is added"), output_size
    ),
    Entry((N_("KV cache"),), N_("keys and values of earlier tokens, kept instead of computed again"), cache),
)
