"""Pairs of prompts for patching, which differ in what decides the next token."""

from dataclasses import dataclass

from explorer.translations import N_


@dataclass(frozen=True)
class PromptPair:
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
    PromptPair(
        N_("he or she, after a name"),
        "Once upon a time there was a girl named Mia. One day, Mia went to the park.",
        "Once upon a time there was a boy named Tom. One day, Tom went to the park.",
        " She",
        " He",
    ),
    PromptPair(N_("he or she, after a noun"), "The boy was sad because", "The girl was sad because", " he", " she"),
    PromptPair(
        N_("who gave, and who thanks?"),
        "Lily gave Tom an apple because she was kind. Tom thanked",
        "Tom gave Lily an apple because he was kind. Lily thanked",
        " Lily",
        " Tom",
    ),
    PromptPair(
        N_("which name was it?"),
        'Sam gave Tom an apple. Tom said: "Thank you,',
        'Sam gave Ben an apple. Ben said: "Thank you,',
        " Tom",
        " Ben",
    ),
    PromptPair(
        N_("copying a noun"),
        "The wugly bird sat in a tree. A cat looked at the wugly",
        "The wugly fish sat in a tree. A cat looked at the wugly",
        " bird",
        " fish",
    ),
    PromptPair(
        N_("an adjective’s noun"),
        "Once upon a time there was a little dog. The little",
        "Once upon a time there was a little cat. The little",
        " dog",
        " cat",
    ),
    PromptPair(
        N_("which of two things?"),
        "Tom had a red ball and a blue car. He lost the red",
        "Tom had a blue ball and a red car. He lost the red",
        " ball",
        " car",
    ),
    PromptPair(
        N_("a pair of people"),
        "Lily and her mom went to the store. Lily and her",
        "Lily and her dad went to the store. Lily and her",
        " mom",
        " dad",
    ),
)
