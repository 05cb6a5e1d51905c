"""Attention by explicit formulas instead of fused kernels, which round differently."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from explorer.tracing.hooks import forward_hooks
from model.transformer_lm import TransformerLM


@contextmanager
def use_explicit_attention(lm: TransformerLM, layers: Iterable[int]) -> Iterator[None]:
    """Make layers of a 16-bit model compute scores and patterns explicitly while the block runs.

    Fused kernels round by more than verifications allow between stored and recomputed values. Models in float32 are
    left as they are.
    """
    watched = [lm.taps[f"blocks.{layer}.attn.pattern"] for layer in layers] if lm.dtype != torch.float32 else []
    with forward_hooks(watched, lambda module, inputs, output: None):
        yield
