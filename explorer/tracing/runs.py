"""What runs compute, asked of a library's models."""

from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

from explorer.language import _
from explorer.state.errors import UserError
from explorer.state.interventions import Intervention
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.tracing.comparison import Comparison
from explorer.tracing.contents import contents_of
from explorer.tracing.library import Library
from explorer.tracing.logits_cache import LogitsCache
from explorer.tracing.token_checks import check_ids
from explorer.tracing.trace import Trace
from explorer.tracing.translation import translated
from model.checkpoint import CheckpointError
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM


class Runs:
    """Traces and texts of runs.

    Every method raises CheckpointError where a run's model cannot be loaded, and UserError where its tokens are none of
    the model's.
    """

    def __init__(self, library: Library):
        self.library, self.logits_cache = library, LogitsCache(library)

    def model(self, checkpoint: str) -> tuple[TransformerLM, Tokenizer]:
        """The model and its tokenizer."""
        return self.library.model(checkpoint)

    def trace(self, run: Run) -> Trace:
        """What the model computes on the part of the run that it sees."""
        _lm, trace = self.held(run)
        return trace

    def held(self, run: Run) -> tuple[TransformerLM, Trace]:
        """The same, with the model: to be held as long as the trace is asked for weights, since it does not."""
        lm, tokenizer = self.model(run.checkpoint)
        return lm, self.library.trace_of(lm, tokenizer, self.seen(run), run.edits)

    def ready(self, run: Run) -> tuple[Intervention, ...]:
        """The run's changes with what they take of other runs, for passes of its model."""
        lm, tokenizer = self.model(run.checkpoint)
        return self.library.ready(lm, tokenizer, self.seen(run), run.edits)

    def logits(self, run: Run) -> Trace:
        """Of the same trace the logits alone, which take less as a text grows token by token; the whole trace of a
        changed run."""
        if run.edits:
            return self.trace(run)
        return self.logits_cache.trace(run.checkpoint, self.seen(run))

    def comparison(self, asked: PageState, of: Callable[[Run], Trace] | None = None) -> Comparison | None:
        """The run and the other that it is compared with, or of a changed one that without its changes; None of one
        that there is nothing to compare with.

        Args:
            of: what of both is compared: `trace`, or `logits` where these suffice.
        """
        of = of or self.trace
        trace = of(asked.run)
        if asked.seen_other:
            other = self.other(asked)
            two = Comparison.of(trace, of(other), asked.pins)
            return replace(two, prompts=(prompt_in(asked.run, trace), prompt_in(other, two.other)))
        return Comparison.with_unchanged(trace) if trace.baseline else None

    def other(self, asked: PageState) -> Run:
        """The other run, with the same text where it has none of its own.

        Raises:
            UserError: there is none.
        """
        run, other = asked.run, asked.other
        if other is None:
            raise UserError(_("there is no second run"))
        if other.prompt:
            return other
        (_lm, tokenizer), (_other_lm, other_tokenizer) = self.model(run.checkpoint), self.model(other.checkpoint)
        if (
            tokenizer.vocabulary == other_tokenizer.vocabulary
        ):  # the same ids, even where it would cut the text otherwise
            return replace(other, prompt=run.prompt, generated=run.generated, dropped=run.dropped)
        prompt = translated(run.prompt, tokenizer, other_tokenizer)
        generated = translated(run.generated, tokenizer, other_tokenizer, goes_on=True, before=run.prompt)
        if not prompt:
            raise UserError(_("The prompt is empty. Type a few words for the model to continue."))
        return replace(other, prompt=prompt, generated=generated)

    def seen(self, run: Run) -> tuple[int, ...]:
        """The part of the run that its model sees."""
        lm, _tokenizer = self.model(run.checkpoint)
        if run.token_ids:
            check_ids(lm.config, run.token_ids)  # those before are shown as text
        return run.window(lm.config.context_length)

    def text(self, run: Run) -> tuple[str, str]:
        """The prompt and the generated text."""
        _lm, tokenizer = self.model(run.checkpoint)
        return tokenizer.decode(run.prompt), tokenizer.decode_continuation(run.generated, run.prompt)

    def contents(self, checkpoint: str) -> str:
        """What a checkpoint's files say and where it runs: the same in every process that has the same."""
        try:
            files = contents_of(self.library.offered.place(checkpoint))
        except OSError:
            told = _("checkpoint {name!r} is being written: ask again in a moment", name=checkpoint)
            raise CheckpointError(told) from None
        return f"{files}@{self.library.device}"

    def version(self, checkpoint: str) -> str:
        """Tells a checkpoint's files from what they are once they were written anew, as in "llama-fables@0f3c9a12"."""
        return f"{checkpoint}@{crc32(self.contents(checkpoint).encode()):08x}"


def prompt_in(run: Run, trace: Trace) -> int:
    """How many of the tokens that the model sees are the prompt's."""
    return max(0, len(run.prompt) - (len(run.token_ids) - len(trace)))
