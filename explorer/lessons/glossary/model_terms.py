"""Glossary entries on the model: tokens, the vectors that represent them, layers and attention."""

import numpy as np

from explorer.analysis.attention import megabytes_stored
from explorer.analysis.head_scores import HEAD_SCORES, head_scores
from explorer.analysis.logit_lens import lens_inputs
from explorer.analysis.next_token import next_token_ranking
from explorer.analysis.residual import residual_stream
from explorer.analysis.token_contributions import attention_rollout
from explorer.architecture.formulas import first_visible_key, layers_without_rope
from explorer.explain.notation import format_number, format_percent, join_names, quote_token
from explorer.lessons.glossary.glossary_entry import GlossaryEntry, GlossaryExampleContext
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from model.config import num_parameters


def layers_example(context: GlossaryExampleContext) -> str:
    config = context.trace.config
    return _(
        "This model has {layers} layers with {heads} heads each.", layers=config.num_layers, heads=config.num_heads
    )


def residual_stream_example(context: GlossaryExampleContext) -> str:
    lengths = np.linalg.norm(residual_stream(context.trace)[:, context.selection.query], axis=-1)
    return _(
        "At {token} it grows from length {first} to {last}.",
        token=quote_token(context.token),
        first=format_number(lengths[0]),
        last=format_number(lengths[-1]),
    )


def neurons_example(context: GlossaryExampleContext) -> str:
    selection = context.selection
    value = context.trace[f"blocks.{selection.layer}.ffn.hidden"][selection.query, selection.neuron]
    return _(
        "A layer has {count:,}; neuron {neuron} of layer {layer} has {value} at {token}.",
        count=context.trace.config.d_ff,
        neuron=selection.neuron,
        layer=selection.layer,
        value=format_number(value),
        token=quote_token(context.token),
    )


def norm_layer_example(context: GlossaryExampleContext) -> str:
    x = context.trace[f"blocks.{context.trace.config.num_layers - 1}.resid_post"][context.selection.query]
    kind = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}[context.trace.config.norm]
    return _(
        "Here {kind}; it reads a vector of length {length} at {token} last.",
        kind=kind,
        length=format_number(np.linalg.norm(x)),
        token=quote_token(context.token),
    )


def bias_example(context: GlossaryExampleContext) -> str:
    config = context.trace.config
    maps = {"q, k, v": config.has_qkv_bias, "W_O": config.bias, _("the feed-forward"): config.has_ffn_bias}
    if all(maps.values()):
        return _("This model’s linear maps have them.")
    if not any(maps.values()):
        return _("This model’s linear maps have none.")
    return _(
        "Of this model’s linear maps, these have them: {maps}.", maps=", ".join(name for name in maps if maps[name])
    )


def parameters_example(context: GlossaryExampleContext) -> str:
    return _("This model has {count:,}.", count=num_parameters(context.trace.config))


def gate_example(context: GlossaryExampleContext) -> str:
    selection, name = context.selection, f"blocks.{context.selection.layer}.ffn.gate"
    if name not in context.trace:
        return _("This model’s feed-forwards have none.")
    return _(
        "That of neuron {neuron} of layer {layer} is {value} at {token}.",
        neuron=selection.neuron,
        layer=selection.layer,
        value=format_number(context.trace[name][selection.query, selection.neuron]),
        token=quote_token(context.token),
    )


def activation_function_example(context: GlossaryExampleContext) -> str:
    kind = {"swiglu": "SwiGLU", "geglu": "GeGLU", "relu": "ReLU", "relu2": "ReLU²"}.get(
        context.trace.config.ffn, "GELU"
    )
    return _("This model has {kind}, at {count:,} neurons a layer.", kind=kind, count=context.trace.config.d_ff)


def gain_example(context: GlossaryExampleContext) -> str:
    gains = context.trace.weights[f"blocks.{context.selection.layer}.attn_norm.weight"]
    return _(
        "Those of layer {layer}’s attn_norm go from {least} to {most}.",
        layer=context.selection.layer,
        least=format_number(gains.min()),
        most=format_number(gains.max()),
    )


