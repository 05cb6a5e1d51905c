"""Cache of answers by request: users of one class request the same prompt, and going back repeats requests."""

import hashlib
import json
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.tracing.jobs import is_incomplete
from explorer.tracing.lru_cache import LRUCache
from explorer.tracing.model_registry import get_identity
from explorer.tracing.run_service import RunService
from explorer.translations import current_locale
from explorer.views import VIEW_BY_NAME
from explorer.web.key_value_stores import FaultTolerantStore

ROOT = Path(__file__).parents[3]
SOURCE_PATTERNS = ("**/*.py", "**/*.mo")  # of the code and of what it is told in
LIBRARIES = ("torch", "numpy")
MAX_CACHE_BYTES = 64 << 20
BYTES_PER_TOKEN, OVERHEAD_BYTES = 40, 4096  # bytes per token id, and overhead per entry
SHARED_TTL_S = 3600.0


class AnswerCache:
    """Cache of JSON answers by all that they depend on: the request, the locale and the models' files.

    Not cached are incomplete answers, whose jobs are unfinished, views that read other files than the models', and
    the first stage of a page, which lists the available models.

    Args:
        runs: access to the models.
        max_bytes: bound of this process's cache.
        shared: store shared with other processes; None for none.
    """

    def __init__(self, runs: RunService, max_bytes: int = MAX_CACHE_BYTES, shared: FaultTolerantStore | None = None):
        self.runs, self.shared = runs, shared
        self._cache = LRUCache(max_bytes, size=entry_num_bytes)

    @property
    def num_bytes(self) -> int:
        return self._cache.total

    def answer(
        self, about: str, stage: int, page_state: PageState, settings: GenerationSettings, make: Callable[[], bytes]
    ) -> bytes:
        """Return the cached answer to a request, or compute and cache it.

        Args:
            about: scope of the request, see `BrowserEndpoints.answer`.
            stage: stage of the answer, see `BrowserEndpoints.answer`.
            make: computes the answer.

        Raises:
            UserError, CheckpointError: those of `RunService.model` and `make`.
        """
        is_first_stage = stage == 0 and (
            about == "show" or page_state.selection.lesson
        )  # lessons depend on more of the state than the key has
        if VIEW_BY_NAME[page_state.selection.view].reads_other_files or about == "token" or is_first_stage:
            return make()
        key = about, stage, replace(page_state, turn=0), settings, current_locale(), self.model_identities(page_state)
        if entry := self._cache.get_cached(key):
            return entry[1]
        answer = self.shared_answer(about, stage, page_state, settings, make) if self.shared else make()
        if not is_incomplete():
            self._cache.get(key, lambda: (page_state, answer))
        return answer

    def shared_answer(
        self, about: str, stage: int, page_state: PageState, settings: GenerationSettings, make: Callable[[], bytes]
    ) -> bytes:
        """Return another process's answer, or compute one and share it."""
        key = self.key(about, stage, page_state, settings)
        if (stored_answer := self.shared.get(key)) is not None:
            return stored_answer
        answer = make()
        if (
            not is_incomplete() and self.key(about, stage, page_state, settings) == key
        ):  # no model file changed meanwhile
            self.shared.put(key, answer, SHARED_TTL_S)
        return answer

    def key(self, about: str, stage: int, page_state: PageState, settings: GenerationSettings) -> str:
        """Return the request's key in the shared store: the state as in a URL, and the models' fingerprints."""
        runs = [page_state.run, page_state.other] if page_state.other else [page_state.run]
        models = [self.runs.model_fingerprint(run.checkpoint) for run in runs]
        key_fields = [about, stage, page_state.as_dict(), settings.as_dict(), current_locale(), models, code_version()]
        return hashlib.sha256(json.dumps(key_fields, sort_keys=True).encode()).hexdigest()

    def model_identities(self, page_state: PageState) -> tuple[Hashable, ...]:
        """Return the identities of the models of both runs, with their files as they are now."""
        runs = [page_state.run, page_state.other] if page_state.other else [page_state.run]
        return tuple(get_identity(self.runs.model(run.checkpoint)[0]) for run in runs)


def entry_num_bytes(entry: tuple[PageState, bytes]) -> int:
    """Return the approximate size of a cache entry in bytes."""
    page_state, answer = entry
    tokens = len(page_state.run.token_ids) + sum(len(branch.path) for branch in page_state.branches)
    tokens += len(page_state.other.token_ids) if page_state.other else 0
    return len(answer) + BYTES_PER_TOKEN * tokens + OVERHEAD_BYTES


@cache
def code_version(root: Path = ROOT) -> str:
    """Return a hash of all source files and catalogues, and of the versions of the numerical libraries.

    It is part of the key of cached answers.
    """
    digest = hashlib.sha256(repr([version(name) for name in LIBRARIES]).encode())
    for path in sorted(
        path
        for package in ("explorer", "model")
        for pattern in SOURCE_PATTERNS
        for path in (root / package).glob(pattern)
    ):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
