"""Answers by their questions: a class looks at the same prompt, and who goes back asks again."""

import hashlib
import json
from collections.abc import Callable, Hashable
from dataclasses import replace

from explorer.language import spoken
from explorer.state.page_state import PageState
from explorer.state.selection import OWN_TABS
from explorer.state.settings import GenerationSettings
from explorer.tracing.lru import LRU
from explorer.tracing.models import identity_of
from explorer.tracing.runs import Runs
from explorer.tracing.work import is_incomplete
from explorer.web.shared.code_version import code_version
from explorer.web.shared.going_without import GoingWithout

MOST_BYTES = 64 << 20
BYTES_A_TOKEN, BYTES_BESIDES = 40, 4096  # of what a question takes
SHARED_SECONDS = 3600.0
NOT_KEPT = ("training", *OWN_TABS)  # tabs that tell of files besides the models that ran


class KeptAnswers:
    """JSON by all that it depends on: what is asked, in which language, of which models' files.

    What anybody may still change is left out: what a job has yet to find, and a page's first part, which tells which
    models there are.

    Args:
        runs: know which models there are.
        most_bytes: of what this process keeps.
        shared: what other processes answer, too; None for none.
    """

    def __init__(self, runs: Runs, most_bytes: int = MOST_BYTES, shared: GoingWithout | None = None):
        self.runs, self.shared = runs, shared
        self._kept = LRU(most_bytes, size=bytes_of)

    @property
    def num_bytes(self) -> int:
        return self._kept.total

    def answer(
        self, about: str, part: int, asked: PageState, settings: GenerationSettings, make: Callable[[], bytes]
    ) -> bytes:
        """What is kept of the question, or else what `make` finds. Errors are those of `Runs.model` and `make`."""
        first = part == 0 and (about == "show" or asked.selection.lesson)  # lessons read more of the state than this
        if asked.selection.view in NOT_KEPT or about == "token" or first:
            return make()
        question = about, part, replace(asked, turn=0), settings, spoken(), self.models(asked)
        if kept := self._kept.get_kept(question):
            return kept[1]
        answer = self.shared_answer(about, part, asked, settings, make) if self.shared else make()
        if not is_incomplete():
            self._kept.get(question, lambda: (asked, answer))
        return answer

    def shared_answer(
        self, about: str, part: int, asked: PageState, settings: GenerationSettings, make: Callable[[], bytes]
    ) -> bytes:
        """Another process's, or else what `make` finds, which others then have, too."""
        key = self.key(about, part, asked, settings)
        if (found := self.shared.get(key)) is not None:
            return found
        answer = make()
        if not is_incomplete() and self.key(about, part, asked, settings) == key:  # no file was written meanwhile
            self.shared.put(key, answer, SHARED_SECONDS)
        return answer

    def key(self, about: str, part: int, asked: PageState, settings: GenerationSettings) -> str:
        """A question's name in every process: the state as an address has it, and what the models' files say."""
        runs = [asked.run, asked.other] if asked.other else [asked.run]
        models = [self.runs.contents(run.checkpoint) for run in runs]
        said = [about, part, asked.as_dict(), settings.as_dict(), spoken(), models, code_version()]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def models(self, asked: PageState) -> tuple[Hashable, ...]:
        """Those that run, as their files are now."""
        runs = [asked.run, asked.other] if asked.other else [asked.run]
        return tuple(identity_of(self.runs.model(run.checkpoint)[0]) for run in runs)


def bytes_of(kept: tuple[PageState, bytes]) -> int:
    asked, answer = kept
    tokens = len(asked.run.token_ids) + sum(len(branch.path) for branch in asked.branches)
    tokens += len(asked.other.token_ids) if asked.other else 0
    return len(answer) + BYTES_A_TOKEN * tokens + BYTES_BESIDES
