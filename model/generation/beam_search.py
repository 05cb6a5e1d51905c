"""Beam search: finding a likely text instead of drawing one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from model.layers.attention import KVCache
from model.transformer_lm import TransformerLM, check_finite


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