def sparsity_example(context: GlossaryExampleContext) -> str:
    hidden = context.trace[f"blocks.{context.selection.layer}.ffn.hidden"]
    return _(
        "Of {count:,} hidden values in layer {layer} here, {zeros:,} are 0.",
        count=hidden.size,
        layer=context.selection.layer,
        zeros=int((hidden == 0).sum()),
    )


def depths_example(context: GlossaryExampleContext) -> str:
    return _("Here from 0 to {last}.", last=context.trace.config.num_layers)


def logit_difference_example(context: GlossaryExampleContext) -> str:
    first, second = (int(token_id) for token_id in next_token_ranking(context.trace, context.selection.query)[:2])
    logits = context.trace.logits.row(context.selection.query)
    return _(
        "The logit of {first} is {lead} above that of {second}.",
        first=quote_token(context.trace.vocabulary[first]),
        lead=format_number(logits[first] - logits[second]),
        second=quote_token(context.trace.vocabulary[second]),
    )


LAYERS = (
    GlossaryEntry(
        (N_("layer"), N_("layers")),
        N_(
            "one of the model’s steps, all built alike: attention, then a feed-forward, each of which adds to the "
            "stream"
        ),
        layers_example,
    ),
    GlossaryEntry(
        (N_("residual stream"),),
        N_("the vector of a token that every layer reads and adds to"),
        residual_stream_example,
    ),
    GlossaryEntry(
        (N_("feed-forward"), N_("feed-forwards")),
        N_("the part of a layer that works on each token by itself, through its neurons"),
        neurons_example,
    ),
    GlossaryEntry(
        (N_("neuron"), N_("neurons"), N_("hidden value")),
        N_("one number inside a feed-forward; the larger it is, the more of its own vector is added to the stream"),
        neurons_example,
    ),
    GlossaryEntry(
        (N_("norm"), N_("norms"), "RMSNorm", "LayerNorm"),
        N_("brings a vector to a standard size before it is read"),
        norm_layer_example,
    ),
    GlossaryEntry((N_("gate"),), N_("how far SwiGLU opens each neuron: SiLU of a first product"), gate_example),
    GlossaryEntry(
        ("SiLU", "SwiGLU", "GELU", "GeGLU", "ReLU"),
        N_(
            "lets large numbers of a feed-forward through and brings negative ones to 0 or near it; SwiGLU multiplies "
            "SiLU by a second product"
        ),
        activation_function_example,
    ),
    GlossaryEntry(
        (N_("gain"), N_("gains")),
        N_("the learned number by which a norm multiplies each dimension in the end"),
        gain_example,
    ),
    GlossaryEntry(
        (N_("activations"), N_("sparsity")),
        N_("what is computed inside the model; sparse where most of it is 0"),
        sparsity_example,
    ),
    GlossaryEntry(
        (N_("sublayer"), N_("sublayers")),
        N_("attention or a feed-forward, the two halves of a layer"),
        lambda look: _("Here {count}.", count=2 * look.trace.config.num_layers),
    ),
    GlossaryEntry((N_("depth"), N_("depths")), N_("how many layers have worked on a vector"), depths_example),
    GlossaryEntry((N_("rival"),), N_("the token that the explained one is compared with"), logit_difference_example),
    GlossaryEntry((N_("bias"), N_("biases")), N_("a learned number that is added whatever comes in"), bias_example),
    GlossaryEntry((N_("parameters"),), N_("the numbers of a model that training has set"), parameters_example),
)


def attention_example(context: GlossaryExampleContext) -> str:
    selection = context.selection
    weights = context.trace[f"blocks.{selection.layer}.attn.pattern"][selection.head, selection.query]
    return _(
        "In layer {layer} head {head} {token} looks most at {key}, with {share} of its attention.",
        layer=selection.layer,
        head=selection.head,
        token=quote_token(context.token),
        key=quote_token(context.trace.tokens[int(weights.argmax())]),
        share=format_percent(float(weights.max())),
    )


def score_example(context: GlossaryExampleContext) -> str:
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


