"""What runs compute, asked of a library's models."""

from zlib import crc32

from explorer.state.run import Run
from explorer.tracing.capture import check_ids
from explorer.tracing.library import Library
from explorer.tracing.logits_cache import LogitsCache
from explorer.tracing.models import identity_of
from explorer.tracing.trace import Trace
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
        _, trace = self.held(run)
        return trace

    def held(self, run: Run) -> tuple[TransformerLM, Trace]:
        """The same, with the model: to be held as long as the trace is asked for weights, since it does not."""
        lm, tokenizer = self.model(run.checkpoint)
        return lm, self.library.trace_of(lm, tokenizer, self.seen(run), run.edits)

    def logits(self, run: Run) -> Trace:
        """Of the same trace the logits alone, which take less as a text grows token by token; the whole trace of a
        changed run."""
        if run.edits:
            return self.trace(run)
        return self.logits_cache.trace(run.checkpoint, self.seen(run))

    def seen(self, run: Run) -> tuple[int, ...]:
        """The part of the run that its model sees."""
        lm, _ = self.model(run.checkpoint)
        if run.token_ids:
            check_ids(lm.config, run.token_ids)  # those before are shown as text
        return run.window(lm.config.context_length)

    def text(self, run: Run) -> tuple[str, str]:
        """The prompt and the generated text."""
        _, tokenizer = self.model(run.checkpoint)
        return tokenizer.decode(run.prompt), tokenizer.decode(run.generated)

    def version(self, checkpoint: str) -> str:
        """Tells a checkpoint's files from what they are once they were written anew, as in "llama-fables@0f3c9a12"."""
        lm, _ = self.model(checkpoint)
        return f"{checkpoint}@{crc32(repr(identity_of(lm)).encode()):08x}"
