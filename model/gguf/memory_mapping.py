"""A model whose matrices stay in a file, as stored, and are dequantised each time that they are used."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps

import torch
from torch import Tensor, nn

from model.layers.basic_layers import Embedding
from model.transformer_lm import TransformerLM
from model.weight_placement import OffloadedWeights

Reader = Callable[[], Tensor]
RowReader = Callable[[Sequence[int]], Tensor]


def use_mapped_weights(lm: TransformerLM, readers: Mapping[str, Reader], embedding_rows: RowReader) -> None:
    """Let a model, whose matrices are on the meta device, read each from its file whenever a module runs.

    Args:
        readers: name of each matrix -> function that returns it.
        embedding_rows: ids -> rows of the embedding table, which is not read as a whole for a few tokens.
    """
    for name, module in lm.named_modules():
        weights = {kind: readers[f"{name}.{kind}"] for kind in ("weight",) if f"{name}.{kind}" in readers}
        if isinstance(module, Embedding) and name == "token_embedding":
            module.forward = partial(_embed, embedding_rows)
        elif weights:
            _read_when_called(module, weights)
    lm.offloaded = OffloadedWeights(torch.device("cpu"), readers, {}, None)


def _embed(read_rows: RowReader, token_ids: Tensor) -> Tensor:
    """Return the rows of token ids (B, T) as (B, T, D)."""
    return read_rows(token_ids.flatten().tolist()).unflatten(0, token_ids.shape)


def _read_when_called(module: nn.Module, readers: Mapping[str, Reader]) -> None:
    """Make a module read weights before its `forward`, and drop them after; concurrent calls wait for each other."""
    forward, lock = module.forward, threading.Lock()
    placeholders = {name: getattr(module, name) for name in readers}

    @wraps(forward)
    def forward_with_weights(*args: Tensor) -> Tensor:
        with lock:
            try:
                for name, read in readers.items():
                    module._parameters[name] = nn.Parameter(read(), requires_grad=False)
                return forward(*args)
            finally:
                module._parameters.update(placeholders)

    module.forward = forward_with_weights
