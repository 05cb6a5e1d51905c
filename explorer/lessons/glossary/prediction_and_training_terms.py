"""Glossary entries on predictions and sampling, their statistics, and training."""

import numpy as np

from explorer.analysis.embedding import principal_components, residual_at_depth
from explorer.analysis.next_token import (
    NATS_PER_BIT,
    NextTokenDistribution,
    mean_text_loss,
    next_token_distribution,
    surprisal,
)
from explorer.explain.captured import check_captured_value
from explorer.explain.notation import format_number, format_percent, quote_token, quote_word
from explorer.lessons.glossary.glossary_entry import GlossaryEntry, GlossaryExampleContext
from explorer.translations import N_, _
from model.generation.sampling import uniform_draw


def predict_next_token(context: GlossaryExampleContext) -> NextTokenDistribution:
    """Return the next-token distribution after the selected token, with the page's settings."""
    settings = context.settings
    return next_token_distribution(
        context.trace,
        context.selection.query,
        settings.temperature,
        settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        seed=settings.seed,
        start=context.start,
    )


def likeliest_token(context: GlossaryExampleContext) -> tuple[str, int]:
    """Return the likeliest next token, quoted, and its id."""
    token_id = int(predict_next_token(context).top(1)[0])
    return quote_token(context.trace.vocabulary[token_id]), token_id


def logit_example(context: GlossaryExampleContext) -> str:
    token, token_id = likeliest_token(context)
    value = context.trace.logits.token_logits(token_id, context.selection.query)
    return _(
        "The largest after {token} is that of {best}, {logit}.",
        token=quote_token(context.token),
        best=token,
        logit=format_number(value),
    )


def probability_example(context: GlossaryExampleContext) -> str:
    token, token_id = likeliest_token(context)
    value = predict_next_token(context).plain[token_id]
    return _(
        "The largest that the model gives after {token} is that of {best}, {probability}.",
        token=quote_token(context.token),
        best=token,
        probability=format_number(value),
    )


def chance_example(context: GlossaryExampleContext) -> str:
    _quoted, token_id = likeliest_token(context)
    prediction = predict_next_token(context)
    return _(
        "After {token}, {best} has {sampled}; the model’s own is {plain}.",
        token=quote_word(context.token),
        best=quote_word(context.trace.vocabulary[token_id]),
        sampled=format_percent(float(prediction.sampled[token_id])),
        plain=format_percent(float(prediction.plain[token_id])),
    )


def rank_example(context: GlossaryExampleContext) -> str:
    actual = predict_next_token(context).actual
    if actual is None:
        return _(
            "After {token}, {best} has rank 1.", token=quote_token(context.token), best=likeliest_token(context)[0]
        )
    return _(
        "After {token} comes {next}: its rank is {rank:,}.",
        token=quote_token(context.token),
        next=quote_token(context.trace.vocabulary[actual]),
        rank=predict_next_token(context).rank(actual),
    )


def surprisal_example(context: GlossaryExampleContext) -> str:
    if context.selection.query == 0:
        return _("The first token has none, as nothing comes before it.")
    bits = surprisal(context.trace)[context.selection.query]
    return _("{token} has {bits} bits here.", token=quote_token(context.token), bits=format_number(bits))


def entropy_example(context: GlossaryExampleContext) -> str:
    return _(
        "After {token} the model’s is {plain} bits, with the settings {sampled}.",
        token=quote_token(context.token),
        plain=format_number(predict_next_token(context).plain_entropy),
        sampled=format_number(predict_next_token(context).entropy),
    )


def uniform_bits_example(context: GlossaryExampleContext) -> str:
    size = context.trace.config.vocab_size
    return _("An even guess among {size:,} tokens would have {bits}.", size=size, bits=format_number(np.log2(size)))


def perplexity_example(context: GlossaryExampleContext) -> str:
    if len(context.trace) < 2:
        return _("One token has none, as nothing comes before it.")
    return _(
        "That of this run is {perplexity}.", perplexity=format_number(2 ** float(surprisal(context.trace)[1:].mean()))
    )


def temperature_example(context: GlossaryExampleContext) -> str:
    token, token_id = likeliest_token(context)
    prediction = predict_next_token(context)
    return _(
        "At {temperature:g}, {best} goes from {plain} to {sampled}, with all other settings.",
        temperature=context.settings.temperature,
        best=token,
        plain=format_number(prediction.plain[token_id]),
        sampled=format_number(prediction.sampled[token_id]),
    )


def candidate_count_example(context: GlossaryExampleContext) -> str:
    left = int((predict_next_token(context).sampled > 0).sum())
    return _(
        "With all settings {left:,} of {size:,} tokens can be drawn after {token}.",
        left=left,
        size=context.trace.config.vocab_size,
        token=quote_token(context.token),
    )


def seed_example(context: GlossaryExampleContext) -> str:
    return _("It is {seed} now.", seed=context.settings.seed)


