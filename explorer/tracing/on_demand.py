"""Values that are computed when they are looked at: of a pass whose values all together would take too much memory."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.lru import LRU
from explorer.tracing.models import asked

MOST_BYTES = 256 << 20  # of what was looked at, of all passes together; the last is kept however large it is


def num_bytes(values: Mapping[str, np.ndarray]) -> int:
    """What they take; memory that two of them share counts once."""
    return sum({value.ctypes.data: value.nbytes for value in values.values()}.values())


_LOOKED_AT = LRU(MOST_BYTES, num_bytes)


@dataclass(frozen=True, eq=False)
class OnDemand(Mapping):
    """Name -> value, as float32 arrays without a batch axis that are not to be written to.

    A value inside a block comes from that block alone, run again on what entered it: on the same numbers, by the
    formulas of a capture of every value. The pass itself may have computed them with fused kernels, which round
    otherwise. The logits are worked out from what the unembedding reads.

    Every access but to what was kept raises ReferenceError once the model is gone.

    Attributes:
        kept: what enters and leaves the blocks, and what is in none but for the logits.
        shapes: of all, by name, in the order they are computed.
        model: identity of the model that ran.
        token_ids: that it read.
        edits: changes that the pass followed, with what they take of other runs.
    """

    kept: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]]
    model: Hashable
    token_ids: tuple[int, ...]
    edits: tuple[Intervention, ...] = ()
    _own: object = field(default_factory=object, repr=False)  # by this what was looked at is found again

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.kept:
            return self.kept[name]
        if name not in self.shapes:
            raise KeyError(name)
        block, place = name.split(".")[:2] if name.startswith("blocks.") else (name, "")
        layer = int(place) if place else None
        return _LOOKED_AT.get((self._own, block, layer), lambda: self._computed(layer))[name]

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def _computed(self, layer: int | None) -> Mapping[str, np.ndarray]:
        """What is in a block, or after all of them, that was not kept."""
        lm, offered = asked(self.model)
        found = offered.run_again(lm, self.token_ids, self.edits, self.kept, layer)
        return {name: value for name, value in found.items() if name not in self.kept}
