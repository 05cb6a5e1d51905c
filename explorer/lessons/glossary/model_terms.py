"""Glossary entries on the model: tokens, the vectors that represent them, layers and attention."""

import numpy as np

from explorer.architecture.formulas import layers_without_rope
from explorer.lessons.glossary.glossary_entry import GlossaryEntry, GlossaryExampleContext
from explorer.translations import N_

LAYERS_EXAMPLE = N_("This model has {layers} layers with {heads} heads each.")
NEURONS_EXAMPLE = N_("A layer has {d_ff:,}; neuron {neuron} of layer {layer} has {hidden_value} at {token}.")
ATTENTION_EXAMPLE = N_(
    "In layer {layer} head {head} {token} looks most at {top_key}, with {top_attention} of its attention."
)
TOKEN_BYTES_EXAMPLE = N_("{token} has {token_bytes} bytes, built by at most {merges} merges.")
DIMENSIONS_EXAMPLE = N_("Here {d_model} for a token, {d_head} for a head.")


def choose_bias_example(context: GlossaryExampleContext) -> str:
    has_bias = context.linear_maps.values()
    if all(has_bias):
        return N_("This model’s linear maps have them.")
    if not any(has_bias):
        return N_("This model’s linear maps have none.")
    return N_("Of this model’s linear maps, these have them: {maps}.")


def choose_gate_example(context: GlossaryExampleContext) -> str:
    if f"blocks.{context.selection.layer}.ffn.gate" not in context.trace:
        return N_("This model’s feed-forwards have none.")
    return N_("That of neuron {neuron} of layer {layer} is {gate} at {token}.")


LAYERS = (
    GlossaryEntry(
        (N_("layer"), N_("layers")),
        N_(
            "one of the model’s steps, all built alike: attention, then a feed-forward, each of which adds to the "
            "stream"
        ),
        LAYERS_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("residual stream"),),
        N_("the vector of a token that every layer reads and adds to"),
        N_("At {token} it grows from length {first_length} to {last_length}."),
    ),
    GlossaryEntry(
        (N_("feed-forward"), N_("feed-forwards")),
        N_("the part of a layer that works on each token by itself, through its neurons"),
        NEURONS_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("neuron"), N_("neurons"), N_("hidden value")),
        N_("one number inside a feed-forward; the larger it is, the more of its own vector is added to the stream"),
        NEURONS_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("norm"), N_("norms"), "RMSNorm", "LayerNorm"),
        N_("brings a vector to a standard size before it is read"),
        N_("Here {norm}; it reads a vector of length {final_norm_input} at {token} last."),
    ),
    GlossaryEntry((N_("gate"),), N_("how far SwiGLU opens each neuron: SiLU of a first product"), choose_gate_example),
    GlossaryEntry(
        ("SiLU", "SwiGLU", "GELU", "GeGLU", "ReLU"),
        N_(
            "lets large numbers of a feed-forward through and brings negative ones to 0 or near it; SwiGLU multiplies "
            "SiLU by a second product"
        ),
        N_("This model has {activation}, at {d_ff:,} neurons a layer."),
    ),
    GlossaryEntry(
        (N_("gain"), N_("gains")),
        N_("the learned number by which a norm multiplies each dimension in the end"),
        N_("Those of layer {layer}’s attn_norm go from {least_gain} to {largest_gain}."),
    ),
    GlossaryEntry(
        (N_("activations"), N_("sparsity")),
        N_("what is computed inside the model; sparse where most of it is 0"),
        N_("Of {hidden_values:,} hidden values in layer {layer} here, {zeros:,} are 0."),
    ),
    GlossaryEntry(
        (N_("sublayer"), N_("sublayers")),
        N_("attention or a feed-forward, the two halves of a layer"),
        N_("Here {sublayers}."),
    ),
    GlossaryEntry(
        (N_("depth"), N_("depths")), N_("how many layers have worked on a vector"), N_("Here from 0 to {layers}.")
    ),
    GlossaryEntry(
        (N_("rival"),),
        N_("the token that the explained one is compared with"),
        N_("The logit of {best} is {lead} above that of {second_best}."),
    ),
    GlossaryEntry(
        (N_("bias"), N_("biases")), N_("a learned number that is added whatever comes in"), choose_bias_example
    ),
    GlossaryEntry(
        (N_("parameters"),), N_("the numbers of a model that training has set"), N_("This model has {parameters:,}.")
    ),
)


