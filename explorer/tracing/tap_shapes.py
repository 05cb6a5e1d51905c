"""Shapes and sizes of the values of a pass, known before the pass."""

import math
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

import torch

from explorer.architecture.token_axes import token_axes
from explorer.state.interventions.axes import HEADS, KV_HEADS, index_axis
from explorer.tracing.hooks import forward_hooks
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

BYTES_PER_NUMBER = 4  # float32
PRIORITY_TAPS = ("attn.z", "attn.out", "resid_mid", "ffn.out")  # of those of a size: what the map of the model reads


def tap_shapes(config: ModelConfig, num_tokens: int) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of every value of a pass, without a batch axis, in the order of the pass."""
    return {name: _shape(config, name, num_tokens) for name in _names(config)}


@lru_cache(1024)
def trace_num_bytes(config: ModelConfig, num_tokens: int) -> int:
    """Return the memory of a trace with every value in bytes, at most: values that are equal may share memory."""
    return BYTES_PER_NUMBER * sum(map(math.prod, tap_shapes(config, num_tokens).values()))


def taps_within_budget(
    config: ModelConfig, num_tokens: int, max_bytes: float, excluded: Collection[str] = ()
) -> list[str]:
    """Return names of values inside blocks that need at most `max_bytes` together, the smallest first.

    Each is included for all layers or for none: a scan over layers would recompute all blocks for one missing
    layer. Scores and patterns are never included: a pass with fused attention has none.

    Args:
        excluded: names to leave out.
    """
    kinds: dict[str, list[str]] = {}
    shapes = tap_shapes(config, num_tokens)
    for name in shapes:
        if name.startswith("blocks.") and name not in excluded and not name.endswith(("attn.scores", "attn.pattern")):
            kinds.setdefault(name.split(".", 2)[2], []).append(name)

    def size(kind: str) -> int:
        return BYTES_PER_NUMBER * sum(math.prod(shapes[name]) for name in kinds[kind])

    selected, left = [], max_bytes
    for kind in sorted(kinds, key=lambda kind: (size(kind), kind not in PRIORITY_TAPS)):
        if size(kind) <= left:
            selected, left = [*selected, *kinds[kind]], left - size(kind)
    return selected


def _shape(config: ModelConfig, name: str, num_tokens: int) -> tuple[int, ...]:
    axis = index_axis(name)
    if axis not in (HEADS, KV_HEADS):
        return num_tokens, axis.size(config)
    is_pairwise = token_axes(name) == (-2, -1)
    return axis.size(config), num_tokens, num_tokens if is_pairwise else config.d_head


@lru_cache(16)
def _names(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of all values in the order of a pass.

    They come from a pass of the narrowest possible model with one layer over one token, since all blocks are alike.
    On the meta device, where no weights are needed, operations are Python's, whose modules take two seconds to
    import.
    """
    narrow = {
        "d_model": 2 * config.num_heads,
        "head_dim": 2,
        "rotary_dim": None,
        "rope_scaling": None,
        "d_ff": 1,
        "vocab_size": 1,
    }
    with torch.random.fork_rng(devices=()):  # initialising its weights must not change the random state
        lm = TransformerLM(replace(config, num_layers=1, **narrow)).eval()
    names, order = {module: name for name, module in lm.taps.items()}, []
    with forward_hooks(names, lambda module, inputs, output: order.append(names[module])), torch.inference_mode():
        lm(torch.zeros(1, 1, dtype=torch.long))
    block_names = [name.removeprefix("blocks.0.") for name in order if name.startswith("blocks.0.")]
    first = order.index(f"blocks.0.{block_names[0]}")
    blocks = [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in block_names]
    return *order[:first], *blocks, *order[first + len(block_names) :]
