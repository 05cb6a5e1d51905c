"""Writing on: one token after another."""

import hashlib
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from model.decoder import IncrementalDecoder
from model.kv_cache import KVCache
from model.sampling import draw, sampling_distribution
from model.transformer_lm import TransformerLM


@dataclass(frozen=True)
class GenerationStep:
    """One generated token.

    Attributes:
        token_id: the token.
        probability: what it was drawn with, after temperature and top-k.
        u: the uniform random number in [0, 1) that drew it.
    """

    token_id: int
    probability: float
    u: float


def generate(
    lm: TransformerLM,
    token_ids: Sequence[int],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int | None = None,
    stop_tokens: Collection[int] = (),
    use_cache: bool = True,
) -> Iterator[GenerationStep]:
    """Continue `token_ids`, yielding each token as it is drawn; the same seed draws the same tokens.

    The model looks back at the tokens from `window_start` on. Ends after `max_new_tokens` or with a stop token.
    Forward hooks on the model act on every step, at the price of speed.

    Args:
        token_ids: the prompt, at least one token.
        temperature, top_k: see `sampling_distribution`.
        seed: of the random numbers; None takes a fresh one.
        stop_tokens: token ids after which to stop.
        use_cache: keep keys and values of earlier positions; without, every step runs over the whole window.

    Raises:
        ValueError: the prompt is empty, or a setting is out of its range (at the first step).
    """
    if not len(token_ids):
        raise ValueError("generation continues a prompt of at least one token, got none")
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be 0 or more, got {max_new_tokens}")
    if seed is None:
        seed = secrets.randbits(32)
    ids = list(token_ids)
    next_logits = CachedLogits(lm) if use_cache else UncachedLogits(lm)
    for _ in range(max_new_tokens):
        probabilities = sampling_distribution(next_logits(ids), temperature, top_k)
        u = luck(seed, position=len(ids))
        token_id = draw(probabilities, u)
        ids.append(token_id)
        yield GenerationStep(token_id, float(probabilities[token_id]), u)
        if token_id in stop_tokens:
            return


def luck(seed: int, position: int) -> float:
    """The uniform random number in [0, 1) that draws the token at a position.

    It depends on nothing else, so that writing on step by step draws the same tokens as writing in one go. A hash
    mixes the two; to set up a random generator anew at every step would take ten times as long.
    """
    digest = hashlib.sha256(f"{seed} {position}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53  # as many bits as a float64 holds


def window_start(num_tokens: int, context_length: int) -> int:
    """First of `num_tokens` tokens that the model sees: 0 while all fit.

    Past the context length the window moves on by a quarter of it at a time, not by one token, so that the cache is
    refilled only then.
    """
    hop = max(1, context_length // 4)
    overflow = max(0, num_tokens - context_length)
    return -(-overflow // hop) * hop


class UncachedLogits:
    """Logits (V,) of the next token, from scratch."""

    def __init__(self, lm: TransformerLM):
        self.lm = lm

    @torch.inference_mode()
    def __call__(self, ids: list[int]) -> np.ndarray:
        window = ids[window_start(len(ids), self.lm.config.context_length) :]
        return self.lm(torch.tensor([window], device=self.lm.device))[0, -1].float().cpu().numpy()


class CachedLogits:
    """The same, computing only the tokens that were not in the last call.

    Single tokens go through the `IncrementalDecoder`, unless somebody's hook wants to see or change the values inside.
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
            self.cache = KVCache(self.lm.config, device=self.lm.device, dtype=self.lm.token_embedding.weight.dtype)
            self.start = self.end = start
        new = ids[self.end :]
        self.end = len(ids)
        if len(new) == 1 and self.can_decode:
            self.decoder = self.decoder or IncrementalDecoder(self.lm)
            logits = self.decoder(new[0], self.cache)
        else:
            logits = self.lm(torch.tensor([new], device=self.lm.device), self.cache)[0, -1]
        return logits.float().cpu().numpy()  # (V,)

    @property
    def can_decode(self) -> bool:
        """Whether the decoder would compute what the model does: asked at each step, as hooks come and go."""
        dropout = self.lm.training and self.lm.config.dropout
        return not (any(self.hooks) or dropout) and self.lm.token_embedding.weight.dtype == torch.float32