def random_number_example(context: GlossaryExampleContext) -> str:
    seed = context.settings.seed
    u = uniform_draw(seed, context.start + context.selection.query + 1)
    return _(
        "After {token} it is {u}, from seed {seed}.", token=quote_token(context.token), u=format_number(u), seed=seed
    )


def next_draw_example(context: GlossaryExampleContext) -> str:
    prediction = predict_next_token(context)
    return _(
        "After {token} the number is {u}, which picks {next}.",
        token=quote_word(context.token),
        u=format_number(prediction.u),
        next=quote_word(context.trace.vocabulary[prediction.sampled_token_id]),
    )


def greedy_example(context: GlossaryExampleContext) -> str:
    return _("After {token} it would take {best}.", token=quote_token(context.token), best=likeliest_token(context)[0])


def recomputation_error_example(context: GlossaryExampleContext) -> str:
    name = f"blocks.{context.selection.layer}.attn.pattern"
    verification = check_captured_value(context.trace, name)
    return _("{name}, worked out again, is off by {error} at most.", name=name, error=format_number(verification.error))


PREDICTIONS = (
    GlossaryEntry(
        (N_("logit"), N_("logits")),
        N_("the model’s score for a possible next token; softmax turns all of them into probabilities"),
        logit_example,
    ),
    GlossaryEntry(
        (N_("probability"), N_("probabilities")), N_("how likely something is, from 0 to 1"), probability_example
    ),
    GlossaryEntry(
        (N_("chance"),),
        N_("how likely a token is to be drawn with the settings; the model’s own chance is the one before them"),
        chance_example,
    ),
    GlossaryEntry((N_("rank"),), N_("1 for the likeliest token, 2 for the next, and so on"), rank_example),
    GlossaryEntry(
        (N_("surprisal"), N_("surprisals")),
        N_("−log₂ of the probability the model gave a token before seeing it, in bits"),
        surprisal_example,
    ),
    GlossaryEntry((N_("entropy"),), N_("the surprisal to be expected from the next token, in bits"), entropy_example),
    GlossaryEntry(
        (N_("bits"),),
        N_("what surprise is counted in: a coin toss has 1, and each more halves the probability"),
        uniform_bits_example,
    ),
    GlossaryEntry(
        (N_("perplexity"),),
        N_("2 to the power of the mean surprisal: among how many equally likely tokens each was a choice"),
        perplexity_example,
    ),
    GlossaryEntry(
        (N_("temperature"), "÷ T"),
        N_(
            "how daring the choice is: low, nearly always the favourite; high, rarer tokens get a real chance. Logits "
            "are divided by it before the softmax; 0 takes the likeliest"
        ),
        temperature_example,
    ),
    GlossaryEntry(
        (N_("top-k"),), N_("only the k likeliest tokens can be drawn; “all” keeps every token"), candidate_count_example
    ),
    GlossaryEntry(
        (N_("top-p"), N_("nucleus")),
        N_("of those only the fewest, the likeliest, that have the probability p together; 1 keeps all"),
        candidate_count_example,
    ),
    GlossaryEntry(
        (N_("min-p"),),
        N_("of those only tokens at least p times as likely as the likeliest; 0 keeps all"),
        candidate_count_example,
    ),
    GlossaryEntry(
        (N_("repetition penalty"),),
        N_(
            "what logits of tokens that the text has already are divided by, or multiplied by where negative; 1 leaves "
            "them"
        ),
        candidate_count_example,
    ),
    GlossaryEntry((N_("seed"),), N_("decides all random numbers: the same seed writes the same text"), seed_example),
    GlossaryEntry(
        (N_("random number"), "u"),
        N_("a point on a line from 0 to 1, where all probabilities lie side by side; the token it falls on is taken"),
        random_number_example,
    ),
    GlossaryEntry(
        (N_("Step picks"),),
        N_("the token that Step would write: the random number falls on it, with these settings"),
        next_draw_example,
    ),
    GlossaryEntry((N_("greedy"),), N_("always taking the likeliest token"), greedy_example),
    GlossaryEntry((N_("beam"),), N_("keeping several texts at each step, the likeliest as wholes"), greedy_example),
    GlossaryEntry((N_("sampling"),), N_("drawing tokens by their probabilities"), candidate_count_example),
    GlossaryEntry(
        (N_("off by"), N_("recomputed")),
        N_("how far a captured value lies from the same value worked out again from its inputs"),
        recomputation_error_example,
    ),
)


def last_layer_output(context: GlossaryExampleContext) -> np.ndarray:
    """Return the last layer's output at the selected token, (D,) in float64."""
    last = context.trace.config.num_layers - 1
    return context.trace[f"blocks.{last}.resid_post"][context.selection.query].astype(np.float64)


def mean_example(context: GlossaryExampleContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {mean}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        mean=format_number(last_layer_output(context).mean()),
    )


def median_example(context: GlossaryExampleContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {median}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        median=format_number(float(np.median(last_layer_output(context)))),
    )