def choose_cap_example(context: GlossaryExampleContext) -> str:
    return N_("This model has one of {caps}.") if context.caps else N_("This model has none.")


def choose_rope_example(context: GlossaryExampleContext) -> str:
    if context.config.position != "rope":
        return N_("This model rotates nothing.")
    if context.config.local_rope_theta:
        return N_(
            "Here {pairs} pairs a head are rotated, with θ = {theta:g}, and with θ = {local_theta:g} where queries see "
            "a window."
        )
    if layers_without_rope(context.config):
        return N_("Here {pairs} pairs a head are rotated, with θ = {theta:g}, in all layers but {unrotated_layers}.")
    return N_("Here {pairs} pairs a head are rotated, with θ = {theta:g}.")


def choose_sinusoidal_example(context: GlossaryExampleContext) -> str:
    return N_("This model has them.") if context.config.position == "sinusoidal" else N_("This model has none.")


def choose_induction_example(context: GlossaryExampleContext) -> str:
    if np.isnan(context.induction).all():
        return N_("No token of this run repeats so that it could be seen.")
    return N_("Layer {induction_layer} head {induction_head} does it most here: its score is {induction_score}.")


def choose_head_score_example(context: GlossaryExampleContext) -> str:
    if np.isnan(context.head_score):
        return N_("No token of this run repeats so that it could be seen.")
    return N_("That of layer {layer} head {head} is {head_score} here: how much it {does}.")


ATTENTION = (
    GlossaryEntry(
        (N_("attention"),),
        N_(
            "looking back: every token gives itself and each earlier token a share, together 100%, and fetches that "
            "much from each"
        ),
        ATTENTION_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("head"), N_("heads"), N_("attention head"), N_("attention heads")),
        N_("one of a layer’s parts that look back at earlier tokens, side by side, each with weights of its own"),
        LAYERS_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("query"), N_("queries")), N_("the token that looks, and the vector that it looks with"), ATTENTION_EXAMPLE
    ),
    GlossaryEntry(
        (N_("key"), N_("keys")), N_("a token that is looked at, and the vector that it is found by"), ATTENTION_EXAMPLE
    ),
    GlossaryEntry(
        (N_("keys and values"), N_("key, value")),
        N_("two vectors of every token: by its key it is found, and its value is what is then fetched from it"),
        N_("In layer {layer} head {head} the value of {key} has length {value_length}."),
    ),
    GlossaryEntry(
        (N_("score"), N_("scores")),
        N_("q·k / √d, how well a query matches a key"),
        N_("In layer {layer} head {head} that of {token} and {key} is {score}."),
    ),
    GlossaryEntry(
        (N_("head score"), N_("head scores")),
        N_("how far a head does one thing, from 0 to 1, as looking at the token before"),
        choose_head_score_example,
    ),
    GlossaryEntry(
        (N_("mask"), N_("masked"), N_("causal")),
        N_("no token looks at later ones: their scores are left out of the softmax"),
        N_("After {token} come {later} tokens, which it does not see."),
    ),
    GlossaryEntry(
        (N_("softmax"),),
        N_("makes shares of numbers that sum to 1: e^x over the sum of all e^x"),
        N_("A row of attention at {token} is one of {keys} scores, the prediction one of {vocab_size:,} logits."),
    ),
    GlossaryEntry(
        (N_("cap"), N_("capped")),
        N_("keeps numbers between −c and c by c · tanh(x / c), which is about x where x is small"),
        choose_cap_example,
    ),
    GlossaryEntry(
        (N_("attention pattern"), N_("pattern"), N_("patterns")),
        N_("the softmax over each row of scores: how much every query takes from every key"),
        ATTENTION_EXAMPLE,
    ),
    GlossaryEntry(
        ("RoPE", N_("rotary"), N_("rotation")),
        N_("how some models know distances: q and k are rotated, pair by pair, by angles that grow with the position"),
        choose_rope_example,
    ),
    GlossaryEntry(
        (N_("sinusoidal"),),
        N_("positions as waves of several lengths that are added to the embedding"),
        choose_sinusoidal_example,
    ),
    GlossaryEntry(
        (N_("induction"),),
        N_("looking at what followed the same token last time, so that it can be copied"),
        choose_induction_example,
    ),
    GlossaryEntry(
        (N_("rollout"),),
        N_("following attention back through all layers, as if it alone carried what a token knows"),
        N_("So followed, {rollout_share} of what ends at {token} began at {origin}."),
    ),
    GlossaryEntry(
        ("o_proj", "W_O"),
        N_("the table that turns what all heads of a layer fetched into what is added"),
        N_("Here from {heads_width} numbers, of all heads, to {d_model}."),
    ),
    GlossaryEntry(
        (N_("KV cache"),),
        N_("keys and values of earlier tokens, kept instead of computed again"),
        N_("For the {tokens} tokens here it takes {cache_size} MB."),
    ),
)


