"""How likely the continuations of a prompt are."""

from dataclasses import replace

import numpy as np

from explorer.state.branches import Path
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.tracing.library import Library
from explorer.tracing.lru import LRU
from explorer.tracing.models import identity_of
from model.generation.window import window_start

MOST_BYTES = 8 << 20  # of runs and their surprisals: a few kB each, where their traces are tens of MB
BYTES_A_TOKEN = 40  # of a run: a number and a reference to it


class Continuations:
    """Answers from traces of a library; errors are those of its `trace`."""

    def __init__(self, library: Library):
        self.library = library
        self._surprisals = LRU(MOST_BYTES, size=lambda kept: len(kept[0].token_ids) * BYTES_A_TOKEN + kept[1].nbytes)

    def surprisals(self, asked: PageState) -> dict[Path, np.ndarray]:
        """All paths of the tree, the run's own among them: of each token of each the surprisal in bits.

        Without branches that the model has no tokens for.
        """
        lm, _ = self.library.model(asked.run.checkpoint)
        paths = {branch.path for branch in asked.branches} | ({asked.run.generated} - {()})
        known = [path for path in paths if max(path) < lm.config.vocab_size]
        return {path: self.of(replace(asked.run, generated=path)) for path in known}

    def of(self, run: Run) -> np.ndarray:
        """(G,) bits of each generated token: -log₂ of the probability that the model gave it, at temperature 1."""
        lm, _ = self.library.model(run.checkpoint)
        _, bits = self._surprisals.get((identity_of(lm), run), lambda: (run, self.compute(run)))
        return bits

    def compute(self, run: Run) -> np.ndarray:
        """Each token from the window of tokens that the generator sees before it: a trace a window."""
        lm, _ = self.library.model(run.checkpoint)
        ids, context = np.array(run.token_ids), lm.config.context_length
        places = np.arange(len(run.prompt), len(ids))
        starts = np.array([window_start(place, context) for place in places])
        bits = np.empty(len(places))
        for start in np.unique(starts):
            here = starts == start
            last = int(places[here][-1])
            end = last + (last - start < context)  # where it fits, its own token, too: then this is the trace on show
            logits = self.library.trace(run.checkpoint, tuple(ids[start:end].tolist()), run.edits).logits
            before = places[here] - 1 - start
            bits[here] = (logits.log_sum_exp[before] - logits.of(ids[places[here]], before)) / np.log(2)
        return bits
