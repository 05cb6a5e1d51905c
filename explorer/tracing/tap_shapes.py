"""How large the values of a pass are, before there are any."""

import math
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

import torch

from explorer.architecture.token_axes import token_axes
from explorer.tracing.hooks import hooked
from model.config import ModelConfig
from model.counting import num_parameters
from model.transformer_lm import TransformerLM

BYTES_A_NUMBER = 4  # float32
FEW_PARAMETERS = 20_000_000
LOOKED_AT_FIRST = ("attn.z", "attn.out", "resid_mid", "ffn.out")  # of those of a size: what the map of the model reads


def tap_shapes(config: ModelConfig, num_tokens: int) -> dict[str, tuple[int, ...]]:
    """Name -> shape, without a batch axis, of every value of a pass over so many tokens, in the order of the pass."""
    return {name: _of_tokens(name, shape, num_tokens) for name, shape in _shapes_of_one_token(config).items()}


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


def _of_tokens(name: str, shape: tuple[int, ...], num_tokens: int) -> tuple[int, ...]:
    sizes = list(shape)
    for axis in token_axes(name):
        sizes[axis] = num_tokens
    return tuple(sizes)


@lru_cache(16)
def _shapes_of_one_token(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Found by a pass of a single block: all blocks are alike. Of a large model one without memory, for which PyTorch
    first imports its compiler, in seconds."""
    of_one = replace(config, num_layers=1)
    with torch.device("cpu" if num_parameters(of_one) < FEW_PARAMETERS else "meta"):
        lm = TransformerLM(of_one).eval()
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
