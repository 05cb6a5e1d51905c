"""Training text as batches of token ids."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from model.tokenizer import END_OF_TEXT, Tokenizer


def read_documents(path: Path) -> list[str]:
    """The documents of a UTF-8 file, which separates them by lines holding `<|endoftext|>`.

    Raises:
        ValueError: the file is missing, not UTF-8 or empty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"training text must be a readable UTF-8 file: {path}: {error}") from None
    documents = [document.strip("\n") for document in text.split(END_OF_TEXT)]
    documents = [document for document in documents if document]
    if not documents:
        raise ValueError(f"{path} holds no text")
    return documents


def encode_documents(documents: list[str], tokenizer: Tokenizer) -> Tensor:
    """All documents in one row of ids (N,), each followed by the end-of-text token."""
    ids = []
    for document in tokenizer.encoding.encode_ordinary_batch(documents):
        ids += document
        ids.append(tokenizer.end_of_text)
    return torch.tensor(ids)


class Batches:
    """Windows of the text, in a new order and cut at a new offset every epoch, without end.

    Args:
        ids: the text (N,).
        context_length: tokens of input a window.
        batch_size: windows a batch.
        vocab_size: random copies are drawn from it.
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
        self.starts = np.empty(0, dtype=np.int64)

    def next(self, copy_fraction: float = 0.0) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T); the targets are the inputs' next tokens.

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
        """(T + 1,) ids: a random sequence, its period drawn from 1/16 to 1/2 of the context, repeated to fill it."""
        period = int(self.rng.integers(max(2, self.context_length // 16), self.context_length // 2))
        once = torch.from_numpy(self.rng.integers(self.vocab_size, size=period))
        return once.repeat(self.context_length // period + 2)[: self.context_length + 1]
