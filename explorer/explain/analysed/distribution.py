"""Numbers of the distribution that logits are: a token's probability, rank and surprisal, and the entropy of all."""

import math

import numpy as np

from explorer.explain.notation import number, summed
from explorer.explain.working import Input, Working
from explorer.language import _

Inputs = tuple[Input, ...]  # of the logits (V,)


def log_total(logits: np.ndarray) -> float:
    """ln Σ e^logits."""
    largest = float(logits.max())
    return largest + math.log(math.fsum(np.exp(logits - largest)))


def probability(logits: np.ndarray, token_id: int, inputs: Inputs) -> Working:
    total = log_total(logits)
    p = math.exp(logits[token_id] - total)
    numbers = f"p = e^({number(logits[token_id])} − {number(total)}) = {number(p)}"
    return Working(_("p = e^(logit − ln Σ e^logits)"), lambda: numbers, p, inputs)


def rank(logits: np.ndarray, token_id: int, inputs: Inputs) -> Working:
    likelier = sum(1 for logit in logits.tolist() if logit > logits[token_id])
    return Working(
        _("rank = 1 + how many tokens have a larger logit"),
        lambda: _("rank = 1 + {likelier:,} = {rank:,}", likelier=likelier, rank=likelier + 1),
        likelier + 1.0,
        inputs,
    )


def entropy(logits: np.ndarray, token_id: int, inputs: Inputs) -> Working:
    """Of all tokens, whichever is asked about."""
    shares = np.exp(logits - log_total(logits))
    terms = np.array([-p * math.log2(p) if p > 0 else 0.0 for p in shares.tolist()])
    bits = math.fsum(terms)
    return Working(
        _("entropy = −Σ p log₂ p"),
        lambda: _("entropy = {sum} = {bits} bits", sum=summed(terms), bits=number(bits)),
        bits,
        inputs,
    )


def surprisal(logits: np.ndarray, token_id: int, inputs: Inputs) -> Working:
    bits = (log_total(logits) - float(logits[token_id])) / math.log(2)
    p = probability(logits, token_id, inputs).value
    return Working(
        _("surprisal = −log₂ p, p = e^logit / Σ e^logits"),
        lambda: _("surprisal = −log₂ {p} = {bits} bits", p=number(p), bits=number(bits)),
        bits,
        inputs,
    )
