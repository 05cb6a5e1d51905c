"""Context window: the part of a long text that the model sees."""


def window_start(num_tokens: int, context_length: int) -> int:
    """Return the index of the first of `num_tokens` tokens that the model sees: 0 while all fit.

    Past the context length the window moves by a quarter of it at a time, not by one token, so that the cache is
    refilled only then.
    """
    hop = max(1, context_length // 4)
    overflow = max(0, num_tokens - context_length)
    return -(-overflow // hop) * hop
