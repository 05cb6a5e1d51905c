"""Traces, texts and comparisons of runs."""

from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

from explorer.state.errors import UserError
from explorer.state.interventions import Intervention
from explorer.state.page_state import PageState
from explorer.state.run import Run
from explorer.tracing.checkpoint_fingerprint import checkpoint_fingerprint
from explorer.tracing.comparison import Comparison
from explorer.tracing.library import Library
from explorer.tracing.logits_cache import LogitsCache
from explorer.tracing.retokenize import retokenize
from explorer.tracing.token_validation import check_ids
from explorer.tracing.trace import Trace
from explorer.translations import _
from model.checkpoint import CheckpointError
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM


class RunService:
    """Traces and texts of runs.

    Every method raises CheckpointError if a run's model cannot be loaded, and UserError if the model cannot read
    its tokens.
    """

    def __init__(self, library: Library):
        self.library, self.logits_cache = library, LogitsCache(library)

    def model(self, checkpoint: str) -> tuple[TransformerLM, Tokenizer]:
        """Return the model and its tokenizer."""
        return self.library.model(checkpoint)

    def trace(self, run: Run) -> Trace:
        """Return the trace of the part of the run that the model sees."""
        _lm, trace = self.model_and_trace(run)
        return trace

    def model_and_trace(self, run: Run) -> tuple[TransformerLM, Trace]:
        """Return the trace of a run with its model, to be kept alive while the trace reads weights."""
        lm, tokenizer = self.model(run.checkpoint)
        return lm, self.library.trace_model(lm, tokenizer, self.visible_token_ids(run), run.edits)

    def resolve_patches(self, run: Run) -> tuple[Intervention, ...]:
        """Return the run's interventions with the values of their patches."""
        lm, tokenizer = self.model(run.checkpoint)
        return self.library.resolve_patches(lm, tokenizer, self.visible_token_ids(run), run.edits)

    def logits(self, run: Run) -> Trace:
        """Return a trace with the logits alone, which is faster while a text grows token by token.

        For a run with interventions, it is the whole trace.
        """
        if run.edits:
            return self.trace(run)
        return self.logits_cache.trace(run.checkpoint, self.visible_token_ids(run))

    def comparison(self, state: PageState, get_trace: Callable[[Run], Trace] | None = None) -> Comparison | None:
        """Return the comparison of the run with the second run, or else with its baseline; None if it has neither.

        Args:
            get_trace: returns the trace of a run: `trace`, or `logits` if these suffice.
        """
        get_trace = get_trace or self.trace
        trace = get_trace(state.run)
        if state.visible_other:
            other = self.other(state)
            comparison = Comparison.from_traces(trace, get_trace(other), state.pins)
            return replace(
                comparison,
                prompts=(
                    num_visible_prompt_tokens(state.run, trace),
                    num_visible_prompt_tokens(other, comparison.other),
                ),
            )
        return Comparison.with_unchanged(trace) if trace.baseline else None

    def other(self, state: PageState) -> Run:
        """Return the second run, with the first run's text if it has none of its own.

        Raises:
            UserError: there is none.
        """
        run, other = state.run, state.other
        if other is None:
            raise UserError(_("there is no second run"))
        if other.prompt:
            return other
        (_lm, tokenizer), (_other_lm, other_tokenizer) = self.model(run.checkpoint), self.model(other.checkpoint)
        if (
            tokenizer.vocabulary == other_tokenizer.vocabulary
        ):  # the same ids, even where it would cut the text otherwise
            return replace(other, prompt=run.prompt, generated=run.generated, dropped=run.dropped)
        prompt = retokenize(run.prompt, tokenizer, other_tokenizer)
        generated = retokenize(run.generated, tokenizer, other_tokenizer, is_continuation=True, previous_ids=run.prompt)
        if not prompt:
            raise UserError(_("The prompt is empty. Type a few words for the model to continue."))
        return replace(other, prompt=prompt, generated=generated)

    def visible_token_ids(self, run: Run) -> tuple[int, ...]:
        """Return the part of the run that its model sees."""
        lm, _tokenizer = self.model(run.checkpoint)
        if run.token_ids:
            check_ids(lm.config, run.token_ids)  # those before are shown as text
        return run.window(lm.config.context_length)

    def text(self, run: Run) -> tuple[str, str]:
        """Return the text of the prompt and the generated text."""
        _lm, tokenizer = self.model(run.checkpoint)
        return tokenizer.decode(run.prompt), tokenizer.decode_continuation(run.generated, run.prompt)

    def model_fingerprint(self, checkpoint: str) -> str:
        """Return the hash of a checkpoint's files, and the device; the same in all processes that have the same."""
        try:
            files = checkpoint_fingerprint(self.library.catalog.locate(checkpoint))
        except OSError:
            message = _("checkpoint {name!r} is being written: ask again in a moment", name=checkpoint)
            raise CheckpointError(message) from None
        return f"{files}@{self.library.device}"

    def version(self, checkpoint: str) -> str:
        """Return a name of this version of a checkpoint's files, for example "llama-fables@0f3c9a12"."""
        return f"{checkpoint}@{crc32(self.model_fingerprint(checkpoint).encode()):08x}"


def num_visible_prompt_tokens(run: Run, trace: Trace) -> int:
    """Return how many of the tokens that the model sees belong to the prompt."""
    return max(0, len(run.prompt) - (len(run.token_ids) - len(trace)))
