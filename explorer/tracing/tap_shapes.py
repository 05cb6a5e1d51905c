"""How large the values of a pass are, before there are any."""

import math
from dataclasses import replace
from functools import lru_cache

import torch

from explorer.architecture.token_axes import token_axes
from explorer.tracing.hooks import hooked
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

BYTES_A_NUMBER = 4  # float32


def tap_shapes(config: ModelConfig, num_tokens: int) -> dict[str, tuple[int, ...]]:
    """Name -> shape, without a batch axis, of every value of a pass over so many tokens, in the order of the pass."""
    return {name: _of_tokens(name, shape, num_tokens) for name, shape in _shapes_of_one_token(config).items()}


def trace_bytes(config: ModelConfig, num_tokens: int) -> int:
    """What a trace with every value takes at most; where one value is another as it stands, they share memory."""
    return BYTES_A_NUMBER * sum(map(math.prod, tap_shapes(config, num_tokens).values()))


def _of_tokens(name: str, shape: tuple[int, ...], num_tokens: int) -> tuple[int, ...]:
    sizes = list(shape)
    for axis in token_axes(name):
        sizes[axis] = num_tokens
    return tuple(sizes)


@lru_cache(16)
def _shapes_of_one_token(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Found by a pass of a single block without memory: all blocks are alike."""
    with torch.device("meta"):
        lm = TransformerLM(replace(config, num_layers=1)).eval()
        ids = torch.zeros(1, 1, dtype=torch.long)
    names, found = {module: name for name, module in lm.taps.items()}, {}

    def note(module, inputs, output):
        found[names[module]] = tuple(output.shape[1:])

    with hooked(names, note), torch.inference_mode():
        lm(ids)
    of_block = {name.removeprefix("blocks.0."): found[name] for name in found if name.startswith("blocks.0.")}
    first = list(found).index(next(name for name in found if name.startswith("blocks.0.")))
    outside = [(name, shape) for name, shape in found.items() if not name.startswith("blocks.0.")]
    blocks = [
        (f"blocks.{layer}.{name}", shape) for layer in range(config.num_layers) for name, shape in of_block.items()
    ]
    return dict([*outside[:first], *blocks, *outside[first:]])
