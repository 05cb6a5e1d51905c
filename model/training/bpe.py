"""Learning a byte-pair encoding from text."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable

import regex

from model.tokenizer import WORD_PATTERN, Tokenizer


def train_bpe(documents: Iterable[str], vocab_size: int) -> Tokenizer:
    """Merge the most frequent pair of neighbouring tokens again and again (Sennrich et al. 2016, algorithm 1).

    The vocabulary is the 256 bytes, the merges in the order they were made, and `<|endoftext|>`. Pairs never cross
    the words of `WORD_PATTERN`; of equally frequent pairs the one with the greater bytes is merged.

    Raises:
        ValueError: `vocab_size` leaves no room for the bytes, or the text has too few distinct pairs to reach it.
    """
    if vocab_size < 257:
        raise ValueError(f"a byte-level vocabulary needs at least 257 tokens, got vocab_size {vocab_size}")
    find_words = regex.compile(WORD_PATTERN).findall
    frequency = Counter(word for document in documents for word in find_words(document))
    words = [[bytes([byte]) for byte in word.encode()] for word in frequency]
    counts = list(frequency.values())

    pair_counts: Counter = Counter()
    words_with = defaultdict(set)  # pair -> indices of the words that hold it
    for index, word in enumerate(words):
        for pair in itertools.pairwise(word):
            pair_counts[pair] += counts[index]
            words_with[pair].add(index)

    vocabulary = [bytes([byte]) for byte in range(256)]
    while len(vocabulary) < vocab_size - 1:
        if not pair_counts:
            raise ValueError(f"the text has only {len(vocabulary) + 1} tokens to learn, fewer than {vocab_size}")
        best = max(pair_counts, key=lambda pair: (pair_counts[pair], pair))
        vocabulary.append(best[0] + best[1])
        for index in words_with.pop(best):
            word = words[index]
            merged = merge(word, best)
            for pair in itertools.pairwise(word):
                pair_counts[pair] -= counts[index]
                if pair_counts[pair] <= 0:
                    del pair_counts[pair]
            for pair in itertools.pairwise(merged):
                pair_counts[pair] += counts[index]
                words_with[pair].add(index)
            words[index] = merged
    return Tokenizer({token: rank for rank, token in enumerate(vocabulary)})


def merge(word: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """The word with every occurrence of the pair, from the left, joined into one token."""
    merged = []
    for token in word:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return merged
