"""Autoregressive generation: one token after another, until a stop string; and beam search for a likely text."""

import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from model.config import window_start
from model.generation.incremental_decoder import IncrementalDecoder
from model.generation.sampling import sampling_stages, uniform_draw
from model.layers.attention import KVCache
from model.tokenizer import Tokenizer, replace_surrogates
from model.transformer_lm import TransformerLM, check_finite


class StopStringScanner:
    """A scanner of a growing text for the first complete stop string.

    A token may hold the end of a string and more, and a string may be spread over several tokens; bytes are
    compared, since a token may end within a character.

    Args:
        strings: the stop strings, or a single one; empty ones are ignored.
        tokenizer: gives the tokens' bytes; needed if there is a string.

    Raises:
        ValueError: there are strings but no tokenizer.
    """

    def __init__(self, strings: str | Collection[str], tokenizer: Tokenizer | None):
        strings = [strings] if isinstance(strings, str) else strings
        self.strings = {string.encode(): string for string in map(replace_surrogates, strings) if string}
        if self.strings and tokenizer is None:
            raise ValueError("stop strings are found in the tokens' bytes: pass the model's tokenizer, too")
        self.tokenizer = tokenizer
        self.longest = max(map(len, self.strings), default=0)
        self.tail = b""  # the last bytes, as many as could begin a string

    def add_token(self, token_id: int) -> str | None:
        """Append a token; return the stop string that it completes, the earliest if several, or None."""
        if not self.strings:
            return None
        text = self.tail + self.tokenizer.token_bytes(token_id)
        self.tail = text[max(0, len(text) - self.longest + 1) :]
        ends = {text.find(string) + len(string): string for string in self.strings if string in text}
        return self.strings[ends[min(ends)]] if ends else None


def truncate_at_stop(text: str, stopped_by: str | None) -> str:
    """Return a generated text up to the end of the stop string that ended it.

    The text is returned whole if the stop string is not in it, as where decoding removed a space at one of its
    ends.
    """
    return text if stopped_by is None or stopped_by not in text else text[: text.index(stopped_by) + len(stopped_by)]


@dataclass(frozen=True)
class GenerationStep:
    """A generated token.

    Attributes:
        token_id: the token.
        probability: its probability in the distribution it was drawn from, after all settings.
        u: the uniform random number in [0, 1) that drew it.
        stopped_by: the stop string that this token completed, which ends the text; None if there is none.
    """

    token_id: int
    probability: float
    u: float
    stopped_by: str | None = None


def generate(
    lm: TransformerLM,
    token_ids: Sequence[int],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int | None = None,
    stop_tokens: Collection[int] = (),
    stop_strings: str | Collection[str] = (),
    tokenizer: Tokenizer | None = None,
    use_cache: bool = True,
    num_dropped: int = 0,
) -> Iterator[GenerationStep]:
    """Continue `token_ids`, yielding each token as it is drawn; the same seed draws the same tokens.

    The model attends to the tokens from `window_start` on. Ends after `max_new_tokens`, with a stop token, or with
    the token that completes a stop string; `truncate_at_stop` cuts off what that token holds after it.
    Forward hooks on the model act on every step, at the price of speed.

    Args:
        token_ids: the prompt, at least one token.
        temperature, top_k, top_p, min_p: see `sampling_stages`.
        repetition_penalty: see `sampling_stages`; it applies to the tokens in the window.
        seed: of the random numbers; None takes a fresh one.
        stop_tokens: token ids after which to stop.
        stop_strings: texts after which to stop, or a single one; the prompt's text does not count.
        tokenizer: gives the tokens' texts; needed for stop strings only.
        use_cache: cache keys and values of earlier positions; without, every step recomputes the whole window.
        num_dropped: number of tokens before `token_ids` that were dropped because `window_start` leaves them out
            anyway; with it the random numbers are those of the whole text.

    Raises:
        ValueError: the prompt is empty, a setting is out of its range, or there are stop strings but no tokenizer
            (at the first step).
        NonFiniteLogitsError: the model's numbers are too large for the type that it computes with.
    """
    if not len(token_ids):
        raise ValueError("generation continues a prompt of at least one token, got none")
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be 0 or more, got {max_new_tokens}")
    if seed is None:
        seed = secrets.randbits(32)
    settings = {"top_p": top_p, "min_p": min_p, "repetition_penalty": repetition_penalty}
    stops = StopStringScanner(stop_strings, tokenizer)
    ids = list(token_ids)
    next_logits = NextLogitsWithCache(lm) if use_cache else NextLogitsWithoutCache(lm)
    for _ in range(max_new_tokens):
        visible_ids = ids[window_start(len(ids), lm.config.context_length) :]
        logits = next_logits(ids)
        check_finite(torch.from_numpy(logits), lm.dtype)
        stages = sampling_stages(logits, temperature, top_k, previous=visible_ids, **settings)
        u = uniform_draw(seed, position=num_dropped + len(ids))
        token_id, probability = stages.draw(u)
        ids.append(token_id)
        stopped_by = None if token_id in stop_tokens else stops.add_token(token_id)
        yield GenerationStep(token_id, probability, u, stopped_by)
        if token_id in stop_tokens or stopped_by is not None:
            return


