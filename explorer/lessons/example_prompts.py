"""Example prompts, pairs of prompts for patching, and advice on prompts whose end makes a prediction uninformative."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.embedding import nearest_tokens
from explorer.analysis.next_token import next_token_distribution, surprisal
from explorer.explain.notation import format_number, format_percent, quote_token
from explorer.tracing.trace import Trace
from explorer.translations import N_, _

_COPY_A_NAME = N_("copy a name")
EXAMPLES = {  # what they are called -> text
    N_("a story"): "Once upon a time there was a fox who wanted the moon.",
    _COPY_A_NAME: "Zorblat met Mimi. Zorblat said hello to Mimi. Then Zorb",
    N_("a made-up word"): "The wugly bird sat in a tree. A cat looked at the wugly",
    N_("who is she?"): "Lily gave Tom an apple because she was kind. Tom thanked",
}
GUESS_EXAMPLES = (
    *(text for name, text in EXAMPLES.items() if name != _COPY_A_NAME),  # whose next token is part of a word
    "My grandmother baked a cake for the",
    "The owl was wise and old. Every night the owl",
    "The sun went down. It was dark, so the children were",
    "A bear and a bee were friends, but the bear ate all the",
)


@dataclass(frozen=True)
class PatchingPromptPair:
    """Two prompts with equally many tokens for the bundled model, each with an answer of its own.

    Attributes:
        name: the task, translated when displayed.
        clean, corrupted: the prompts.
        answer, wrong: texts of the likeliest tokens after the clean and after the corrupted prompt.
    """

    name: str
    clean: str
    corrupted: str
    answer: str
    wrong: str


PROMPT_PAIRS = (
    PatchingPromptPair(
        N_("he or she, after a name"),
        "Once upon a time there was a girl named Mia. One day, Mia went to the park.",
        "Once upon a time there was a boy named Tom. One day, Tom went to the park.",
        " She",
        " He",
    ),
    PatchingPromptPair(
        N_("he or she, after a noun"), "The boy was sad because", "The girl was sad because", " he", " she"
    ),
    PatchingPromptPair(
        N_("who gave, and who thanks?"),
        "Lily gave Tom an apple because she was kind. Tom thanked",
        "Tom gave Lily an apple because he was kind. Lily thanked",
        " Lily",
        " Tom",
    ),
    PatchingPromptPair(
        N_("which name was it?"),
        'Sam gave Tom an apple. Tom said: "Thank you,',
        'Sam gave Ben an apple. Ben said: "Thank you,',
        " Tom",
        " Ben",
    ),
    PatchingPromptPair(
        N_("copying a noun"),
        "The wugly bird sat in a tree. A cat looked at the wugly",
        "The wugly fish sat in a tree. A cat looked at the wugly",
        " bird",
        " fish",
    ),
    PatchingPromptPair(
        N_("an adjective’s noun"),
        "Once upon a time there was a little dog. The little",
        "Once upon a time there was a little cat. The little",
        " dog",
        " cat",
    ),
    PatchingPromptPair(
        N_("which of two things?"),
        "Tom had a red ball and a blue car. He lost the red",
        "Tom had a blue ball and a red car. He lost the red",
        " ball",
        " car",
    ),
    PatchingPromptPair(
        N_("a pair of people"),
        "Lily and her mom went to the store. Lily and her",
        "Lily and her dad went to the store. Lily and her",
        " mom",
        " dad",
    ),
)


PARTNER_PROMPTS = {pair.clean: pair.corrupted for pair in PROMPT_PAIRS} | {
    pair.corrupted: pair.clean for pair in PROMPT_PAIRS
}
MAX_SIMILAR = 30  # tokens with similar embeddings, of which the likeliest replaces a word


def similar_word(trace: Trace, num_tokens: int) -> tuple[int, int]:
    """Return the position of a prompt's most surprising word, and the id of a similar token to put in its place.

    Of the tokens with the most similar embeddings it is the one that the model expected most there.

    Args:
        trace: of the run.
        num_tokens: of its prompt, the first ones.
    """
    texts = trace.tokens[:num_tokens]
    positions = range(min(1, num_tokens - 1), num_tokens)  # nothing foresees the first
    words = [i for i in positions if is_whole_word(texts, i)] or positions
    position = max(words, key=surprisal(trace).__getitem__)
    similar, _cosines = nearest_tokens(trace, trace.token_ids[position], MAX_SIMILAR)
    alike = [i for i in similar if is_another_word(trace.vocabulary[i], texts[position])] or similar[:1]
    if position:
        probabilities = next_token_distribution(trace, position - 1).plain
        return position, int(max(alike, key=probabilities.__getitem__))
    return position, int(alike[0])


def is_whole_word(texts: Sequence[str], index: int) -> bool:
    """Return whether a token is a word of several letters with the space before it, and not a part of one."""
    text, following = texts[index], "".join(texts[index + 1 : index + 2])
    return text[:1] == " " and text[1:].isalpha() and len(text) > 2 and not following[:1].isalpha()


def is_another_word(text: str, other: str) -> bool:
    """Return whether two tokens have different letters, and are alike in spaces, capitals and kinds of characters."""
    (kinds, word), (other_kinds, other_word) = (
        ((token[:1].isspace(), token.strip().isalpha(), token.islower(), token.isascii()), token.strip().casefold())
        for token in (text, other)
    )
    return kinds == other_kinds and word != other_word


UNFAMILIAR_FRACTION = 0.75  # mean surprisal of a prompt, as a part of an even guess's
MIN_TOKENS = 4  # of a prompt that is judged by its mean
MIN_ENDING_PROBABILITY = 0.01  # probability of a word that is offered to go on with


@dataclass(frozen=True)
class PromptAdvice:
    """Advice on a prompt.

    Attributes:
        text: a sentence or two.
        trim: whether to remove the spaces at the prompt's end.
        append: a text to add there.
    """

    text: str
    trim: bool = False
    append: str = ""

    def follow(self, prompt: str) -> str:
        """Return the prompt with the advice applied."""
        return (prompt.rstrip(" ") if self.trim else prompt) + self.append


def prompt_advice(trace: Trace) -> PromptAdvice | None:
    """Return the first advice that applies to the prompt of a trace; None for none."""
    return trailing_space_advice(trace) or unfamiliar_prompt_advice(trace) or likely_end_advice(trace)


def trailing_space_advice(trace: Trace) -> PromptAdvice | None:
    """Return advice on a space at the end, if tokens begin with their space, so that words hardly follow one."""
    if len(trace) < 2 or not trace.tokens[-1].endswith(" "):
        return None
    joined = sum(text[:1] == " " and text[1:2].isalnum() for text in trace.vocabulary)
    if not joined:
        return None
    message = _(
        "The prompt ends in a space. {joined:,} of this model’s {tokens:,} tokens are a space and the beginning of a "
        "word in one; a space by itself has a surprisal of {bits} bits here. Without it those tokens can follow.",
        joined=joined,
        tokens=trace.config.vocab_size,
        bits=format_number(surprisal(trace)[-1]),
    )
    return PromptAdvice(message, trim=True)


def unfamiliar_prompt_advice(trace: Trace) -> PromptAdvice | None:
    """Return advice on a prompt with a high mean surprisal."""
    uniform_bits = np.log2(trace.config.vocab_size)
    if len(trace) < MIN_TOKENS or (mean := float(surprisal(trace)[1:].mean())) < UNFAMILIAR_FRACTION * uniform_bits:
        return None
    message = _(
        "The model did not expect this text: its mean surprisal is {mean} bits a token, that of blind guesses {even}. "
        "Expect an odd continuation.",
        mean=format_number(mean),
        even=format_number(uniform_bits),
    )
    return PromptAdvice(message)


def likely_end_advice(trace: Trace) -> PromptAdvice | None:
    """Return advice on a prompt after which the text, the line or the clause is likeliest to end."""
    prediction = next_token_distribution(trace, len(trace) - 1)
    best = int(prediction.plain.argmax())
    if not (template := end_token_advice_template(trace, best)):
        return None
    message = template.format(
        mark=quote_token(trace.vocabulary[best]), probability=format_percent(prediction.plain[best])
    )
    for token_id in prediction.top(64):
        text, probability = trace.vocabulary[token_id], prediction.plain[token_id]
        if text[:1] == " " and text[1:].isalpha() and probability >= MIN_ENDING_PROBABILITY:
            suggestion = _(
                "To see what the model has to tell, go on with the likeliest word, {word} ({probability}).",
                word=quote_token(text),
                probability=format_percent(probability),
            )
            return PromptAdvice(f"{message} {suggestion}", append=text)
    return PromptAdvice(message)


def end_token_advice_template(trace: Trace, token_id: int) -> str:
    """Return a text template for a token that ends the text, the line or the clause; "" for other tokens."""
    text = trace.vocabulary[token_id]
    if trace.token_bytes and trace.token_bytes[token_id] is None:
        return _("The likeliest next token is the end of the text (the model’s probability {probability}).")
    if text.strip(" ").startswith("\n"):
        return _("The likeliest next token is a line break (the model’s probability {probability}).")
    attached = text[:1] and not text[0].isspace() and not any(map(str.isalnum, text))
    if not attached or not text.isprintable():
        return ""
    return _("The likeliest next token is a punctuation mark, {mark} (the model’s probability {probability}).")
