"""Where the weights of a model are kept as they are read."""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor

from model.config import ModelConfig
from model.errors import ModelError
from model.freed_memory import give_back
from model.layers.position_table import PositionTable
from model.transformer_lm import TransformerLM

GIVE_BACK_AFTER = 16 << 20  # bytes of weights
MOST_TABLE = 1 << 26  # numbers of a table of positions: a million positions of heads 128 wide


class Placement(Protocol):
    """Of one model."""

    def begin(self, lm: TransformerLM, dtype: torch.dtype) -> None:
        """Told of the model before there are weights, and of the type of most of them."""

    def keep(self, name: str, weight: Tensor) -> Tensor:
        """What stands for a weight in the model from now on; `weight` itself is let go."""

    def finish(self, lm: TransformerLM) -> None:
        """Told when all weights are there."""


class OnDevice:
    """All on one device."""

    def __init__(self, device: str | torch.device = "cpu"):
        self.device = torch.device(device)

    def begin(self, lm: TransformerLM, dtype: torch.dtype) -> None:
        pass

    def keep(self, name: str, weight: Tensor) -> Tensor:
        return weight.to(self.device)

    def finish(self, lm: TransformerLM) -> None:
        lm.to(self.device)


def model_of(
    config: ModelConfig,
    weights: Iterable[tuple[str, Tensor]],
    dtype: torch.dtype = torch.float32,
    placement: Placement | None = None,
) -> TransformerLM:
    """The model of a config, in eval mode, with these weights, which are all that `weight_shapes` names; each is placed
    before the next is asked for.

    Args:
        dtype: of most weights.
        placement: where they are kept; None: in the memory of the CPU.
    """
    placement = placement or OnDevice()
    with torch.device("meta"):  # nothing is drawn at random: every weight is given
        lm = TransformerLM(config)
    for table in (module for module in lm.modules() if isinstance(module, PositionTable)):
        if table.table.numel() > MOST_TABLE:
            raise ModelError(
                "positions up to {most:,} need a table of {numbers:,} numbers",
                most=config.context_length,
                numbers=table.table.numel(),
            )
        table.fill(torch.device("cpu"))
    placement.begin(lm, dtype)
    kept, read = {}, 0
    for name, weight in weights:
        kept[name], read = placement.keep(name, weight), read + weight.nbytes
        del weight  # before the next is read
        if read >= GIVE_BACK_AFTER:  # else what was turned or converted leaves holes, a third of the weights
            read = 0
            give_back()
    give_back()
    lm.load_state_dict(kept, strict=False, assign=True)
    if config.tie_embeddings:
        lm.lm_head.weight = lm.token_embedding.weight
    lm.eval().requires_grad_(False)
    placement.finish(lm)
    return lm
