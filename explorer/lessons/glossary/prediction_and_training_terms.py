"""Glossary entries on predictions and sampling, their statistics, and training."""

from collections.abc import Callable

from explorer.lessons.glossary.glossary_entry import GlossaryEntry, GlossaryExampleContext
from explorer.translations import N_

CANDIDATE_COUNT_EXAMPLE = N_("With all settings {candidates:,} of {vocab_size:,} tokens can be drawn after {token}.")
GREEDY_EXAMPLE = N_("After {token} it would take {best}.")


def choose_rank_example(context: GlossaryExampleContext) -> str:
    if context.prediction.actual is None:
        return N_("After {token}, {best} has rank 1.")
    return N_("After {token} comes {next}: its rank is {rank:,}.")


def choose_surprisal_example(context: GlossaryExampleContext) -> str:
    if context.selection.query == 0:
        return N_("The first token has none, as nothing comes before it.")
    return N_("{token} has {surprisal} bits here.")


def choose_perplexity_example(context: GlossaryExampleContext) -> str:
    if len(context.trace) < 2:
        return N_("One token has none, as nothing comes before it.")
    return N_("That of this run is {perplexity}.")


PREDICTIONS = (
    GlossaryEntry(
        (N_("logit"), N_("logits")),
        N_("the model’s score for a possible next token; softmax turns all of them into probabilities"),
        N_("The largest after {token} is that of {best}, {logit}."),
    ),
    GlossaryEntry(
        (N_("probability"), N_("probabilities")),
        N_("how likely something is, from 0 to 1"),
        N_("The largest that the model gives after {token} is that of {best}, {probability}."),
    ),
    GlossaryEntry(
        (N_("chance"),),
        N_("how likely a token is to be drawn with the settings; the model’s own chance is the one before them"),
        N_("After {word}, {best_word} has {chance_percent}; the model’s own is {probability_percent}."),
    ),
    GlossaryEntry((N_("rank"),), N_("1 for the likeliest token, 2 for the next, and so on"), choose_rank_example),
    GlossaryEntry(
        (N_("surprisal"), N_("surprisals")),
        N_("−log₂ of the probability the model gave a token before seeing it, in bits"),
        choose_surprisal_example,
    ),
    GlossaryEntry(
        (N_("entropy"),),
        N_("the surprisal to be expected from the next token, in bits"),
        N_("After {token} the model’s is {plain_entropy} bits, with the settings {entropy}."),
    ),
    GlossaryEntry(
        (N_("bits"),),
        N_("what surprise is counted in: a coin toss has 1, and each more halves the probability"),
        N_("An even guess among {vocab_size:,} tokens would have {uniform_bits}."),
    ),
    GlossaryEntry(
        (N_("perplexity"),),
        N_("2 to the power of the mean surprisal: among how many equally likely tokens each was a choice"),
        choose_perplexity_example,
    ),
    GlossaryEntry(
        (N_("temperature"), "÷ T"),
        N_(
            "how daring the choice is: low, nearly always the favourite; high, rarer tokens get a real chance. Logits "
            "are divided by it before the softmax; 0 takes the likeliest"
        ),
        N_("At {temperature:g}, {best} goes from {probability} to {chance}, with all other settings."),
    ),
    GlossaryEntry(
        (N_("top-k"),), N_("only the k likeliest tokens can be drawn; “all” keeps every token"), CANDIDATE_COUNT_EXAMPLE
    ),
    GlossaryEntry(
        (N_("top-p"), N_("nucleus")),
        N_("of those only the fewest, the likeliest, that have the probability p together; 1 keeps all"),
        CANDIDATE_COUNT_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("min-p"),),
        N_("of those only tokens at least p times as likely as the likeliest; 0 keeps all"),
        CANDIDATE_COUNT_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("repetition penalty"),),
        N_(
            "what logits of tokens that the text has already are divided by, or multiplied by where negative; 1 leaves "
            "them"
        ),
        CANDIDATE_COUNT_EXAMPLE,
    ),
    GlossaryEntry(
        (N_("seed"),), N_("decides all random numbers: the same seed writes the same text"), N_("It is {seed} now.")
    ),
    GlossaryEntry(
        (N_("random number"), "u"),
        N_("a point on a line from 0 to 1, where all probabilities lie side by side; the token it falls on is taken"),
        N_("After {token} it is {u}, from seed {seed}."),
    ),
    GlossaryEntry(
        (N_("Step picks"),),
        N_("the token that Step would write: the random number falls on it, with these settings"),
        N_("After {word} the number is {u}, which picks {next_word}."),
    ),
    GlossaryEntry((N_("greedy"),), N_("always taking the likeliest token"), GREEDY_EXAMPLE),
    GlossaryEntry((N_("beam"),), N_("keeping several texts at each step, the likeliest as wholes"), GREEDY_EXAMPLE),
    GlossaryEntry((N_("sampling"),), N_("drawing tokens by their probabilities"), CANDIDATE_COUNT_EXAMPLE),
    GlossaryEntry(
        (N_("off by"), N_("recomputed")),
        N_("how far a captured value lies from the same value worked out again from its inputs"),
        N_("{pattern}, worked out again, is off by {error} at most."),
    ),
)


