import itertools
import random
from collections import Counter

import pytest
import regex
import tokenizers

from model.tokenizer import WORD_PATTERN
from model.training.bpe import merge, train_bpe


def random_text(num_words: int, seed: int) -> str:
    """Words of independent letters, some more frequent than others: large counts of pairs are hardly ever equal."""
    rng = random.Random(seed)
    letters = {letter: 0.8**i for i, letter in enumerate("etaoinshrdlué")}
    words = (rng.choices(list(letters), list(letters.values()), k=rng.randint(1, 9)) for _ in range(num_words))
    return " ".join(map("".join, words)) + "."


def reference_bpe(text: str, vocab_size: int) -> tokenizers.Tokenizer:
    """Hugging Face's trainer, on bytes and GPT-2's words; it has no end-of-text token here."""
    reference = tokenizers.Tokenizer(tokenizers.models.BPE())
    reference.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    reference.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    reference.train_from_iterator([text], trainer)
    assert reference.get_vocab_size() == vocab_size - 1
    return reference


def lengths(tokens) -> list[int]:
    return [len(token) for token in tokens]


def test_splits_texts_as_hugging_faces_trainer_does():
    """Equally frequent pairs may be merged in either order; among the first 40 merges of this text there are none."""
    text = random_text(8_000, seed=0)
    ours, reference = train_bpe([text], vocab_size=297), reference_bpe(text, vocab_size=297)
    for sample in (text, random_text(500, seed=1), "unseen WORDS, 123 and  spaces\n"):
        ids = ours.encode(sample)
        # Their tokens spell each byte as one character.
        assert lengths(map(ours.token_bytes, ids)) == lengths(reference.encode(sample).tokens)


def test_compresses_as_well_as_hugging_faces_trainer():
    """Ties among rare pairs are now broken differently; the number of tokens hardly differs."""
    text = random_text(3_000, seed=2)
    ours, reference = train_bpe([text], vocab_size=600), reference_bpe(text, vocab_size=600)
    for sample in (text, random_text(2_000, seed=3)):
        assert len(ours.encode(sample)) == pytest.approx(len(reference.encode(sample).tokens), rel=0.02)


def test_every_merge_is_of_a_most_frequent_pair():
    """Counted anew before every merge."""
    text = "aaaa aaa aa banana bandana " + random_text(200, seed=4)
    tokenizer = train_bpe([text], vocab_size=400)
    words = [[bytes([byte]) for byte in word.encode()] for word in regex.findall(WORD_PATTERN, text)]
    for token_id in range(256, 399):
        counts = Counter(pair for word in words for pair in itertools.pairwise(word))
        token = tokenizer.token_bytes(token_id)
        best = [pair for pair, count in counts.items() if count == max(counts.values()) and b"".join(pair) == token]
        assert best
        words = [merge(word, best[0]) for word in words]
    # The tokenizer splits the text as the merges have.
    assert [tokenizer.token_bytes(i) for i in tokenizer.encode(text)] == list(itertools.chain(*words))


@pytest.mark.parametrize(
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
def test_words_are_cut_as_gpt_2_cuts_them(text):
    gpt_2 = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    assert regex.findall(WORD_PATTERN, text) == [text[start:end] for _, (start, end) in gpt_2]


def test_the_first_merges_are_the_most_frequent_pairs():
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


def test_merges_from_the_left():
    assert merge([b"a", b"a", b"a", b"b"], (b"a", b"a")) == [b"aa", b"a", b"b"]
    assert merge([b"a", b"b", b"c", b"a", b"b"], (b"a", b"b")) == [b"ab", b"c", b"ab"]


def test_is_deterministic():
    text = random_text(500, seed=4)
    first, second = train_bpe([text], 300), train_bpe([text], 300)
    assert [first.token_bytes(i) for i in range(300)] == [second.token_bytes(i) for i in range(300)]


def test_a_vocabulary_too_small_for_the_bytes_is_refused():
    with pytest.raises(ValueError, match="at least 257 tokens, got vocab_size 256"):
        train_bpe(["text"], 256)


def test_a_text_too_small_for_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match="the text has only 259 tokens to learn, fewer than 300"):
        train_bpe(["the"], 300)
