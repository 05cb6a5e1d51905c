"""Which axes of a captured value count tokens."""


def token_axes(tap: str) -> tuple[int, ...]:
    """Of scores and patterns queries and keys, of all else the rows of vectors; counted from the end, where heads may
    come before."""
    return (-2, -1) if tap.endswith(("attn.scores", "attn.pattern")) else (-2,)