STATISTICS = (
    GlossaryEntry(
        (N_("mean"),),
        N_("the sum of some numbers, over how many they are"),
        N_("That of the {d_model} numbers of {token} after the last layer is {mean}."),
    ),
    GlossaryEntry(
        (N_("median"),),
        N_("the number in the middle, when all are put in order"),
        N_("That of the {d_model} numbers of {token} after the last layer is {median}."),
    ),
    GlossaryEntry(
        (N_("variance"), "var", N_("standard deviation")),
        N_("how far numbers lie apart: the mean of (x − mean)²; the standard deviation is its root"),
        N_(
            "That of the {d_model} numbers of {token} after the last layer is {variance}, the standard deviation {std}."
        ),
    ),
    GlossaryEntry(
        ("RMS", N_("root mean square")),
        N_("how large some numbers are: the root of the mean of x²"),
        N_("That of the {d_model} numbers of {token} after the last layer is {rms}."),
    ),
    GlossaryEntry(
        ("PCA", N_("component")),
        N_("finds the directions in which vectors differ most: the first component, then others at right angles to it"),
        N_(
            "At depth {depth} the first takes {first_component} of the variance of the {tokens} tokens here, "
            "the second {second_component}."
        ),
    ),
    GlossaryEntry(
        (N_("histogram"),),
        N_("a bar for each stretch of numbers, as high as many of them lie in it"),
        N_("{tap} has {tap_size:,} numbers here."),
    ),
    GlossaryEntry(
        (N_("logarithm"), "log₂", "ln", N_("log-probability"), N_("log")),
        N_("the power to which 2 (log₂) or e = 2.718… (ln) must be raised to give a number"),
        N_("The probability of {best} after {token} is {probability}, its log₂ {log_probability}."),
    ),
)


def choose_text_loss_example(context: GlossaryExampleContext) -> str:
    if len(context.trace) < 2:
        return N_("Here is a single token, and so none.")
    return N_("That of this text is {nats} nats a token, {bits} bits.")


def choose_training_step_example(context: GlossaryExampleContext) -> str:
    training = context.trace.training
    if training is None or training.step is None:
        return N_("After how many this model was kept, its name does not say.")
    return N_("This model was kept after {step:,}.")


def if_logged(name: str, template: str) -> Callable[[GlossaryExampleContext], str]:
    """Return a function that chooses the template if training logged the value, or else says that it did not."""
    unknown = N_("Nothing is known of it here: the model came without a record of its training.")
    return lambda context: template if context.logged_value(name) else unknown


TRAINING = (
    GlossaryEntry(
        (N_("loss"),),
        N_("what training makes small: −ln of the probability that the model gave each token of a text, its mean"),
        choose_text_loss_example,
    ),
    GlossaryEntry(
        (N_("nats"),),
        N_("what surprise is counted in where ln stands in the place of log₂: 1.44 bits each"),
        choose_text_loss_example,
    ),
    GlossaryEntry(
        (N_("training step"), N_("training steps")),
        N_("one change of all weights, after the model has read a little of the training text"),
        choose_training_step_example,
    ),
    GlossaryEntry(
        (N_("held out"),),
        N_("of text: kept from training, to see how well the model predicts what it has not read"),
        if_logged(
            "validation_loss",
            N_("After step {validation_step:,} the loss on such text was {validation_loss} nats a token."),
        ),
    ),
    GlossaryEntry(
        (N_("learning rate"),),
        N_("how far a step of training moves the weights"),
        if_logged("learning_rate", N_("It was {learning_rate} at step {learning_rate_step:,}.")),
    ),
)
