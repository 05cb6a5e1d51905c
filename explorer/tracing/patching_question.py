"""Two prompts that are to have different answers, as the page asks about them: what is worked out once a question."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
        clean, corrupted: ids of two prompts of as many tokens.
        answer, wrong: ids of the tokens that are right and wrong after the clean one.
    """

    model: Hashable
    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    wrong: int

    @property
    def _contrast(self) -> tuple:
        return self.clean, self.corrupted, self.answer, self.wrong

    def _ask(self, name: str, *what):
        lm, offer = asked(self.model)
        return offer.patching[name](lm, *self._contrast, *what)

    def _job(self, name: str, *what, nodes: int, passes: float) -> Job:
        """A job of so many nodes, which takes as much as so many passes over the prompt."""
        weights = sum(weight.size for weight in asked(self.model)[1].weights.values())
        return Job((name, self, *what), lambda: self._ask(name, *what), nodes, passes * weights * len(self.clean))

    @cached_property
    def unpatched(self) -> np.ndarray:
        """(2, M) every metric of the clean and of the corrupted run."""
        return RESULTS.get(("unpatched", self), lambda: self._ask("unpatched"))

    def parts(self) -> dict[str, np.ndarray]:
        """Part -> (2, M, L, P): of every node each metric of the run it alone was put into, in both DIRECTIONS."""
        config = asked(self.model)[0].config
        places = 3 * len(self.clean) + 3 * config.num_heads + 2 * config.kv_heads
        nodes = 2 * config.num_layers * places
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

    def changed(self, direction: str, edit: Intervention) -> np.ndarray:
        """(M,) every metric of the recipient as an ordinary changed run, by hooks of another kind."""
        return RESULTS.get(("changed", self, direction, edit), lambda: self._ask("changed", direction, edit))