def value_norm_example(context: GlossaryExampleContext) -> str:
    selection = context.selection
    values = context.trace.head_value(f"blocks.{selection.layer}.attn.v", selection.head)
    return _(
        "In layer {layer} head {head} the value of {key} has length {length}.",
        layer=selection.layer,
        head=selection.head,
        key=quote_token(context.trace.tokens[selection.key]),
        length=format_number(np.linalg.norm(values[selection.key])),
    )


def mask_example(context: GlossaryExampleContext) -> str:
    later = len(context.trace) - 1 - context.selection.query
    return _("After {token} come {later} tokens, which it does not see.", token=quote_token(context.token), later=later)


def softmax_example(context: GlossaryExampleContext) -> str:
    return _(
        "A row of attention at {token} is one of {keys} scores, the prediction one of {logits:,} logits.",
        token=quote_token(context.token),
        keys=context.selection.query
        + 1
        - first_visible_key(context.trace.config, context.selection.layer, context.selection.query),
        logits=context.trace.config.vocab_size,
    )


def softcap_example(context: GlossaryExampleContext) -> str:
    scores, logits = context.trace.config.score_cap, context.trace.config.logit_cap
    if not scores and not logits:
        return _("This model has none.")
    caps = {_("scores"): scores, _("logits"): logits}
    capped = join_names(_("{what} (c = {cap:g})", what=what, cap=cap) for what, cap in caps.items() if cap)
    return _("This model has one of {which}.", which=capped)


def rope_example(context: GlossaryExampleContext) -> str:
    config = context.trace.config
    if config.position != "rope":
        return _("This model rotates nothing.")
    pairs, theta, still = config.num_rotary_dims // 2, config.rope_theta, layers_without_rope(config)
    if config.local_rope_theta:
        return _(
            "Here {pairs} pairs a head are rotated, with θ = {theta:g}, and with θ = {local:g} where queries see a "
            "window.",
            pairs=pairs,
            theta=theta,
            local=config.local_rope_theta,
        )
    if still:
        return _(
            "Here {pairs} pairs a head are rotated, with θ = {theta:g}, in all layers but {layers}.",
            pairs=pairs,
            theta=theta,
            layers=join_names(map(str, still)),
        )
    return _("Here {pairs} pairs a head are rotated, with θ = {theta:g}.", pairs=pairs, theta=theta)


def induction_example(context: GlossaryExampleContext) -> str:
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


def head_score_example(context: GlossaryExampleContext) -> str:
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


def rollout_example(context: GlossaryExampleContext) -> str:
    shares = attention_rollout(context.trace, context.selection.query)
    return _(
        "So followed, {share} of what ends at {token} began at {origin}.",
        share=format_number(shares.max()),
        token=quote_token(context.token),
        origin=quote_token(context.trace.tokens[int(shares.argmax())]),
    )


def kv_cache_example(context: GlossaryExampleContext) -> str:
    size = megabytes_stored(context.trace.config, len(context.trace))
    return _(
        "For the {tokens} tokens here it takes {size} MB.", tokens=len(context.trace), size=format_number(float(size))
    )


def output_projection_example(context: GlossaryExampleContext) -> str:
    config = context.trace.config
    joined = config.num_heads * config.d_head
    return _("Here from {joined} numbers, of all heads, to {model}.", joined=joined, model=config.d_model)


