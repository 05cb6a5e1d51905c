"""Reference implementation of byte-pair merges."""


def merge_pair(word: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """Return the word with every occurrence of the pair, from the left, joined into one token."""
    merged = []
    for token in word:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return merged
