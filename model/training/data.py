"""Training text as batches of token ids, and training of a byte-pair encoding."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from tokenizers import models, pre_tokenizers, trainers
from torch import Tensor

from model.pretrained.tokenizer import decode_byte_level_piece
from model.tokenizer import END_OF_TEXT, Tokenizer


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


def read_documents(path: Path) -> list[str]:
    """Read the documents of a UTF-8 file, or of all files of a folder; `<|endoftext|>` divides them further.

    Files and folders whose names begin with a dot are left out.

    Raises:
        ValueError: a file is missing or not UTF-8, or there is no text.
    """
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    files = [file for file in files if not any(name.startswith(".") for name in file.relative_to(path).parts)]
    documents = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"training text must be a readable UTF-8 file: {file}: {error}") from None
        documents += [document.strip("\n") for document in text.split(END_OF_TEXT)]
    documents = [document for document in documents if document]
    if not documents:
        raise ValueError(f"{path} holds no text")
    return documents


def hold_out(documents: list[str]) -> tuple[list[str], list[str]]:
    """Split documents into (training, validation), a twentieth for validation.

    Every twentieth document if there are 20 or more, else the end of each.
    """
    if len(documents) < 20:
        cuts = [len(document) * 19 // 20 for document in documents]
        pairs = list(zip(documents, cuts, strict=True))
        return [document[:cut] for document, cut in pairs], [document[cut:] for document, cut in pairs]
    training = [document for i, document in enumerate(documents) if i % 20 != 19]
    return training, documents[19::20]


@dataclass(frozen=True)
class TrainingText:
    """The tokenized text of a training run.

    Attributes:
        tokenizer: the tokenizer that made the ids.
        train_ids: (N,).
        validation_ids: (M,).
        validation_bytes: length of the validation text in UTF-8, end-of-text tokens not counted.
    """

    tokenizer: Tokenizer
    train_ids: Tensor
    validation_ids: Tensor
    validation_bytes: int


def prepare_training_text(
    train: Path, validation: Path | None, tokenizer: Path | None, vocab_size: int
) -> TrainingText:
    """Read the text, train a tokenizer on it unless one is given, and encode both parts.

    Raises:
        OSError: the tokenizer's file cannot be read.
        ValueError: a text or the tokenizer's file is invalid.
    """
    training = read_documents(train)
    if validation:
        held_out = read_documents(validation)
    else:
        training, held_out = hold_out(training)
    text_tokenizer = Tokenizer.load(tokenizer) if tokenizer else train_bpe(training, vocab_size)
    return TrainingText(
        tokenizer=text_tokenizer,
        train_ids=encode_documents(training, text_tokenizer),
        validation_ids=encode_documents(held_out, text_tokenizer),
        validation_bytes=sum(len(document.encode()) for document in held_out),
    )


def encode_documents(documents: list[str], tokenizer: Tokenizer) -> Tensor:
    """Encode all documents as one row of ids (N,), each followed by the end-of-text token."""
    ids = []
    for document in tokenizer.encoding.encode_ordinary_batch(documents):
        ids += document
        ids.append(tokenizer.end_of_text)
    return torch.tensor(ids)


class TrainingBatches:
    """An endless series of batches of windows of the text, reordered and cut at a new offset every epoch.

    Args:
        ids: the text (N,).
        context_length: input tokens per window.
        batch_size: windows per batch.
        vocab_size: range of the random tokens of copied sequences.
        seed: fixes the order and the copies.

    Raises:
        ValueError: the text is shorter than one batch of windows.
    """

    def __init__(self, ids: Tensor, context_length: int, batch_size: int, vocab_size: int, seed: int):
        needed = (context_length + 1) * batch_size + context_length
        if len(ids) < needed:
            raise ValueError(
                f"a batch of {batch_size} windows of {context_length} tokens needs {needed} tokens of text, "
                f"got {len(ids)}: give more text or lower the batch size or the context length"
            )
        self.ids, self.context_length, self.batch_size, self.vocab_size = ids, context_length, batch_size, vocab_size
        self.rng = np.random.default_rng(seed)
        self.starts = np.empty(0, dtype=np.int64)  # of the windows left in this epoch

    def next(self, copy_fraction: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return inputs and targets (B, T); the targets are the inputs' next tokens.

        With probability `copy_fraction` a window is a random sequence repeated instead of text, from which a model
        learns to copy what followed the last occurrence of a token (Olsson et al. 2022).
        """
        if len(self.starts) < self.batch_size:
            offset = self.rng.integers(self.context_length)
            self.starts = np.arange(offset, len(self.ids) - self.context_length, self.context_length)
            self.rng.shuffle(self.starts)
        batch, self.starts = self.starts[: self.batch_size], self.starts[self.batch_size :]
        windows = torch.stack([self.ids[start : start + self.context_length + 1] for start in batch])  # (B, T + 1)
        for row in np.flatnonzero(self.rng.random(self.batch_size) < copy_fraction):
            windows[row] = self.repeated_random_tokens()
        return windows[:, :-1], windows[:, 1:]

    def repeated_random_tokens(self) -> Tensor:
        """Return (T + 1,) ids: a repeated random sequence, its period drawn from 1/16 to 1/2 of the context."""
        period = int(self.rng.integers(max(2, self.context_length // 16), self.context_length // 2))
        once = torch.from_numpy(self.rng.integers(self.vocab_size, size=period))
        return once.repeat(self.context_length // period + 2)[: self.context_length + 1]

    @property
    def state(self) -> dict[str, Any]:
        """Progress in the text, as JSON; assign it to batches of the same text to continue from there."""
        return {"generator": self.rng.bit_generator.state, "starts": self.starts.tolist()}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        """Progress in the text, as JSON; assign it to batches of the same text to continue from there."""
        self.rng.bit_generator.state = state["generator"]
        self.starts = np.array(state["starts"], dtype=np.int64)
