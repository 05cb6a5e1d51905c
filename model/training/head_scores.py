"""Scores of attention heads that copy earlier tokens: previous-token and induction heads."""

import torch
from torch import Tensor

from model.transformer_lm import TransformerLM


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
