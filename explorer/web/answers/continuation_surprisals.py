"""Surprisals of a prompt's continuations."""

from dataclasses import replace

import numpy as np

from explorer.state.branches import Path
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.tracing.library import Library
from explorer.tracing.lru import LRUCache
from explorer.tracing.model_registry import get_identity
from model.config import window_start

MAX_CACHE_BYTES = 8 << 20  # of runs and their surprisals: a few kB each, where their traces are tens of MB
BYTES_PER_TOKEN = 40  # of a run: a number and a reference to it


class ContinuationSurprisals:
    """Surprisals of the tokens of a page's continuations, cached by run; raises the errors of `Library.trace`."""

    def __init__(self, library: Library):
        self.library = library
        self._surprisals = LRUCache(
            MAX_CACHE_BYTES, size=lambda entry: len(entry[0].token_ids) * BYTES_PER_TOKEN + entry[1].nbytes
        )

    def surprisals(self, page_state: PageState) -> dict[Path, np.ndarray]:
        """Return the surprisal in bits of each token of every path of the tree, including the run's own.

        Branches with tokens outside the model's vocabulary are left out.
        """
        lm, _ = self.library.model(page_state.run.checkpoint)
        paths = {branch.path for branch in page_state.branches} | ({page_state.run.generated} - {()})
        valid_paths = [path for path in paths if max(path) < lm.config.vocab_size]
        return {path: self.surprisals_of_run(replace(page_state.run, generated=path)) for path in valid_paths}

    def surprisals_of_run(self, run: Run) -> np.ndarray:
        """Return the surprisals (G,) of the generated tokens in bits: -log₂ of their probability at temperature 1."""
        lm, _ = self.library.model(run.checkpoint)
        _, bits = self._surprisals.get((get_identity(lm), run), lambda: (run, self.compute_surprisals(run)))
        return bits

    def compute_surprisals(self, run: Run) -> np.ndarray:
        """Compute each token's surprisal given the window of tokens that the generator reads: one trace per window."""
        lm, _ = self.library.model(run.checkpoint)
        ids, context = np.array(run.token_ids), lm.config.context_length
        indices = np.arange(len(run.prompt), len(ids))
        starts = np.array([window_start(index, context) for index in indices])
        bits = np.empty(len(indices))
        for start in np.unique(starts):
            in_window = starts == start
            last = int(indices[in_window][-1])
            end = last + (last - start < context)  # if it fits, include the last token: then this is the visible trace
            logits = self.library.trace(run.checkpoint, tuple(ids[start:end].tolist()), run.edits).logits
            before = indices[in_window] - 1 - start
            bits[in_window] = (
                logits.log_sum_exp[before] - logits.token_logits(ids[indices[in_window]], before)
            ) / np.log(2)
        return bits
