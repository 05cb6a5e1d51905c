"""From what is asked (a run, a selection, settings) to what the page shows; knows nothing of Gradio."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from explorer.analysis.attribution import attribution
from explorer.analysis.feed_forward import neurons
from explorer.analysis.next_token import NextToken, next_token
from explorer.analysis.shades import SHADES, shaded
from explorer.lessons.coach import advice
from explorer.lessons.examples import BUNDLED, Example, example_of
from explorer.lessons.looking_back import furthest_look
from explorer.state.branches import Branches, parse_branches, written
from explorer.state.errors import UserError
from explorer.state.run import Run
from explorer.state.selection import Selection, as_index
from explorer.state.settings import GenerationSettings
from explorer.tracing.capture import check_ids
from explorer.tracing.library import Library
from explorer.tracing.logits_cache import Predictions
from explorer.tracing.models import identity_of
from explorer.tracing.trace import Trace
from explorer.views import view_named
from explorer.views.prediction import explained
from explorer.web.open_view import OpenView
from explorer.web.widgets.distribution.words import summary
from model.generation import window_start
from model.transformer_lm import TransformerLM


@dataclass(frozen=True)
class Question:
    """The page's state: what runs, and what of it is looked at.

    Attributes:
        run: with the continuation that is shown.
        selection: what of it is looked at.
        branches: continuations of the same prompt besides it.
        began: how many tokens were generated before those that were written last.
        turn: counts what changed the run, so that the browser can tell what comes too late: the last tokens of a
            generation that was cancelled may arrive after what cancelled it.
    """

    run: Run
    selection: Selection
    branches: Branches = ()
    began: int = 0
    turn: int = 0

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> "Question":
        """UserError where the run makes no sense; of the selection, what makes none is left out."""
        if not isinstance(state, Mapping):
            raise UserError(f"the page's state is an object, got {state!r:.80}")
        selection, run = Selection.parse(state), Run.parse(state)
        began = min(as_index(state.get("began")) or 0, len(run.generated))
        branches = parse_branches(state.get("branches") or "")
        return cls(run, replace(selection, view=view_named(selection.view).name), branches, began, turn_of(state))

    def as_dict(self) -> dict[str, Any]:
        return self.run.as_dict() | self.selection.as_dict() | self.tree_as_dict()

    def tree_as_dict(self) -> dict[str, Any]:
        return {"branches": written(self.branches), "began": self.began}

    def as_change(self, change: Mapping[str, Any] | None = None, ask: str = "show") -> dict[str, Any]:
        """The change of the page's state to this run, and what the browser then asks for (see `Answers.answer`).

        Of the selection only the tokens, and what is in `change`: the rest may have been changed since by clicks.
        """
        tokens = {"query": self.selection.query, "key": self.selection.key}
        told = self.run.as_dict() | self.tree_as_dict() | tokens | {"turn": self.turn} | (change or {})
        return {"change": told, "ask": ask}


def turn_of(state: Mapping[str, Any]) -> int:
    return as_index(state.get("turn")) or 0


class Presenter:
    """Answers questions from the models of a library.

    Every method that takes a run raises CheckpointError where its model cannot be loaded, and UserError where its
    tokens are none of the model's.
    """

    def __init__(self, library: Library):
        self.library, self.predictions = library, Predictions(library)

    def run_of(self, checkpoint: str, text: str) -> Run:
        """The run of a prompt; of one longer than the context the part that `generate` would see, too. UserError if it
        is empty."""
        lm, tokenizer = self.library.model(checkpoint)
        if not isinstance(text, str):
            raise UserError(f"The prompt must be text, got {text!r}.")
        ids = tokenizer.encode(text)
        if not ids:
            raise UserError("The prompt is empty. Type a few words for the model to continue.")
        start = window_start(len(ids), lm.config.context_length)
        return Run(checkpoint, tuple(ids[start:]), dropped=start)

    def restored(self, state: Mapping[str, Any]) -> Question:
        """The question in a URL: its ids, or a prompt given as `text`; what it leaves open: where most is seen."""
        question = Question.parse(state)
        look = self.within
        if not question.run.prompt:
            run = self.run_of(question.run.checkpoint, str(state.get("text", "")))
            question = replace(question, run=replace(run, edits=question.run.edits))
            look = self.within if "query" in state else self.at_end
        return self._telling(look(question), state.keys())

    def _telling(self, question: Question, named: Collection[str]) -> Question:
        """Of what is not `named`: the head that the example points at, or else the one that moves the explained logit
        most; the neuron that writes most at the chosen token, as many do nothing there."""
        (_lm, trace), selection, example = self.held(question.run), question.selection, self._example(question.run)
        if not named & {"layer", "head"}:
            if example and not named & {"query", "key"}:
                selection = replace(selection, **example.place)
            else:
                heads = attribution(trace, selection.query, *explained(trace, selection)).heads  # (L, H)
                layer, head = np.unravel_index(np.abs(heads).argmax(), heads.shape)
                selection = replace(selection, layer=int(layer), head=int(head))
        if "neuron" not in named:
            strongest = neurons(trace, selection.layer, selection.query).top(1)
            selection = replace(selection, neuron=int(strongest[0]))
        return replace(question, selection=selection)

    def within(self, question: Question) -> Question:
        """The same run, looked at in the same place or in the nearest that exists."""
        return replace(question, selection=question.selection.within(self.trace(question.run)))

    def at_end(self, question: Question) -> Question:
        """The same run, looked at from its last token to the one before; what exists of the rest is kept."""
        last = len(self.trace(question.run)) - 1
        selection = replace(question.selection, query=last, key=max(0, last - 1))
        return self.within(replace(question, selection=selection))

    def trace(self, run: Run) -> Trace:
        """What the model computes on the part of the run that it sees."""
        _, trace = self.held(run)
        return trace

    def held(self, run: Run) -> tuple[TransformerLM, Trace]:
        """The same, with the model: to be held as long as the trace is asked for weights, since it does not."""
        lm, tokenizer = self.library.model(run.checkpoint)
        return lm, self.library.trace_of(lm, tokenizer, self.seen(run), run.edits)

    def logits(self, run: Run) -> Trace:
        """Of the same trace the logits alone, which take less as a text grows token by token; the whole trace of a
        changed run."""
        if run.edits:
            return self.trace(run)
        return self.predictions.trace(run.checkpoint, self.seen(run))

    def seen(self, run: Run) -> tuple[int, ...]:
        """The part of the run that its model sees."""
        lm, _ = self.library.model(run.checkpoint)
        if run.token_ids:
            check_ids(lm.config, run.token_ids)  # those before are shown as text
        return run.window(lm.config.context_length)

    def text(self, run: Run) -> tuple[str, str]:
        """The prompt and the generated text."""
        _, tokenizer = self.library.model(run.checkpoint)
        return tokenizer.decode(run.prompt), tokenizer.decode(run.generated)

    def strip(self, run: Run, trace: Trace) -> dict[str, Any]:
        """The tokens the model sees, and how many it does not.

        Args:
            trace: of the run; the logits suffice.
        """
        unseen = len(run.token_ids) - len(trace)
        return {
            "tokens": trace.tokens,
            "shades": {name: shaded(trace, name) for name in SHADES},
            "num_prompt": max(0, len(run.prompt) - unseen),
            "earlier": unseen + run.dropped,
        }

    def coach(self, run: Run) -> tuple[str, dict[str, Any] | None, str]:
        """What to look for in an example, or how to end the prompt better, or once there is more than a prompt, at what
        of it heads look back: a sentence, the selection that shows it, and the better prompt; empty where there is
        none."""
        if run.generated:
            trace = self.trace(run)
            look = furthest_look(trace, len(trace) - 1)
            return (look.words(trace), look.as_selection(), "") if look else ("", None, "")
        if example := self._example(run):
            return example.hint, example.look, ""
        _, tokenizer = self.library.model(run.checkpoint)
        text = tokenizer.decode(run.prompt)
        found = advice(self.trace(replace(run, generated=())))
        if found is None:
            return "", None, ""
        better = found.follow(text)
        whole = not run.dropped and tuple(tokenizer.encode(text)) == run.prompt  # or else the text is not all there is
        return found.words, None, better if whole and better != text else ""

    def _example(self, run: Run) -> Example | None:
        """The example that the run's prompt is, where what is said of it holds."""
        _, tokenizer = self.library.model(run.checkpoint)
        known = run.checkpoint == BUNDLED and not run.edits
        return example_of(tokenizer.decode(run.prompt)) if known else None

    def version(self, checkpoint: str) -> str:
        """Tells a checkpoint's files from what they are once they were written anew, as in "llama-fables@0f3c9a12"."""
        lm, _ = self.library.model(checkpoint)
        return f"{checkpoint}@{crc32(repr(identity_of(lm)).encode()):08x}"

    def open_view(self, question: Question) -> OpenView:
        lm, trace = self.held(question.run)
        return OpenView(view_named(question.selection.view), trace, question.selection.within(trace), lm)

    def next_token(
        self, question: Question, settings: GenerationSettings, trace: Trace
    ) -> tuple[NextToken, Sequence[str], str]:
        """The distribution after the selected token, the texts of all tokens, and the distribution in a sentence.

        Args:
            trace: of the run; the logits suffice.
        """
        position = min(question.selection.query, len(trace) - 1)
        prediction = next_token(
            trace,
            position,
            settings.temperature,
            settings.top_k,
            top_p=settings.top_p,
            min_p=settings.min_p,
            repetition_penalty=settings.repetition_penalty,
            seed=settings.seed,
            start=question.run.dropped + len(question.run.token_ids) - len(trace),
        )
        words = summary(prediction, trace.vocabulary, trace.tokens[position], position)
        return prediction, trace.vocabulary, words