class NextLogitsWithoutCache:
    """Next-token logits (V,), recomputed over the whole window at every call."""

    def __init__(self, lm: TransformerLM):
        self.lm = lm

    @torch.inference_mode()
    def __call__(self, ids: list[int]) -> np.ndarray:
        window = ids[window_start(len(ids), self.lm.config.context_length) :]
        return self.lm(torch.tensor([window], device=self.lm.device))[0, -1].float().cpu().numpy()


class NextLogitsWithCache:
    """Next-token logits (V,), computing only the tokens that were not in the last call.

    Single tokens go through the `IncrementalDecoder`, unless a hook may read or change values inside the model.
    """

    def __init__(self, lm: TransformerLM):
        self.lm = lm
        self.start = self.end = 0  # the cache holds tokens start to end
        self.cache = self.decoder = None
        self.hooks = [hooks for module in lm.modules() for hooks in (module._forward_pre_hooks, module._forward_hooks)]

    @torch.inference_mode()
    def __call__(self, ids: list[int]) -> np.ndarray:
        start = window_start(len(ids), self.lm.config.context_length)
        if self.cache is None or start != self.start:
            self.cache = KVCache(self.lm.config, device=self.lm.device, dtype=self.lm.dtype)
            self.start = self.end = start
        new_ids = ids[self.end :]
        self.end = len(ids)
        if len(new_ids) == 1 and self.can_decode:
            self.decoder = self.decoder or IncrementalDecoder(self.lm)
            logits = self.decoder(new_ids[0], self.cache)
        else:
            batch = torch.tensor([new_ids], device=self.lm.device)
            has_hooks = any(self.hooks)  # maybe for the logits of earlier tokens, too
            logits = self.lm(batch, self.cache, last_only=not has_hooks)[0, -1]
        return logits.float().cpu().numpy()  # (V,)

    @property
    def can_decode(self) -> bool:
        """True if the decoder would compute what the model does.

        Read at each step, because hooks may be added or removed between steps.
        """
        dropout = self.lm.training and self.lm.config.dropout
        plain = self.lm.dtype == torch.float32 and not self.lm.offloaded
        return plain and not (any(self.hooks) or dropout)


@dataclass(frozen=True)
class BeamHypothesis:
    """A candidate continuation.

    Attributes:
        token_ids: the tokens after the prompt; a stop token is the last.
        log_probabilities: natural logarithm of each token's probability given the tokens before it.
    """

    token_ids: tuple[int, ...] = ()
    log_probabilities: tuple[float, ...] = ()

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)

    def score(self, length_penalty: float) -> float:
        """Return log p / nᵅ for n tokens and α = `length_penalty`.

        Wu et al. 2016, eq. 14, in transformers' simpler form.
        """
        return self.log_probability / len(self.token_ids) ** length_penalty


