"""How large the values of a pass are, before there are any."""

import math
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

import torch

from explorer.architecture.token_axes import token_axes
from explorer.state.interventions.axes import HEADS, KV_HEADS, axis
from explorer.tracing.hooks import hooked
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

BYTES_A_NUMBER = 4  # float32
LOOKED_AT_FIRST = ("attn.z", "attn.out", "resid_mid", "ffn.out")  # of those of a size: what the map of the model reads


def tap_shapes(config: ModelConfig, num_tokens: int) -> dict[str, tuple[int, ...]]:
    """Name -> shape, without a batch axis, of every value of a pass over so many tokens, in the order of the pass."""
    return {name: _shape(config, name, num_tokens) for name in _names(config)}


@lru_cache(1024)
def trace_bytes(config: ModelConfig, num_tokens: int) -> int:
    """What a trace with every value takes at most; where one value is another as it stands, they share memory."""
    return BYTES_A_NUMBER * sum(map(math.prod, tap_shapes(config, num_tokens).values()))


def worth_keeping(config: ModelConfig, num_tokens: int, most_bytes: float, but: Collection[str] = ()) -> list[str]:
    """Names of values inside blocks, but for some, that take no more than so many bytes together, the small ones first:
    each of all layers or of none, as who looks at all layers would have all blocks run again for one that lacks.

    Scores and patterns are none of them: a fused pass has none.
    """
    kinds: dict[str, list[str]] = {}
    shapes = tap_shapes(config, num_tokens)
    for name in shapes:
        if name.startswith("blocks.") and name not in but and not name.endswith(("attn.scores", "attn.pattern")):
            kinds.setdefault(name.split(".", 2)[2], []).append(name)

    def size(kind: str) -> int:
        return BYTES_A_NUMBER * sum(math.prod(shapes[name]) for name in kinds[kind])

    found, left = [], most_bytes
    for kind in sorted(kinds, key=lambda kind: (size(kind), kind not in LOOKED_AT_FIRST)):
        if size(kind) <= left:
            found, left = [*found, *kinds[kind]], left - size(kind)
    return found


def _shape(config: ModelConfig, name: str, num_tokens: int) -> tuple[int, ...]:
    parts = axis(name)
    if parts not in (HEADS, KV_HEADS):
        return num_tokens, parts.size(config)
    is_of_pairs = token_axes(name) == (-2, -1)
    return parts.size(config), num_tokens, num_tokens if is_of_pairs else config.d_head


@lru_cache(16)
def _names(config: ModelConfig) -> tuple[str, ...]:
    """Of all values in the order of a pass: that of one as narrow as can be over one token, as all blocks are alike.

    On the meta device, where no weights are needed, operations are Python's, whose modules take two seconds to import.
    """
    narrow = {
        "d_model": 2 * config.num_heads,
        "head_dim": 2,
        "rotary_dim": None,
        "rope_scaling": None,
        "d_ff": 1,
        "vocab_size": 1,
    }
    with torch.random.fork_rng(devices=()):  # nobody notices that its weights are drawn
        lm = TransformerLM(replace(config, num_layers=1, **narrow)).eval()
    names, found = {module: name for name, module in lm.taps.items()}, []
    with hooked(names, lambda module, inputs, output: found.append(names[module])), torch.inference_mode():
        lm(torch.zeros(1, 1, dtype=torch.long))
    of_block = [name.removeprefix("blocks.0.") for name in found if name.startswith("blocks.0.")]
    first = found.index(f"blocks.0.{of_block[0]}")
    blocks = [f"blocks.{layer}.{name}" for layer in range(config.num_layers) for name in of_block]
    return *found[:first], *blocks, *found[first + len(of_block) :]
