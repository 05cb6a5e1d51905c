"""Optimizers of a model's parameters."""

import torch
from torch import nn


def build_optimizers(
    lm: nn.Module, name: str, learning_rate: float, weight_decay: float, betas: tuple[float, float]
) -> list[torch.optim.Optimizer]:
    """Return the optimizers that together cover every parameter, each group with its `peak_lr`.

    "adamw": AdamW (Loshchilov & Hutter 2019) for all; only matrices decay.
    "muon": Muon (Jordan et al. 2024) for the blocks' matrices, scaled so that AdamW's learning rate suits it
    (Liu et al. 2025); AdamW for the embeddings and gains.
    """
    parameters = dict(lm.named_parameters())
    in_blocks = [p for key, p in parameters.items() if p.ndim == 2 and key.startswith("blocks.")]
    other_matrices = [p for key, p in parameters.items() if p.ndim == 2 and not key.startswith("blocks.")]
    vectors = [p for p in parameters.values() if p.ndim < 2]
    optimizers = []
    if name == "muon":
        optimizers.append(
            torch.optim.Muon(in_blocks, lr=learning_rate, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
        )
    else:
        other_matrices = in_blocks + other_matrices
    groups = [{"params": other_matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizers.append(torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=True))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers
