"""Forward hooks that are always removed and limited to one thread, and attention by explicit formulas."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from model.transformer_lm import TransformerLM


@contextmanager
def forward_hooks(modules: Collection[nn.Module], hook: Callable) -> Iterator[None]:
    """Install one forward hook on many modules while the block runs.

    Hooks are shared by all threads that use a model; this one ignores passes of other threads.
    `register_forward_hook` does the same, at the cost of a handle with weak references for every module: for a
    hundred of them that is 6% of a pass over 64 tokens.
    """
    key, thread = object(), threading.get_ident()

    def call_hook(module, inputs, output):
        return hook(module, inputs, output) if threading.get_ident() == thread else None

    try:
        for module in modules:
            module._forward_hooks[key] = call_hook
        yield
    finally:
        for module in modules:
            module._forward_hooks.pop(key, None)


@contextmanager
def use_explicit_attention(lm: TransformerLM, layers: Iterable[int]) -> Iterator[None]:
    """Make layers of a 16-bit model compute scores and patterns explicitly while the block runs.

    Fused kernels round by more than verifications allow between stored and recomputed values. Models in float32 are
    left as they are.
    """
    watched = [lm.taps[f"blocks.{layer}.attn.pattern"] for layer in layers] if lm.dtype != torch.float32 else []
    with forward_hooks(watched, lambda module, inputs, output: None):
        yield
