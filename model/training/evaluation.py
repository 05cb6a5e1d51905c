"""How good a model is, and which copying heads it grew."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.transformer_lm import TransformerLM


@dataclass(frozen=True)
class Evaluation:
    """Loss on held-out text: nats a token, and bits a byte of text, which compares across tokenizers."""

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


@torch.no_grad()
def copying_head_scores(
    lm: TransformerLM, period: int = 50, num_sequences: int = 8, seed: int = 0
) -> dict[str, Tensor]:
    """Two scores a head (L, H) on random tokens repeated once, averaged over positions and sequences.

    `previous_token`: attention to the position before; `induction`: attention, from the second repeat, to the
    position after the same token's first occurrence (Elhage et al. 2021; Olsson et al. 2022). Both lie in [0, 1].
    """
    period = min(period, lm.config.context_length // 2)
    generator = torch.Generator().manual_seed(seed)
    once = torch.stack(
        [torch.randperm(lm.config.vocab_size, generator=generator)[:period] for _ in range(num_sequences)]
    )
    patterns: list[Tensor] = []
    handles = [
        block.attn.pattern.register_forward_hook(lambda tap, inputs, pattern: patterns.append(pattern))
        for block in lm.blocks
    ]
    was_training = lm.training
    lm.eval()
    try:
        lm(once.repeat(1, 2).to(lm.device))
    finally:
        lm.train(was_training)
        for handle in handles:
            handle.remove()
    stack = torch.stack(patterns).float().cpu()  # (L, B, H, T, T)
    previous = stack.diagonal(-1, -2, -1)  # (L, B, H, T - 1): query i, key i - 1
    induction = stack.diagonal(1 - period, -2, -1)  # query i, key i - period + 1, for i from period - 1
    return {
        "previous_token": previous.mean((1, 3)),
        "induction": induction[..., 1:].mean((1, 3)),  # the first of them is the last token of the first repeat
    }