ATTENTION = (
    GlossaryEntry(
        (N_("attention"),),
        N_(
            "looking back: every token gives itself and each earlier token a share, together 100%, and fetches that "
            "much from each"
        ),
        attention_example,
    ),
    GlossaryEntry(
        (N_("head"), N_("heads"), N_("attention head"), N_("attention heads")),
        N_("one of a layer’s parts that look back at earlier tokens, side by side, each with weights of its own"),
        layers_example,
    ),
    GlossaryEntry(
        (N_("query"), N_("queries")), N_("the token that looks, and the vector that it looks with"), attention_example
    ),
    GlossaryEntry(
        (N_("key"), N_("keys")), N_("a token that is looked at, and the vector that it is found by"), attention_example
    ),
    GlossaryEntry(
        (N_("keys and values"), N_("key, value")),
        N_("two vectors of every token: by its key it is found, and its value is what is then fetched from it"),
        value_norm_example,
    ),
    GlossaryEntry((N_("score"), N_("scores")), N_("q·k / √d, how well a query matches a key"), score_example),
    GlossaryEntry(
        (N_("head score"), N_("head scores")),
        N_("how far a head does one thing, from 0 to 1, as looking at the token before"),
        head_score_example,
    ),
    GlossaryEntry(
        (N_("mask"), N_("masked"), N_("causal")),
        N_("no token looks at later ones: their scores are left out of the softmax"),
        mask_example,
    ),
    GlossaryEntry(
        (N_("softmax"),), N_("makes shares of numbers that sum to 1: e^x over the sum of all e^x"), softmax_example
    ),
    GlossaryEntry(
        (N_("cap"), N_("capped")),
        N_("keeps numbers between −c and c by c · tanh(x / c), which is about x where x is small"),
        softcap_example,
    ),
    GlossaryEntry(
        (N_("attention pattern"), N_("pattern"), N_("patterns")),
        N_("the softmax over each row of scores: how much every query takes from every key"),
        attention_example,
    ),
    GlossaryEntry(
        ("RoPE", N_("rotary"), N_("rotation")),
        N_("how some models know distances: q and k are rotated, pair by pair, by angles that grow with the position"),
        rope_example,
    ),
    GlossaryEntry(
        (N_("sinusoidal"),),
        N_("positions as waves of several lengths that are added to the embedding"),
        lambda look: (
            _("This model has them.") if look.trace.config.position == "sinusoidal" else _("This model has none.")
        ),
    ),
    GlossaryEntry(
        (N_("induction"),),
        N_("looking at what followed the same token last time, so that it can be copied"),
        induction_example,
    ),
    GlossaryEntry(
        (N_("rollout"),),
        N_("following attention back through all layers, as if it alone carried what a token knows"),
        rollout_example,
    ),
    GlossaryEntry(
        ("o_proj", "W_O"),
        N_("the table that turns what all heads of a layer fetched into what is added"),
        output_projection_example,
    ),
    GlossaryEntry(
        (N_("KV cache"),), N_("keys and values of earlier tokens, kept instead of computed again"), kv_cache_example
    ),
)


def count_tokens_with_prefix(context: GlossaryExampleContext, prefix: str) -> int:
    """Count the run's tokens that begin with a prefix."""
    return sum(text.startswith(prefix) for text in context.trace.tokens)


def tokens_example(context: GlossaryExampleContext) -> str:
    return _(
        "This run has {tokens}; the model knows {known:,} different ones.",
        tokens=len(context.trace),
        known=context.trace.config.vocab_size,
    )


def token_num_bytes(trace: Trace, position: int) -> int:
    """Return the number of bytes of a token, also where it is a part of a character."""
    token_id = trace.token_ids[position]
    token_bytes = trace.token_bytes[token_id] if trace.token_bytes else None
    return len(trace.tokens[position].encode() if token_bytes is None else token_bytes)


def token_bytes_example(context: GlossaryExampleContext) -> str:
    size = token_num_bytes(context.trace, context.selection.query)
    return _(
        "{token} has {size} bytes, built by at most {most} merges.",
        token=quote_token(context.token),
        size=size,
        most=size - 1,
    )


def total_bytes_example(context: GlossaryExampleContext) -> str:
    size = sum(token_num_bytes(context.trace, position) for position in range(len(context.trace)))
    return _("The {tokens} tokens here hold {size:,} bytes.", tokens=len(context.trace), size=size)


def embedding_example(context: GlossaryExampleContext) -> str:
    length = format_number(np.linalg.norm(context.trace["embed"][context.selection.query]))
    return _("The one of {token} here has length {length}.", token=quote_token(context.token), length=length)


def vector_norm_example(context: GlossaryExampleContext) -> str:
    lengths = np.linalg.norm(residual_stream(context.trace)[:, context.selection.query], axis=-1)
    return _(
        "That of {token} is {first} at first and {last} after the last layer.",
        token=quote_token(context.token),
        first=format_number(lengths[0]),
        last=format_number(lengths[-1]),
    )


