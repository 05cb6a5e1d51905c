"""Values that are computed when they are looked at: of a pass whose values all together would take too much memory."""

import itertools
import math
import weakref
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from explorer.state.interventions import Intervention
from explorer.tracing.logits import Logits, Summary
from explorer.tracing.lru import LRU
from explorer.tracing.models import asked

BYTES_A_NUMBER = 4  # float32
MOST_BYTES = 128 << 20  # of the values that were looked at, of all passes together
MOST_BYTES_OF_BLOCKS = 64 << 20  # of whole blocks that were run again; the last is kept however large it is


def num_bytes(values: Mapping[str, np.ndarray]) -> int:
    """What they take; memory that two of them share counts once."""
    return bytes_of_arrays(values.values())


def bytes_of_arrays(arrays: Iterable[np.ndarray]) -> int:
    """Likewise."""
    return sum({array.ctypes.data: array.nbytes for array in arrays}.values())


_LOOKED_AT = LRU(MOST_BYTES, lambda value: value.nbytes)
_BLOCKS = LRU(MOST_BYTES_OF_BLOCKS, num_bytes)
_NUMBERS = itertools.count()


def looked_at_bytes() -> int:
    """What is kept of all that was looked at, of all passes that live."""
    of_blocks = (value for block in _BLOCKS.values() for value in block.values())
    return bytes_of_arrays([*_LOOKED_AT.values(), *of_blocks])


def _let_go(number: int):
    """Of what was looked at of a pass that is gone."""
    for cache in (_LOOKED_AT, _BLOCKS):
        cache.drop(lambda key: key[0] == number)


@dataclass(frozen=True, eq=False)
class OnDemand(Mapping):
    """Name -> value, as float32 arrays without a batch axis that are not to be written to.

    A value inside a block comes from that block alone, run again on what entered it: on the same numbers, by the
    formulas of a capture of every value. Only in float32, where that is near enough, fused kernels compute attention in
    the pass itself, and again where scores and patterns are too large to be kept. The logits are worked out from what
    the unembedding reads, and are never kept all at once.

    Every access but to what was kept raises ModelGone once the model is gone.

    Attributes:
        kept: what enters and leaves the blocks, and what is in none but for the logits.
        shapes: of all, by name, in the order they are computed.
        model: identity of the model that ran.
        token_ids: that it read.
        edits: changes that the pass followed, with what they take of other runs.
        holds: the model, where this is asked at once and not kept; None leaves that to whoever asks.
        summary: of the logits of so many positions, where they were read before.
    """

    kept: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]]
    model: Hashable
    token_ids: tuple[int, ...]
    edits: tuple[Intervention, ...] = ()
    holds: object = None
    summary: Summary | None = None
    _own: int = field(default_factory=_NUMBERS.__next__, repr=False)  # by this what was looked at is found again

    def __post_init__(self):
        weakref.finalize(self, _let_go, self._own).atexit = False

    def __reduce__(self):
        return OnDemand, (self.kept, self.shapes, self.model, self.token_ids, self.edits)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.kept:
            return self.kept[name]
        if name not in self.shapes:
            raise KeyError(name)
        if name == "logits":
            return self.logits.whole()
        return _LOOKED_AT.get((self._own, name), lambda: self._of_block(name))

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def logits(self) -> Logits:
        """Worked out some positions at a time, when they are asked for."""
        vocab_size = self.shapes["logits"][-1]
        return Logits(self.token_ids, vocab_size, self._logit_rows, self._logit_row, self.summary)

    def _logit_rows(self, start: int, stop: int) -> np.ndarray:
        lm, offered = asked(self.model, "logits")
        return offered.logits_again(lm, self.token_ids, self.edits, self.kept["final_norm"][start:stop], start)

    def _logit_row(self, position: int) -> np.ndarray:
        rows = _LOOKED_AT.get((self._own, "logits", position), lambda: self._logit_rows(position, position + 1))
        return rows[0]

    def _of_block(self, name: str) -> np.ndarray:
        """A scan over layers that asks each for one value keeps that alone; who asks for more of a block finds it whole
        for a while. Where its scores and patterns are too much for that, each is computed when it is asked for, and the
        others without keeping them."""
        block = ".".join(name.split(".")[:2])
        inside = [each for each in self.shapes if each.startswith(f"{block}.") and each not in self.kept]
        large = [each for each in inside if each.endswith(("attn.scores", "attn.pattern"))]
        if BYTES_A_NUMBER * sum(math.prod(self.shapes[each]) for each in large) > MOST_BYTES_OF_BLOCKS:
            inside = [name] if name in large else [each for each in inside if each not in large]
        return _BLOCKS.get((self._own, inside[0], len(inside)), lambda: self._computed(name, inside))[name]

    def _computed(self, name: str, names: list[str]) -> Mapping[str, np.ndarray]:
        """Some in the block of one of them."""
        lm, offered = asked(self.model, name)
        return offered.run_again(lm, self.token_ids, self.edits, self.kept, int(name.split(".")[1]), names)
