"""Traces, texts and comparisons of runs, and the logits of texts that grow token by token."""

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from explorer.errors import UserError
from explorer.interventions import Intervention
from explorer.state.page_state import PageState, RunRequest, common_prefix_length
from explorer.tracing.capture import module_outputs
from explorer.tracing.comparison import Comparison
from explorer.tracing.jobs import check_budget, compute_once
from explorer.tracing.lru_cache import LRUCache
from explorer.tracing.model_catalog import checkpoint_fingerprint
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.model_registry import ModelWeights, get_identity
from explorer.tracing.token_ids import check_ids, check_tokens, retokenize
from explorer.tracing.trace import LazyActivations, LogitSummary, Trace
from explorer.translations import _
from model.checkpoint import CheckpointError
from model.layers.attention import KVCache
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

MAX_LOGITS_CACHE_BYTES = 128 << 20


@dataclass(frozen=True)
class _CacheEntry:
    """The cached state of a text.

    Attributes:
        read: (T, D) input of the unembedding.
        cache: keys and values.
        summary: of the logits.
    """

    read: np.ndarray
    cache: KVCache
    summary: LogitSummary

    @property
    def nbytes(self) -> int:
        return self.read.nbytes + self.cache.entries.nbytes + self.summary.nbytes


class LogitsCache:
    """Traces with the logits alone, each continued from the cached state of its text.

    They serve generation at many tokens per second, where capturing all values again would take too long. The cache
    has the input of the unembedding and a summary of the logits. A text is cached once, at its greatest length:
    prefixes of it are part of it, since no token sees later ones.
    """

    def __init__(self, library: ModelLibrary):
        self.library = library
        self._cache = LRUCache(MAX_LOGITS_CACHE_BYTES, size=lambda entry: entry.nbytes)

    def trace(self, checkpoint: str, token_ids: tuple[int, ...]) -> Trace:
        """Return a trace with the logits after every token; it holds the model, and should not be kept.

        Raises as `ModelLibrary.trace` does.
        """
        lm, tokenizer = self.library.model(checkpoint)
        check_tokens(lm.config, token_ids)
        nearest = self._nearest(lm, token_ids)
        text = nearest if nearest[: len(token_ids)] == token_ids else token_ids
        model = self.library.identity(lm)
        entry = self._cache.get((model, text), lambda: self._extend(lm, text, nearest))
        if len(nearest) < len(text) and text[: len(nearest)] == nearest:  # it is the beginning of this one now
            self._cache.drop(lambda key: key == (model, nearest))
        values = _make_activations(lm, model, token_ids, entry.read, entry.summary)
        metadata = {"token_bytes": tokenizer.bytes_of_ids, "merge_rules": tokenizer.merge_rules, "model": model}
        return Trace(lm.config, token_ids, tokenizer.vocabulary, values, ModelWeights(model), **metadata)

    def _nearest(self, lm: TransformerLM, token_ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the cached text of the model with the longest common prefix."""
        model = get_identity(lm)
        texts = [text for owner, text in self._cache if owner == model]
        return max(texts, key=lambda text: common_prefix_length(text, token_ids), default=())

    def _extend(self, lm: TransformerLM, token_ids: tuple[int, ...], nearest: tuple[int, ...]) -> _CacheEntry:
        """Compute the cached state of a text, starting from the common prefix with a cached one."""
        model = get_identity(lm)
        if entry := self._cache.peek((model, nearest)):
            num_shared, cache = (
                common_prefix_length(nearest, token_ids),
                copy.deepcopy(entry.cache),
            )  # others may go on from it, too
            cache.length, earlier, summary = num_shared, entry.read[:num_shared], entry.summary.first(num_shared)
        else:
            earlier, summary = np.empty((0, lm.config.d_model), np.float32), None
            cache = KVCache(lm.config, device=lm.device, dtype=lm.dtype)
        check_budget(tokens=len(token_ids) - len(earlier))
        new = token_ids[len(earlier) :]
        outputs, _dtype = module_outputs(lm, new, (), {"final_norm": lm.final_norm}, lm.final_norm, cache)
        cache.length = len(token_ids)
        final_norm = np.concatenate([earlier, outputs["final_norm"]])
        return _CacheEntry(
            final_norm, cache, _make_activations(lm, model, token_ids, final_norm, summary).logits.summary
        )


def _make_activations(
    lm: TransformerLM, model: Hashable, token_ids: tuple[int, ...], final_norm: np.ndarray, summary: LogitSummary | None
) -> LazyActivations:
    """Return the activations of a text from the unembedding's input.

    The input and the summary may be those of a longer text that starts with this one.
    """
    length = len(token_ids)
    shapes = {"final_norm": (length, lm.config.d_model), "logits": (length, lm.config.vocab_size)}
    cached = summary and summary.first(length)
    return LazyActivations({"final_norm": final_norm[:length]}, shapes, model, token_ids, holds=lm, summary=cached)


class RunService:
    """Traces and texts of runs.

    Every method raises CheckpointError if a run's model cannot be loaded, and UserError if the model cannot read
    its tokens.
    """

    def __init__(self, library: ModelLibrary):
        self.library, self.logits_cache = library, LogitsCache(library)

    def model(self, checkpoint: str) -> tuple[TransformerLM, Tokenizer]:
        """Return the model and its tokenizer."""
        return self.library.model(checkpoint)

    def trace(self, run: RunRequest) -> Trace:
        """Return the trace of the part of the run that the model sees."""
        _lm, trace = self.model_and_trace(run)
        return trace

    def model_and_trace(self, run: RunRequest) -> tuple[TransformerLM, Trace]:
        """Return the trace of a run with its model, to be kept alive while the trace reads weights."""
        lm, tokenizer = self.model(run.checkpoint)
        return lm, self.library.trace_model(lm, tokenizer, self.visible_token_ids(run), run.edits)

    def resolve_patches(self, run: RunRequest) -> tuple[Intervention, ...]:
        """Return the run's interventions with the values of their patches."""
        lm, tokenizer = self.model(run.checkpoint)
        return self.library.resolve_patches(lm, tokenizer, self.visible_token_ids(run), run.edits)

    def logits(self, run: RunRequest) -> Trace:
        """Return a trace with the logits alone, which is faster while a text grows token by token.

        For a run with interventions, it is the whole trace.
        """
        if run.edits:
            return self.trace(run)
        return self.logits_cache.trace(run.checkpoint, self.visible_token_ids(run))

    def comparison(self, state: PageState, get_trace: Callable[[RunRequest], Trace] | None = None) -> Comparison | None:
        """Return the comparison of the run with the second run, or else with its baseline; None if it has neither.

        Args:
            get_trace: returns the trace of a run: `trace`, or `logits` if these suffice.
        """
        get_trace = get_trace or self.trace
        trace = get_trace(state.run)
        if state.visible_second_run:
            other = self.second_run(state)
            comparison = Comparison.from_traces(trace, get_trace(other), state.pins)
            return replace(
                comparison,
                prompts=(
                    num_visible_prompt_tokens(state.run, trace),
                    num_visible_prompt_tokens(other, comparison.other),
                ),
            )
        return Comparison.with_unchanged(trace) if trace.baseline else None

    def second_run(self, state: PageState) -> RunRequest:
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

    def visible_token_ids(self, run: RunRequest) -> tuple[int, ...]:
        """Return the part of the run that its model sees."""
        lm, _tokenizer = self.model(run.checkpoint)
        if run.token_ids:
            check_ids(lm.config, run.token_ids)  # those before are shown as text
        return run.window(lm.config.context_length)

    def text(self, run: RunRequest) -> tuple[str, str]:
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

        def read() -> str:
            return f"{checkpoint}@{crc32(self.model_fingerprint(checkpoint).encode()):08x}"

        return compute_once((self, checkpoint), read)


def num_visible_prompt_tokens(run: RunRequest, trace: Trace) -> int:
    """Return how many of the tokens that the model sees belong to the prompt."""
    return max(0, len(run.prompt) - (len(run.token_ids) - len(trace)))