def choose_unembedding_example(context: GlossaryExampleContext) -> str:
    if context.config.unembedding_bias:
        return N_(
            "Here {vocab_size:,} rows of {d_model} numbers. To each product a number of the token’s own is added, its "
            "bias."
        )
    return N_("Here {vocab_size:,} rows of {d_model} numbers.")


TOKENS = (
    GlossaryEntry(
        (N_("token"), N_("tokens")),
        N_("a piece of text, often a word with the space before it; the model reads and writes only these"),
        N_("This run has {tokens}; the model knows {vocab_size:,} different ones."),
    ),
    GlossaryEntry(
        ("·",),
        N_("a space, made visible"),
        N_("{spaces} of {tokens} tokens begin with one."),
    ),
    GlossaryEntry(
        ("↵",),
        N_("a line break, made visible"),
        N_("{line_breaks} of {tokens} tokens begin with it."),
    ),
    GlossaryEntry(
        (N_("position"), N_("positions")),
        N_("the place of a token in the text, from 0"),
        N_("{token} is at {position}."),
    ),
    GlossaryEntry(
        (N_("prompt"),),
        N_("the text that the model is given and goes on from"),
        N_("With what was written to it, it has {tokens} tokens."),
    ),
    GlossaryEntry(
        (N_("context"),),
        N_("how many tokens the model sees at once"),
        N_("Here {context_length}; this run has {tokens}."),
    ),
    GlossaryEntry(
        (N_("byte-pair encoding"), N_("merge"), N_("merges")),
        N_("how tokens came about: from single bytes, the pair that was most frequent was made one, again and again"),
        TOKEN_BYTES_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("byte"), N_("bytes")),
        N_("one of 256 numbers: an English letter is one, other characters are two to four in a row"),
        N_("The {tokens} tokens here hold {text_bytes:,} bytes."),
    ),
    GlossaryEntry(
        (N_("vector"), N_("vectors")),
        N_("a list of numbers; one stands for each token, at every depth of the model"),
        DIMENSIONS_EXAMPLE,
    ),
    GlossaryEntry((N_("dimension"), N_("dimensions")), N_("one of the numbers of a vector"), DIMENSIONS_EXAMPLE),
    GlossaryEntry(
        ("‖x‖₂",),
        N_("the length of a vector, √Σx²"),
        N_("That of {token} is {first_length} at first and {last_length} after the last layer."),
    ),
    GlossaryEntry(
        (N_("weights"),),
        N_("the tables of learned numbers that vectors are multiplied by"),
        N_("The embedding’s table is {vocab_size:,} × {d_model}."),
    ),
    GlossaryEntry((N_("tokenizer"),), N_("cuts text into tokens, and joins tokens to text"), TOKEN_BYTES_EXAMPLE),
    GlossaryEntry(
        (N_("cosine"), N_("cosines")),
        N_("how alike the directions of two vectors are: 1 the same, 0 at right angles, −1 opposite"),
        N_(
            "What the unembedding would read at {token} before the first layer and what it reads after the last: "
            "{cosine}."
        ),
    ),
    GlossaryEntry(
        (N_("embedding"), N_("embeddings")),
        N_("the vector that stands for a token before any layer has worked on it"),
        N_("The one of {token} here has length {embedding_length}."),
    ),
    GlossaryEntry(
        (N_("unembedding"), "lm_head"),
        N_("the table at the end: a token’s logit is the product of its row with the last vector"),
        choose_unembedding_example,
    ),
)