def variance_example(context: GlossaryExampleContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {variance}, the standard deviation {std}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        variance=format_number(last_layer_output(context).var()),
        std=format_number(last_layer_output(context).std()),
    )


def root_mean_square_example(context: GlossaryExampleContext) -> str:
    return _(
        "That of the {count} numbers of {token} after the last layer is {rms}.",
        count=context.trace.config.d_model,
        token=quote_token(context.token),
        rms=format_number(np.sqrt((last_layer_output(context) ** 2).mean())),
    )


def principal_components_example(context: GlossaryExampleContext) -> str:
    shares = principal_components(residual_at_depth(context.trace, context.selection.residual_depth)).shares
    return _(
        "At depth {depth} the first takes {first} of the variance of the {tokens} tokens here, the second {second}.",
        depth=context.selection.residual_depth,
        tokens=len(context.trace),
        first=format_number(shares[0]),
        second=format_number(shares[1]),
    )


def histogram_example(context: GlossaryExampleContext) -> str:
    value = context.trace[context.selection.tap]
    return _("{value} has {count:,} numbers here.", value=context.selection.tap, count=value.size)


def logarithm_example(context: GlossaryExampleContext) -> str:
    token, token_id = likeliest_token(context)
    probability = predict_next_token(context).plain[token_id]
    return _(
        "The probability of {token} after {query} is {probability}, its log₂ {log}.",
        token=token,
        query=quote_token(context.token),
        probability=format_number(probability),
        log=format_number(np.log2(probability)),
    )


STATISTICS = (
    GlossaryEntry((N_("mean"),), N_("the sum of some numbers, over how many they are"), mean_example),
    GlossaryEntry((N_("median"),), N_("the number in the middle, when all are put in order"), median_example),
    GlossaryEntry(
        (N_("variance"), "var", N_("standard deviation")),
        N_("how far numbers lie apart: the mean of (x − mean)²; the standard deviation is its root"),
        variance_example,
    ),
    GlossaryEntry(
        ("RMS", N_("root mean square")),
        N_("how large some numbers are: the root of the mean of x²"),
        root_mean_square_example,
    ),
    GlossaryEntry(
        ("PCA", N_("component")),
        N_("finds the directions in which vectors differ most: the first component, then others at right angles to it"),
        principal_components_example,
    ),
    GlossaryEntry(
        (N_("histogram"),),
        N_("a bar for each stretch of numbers, as high as many of them lie in it"),
        histogram_example,
    ),
    GlossaryEntry(
        (N_("logarithm"), "log₂", "ln", N_("log-probability"), N_("log")),
        N_("the power to which 2 (log₂) or e = 2.718… (ln) must be raised to give a number"),
        logarithm_example,
    ),
)


def text_loss_example(context: GlossaryExampleContext) -> str:
    if len(context.trace) < 2:
        return _("Here is a single token, and so none.")
    loss = mean_text_loss(context.trace)
    return _(
        "That of this text is {nats} nats a token, {bits} bits.",
        nats=format_number(loss),
        bits=format_number(loss / NATS_PER_BIT),
    )


def training_step_example(context: GlossaryExampleContext) -> str:
    training = context.trace.training
    if training is None or training.step is None:
        return _("After how many this model was kept, its name does not say.")
    return _("This model was kept after {step:,}.", step=training.step)


def format_logged_value(context: GlossaryExampleContext, name: str, template: str) -> str:
    """Return a sentence on the value that training logged at the checkpoint's step, or else on the last one."""
    training = context.trace.training
    is_logged = np.isfinite(training.record[name]) if training and name in training.record else np.zeros(0, bool)
    if not is_logged.any():
        return _("Nothing is known of it here: the model came without a record of its training.")
    steps, values = training.record["step"], training.record[name]
    now = is_logged & (steps == training.step)
    row = np.flatnonzero(now if now.any() else is_logged)[-1]
    return template.format(value=format_number(values[row]), step=int(steps[row]))


TRAINING = (
    GlossaryEntry(
        (N_("loss"),),
        N_("what training makes small: −ln of the probability that the model gave each token of a text, its mean"),
        text_loss_example,
    ),
    GlossaryEntry(
        (N_("nats"),),
        N_("what surprise is counted in where ln stands in the place of log₂: 1.44 bits each"),
        text_loss_example,
    ),
    GlossaryEntry(
        (N_("training step"), N_("training steps")),
        N_("one change of all weights, after the model has read a little of the training text"),
        training_step_example,
    ),
    GlossaryEntry(
        (N_("held out"),),
        N_("of text: kept from training, to see how well the model predicts what it has not read"),
        lambda look: format_logged_value(
            look, "validation_loss", _("After step {step:,} the loss on such text was {value} nats a token.")
        ),
    ),
    GlossaryEntry(
        (N_("learning rate"),),
        N_("how far a step of training moves the weights"),
        lambda look: format_logged_value(look, "learning_rate", _("It was {value} at step {step:,}.")),
    ),
)
