"""Prompts to begin with, and what to look for in each."""

from dataclasses import dataclass

from explorer.language import N_

BUNDLED = "llama-fables"  # the model that the hints are true of


@dataclass(frozen=True)
class Example:
    """A prompt, and an attention head of the bundled model that does something telling there.

    Attributes:
        text: the prompt.
        hint: what the head does, in a sentence.
        layer, head: which one it is.
        query, key: from which token it looks, and at which most of all.
    """

    text: str
    hint: str
    layer: int
    head: int
    query: int
    key: int

    @property
    def place(self) -> dict[str, int]:
        """Where in the run it is."""
        return {name: getattr(self, name) for name in ("layer", "head", "query", "key")}

    @property
    def look(self) -> dict[str, str | int]:
        """The selection that shows it."""
        return {"view": "attention", "pattern": "weight"} | self.place


EXAMPLES = {  # what they are called -> example
    N_("a story"): Example(
        "Once upon a time there was a fox who wanted the moon.",
        N_(
            "Layer 4 head 4 looks from the full stop back at “fox”, whom the story is about: “He” is likeliest to "
            "go on."
        ),
        *(4, 4, 12, 7),
    ),
    N_("copy a name"): Example(
        "Zorblat met Mimi. Zorblat said hello to Mimi. Then Zorb",
        N_(
            "No text it learned from has Zorblat. Layer 4 head 3 finds what followed “Zorb” the first time: “l” goes "
            "on."
        ),
        *(4, 3, 27, 3),
    ),
    N_("a made-up word"): Example(
        "The wugly bird sat in a tree. A cat looked at the wugly",
        N_(
            "What is wugly? Layer 4 head 3 looks back at the “bird” that was called so before: it is likeliest to "
            "go on."
        ),
        *(4, 3, 17, 4),
    ),
    N_("who is she?"): Example(
        "Lily gave Tom an apple because she was kind. Tom thanked",
        N_("Whom does Tom thank? Layer 4 head 3 looks back at “Lily”, who gave: she is likeliest to go on."),
        *(4, 3, 11, 0),
    ),
}


def example_of(text: str) -> Example | None:
    return next((example for example in EXAMPLES.values() if example.text == text), None)
