"""Evaluation of a model on held-out text, and scores of heads that copy earlier tokens."""

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


def repeated_random_tokens(lm: TransformerLM, period: int = 50, num_sequences: int = 8, seed: int = 0) -> Tensor:
    """Return (num_sequences, 2 · period) ids: distinct random tokens, repeated once.

    The period is cut to half the context length.
    """
    period = min(period, lm.config.context_length // 2)
    generator = torch.Generator().manual_seed(seed)
    once = [torch.randperm(lm.config.vocab_size, generator=generator)[:period] for _ in range(num_sequences)]
    return torch.stack(once).repeat(1, 2)


@torch.no_grad()
def copying_head_scores(lm: TransformerLM, sequences: Tensor | None = None) -> dict[str, Tensor]:
    """Return two scores per head, (L, H) each, in [0, 1]: mean attention that queries pay to a position.

    `previous_token`: the position before the query;
    `induction`: the position after the last earlier occurrence of the query's token, over the queries that have
    one (Elhage et al. 2021; Olsson et al. 2022).

    Args:
        sequences: token ids (N, T); None means `repeated_random_tokens`.
    """
    if sequences is None:
        sequences = repeated_random_tokens(lm)
    patterns: list[Tensor] = []
    handles = [
        block.attn.pattern.register_forward_hook(lambda tap, inputs, pattern: patterns.append(pattern.float().cpu()))
        for block in lm.blocks
    ]
    was_training = lm.training
    lm.eval()
    try:
        lm(sequences.to(lm.device))
    finally:
        lm.train(was_training)
        for handle in handles:
            handle.remove()
    stack = torch.stack(patterns)  # (L, N, H, T, T)
    row, query, key = induction_targets(sequences)
    return {
        "previous_token": stack.diagonal(-1, -2, -1).mean((1, 3)),
        "induction": stack[:, row, :, query, key].mean(0),  # indexing brings the targets to the front: (n, L, H)
    }


def induction_targets(sequences: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, queries and keys (n,): the key follows the last earlier occurrence of the query's token.

    An occurrence right before the query gives no target: the key would be the query itself.
    """
    positions = torch.arange(sequences.shape[1])
    is_same_token = sequences[:, :, None] == sequences[:, None, :]  # (N, T, T): query, key
    earlier = is_same_token & (positions[None, :] < positions[:, None])
    last = torch.where(earlier, positions, -1).amax(-1)  # (N, T)
    row, query = torch.nonzero((last >= 0) & (last + 1 < positions), as_tuple=True)
    return row, query, last[row, query] + 1
