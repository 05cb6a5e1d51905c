import itertools
import random
from collections import Counter

import pytest
import regex
import tokenizers

from model.tokenizer import WORD_PATTERN
from model.training.data import train_bpe
from tests.byte_pairs import merge_pair
from tests.subtest_loops import subtest_each


def random_text(num_words: int, seed: int) -> str:
    """Return words of independent letters, some more frequent than others."""
    rng = random.Random(seed)
    letters = {letter: 0.8**i for i, letter in enumerate("etaoinshrdlué")}
    words = (rng.choices(list(letters), list(letters.values()), k=rng.randint(1, 9)) for _ in range(num_words))
    return " ".join(map("".join, words)) + "."


@pytest.mark.exhaustive
def test_every_merge_joins_most_frequent_pair():
    """Pairs are recounted before every merge."""
    text = "aaaa aaa aa banana bandana " + random_text(200, seed=4)
    tokenizer = train_bpe([text], vocab_size=400)
    words = [[bytes([byte]) for byte in word.encode()] for word in regex.findall(WORD_PATTERN, text)]
    for token_id in range(256, 399):
        counts = Counter(pair for word in words for pair in itertools.pairwise(word))
        token = tokenizer.token_bytes(token_id)
        best = [pair for pair, count in counts.items() if count == max(counts.values()) and b"".join(pair) == token]
        assert best
        words = [merge_pair(word, best[0]) for word in words]
    # The tokenizer splits the text as the merges do.
    assert [tokenizer.token_bytes(i) for i in tokenizer.encode(text)] == list(itertools.chain(*words))


@subtest_each(
    "text",
    [
        "it's I'll 'twas 'S",
        " two  spaces\n\n new\tline  ",
        "x1y22 ½ ⅷ",
        "日本語です。",
        "e\u0301 👩🏽‍🚀!?",
        "a\u00a0b\u3000c",
    ],
)
def test_words_are_split_like_gpt2(text):
    gpt_2 = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    assert regex.findall(WORD_PATTERN, text) == [text[start:end] for _, (start, end) in gpt_2]


def test_first_merges_match_paper_example():
    """Sennrich et al. 2016, the example of §3.2: low 5 times, lower 2, newest 6, widest 3."""
    words = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    tokenizer = train_bpe(["\n".join(words)], vocab_size=256 + 4 + 1)
    merges = [tokenizer.token_bytes(i) for i in range(256, 260)]
    assert merges[0] in (b"es", b"st")  # 9 times each
    assert merges[1] == b"est"
    assert merges[2] in (b"lo", b"ow")  # 7 times each
    assert merges[3] == b"low"


def test_pairs_do_not_cross_words_or_documents():
    tokenizer = train_bpe(["ab cd"] * 10 + ["ef"] * 10, vocab_size=261)
    learnt = {tokenizer.token_bytes(i) for i in range(256, 260)}
    assert learnt == {b"ab", b" c", b" cd", b"ef"} or learnt == {b"ab", b"cd", b" cd", b"ef"}


def test_training_is_deterministic():
    text = random_text(500, seed=4)
    first, second = train_bpe([text], 300), train_bpe([text], 300)
    assert [first.token_bytes(i) for i in range(300)] == [second.token_bytes(i) for i in range(300)]


def test_vocabulary_smaller_than_bytes_is_refused():
    with pytest.raises(ValueError, match="at least 257 tokens, got vocab_size 256"):
        train_bpe(["text"], 256)


def test_text_too_small_for_vocabulary_is_refused():
    with pytest.raises(ValueError, match="the text has only 259 tokens to learn, fewer than 300"):
        train_bpe(["the"], 300)