def cosine_example(context: GlossaryExampleContext) -> str:
    read = lens_inputs(context.trace, slice(context.selection.query, context.selection.query + 1))[:, 0].astype(float)
    first, last = (x / np.linalg.norm(x) for x in (read[0], read[-1]))
    return _(
        "What the unembedding would read at {token} before the first layer and what it reads after the last: {cosine}.",
        token=quote_token(context.token),
        cosine=format_number(float(first @ last)),
    )


def dimensions_example(context: GlossaryExampleContext) -> str:
    config = context.trace.config
    return _("Here {model} for a token, {head} for a head.", model=config.d_model, head=config.d_head)


def unembedding_example(context: GlossaryExampleContext) -> str:
    config = context.trace.config
    size = _("Here {rows:,} rows of {numbers} numbers.", rows=config.vocab_size, numbers=config.d_model)
    biased = _("To each product a number of the token’s own is added, its bias.") if config.unembedding_bias else ""
    return f"{size} {biased}".strip()


def context_length_example(context: GlossaryExampleContext) -> str:
    return _("Here {most}; this run has {tokens}.", most=context.trace.config.context_length, tokens=len(context.trace))


def embedding_shape_example(context: GlossaryExampleContext) -> str:
    config = context.trace.config
    return _("The embedding’s table is {rows:,} × {columns}.", rows=config.vocab_size, columns=config.d_model)


TOKENS = (
    GlossaryEntry(
        (N_("token"), N_("tokens")),
        N_("a piece of text, often a word with the space before it; the model reads and writes only these"),
        tokens_example,
    ),
    GlossaryEntry(
        ("·",),
        N_("a space, made visible"),
        lambda look: _(
            "{count} of {tokens} tokens begin with one.",
            count=count_tokens_with_prefix(look, " "),
            tokens=len(look.trace),
        ),
    ),
    GlossaryEntry(
        ("↵",),
        N_("a line break, made visible"),
        lambda look: _(
            "{count} of {tokens} tokens begin with it.",
            count=count_tokens_with_prefix(look, "\n"),
            tokens=len(look.trace),
        ),
    ),
    GlossaryEntry(
        (N_("position"), N_("positions")),
        N_("the place of a token in the text, from 0"),
        lambda look: _("{token} is at {position}.", token=quote_token(look.token), position=look.selection.query),
    ),
    GlossaryEntry(
        (N_("prompt"),),
        N_("the text that the model is given and goes on from"),
        lambda look: _("With what was written to it, it has {tokens} tokens.", tokens=len(look.trace)),
    ),
    GlossaryEntry((N_("context"),), N_("how many tokens the model sees at once"), context_length_example),
    GlossaryEntry(
        (N_("byte-pair encoding"), N_("merge"), N_("merges")),
        N_("how tokens came about: from single bytes, the pair that was most frequent was made one, again and again"),
        token_bytes_example,
    ),
    GlossaryEntry(
        (N_("byte"), N_("bytes")),
        N_("one of 256 numbers: an English letter is one, other characters are two to four in a row"),
        total_bytes_example,
    ),
    GlossaryEntry(
        (N_("vector"), N_("vectors")),
        N_("a list of numbers; one stands for each token, at every depth of the model"),
        dimensions_example,
    ),
    GlossaryEntry((N_("dimension"), N_("dimensions")), N_("one of the numbers of a vector"), dimensions_example),
    GlossaryEntry(("‖x‖₂",), N_("the length of a vector, √Σx²"), vector_norm_example),
    GlossaryEntry(
        (N_("weights"),), N_("the tables of learned numbers that vectors are multiplied by"), embedding_shape_example
    ),
    GlossaryEntry((N_("tokenizer"),), N_("cuts text into tokens, and joins tokens to text"), token_bytes_example),
    GlossaryEntry(
        (N_("cosine"), N_("cosines")),
        N_("how alike the directions of two vectors are: 1 the same, 0 at right angles, −1 opposite"),
        cosine_example,
    ),
    GlossaryEntry(
        (N_("embedding"), N_("embeddings")),
        N_("the vector that stands for a token before any layer has worked on it"),
        embedding_example,
    ),
    GlossaryEntry(
        (N_("unembedding"), "lm_head"),
        N_("the table at the end: a token’s logit is the product of its row with the last vector"),
        unembedding_example,
    ),
)