@torch.inference_mode()
def beam_search(
    lm: TransformerLM,
    token_ids: Sequence[int],
    *,
    num_beams: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
    stop_tokens: Collection[int] = (),
) -> list[BeamHypothesis]:
    """Continue `token_ids`, keeping only the likeliest `num_beams` hypotheses at each step.

    Ends when no unfinished hypothesis can still score better than the finished ones; one beam is greedy search.

    Args:
        token_ids: the prompt, at least one token.
        num_beams: hypotheses kept; if it is the number of texts of `max_new_tokens`, the search is exhaustive.
        max_new_tokens: largest number of tokens of a hypothesis, at least one.
        length_penalty: α of `BeamHypothesis.score`; 0 prefers short texts, larger values prefer longer ones.
        stop_tokens: token ids that end a hypothesis.

    Returns:
        at most `num_beams` hypotheses, the best score first.

    Raises:
        ValueError: the prompt is empty, a number is below one, or prompt and continuation do not fit the context.
        NonFiniteLogitsError: the model's numbers are too large for the type that it computes with.
    """
    if min(len(token_ids), num_beams, max_new_tokens) < 1:
        raise ValueError(
            f"beam search takes a prompt, beams and new tokens, at least one of each, got {len(token_ids)} prompt "
            f"tokens, {num_beams} beams and {max_new_tokens} new tokens"
        )
    context = lm.config.context_length
    if len(token_ids) + max_new_tokens - 1 > context:  # the last one is not read
        raise ValueError(
            f"{len(token_ids)} prompt and {max_new_tokens} new tokens do not fit the model's context of {context}"
        )
    running, finished = [BeamHypothesis()], []
    cache = KVCache(lm.config, device=lm.device, dtype=lm.dtype)
    logits = lm(torch.tensor([list(token_ids)], device=lm.device), cache)[:, -1]  # (R, V), of the R running ones
    for length in range(1, max_new_tokens + 1):
        check_finite(logits, lm.dtype)
        running, stopped, parents = extend_hypotheses(
            running, logits.float().log_softmax(-1).cpu(), num_beams, stop_tokens
        )
        finished += stopped if length < max_new_tokens else stopped + running
        finished = sorted(finished, key=lambda hypothesis: hypothesis.score(length_penalty), reverse=True)[:num_beams]
        if length == max_new_tokens or not running:
            break
        # Going on only lowers log p, and for the best is done in the number of tokens that lowers the score least.
        best_possible_score = (
            running[0].log_probability / (max_new_tokens if length_penalty > 0 else length) ** length_penalty
        )
        if len(finished) == num_beams and best_possible_score <= finished[-1].score(length_penalty):
            break
        cache.entries = cache.entries[:, :, parents]
        logits = lm(torch.tensor([hypothesis.token_ids[-1:] for hypothesis in running], device=lm.device), cache)[:, -1]
    return finished


def extend_hypotheses(
    running: list[BeamHypothesis], log_p: torch.Tensor, num_beams: int, stop_tokens: Collection[int]
) -> tuple[list[BeamHypothesis], list[BeamHypothesis], list[int]]:
    """Extend R hypotheses by their likeliest next tokens, given log p (R, V) of every token after each.

    Returns:
        the `num_beams` likeliest that continue, the likeliest first; those that end and are among the `num_beams`
        likeliest of all; for each that continues the index of the hypothesis it extends.
    """
    totals = torch.tensor([[hypothesis.log_probability] for hypothesis in running]) + log_p  # (R, V)
    num_candidates = min(num_beams * (1 + len(stop_tokens)), totals.numel())  # even if all those that could end do
    continuing, stopped, parents = [], [], []
    for rank, index in enumerate(totals.flatten().topk(num_candidates).indices.tolist()):
        parent, token_id = divmod(index, log_p.shape[1])
        parent_hypothesis, log_probability = running[parent], log_p[parent, token_id].item()
        extended = BeamHypothesis(
            (*parent_hypothesis.token_ids, token_id), (*parent_hypothesis.log_probabilities, log_probability)
        )
        if token_id in stop_tokens:
            stopped += [extended] * (rank < num_beams)
        elif len(continuing) < num_beams:
            continuing.append(extended)
            parents.append(parent)
    return continuing, stopped, parents
