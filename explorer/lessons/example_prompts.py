"""Example prompts by name."""

from explorer.translations import N_

EXAMPLES = {  # what they are called -> text
    N_("a story"): "Once upon a time there was a fox who wanted the moon.",
    N_("copy a name"): "Zorblat met Mimi. Zorblat said hello to Mimi. Then Zorb",
    N_("a made-up word"): "The wugly bird sat in a tree. A cat looked at the wugly",
    N_("who is she?"): "Lily gave Tom an apple because she was kind. Tom thanked",
}
