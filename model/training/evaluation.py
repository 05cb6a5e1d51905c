"""Evaluation of a model on held-out text."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.transformer_lm import TransformerLM


@dataclass(frozen=True)
class Evaluation:
    """Loss on held-out text: nats per token, and bits per byte of text, which compares across tokenizers."""

    loss: float
    bits_per_byte: float

    @property
    def perplexity(self) -> float:
        return math.exp(self.loss)


@torch.no_grad()
def evaluate(lm: TransformerLM, ids: Tensor, num_bytes: int, batch_size: int = 16) -> Evaluation:
    """Score every token of the text after the first once, in windows of the context length that do not overlap.

    Args:
        ids: the text (N,).
        num_bytes: its length in UTF-8 bytes, end-of-text tokens not counted.
    """
    context = lm.config.context_length
    starts = range(0, len(ids) - 1, context)
    full = [start for start in starts if start + context < len(ids)]
    batches = [full[i : i + batch_size] for i in range(0, len(full), batch_size)]
    rest = [start for start in starts if start + context >= len(ids)]
    nats, count, was_training = 0.0, 0, lm.training
    lm.eval()
    for batch in batches + [[start] for start in rest]:
        windows = torch.stack([ids[start : start + context + 1] for start in batch]).to(lm.device)  # (B, T + 1)
        logits = lm(windows[:, :-1])
        nats += F.cross_entropy(logits.flatten(0, 1).float(), windows[:, 1:].flatten(), reduction="sum").item()
        count += windows[:, 1:].numel()
    lm.train(was_training)
    return Evaluation(loss=nats / count, bits_per_byte=nats / math.log(2) / num_bytes)
