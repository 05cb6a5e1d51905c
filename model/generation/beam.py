"""Beam search: looking for a likely text instead of drawing one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from model.kv_cache import KVCache
from model.overflow import check_finite
from model.transformer_lm import TransformerLM


@dataclass(frozen=True)
class Hypothesis:
    """One way to go on.

    Attributes:
        token_ids: those after the prompt; a stop token is the last.
        log_probabilities: natural logarithm of each one's probability after those before it.
    """

    token_ids: tuple[int, ...] = ()
    log_probabilities: tuple[float, ...] = ()

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)

    def score(self, length_penalty: float) -> float:
        """log p / nᵅ for n tokens and α = `length_penalty` (Wu et al. 2016, eq. 14, in transformers' simpler form)."""
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
) -> list[Hypothesis]:
    """The continuations of `token_ids` found by keeping, at each step, only the likeliest `num_beams` so far.

    Ends when no hypothesis that goes on can still be better than those found; with one beam it is the greedy search.

    Args:
        token_ids: the prompt, at least one token.
        num_beams: hypotheses kept; with as many as there are texts of `max_new_tokens` the search is exhaustive.
        max_new_tokens: most tokens of a hypothesis, at least one.
        length_penalty: α of `Hypothesis.score`; 0 prefers short texts, more prefers longer ones.
        stop_tokens: token ids that end a hypothesis.

    Returns:
        at most `num_beams` hypotheses, the best score first.

    Raises:
        ValueError: the prompt is empty, a number is below one, or prompt and continuation do not fit the context.
        OverflowedRunError: the model's numbers are too large for the type that it computes with.
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
    running, finished = [Hypothesis()], []
    cache = KVCache(lm.config, device=lm.device, dtype=lm.dtype)
    logits = lm(torch.tensor([list(token_ids)], device=lm.device), cache)[:, -1]  # (R, V), of the R running ones
    for length in range(1, max_new_tokens + 1):
        check_finite(logits, lm.dtype)
        running, stopped, parents = extended(running, logits.float().log_softmax(-1).cpu(), num_beams, stop_tokens)
        finished += stopped if length < max_new_tokens else stopped + running
        finished = sorted(finished, key=lambda found: found.score(length_penalty), reverse=True)[:num_beams]
        if length == max_new_tokens or not running:
            break
        # Going on only lowers log p, and for the best is done in the number of tokens that lowers the score least.
        hoped_for = running[0].log_probability / (max_new_tokens if length_penalty > 0 else length) ** length_penalty
        if len(finished) == num_beams and hoped_for <= finished[-1].score(length_penalty):
            break
        cache.entries = cache.entries[:, :, parents]
        logits = lm(torch.tensor([found.token_ids[-1:] for found in running], device=lm.device), cache)[:, -1]
    return finished


def extended(
    running: list[Hypothesis], log_p: torch.Tensor, num_beams: int, stop_tokens: Collection[int]
) -> tuple[list[Hypothesis], list[Hypothesis], list[int]]:
    """The likeliest ways to lengthen R hypotheses by a token, given log p (R, V) of each and every token.

    Returns:
        the `num_beams` likeliest that go on, the likeliest first; those that end and are among the `num_beams`
        likeliest of all; for each that goes on the index of the one it lengthens.
    """
    totals = torch.tensor([[hypothesis.log_probability] for hypothesis in running]) + log_p  # (R, V)
    enough = min(num_beams * (1 + len(stop_tokens)), totals.numel())  # even if all those that could end do
    following, stopped, parents = [], [], []
    for place, index in enumerate(totals.flatten().topk(enough).indices.tolist()):
        parent, token_id = divmod(index, log_p.shape[1])
        before, log_probability = running[parent], log_p[parent, token_id].item()
        longer = Hypothesis((*before.token_ids, token_id), (*before.log_probabilities, log_probability))
        if token_id in stop_tokens:
            stopped += [longer] * (place < num_beams)
        elif len(following) < num_beams:
            following.append(longer)
            parents.append(parent)
    return following, stopped, parents
