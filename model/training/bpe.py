"""Training of a byte-pair encoding."""

import json
from collections.abc import Iterable

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from model.pretrained.tokenizer import decode_byte_level_piece
from model.tokenizer import Tokenizer


def train_bpe(documents: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a byte-pair encoding with the `tokenizers` package (Sennrich et al. 2016, algorithm 1).

    The most frequent pair of neighbouring tokens is merged, repeatedly. The vocabulary is the 256 bytes, the
    merges in the order they were made, and `<|endoftext|>`. Pairs never cross the words of
    `model.tokenizer.WORD_PATTERN`.

    Raises:
        ValueError: `vocab_size` leaves no room for the bytes, or the text has too few distinct pairs to reach it.
    """
    if vocab_size < 257:
        raise ValueError(f"a byte-level vocabulary needs at least 257 tokens, got vocab_size {vocab_size}")
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False
    )  # splits by GPT-2's pattern, as WORD_PATTERN does
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    learner.train_from_iterator(documents, trainer)
    merges = json.loads(learner.to_str())["model"]["merges"]
    merged = (decode_byte_level_piece(left) + decode_byte_level_piece(right) for left, right in merges)
    vocabulary = list(dict.fromkeys([*(bytes([byte]) for byte in range(256)), *merged]))  # two merges may make the same
    if len(vocabulary) < vocab_size - 1:
        raise ValueError(f"the text has only {len(vocabulary) + 1} tokens to learn, fewer than {vocab_size}")
    return Tokenizer({token: rank for rank, token in enumerate(vocabulary)})
