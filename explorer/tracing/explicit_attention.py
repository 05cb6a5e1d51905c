"""Attention by the formulas that are shown, where fused kernels round otherwise."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from explorer.tracing.hooks import hooked
from model.transformer_lm import TransformerLM


@contextmanager
def explicit_attention(lm: TransformerLM, layers: Iterable[int]) -> Iterator[None]:
    """While the block runs, these layers of a model of 16 bits compute scores and patterns although nobody asks for
    them: there fused kernels round by more than marks allow between what a pass kept and what is computed anew."""
    watched = [lm.taps[f"blocks.{layer}.attn.pattern"] for layer in layers] if lm.dtype != torch.float32 else []
    with hooked(watched, lambda module, inputs, output: None):
        yield
