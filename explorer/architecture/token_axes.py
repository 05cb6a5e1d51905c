"""Token axes of captured values."""


def token_axes(tap: str) -> tuple[int, ...]:
    """Return the axes of a value that count tokens, from the end, since heads may come before.

    Scores and patterns have queries and keys, all other values the rows of vectors.
    """
    return (-2, -1) if tap.endswith(("attn.scores", "attn.pattern")) else (-2,)
