"""Contrastive prompt lists, which differ in one property, for directions as differences of means."""

from dataclasses import dataclass

from explorer.translations import N_


@dataclass(frozen=True)
class ContrastivePromptLists:
    """Two contrastive lists of prompts, in the vocabulary of the bundled models, whose stories are in English.

    Attributes:
        name: meaning of the direction, to be translated.
        prompts, others: the two lists.
        towards, away: texts of the tokens that it should make likelier and less likely.
        examples: other prompts, to see its effect on.
    """

    name: str
    prompts: tuple[str, ...]
    others: tuple[str, ...]
    towards: str
    away: str
    examples: tuple[str, ...]


PROMPT_LISTS = (
    ContrastivePromptLists(
        N_("happy, not sad"),
        (
            "Tom was happy. He smiled and laughed.",
            "Lily felt so glad that she jumped and sang.",
            "It was the best day. The bear was happy and danced.",
            "The bird sang with joy, and everyone laughed.",
        ),
        (
            "Tom was sad. He cried and cried.",
            "Lily felt so lonely that she wept.",
            "It was the worst day. The bear was sad and cried.",
            "The bird was hurt, and everyone was upset.",
        ),
        " happy",
        " sad",
        (
            "Once upon a time there was a dog. The dog was very",
            "Ben saw his friend. Ben felt",
            "Sara came home. Sara was so",
            "The cat looked at the rain. The cat was",
            "The teacher read the letter. The teacher was",
            "They lost the game. They were",
        ),
    ),
    ContrastivePromptLists(
        N_("she, not he"),
        (
            "Lily went to the park. She was glad, and she played with her doll.",
            "Mia was a girl. She loved her mom.",
            "The queen smiled. She took her crown.",
            "Sara ran home. She saw her sister.",
        ),
        (
            "Tom went to the park. He was glad, and he played with his car.",
            "Ben was a boy. He loved his dad.",
            "The king smiled. He took his crown.",
            "Sam ran home. He saw his brother.",
        ),
        " She",
        " He",
        (
            "Once upon a time there was a cat.",
            "The teacher came into the room.",
            "The little rabbit wanted to play.",
            "One day a bird flew away.",
            "Tom found a key.",
            "Lily found a key.",
        ),
    ),
    ContrastivePromptLists(
        N_("asked, not said"),
        (
            '"Why are you sad?" asked Tom.',
            '"What is that?" asked Lily. "Where is it?"',
            '"Can I help you?" asked the bird. "Who are you?"',
            '"Do you want to play?" asked Ben.',
        ),
        (
            '"I am sad," said Tom.',
            '"That is a ball," said Lily. "It is here."',
            '"I will help you," said the bird. "I am a bird."',
            '"I want to play," said Ben.',
        ),
        " asked",
        " said",
        (
            '"Hello, little bird," Tom',
            '"Is it far?" Lily',
            '"I like you," the cat',
            'The boy looked up. "Mom," he',
            '"Look at this!" Sara',
            '"Please," the bear',
        ),
    ),
)
