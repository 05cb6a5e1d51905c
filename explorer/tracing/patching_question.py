"""Two prompts that are to have different answers, as the page asks about them: what is worked out once a question."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from explorer.state.alignment import Partners
from explorer.state.interventions import Intervention
from explorer.tracing.jobs import RESULTS, Job, worked_out
from explorer.tracing.models import asked

DIRECTIONS = ("denoise", "noise")
METRICS = ("logit_difference", "log_probability", "probability")
BY_POSITION = ("resid_pre", "attn.out", "ffn.out")  # values (1, T, D): a position at a time
BY_HEAD = ("attn.z", "attn.q", "attn.k", "attn.v", "attn.pattern")  # (1, H, …): a head at a time, at all positions
Receiver = str | tuple[int, int, str]  # "logits", or a layer, a head and "q", "k" or "v"


@dataclass(frozen=True)
class PatchingQuestion:
    """Which nodes carry the answer, of a model by its identity, which is to be held as long as it is asked.

    Errors are those of `explorer.activation_patching`; the long ones raise NotYet in an answer of the page.

    Attributes:
        clean, corrupted: ids of two prompts.
        answer, wrong: ids of the tokens that are right and wrong after the clean one.
        partners: in either of DIRECTIONS, of each position of the run that values are put into the other run's whose
            value it gets; None where each gets that of the same position.
    """

    model: Hashable
    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    wrong: int
    partners: tuple[Partners | None, Partners | None] = (None, None)

    @property
    def by_position(self) -> bool:
        """Whether all values go over, position by position."""
        return self.partners == (None, None)

    def put_at(self, direction: str) -> Partners:
        """Of each position of the clean prompt that of the run that values are put into; None where none is."""
        partners = self.partners[DIRECTIONS.index(direction)]
        if partners is None:
            return tuple(range(len(self.clean)))
        if direction == "noise":
            return tuple(None if partner is None else at for at, partner in enumerate(partners))
        return tuple(partners.index(at) if at in partners else None for at in range(len(self.clean)))

    def _ask(self, name: str, *what):
        lm, offer = asked(self.model)
        return offer.patching[name](lm, self, *what)

    def _job(self, name: str, *what, nodes: int, passes: float) -> Job:
        """A job of so many nodes, which takes as much as so many passes over the prompt."""
        weights = sum(math.prod(weight.shape) for weight in asked(self.model)[1].weights.values())
        return Job(
            (name, self, *what),
            lambda: self._ask(name, *what),
            nodes,
            passes * weights * max(len(self.clean), len(self.corrupted)),
        )

    @cached_property
    def unpatched(self) -> np.ndarray:
        """(2, M) every metric of the clean and of the corrupted run."""
        return RESULTS.get(("unpatched", self), lambda: self._ask("unpatched"))

    def parts(self) -> dict[str, np.ndarray]:
        """Part -> (2, M, L, P): of every node each metric of the run it alone was put into, in both DIRECTIONS."""
        config = asked(self.model)[0].config
        heads = (2 + self.by_position) * config.num_heads + 2 * config.kv_heads
        places = 3 * (len(self.clean) + len(self.corrupted)) + 2 * heads
        nodes = config.num_layers * places
        return worked_out(self._job("parts", nodes=nodes, passes=nodes * 0.6))

    def neurons(self, layer: int) -> np.ndarray:
        """(2, M, F): likewise of every neuron of a layer."""
        config = asked(self.model)[0].config
        share = 1 - layer / config.num_layers
        return worked_out(self._job("neurons", layer, nodes=2 * config.d_ff, passes=2 * config.d_ff * share))

    def paths(self, direction: str, receiver: Receiver) -> np.ndarray:
        """(M, L, H): of every sending head once the receiver has read it directly; NaN where it comes after that."""
        config = asked(self.model)[0].config
        before = config.num_layers if receiver == "logits" else receiver[0]
        passes = 2 * config.num_heads * before
        return worked_out(self._job("paths", direction, receiver, nodes=before, passes=passes))

    def estimate(self, direction: str, part: str, metric: str) -> np.ndarray:
        """(L, P) effects by gradients."""
        key = "estimate", self, direction, part, metric
        return RESULTS.get(key, lambda: self._ask("estimate", direction, part, metric))

    def summed(self, direction: str, part: str, metric: str, layer: int, place: int) -> np.ndarray:
        """(2, N) steps and slopes: the products of them sum to the change that a node's estimate is a share of.

        Args:
            place: of a head, or a position of the clean prompt that something goes over to.
        """
        at = self.put_at(direction)[place] if part in BY_POSITION else place
        return self._ask("summed", direction, part, metric, layer, at)

    def path(self, direction: str, receiver: Receiver, layer: int, head: int) -> np.ndarray:
        """(M,) of one sending head, run by itself."""
        key = "path", self, direction, receiver, layer, head
        return RESULTS.get(key, lambda: self._ask("path", direction, receiver, layer, head))

    def changed(self, direction: str, edit: Intervention) -> np.ndarray:
        """(M,) every metric of the recipient as an ordinary changed run, by hooks of another kind."""
        return RESULTS.get(("changed", self, direction, edit), lambda: self._ask("changed", direction, edit))
